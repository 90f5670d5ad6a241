"""Open the journal and the history of an agent, which live in its state folder."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import datetime

from clawmark.composition import make_clock
from clawmark.config.paths import Places
from clawmark.config.schema import Settings
from clawmark.history.journal import Journal


def make_journal(
    places: Places, settings: Settings, clock: Callable[[], datetime] | None = None
) -> Journal:
    """Return the journal of an agent's writes."""
    path = os.path.join(places.state_dir, "agents", places.agent_id, "journal.jsonl")
    return Journal(path, make_clock(settings, clock))


def history_folder(places: Places) -> str:
    """Return the folder of the versions of an agent's workspace."""
    return os.path.join(places.state_dir, "agents", places.agent_id, "history.git")
