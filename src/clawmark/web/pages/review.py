"""Review: the changes that agents propose, one proposal at a time, to accept, reject or edit."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from clawmark.agent.review.hunks import Hunk, NoLongerApplies, hunk_diff
from clawmark.agent.review.proposals import Proposal
from clawmark.agent.review.wording import describe_origin
from clawmark.memory import Memory
from clawmark.model.errors import ClawmarkError, ReviewError
from clawmark.model.values import parse_citation
from clawmark.web.diffs import DiffLine
from clawmark.web.entries import TRUST_WORDS, minute_of
from clawmark.web.markdown import file_address
from clawmark.web.render import form, page

CITED_LINES = 6
CITED_CHARACTERS = 600


class Cited(NamedTuple):
    """A citation, and what stands there now."""

    citation: str
    address: str
    text: str
    """Empty if it cannot be read."""


class ShownHunk(NamedTuple):
    """A proposed change."""

    number: int
    state: str
    path: str
    address: str
    reason: str
    citations: tuple[Cited, ...]
    where: str
    diff: tuple[DiffLine, ...]
    new: str
    note: str
    digest: str
    """Identifies what it changes: what is accepted is what was shown."""
    problem: str = ""


class ShownProposal(NamedTuple):
    """A proposal in a list."""

    id: str
    title: str
    made: str
    who: str
    trust: str
    session: str
    state: str
    pending: int
    changes: int


class ReviewList(NamedTuple):
    """The model of the list."""

    proposals: tuple[ShownProposal, ...]
    decided: tuple[ShownProposal, ...]
    damaged: tuple[str, ...]
    shows_decided: bool


class ReviewPage(NamedTuple):
    """The model of one proposal."""

    proposal: ShownProposal
    hunks: tuple[ShownHunk, ...]
    digest: str
    """Identifies all pending changes together."""
    waiting: int
    """How many proposals wait, with this one."""
    following: str
    """The id of the proposal after this one; empty if there is none."""
    problem: str = ""


def review_list(memory: Memory, *, decided: bool = False) -> ReviewList:
    """Return the proposals that wait, and with `decided` the others, the newest first."""
    box = memory.review
    found = box.list(decided=decided)
    return ReviewList(
        proposals=tuple(_summary(one) for one in found if one.state == "pending"),
        decided=tuple(_summary(one) for one in reversed(found) if one.state != "pending"),
        damaged=tuple(f"{one.path} is not a proposal: {one.reason}." for one in box.damaged()),
        shows_decided=decided,
    )


def review_page(
    memory: Memory, proposal_id: str, problem: str = "", at_hunk: int = 0
) -> ReviewPage:
    """Return one proposal; a `problem` belongs to the hunk `at_hunk`, or to all of it."""
    box = memory.review
    proposal = box.get(proposal_id)
    waiting = [one.id for one in box.list()]
    return ReviewPage(
        proposal=_summary(proposal),
        hunks=tuple(
            _shown(memory, number, hunk, problem if number == at_hunk else "")
            for number, hunk in enumerate(proposal.hunks, 1)
        ),
        digest=digest_of(proposal.hunks[number - 1] for number in proposal.pending),
        waiting=len(waiting),
        following=_after(waiting, proposal_id),
        problem="" if at_hunk else problem,
    )


def _summary(proposal: Proposal) -> ShownProposal:
    return ShownProposal(
        id=proposal.id,
        title=proposal.title,
        made=minute_of(proposal.created),
        who=describe_origin(proposal.origin._replace(session="")),
        trust=TRUST_WORDS[proposal.origin.trust],
        session=proposal.origin.session,
        state=proposal.state,
        pending=len(proposal.pending),
        changes=len(proposal.hunks),
    )


def _shown(memory: Memory, number: int, hunk: Hunk, problem: str) -> ShownHunk:
    where, *lines = hunk_diff(hunk)
    return ShownHunk(
        number=number,
        state=hunk.state,
        path=hunk.path,
        address=file_address(hunk.path, hunk.start_line),
        reason=hunk.reason,
        citations=tuple(_cited(memory, one) for one in hunk.citations),
        where=where.strip("@ "),
        diff=tuple(DiffLine(line[:1], None, None, line[1:]) for line in lines),
        new=hunk.new,
        note=hunk.note,
        digest=digest_of([hunk]),
        problem=problem,
    )


def _cited(memory: Memory, citation: str) -> Cited:
    named = parse_citation(citation)
    lines = min(named.lines or CITED_LINES, CITED_LINES)
    try:
        found = memory.read(named.path, start=named.start, lines=lines, max_chars=CITED_CHARACTERS)
        text = found.text
    except ClawmarkError:  # a citation is text of an agent, and may name anything
        text = ""
    return Cited(citation, file_address(named.path, named.start), text)


def digest_of(hunks: Iterable[Hunk]) -> str:
    """Return a hash of what some changes do."""
    changes = [(hunk.path, hunk.old, hunk.new) for hunk in hunks]
    return hashlib.sha256(json.dumps(changes).encode()).hexdigest()


def _after(waiting: list[str], proposal_id: str) -> str:
    """Return the proposal that follows another one in the list; after the last comes the first."""
    others = [one for one in waiting if one != proposal_id]
    return next((one for one in others if _number(one) > _number(proposal_id)), "") or (
        others[0] if others else ""
    )


def _number(proposal_id: str) -> int:
    return int(proposal_id[1:])


class NotDecided(NamedTuple):
    """Why a change was not accepted, rejected or edited."""

    problem: str
    hunk: int = 0


def decide(
    memory: Memory, proposal_id: str, action: str, fields: Mapping[str, str]
) -> NotDecided | None:
    """Accept, reject or edit one change of a proposal, or all that are pending (`hunk` is
    empty)."""
    box = memory.review
    proposal = box.get(proposal_id)
    number = int(fields["hunk"]) if fields.get("hunk", "").isdecimal() else 0
    numbers = (number,) if number else proposal.pending
    if any(one not in proposal.pending for one in numbers) or not numbers:
        return NotDecided("This was decided in another place already.")
    if digest_of(proposal.hunks[one - 1] for one in numbers) != fields.get("digest", ""):
        return NotDecided("It has changed since this page was made; look at it again.", number)
    try:
        if action == "reject":
            box.reject(proposal_id, numbers, reason=fields.get("reason", "").strip())
        elif action == "edit":
            box.edit(proposal_id, numbers[0], fields.get("text", ""))
        else:
            outcome = box.accept(proposal_id, numbers)
            if isinstance(outcome, NoLongerApplies):
                reason = f"It no longer applies to {outcome.path}: {outcome.reason}."
                return NotDecided(f"{reason} Edit it, or reject it.", outcome.number)
    except ReviewError as error:
        return NotDecided(error.message, number)
    except ClawmarkError as error:  # nothing was written; the change still waits
        return NotDecided(f"{error.message} {error.hint}".strip(), number)
    return None


def next_address(memory: Memory, proposal_id: str) -> str:
    """Return the page of what to decide next: the rest of a proposal, another one, or the list."""
    waiting = [one.id for one in memory.review.list()]
    following = proposal_id if proposal_id in waiting else _after(waiting, proposal_id)
    return f"/review/{following}" if following else "/review"


def _list(request: Request) -> Response:
    memory: Memory = request.app.state.site.memory
    decided = request.query_params.get("all", "") not in ("", "0")
    return page(request, "review_list.html", review_list(memory, decided=decided))


def _show(request: Request) -> Response:
    memory: Memory = request.app.state.site.memory
    return page(request, "review.html", review_page(memory, request.path_params["id"]))


def _decide(request: Request) -> Response:
    memory: Memory = request.app.state.site.memory
    proposal_id, action = request.path_params["id"], request.path_params["action"]
    if action not in ("accept", "reject", "edit"):
        raise ReviewError(f"A proposal cannot be changed by {action!r}.", hint="Open /review.")
    failed = decide(memory, proposal_id, action, form(request))
    if failed is None:
        return RedirectResponse(next_address(memory, proposal_id), 303)
    model = review_page(memory, proposal_id, failed.problem, failed.hunk)
    return page(request, "review.html", model, status=409)


routes = [
    Route("/review", _list),
    Route("/review/{id}", _show),
    Route("/review/{id}/{action}", _decide, methods=["POST"]),
]
