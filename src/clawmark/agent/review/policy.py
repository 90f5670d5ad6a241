"""Decide which writes of an agent wait for the user, and keep those as proposals."""

from __future__ import annotations

from typing import Literal, TypeAlias

from clawmark.agent.review.box import ProposalBox
from clawmark.agent.review.hunks import Because, Hunk, appended_hunk, make_hunks
from clawmark.model.errors import KeptForReview, PathDenied, WriteConflict
from clawmark.model.provenance import Origin, WriteAction
from clawmark.workspace import Workspace

Policy: TypeAlias = Literal["off", "curated", "all"]
LONG_TERM = "memory.md"
"""MEMORY.md, in either spelling."""
_CONFIRMED = ("accepted", "undo", "restore", "forget")
"""Kinds of writes that the user has asked for or confirmed."""


def must_wait(policy: Policy, origin: Origin, path: str) -> bool:
    """Whether a write waits until the user accepts it."""
    if policy == "off" or origin.actor not in ("agent", "plugin") or origin.kind in _CONFIRMED:
        return False
    return policy == "all" or path.lower() == LONG_TERM


class HeldWrites:
    """Keeps the writes that have to wait as proposals: the `WriteReview` of a workspace."""

    def __init__(self, box: ProposalBox, workspace: Workspace, policy: Policy) -> None:
        self._box = box
        self._workspace = workspace
        self._policy = policy

    def hold(
        self,
        origin: Origin,
        action: WriteAction,
        path: str,
        text: str = "",
        *,
        header: str = "",
        base_hash: str = "",
    ) -> None:
        """Return if a write may be done now; raise KeptForReview if it was kept instead."""
        if not must_wait(self._policy, origin, path):
            return
        if action in ("delete", "rename"):
            raise PathDenied(
                f"An agent may not {action} {path} while memory.review is {self._policy}.",
                path=path,
                rule="review",
                hint="Ask the user to do it.",
            )
        current = self._workspace.read_exact(path)
        old, old_hash = ("", "") if current is None else current
        if action == "replace" and old_hash != base_hash:
            raise WriteConflict(
                f"{path} has changed since it was read.",
                path=path,
                base_hash=base_hash,
                current_hash=old_hash,
                hint="Read it again and make the change again.",
            )
        because = _because(origin)
        hunks: tuple[Hunk, ...]
        if action == "append":
            start = header if not old else ""
            hunks = (appended_hunk(path, text, because.reason, because.citations, header=start),)
        else:
            hunks = make_hunks(path, old, text, lambda _: because)
        if not hunks:  # only blank lines differ
            raise KeptForReview(
                f"{path} was not changed: only blank lines differ.", path=path, proposal=""
            )
        keep_hunks(self._box, hunks, origin, path=path, base_hash=old_hash)


def keep_hunks(
    box: ProposalBox, hunks: tuple[Hunk, ...], origin: Origin, *, path: str, base_hash: str
) -> None:
    """Store hunks as a proposal, and raise KeptForReview with its id."""
    verb = "Add to" if all(not hunk.old for hunk in hunks) else "Change"
    proposal = box.add(hunks, title=f"{verb} {path}", origin=origin, base={path: base_hash})
    if proposal is None:
        raise KeptForReview(
            f"{path} was not changed: the user has rejected this text before.",
            path=path,
            proposal="",
            hint="Do not try it again, unless the user asks for it.",
        )
    raise KeptForReview(
        f"{path} is not changed yet: this is kept as proposal {proposal.id}.",
        path=path,
        proposal=proposal.id,
        hint="The user decides with `clawmark review`.",
    )


def _because(origin: Origin) -> Because:
    """Return a reason for a write that names none itself."""
    who = "A plugin" if origin.actor == "plugin" else "The agent"
    what = _ACTIONS.get(origin.kind, "wrote it")
    where = f" in session {origin.session}" if origin.session else ""
    return Because(f"{who} {what}{where}.", (origin.source,) if origin.source else ())


_ACTIONS = {
    "tool": "noted it",
    "flush": "saved it before a compaction",
    "note": "kept the last messages",
    "capture": "captured what the user stated",
    "curation": "proposes it after reading the logs",
}
