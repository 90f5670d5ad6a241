"""Open the proposals of an agent, which live in its state folder."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import cast

from clawmark.agent.review.box import ProposalBox
from clawmark.agent.review.hunks import Because, make_hunks
from clawmark.agent.review.policy import HeldWrites, Policy
from clawmark.composition import make_clock
from clawmark.config.paths import Places
from clawmark.config.schema import Settings
from clawmark.model.provenance import Origin
from clawmark.model.reports import Finding
from clawmark.system import shared_json
from clawmark.workspace import Workspace

LONG_TERM = "MEMORY.md"


def make_box(places: Places, settings: Settings, workspace: Workspace) -> ProposalBox:
    """Return the proposals of an agent."""
    box = ProposalBox(proposal_folder(places), make_clock(settings, None), workspace)
    older = os.path.join(places.conversations_dir, "proposal.json")
    if os.path.exists(older):
        _add_older(box, older)
    return box


def _add_older(box: ProposalBox, path: str) -> None:
    """Add the proposal that an earlier version has stored, and delete its file."""
    try:
        found = shared_json.load(path) or {}
    except (OSError, ValueError):
        return
    match found:
        case {"base_hash": str(base), "old": str(old), "new": str(new), "reasons": list(reasons)}:
            because = Because("; ".join(str(one) for one in reasons if one))
            hunks = make_hunks(LONG_TERM, old, new, lambda _: because)
            if hunks:
                box.add(
                    hunks,
                    title=f"Curate {LONG_TERM}",
                    origin=Origin(actor="agent", kind="curation", trust="agent"),
                    base={LONG_TERM: base},
                )
            with suppress(FileNotFoundError):
                os.unlink(path)


def make_write_review(places: Places, settings: Settings, workspace: Workspace) -> HeldWrites:
    """Return what keeps the writes of an agent that have to wait."""
    policy = cast(Policy, settings.review)
    return HeldWrites(make_box(places, settings, workspace), workspace, policy)


def findings(box: ProposalBox) -> list[Finding]:
    """Return what `doctor` says about proposals; nothing if there are none."""
    found = [
        Finding("problem", f"{one.path} is not a proposal: {one.reason}.", "Delete the file.")
        for one in box.damaged()
    ]
    waiting = box.count()
    if waiting:
        text = "1 proposal waits" if waiting == 1 else f"{waiting:,} proposals wait"
        found.append(Finding("note", f"{text} for review.", "To decide: `clawmark review`"))
    return found


def proposal_folder(places: Places) -> str:
    """Return the folder of an agent's proposals."""
    return os.path.join(places.state_dir, "agents", places.agent_id, "proposals")
