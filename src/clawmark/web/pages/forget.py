"""Forget something for good: the plan with every place where it lives, then a confirmation."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from clawmark.agent.forget.values import ForgetPlan, ForgetReport, FoundText
from clawmark.agent.forget.wording import HEADINGS, describe_report
from clawmark.memory import Memory
from clawmark.model.errors import ClawmarkError, WorkspaceError
from clawmark.model.values import parse_citation
from clawmark.web.markdown import file_address
from clawmark.web.render import form, page

WAYS = ("lines", "text", "path", "session", "source")
"""In which ways an address can say what to forget; exactly one is used."""
PLACES_SHOWN = 50
_COUNTS = tuple(name for name in ForgetReport._fields if name not in ("unreachable", "resumed"))

MOST_DIGITS = 9
"""Of a count in an address."""


class Places(NamedTuple):
    """The places of one kind."""

    heading: str
    total: int
    shown: tuple[FoundText, ...]


class ForgetPage(NamedTuple):
    """The model of the plan; without `what`, only the form is shown."""

    way: str = ""
    what: str = ""
    places: tuple[Places, ...] = ()
    unreachable: tuple[str, ...] = ()
    digest: str = ""
    """Identifies the plan: what is confirmed is what was shown."""
    problem: str = ""
    back: str = "/timeline"
    """The address for those who decide not to."""


class ForgottenPage(NamedTuple):
    """The model of the page after it."""

    sentence: str
    path: str
    """The file in which it stood, if it is still there."""


def forget_page(memory: Memory, way: str, what: str, problem: str = "") -> ForgetPage:
    """Plan to forget something; nothing is changed."""
    return _shown(memory.plan_forget(**{way: what}), way, what, problem)


def _shown(plan: ForgetPlan, way: str, what: str, problem: str) -> ForgetPage:
    groups = list[Places]()
    for kind, heading in HEADINGS.items():
        found = [one for one in plan.found if one.kind == kind]
        if found:
            groups.append(Places(heading, len(found), tuple(found[:PLACES_SHOWN])))
    return ForgetPage(
        way=way,
        what=what,
        places=tuple(groups),
        unreachable=plan.unreachable,
        digest=digest_of_plan(plan),
        problem=problem,
        back=_back(way, what),
    )


def _back(way: str, what: str) -> str:
    if way not in ("lines", "path"):
        return "/timeline"
    named = parse_citation(what)
    return file_address(named.path, named.start if named.lines else 0)


def digest_of_plan(plan: ForgetPlan) -> str:
    """Return a hash of what a plan removes."""
    removed = (plan.entries, plan.local, plan.files, plan.transcripts, plan.sessions, plan.sources)
    return hashlib.sha256(json.dumps(removed).encode()).hexdigest()


def carry_out(memory: Memory, way: str, what: str, digest: str) -> ForgetReport | ForgetPage:
    """Forget what was shown; if the plan is another one by now, it is shown again."""
    plan = memory.plan_forget(**{way: what})
    if digest_of_plan(plan) != digest:
        problem = "The memory has changed since this plan was made. This is the plan now."
        return _shown(plan, way, what, problem)
    return memory.forget(plan)


def asked(fields: Mapping[str, str]) -> tuple[str, str]:
    """Return in which way an address or a form says what to forget, and what; empty for neither."""
    given = [(way, fields[way].strip()) for way in WAYS if fields.get(way, "").strip()]
    if len(given) > 1:
        raise WorkspaceError(
            "The address says in more than one way what to forget.",
            hint="Open the plan again from a file, a day or the form on /forget.",
        )
    return given[0] if given else ("", "")


def forgotten_page(memory: Memory, fields: Mapping[str, str]) -> ForgottenPage:
    """Describe what was done from the counts in the address."""
    counts: dict[str, Any] = {
        name: int(fields[name][:MOST_DIGITS])
        for name in _COUNTS
        if fields.get(name, "").isdecimal()
    }
    report = ForgetReport()._replace(**counts)
    path = parse_citation(fields.get("path", "")).path
    try:
        is_there = bool(path) and memory.workspace.exists(path)
    except ClawmarkError:
        is_there = False
    return ForgottenPage(describe_report(report), path if is_there else "")


def _forget(request: Request) -> Response:
    memory: Memory = request.app.state.site.memory
    if request.method != "POST":
        way, what = asked(request.query_params)
        model = forget_page(memory, way, what) if way else ForgetPage()
        return page(request, "forget.html", model)
    fields = form(request)
    way, what = asked(fields)
    if not way:
        raise WorkspaceError("The form does not say what to forget.", hint="Open /forget again.")
    done = carry_out(memory, way, what, fields.get("digest", ""))
    if isinstance(done, ForgetPage):
        return page(request, "forget.html", done, status=409)
    counts = {name: int(getattr(done, name)) for name in _COUNTS if getattr(done, name)}
    where = {"path": what} if way in ("lines", "path") else {}
    return RedirectResponse(f"/forgotten?{urlencode({**counts, **where})}", 303)


def _forgotten(request: Request) -> Response:
    memory: Memory = request.app.state.site.memory
    return page(request, "forgotten.html", forgotten_page(memory, request.query_params))


routes = [
    Route("/forget", _forget, methods=["GET", "POST"]),
    Route("/forgotten", _forgotten),
]
