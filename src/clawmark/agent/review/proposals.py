"""The values of a proposal, and how they are written as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias, cast, get_args

from clawmark.agent.review.hunks import Hunk, HunkState
from clawmark.model.provenance import TRUST_LEVELS, Actor, Kind, Origin

ProposalState: TypeAlias = Literal["pending", "accepted", "rejected", "partly accepted"]
_ACTORS, _KINDS, _STATES = get_args(Actor), get_args(Kind), get_args(HunkState)


class FileHashes(NamedTuple):
    """The hashes of a file around a write."""

    before: str
    after: str


class Applying(NamedTuple):
    """What an acceptance is about to write; stored first, so that a killed one can be completed."""

    numbers: tuple[int, ...]
    """The hunks, counted from 1."""
    files: Mapping[str, FileHashes]


class Proposal(NamedTuple):
    """Changes that wait for the user, or that the user has decided about."""

    id: str
    """`p1`, `p2` …"""
    created: str
    """ISO 8601, with the offset of the user's time zone."""
    title: str
    origin: Origin
    """Who proposes it, in which session and from what."""
    base: Mapping[str, str]
    """The hash of each file when the changes were proposed; empty if it did not exist."""
    hunks: tuple[Hunk, ...]
    applying: Applying | None = None

    @property
    def state(self) -> ProposalState:
        states = {hunk.state for hunk in self.hunks}
        if "pending" in states:
            return "pending"
        if len(states) > 1:
            return "partly accepted"
        return "accepted" if "accepted" in states else "rejected"

    @property
    def pending(self) -> tuple[int, ...]:
        """The numbers of the hunks that are not decided, counted from 1."""
        return tuple(number for number, hunk in enumerate(self.hunks, 1) if hunk.state == "pending")


def as_json(proposal: Proposal) -> dict[str, object]:
    """Return a proposal as JSON values."""
    values: dict[str, object] = {
        "id": proposal.id,
        "created": proposal.created,
        "title": proposal.title,
        "state": proposal.state,
        "origin": proposal.origin._asdict(),
        "base": dict(proposal.base),
        "hunks": [_hunk_json(hunk) for hunk in proposal.hunks],
    }
    if proposal.applying is not None:
        files = {path: list(hashes) for path, hashes in proposal.applying.files.items()}
        values["applying"] = {"hunks": list(proposal.applying.numbers), "files": files}
    return values


def from_json(values: Mapping[str, Any]) -> Proposal:
    """Return the proposal of a file; raises ValueError if it is damaged."""
    try:
        origin = values["origin"]
        proposal = Proposal(
            id=str(values["id"]),
            created=str(values["created"]),
            title=str(values["title"]),
            origin=Origin(
                actor=_one_of(origin["actor"], _ACTORS),
                kind=_one_of(origin["kind"], _KINDS),
                trust=_one_of(origin["trust"], TRUST_LEVELS),
                session=str(origin.get("session", "")),
                source=str(origin.get("source", "")),
            ),
            base={str(path): str(held) for path, held in values["base"].items()},
            hunks=tuple(map(_hunk, values["hunks"])),
            applying=_applying(values.get("applying")),
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError("not a proposal") from error
    if not proposal.hunks:
        raise ValueError("not a proposal")
    return proposal


def _applying(values: Any) -> Applying | None:
    if values is None:
        return None
    files = {
        str(path): FileHashes(str(before), str(after))
        for path, (before, after) in values["files"].items()
    }
    return Applying(tuple(map(int, values["hunks"])), files)


def _hunk_json(hunk: Hunk) -> dict[str, object]:
    return {
        "path": hunk.path,
        "old": hunk.old,
        "new": hunk.new,
        "reason": hunk.reason,
        "citations": list(hunk.citations),
        "before": hunk.before,
        "after": hunk.after,
        "startLine": hunk.start_line,
        "state": hunk.state,
        "note": hunk.note,
    }


def _hunk(values: Mapping[str, Any]) -> Hunk:
    return Hunk(
        path=str(values["path"]),
        old=str(values["old"]),
        new=str(values["new"]),
        reason=str(values["reason"]),
        citations=tuple(map(str, values["citations"])),
        before=str(values["before"]),
        after=str(values["after"]),
        start_line=int(values["startLine"]),
        state=cast(HunkState, _one_of(values["state"], _STATES)),
        note=str(values.get("note", "")),
    )


def _one_of(value: object, allowed: Sequence[Any]) -> Any:
    if value not in allowed:
        raise ValueError("not a proposal")
    return value
