"""Why not: at which step a search drops a file or a line, and what brings it up."""

from __future__ import annotations

from shlex import quote
from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from clawmark.memory import Memory
from clawmark.model.values import parse_citation
from clawmark.model.why_not import Remedy, WhyNot
from clawmark.web.markdown import file_address
from clawmark.web.pages.evidence import Sum, sum_up
from clawmark.web.pages.search import Asked, asked_of
from clawmark.web.render import page


class Helps(NamedTuple):
    """Something that brings the passage up."""

    what: str
    address: str
    """The search to try it; empty if the page cannot."""
    command: str
    """The command to try it; empty if an address is enough."""


class WhyNotPage(NamedTuple):
    """The model of the page; without an answer, only its form is shown."""

    asked: Asked
    target: str
    found: WhyNot | None = None
    address: str = ""
    sum: Sum | None = None
    helps: tuple[Helps, ...] = ()


def why_not_page(memory: Memory, asked: Asked, target: str) -> WhyNotPage:
    """Ask the memory about a file or a line, named by its path or a citation."""
    if not asked.q.strip() or not target.strip():
        return WhyNotPage(asked, target)
    found = memory.why_not(
        asked.q,
        target.strip(),
        since=asked.since or None,
        until=asked.until or None,
        within=asked.path or None,
        source=asked.source or None,
    )
    cited = parse_citation(found.citation)
    return WhyNotPage(
        asked=asked,
        target=target,
        found=found,
        address=file_address(cited.path, cited.start),
        sum=sum_up(found.story) if found.story is not None and found.story.factors else None,
        helps=tuple(_helps(asked, one) for one in found.remedies),
    )


def _helps(asked: Asked, remedy: Remedy) -> Helps:
    is_other_search = remedy.query != asked.q or bool(remedy.removed)
    without = dict.fromkeys(remedy.removed, "")
    return Helps(
        what=remedy.what,
        address=asked.address(**{"q": remedy.query, "explain": "", **without})
        if is_other_search and not remedy.flags
        else "",
        command=f"clawmark search {quote(remedy.query)} {remedy.flags}" if remedy.flags else "",
    )


def _show(request: Request) -> Response:
    memory: Memory = request.app.state.site.memory
    target = request.query_params.get("target", "")
    return page(request, "why_not.html", why_not_page(memory, asked_of(request), target))


routes = [Route("/why-not", _show)]
