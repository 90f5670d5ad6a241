"""Open the proposals of an agent, which live in its state folder."""

from __future__ import annotations

import os
from typing import cast

from clawmark.agent.review.box import ProposalBox
from clawmark.agent.review.policy import HeldWrites, Policy
from clawmark.composition import make_clock
from clawmark.config.paths import Places
from clawmark.config.schema import Settings
from clawmark.workspace import Workspace


def make_box(places: Places, settings: Settings, workspace: Workspace) -> ProposalBox:
    """Return the proposals of an agent."""
    return ProposalBox(proposal_folder(places), make_clock(settings, None), workspace)


def make_write_review(places: Places, settings: Settings, workspace: Workspace) -> HeldWrites:
    """Return what keeps the writes of an agent that have to wait."""
    policy = cast(Policy, settings.memory.review)
    return HeldWrites(make_box(places, settings, workspace), workspace, policy)


def proposal_folder(places: Places) -> str:
    """Return the folder of an agent's proposals."""
    return os.path.join(places.state_dir, "agents", places.agent_id, "proposals")
