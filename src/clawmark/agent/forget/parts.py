"""What forgetting works with, and the files of the state folder that it looks at."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import NamedTuple

from clawmark.agent.consolidation.usage import UsageCounts
from clawmark.agent.review.box import ProposalBox
from clawmark.engine.maintenance.source_file import SourceFile
from clawmark.history.history import History
from clawmark.history.journal import Journal
from clawmark.history.tombstones import Tombstones
from clawmark.store.base import ManagedStore
from clawmark.system.private_files import open_private
from clawmark.workspace import Workspace
from clawmark.workspace.places import ROOT_FILES, is_below
from clawmark.workspace.transcripts.files import OWN, TranscriptFiles

_NOT_COPIES = re.compile(r"\.(?:lock|sqlite(?:-\w+|\..*)?|seal)\Z")
"""Locks and databases; databases are derived and deleted as a whole."""


class ForgetParts(NamedTuple):
    """The places of one agent's memory."""

    workspace: Workspace
    transcripts: TranscriptFiles
    session_folders: tuple[str, ...]
    """The folders that hold the agent's transcripts and their `sessions.json`."""
    state_dir: str
    agent_folder: str
    """The agent's own folder in the state folder."""
    versions_folder: str
    journal: Journal
    history: History
    tombstones: Tombstones
    proposals: ProposalBox
    usage: UsageCounts
    heartbeat_file: str
    as_of_folder: str
    """The folder of the indexes of earlier versions."""
    sources: SourceFile
    store: ManagedStore
    sync_index: Callable[[], object]
    """Brings the built-in index up to date, without asking a service."""
    clear_backends: Callable[[], None]
    """Removes deleted text from what other backends and plugins have stored."""
    providers: tuple[str, ...]
    """The services that texts may have been sent to."""
    database: str
    """The address of the server that has the index, without a password; empty for a file."""
    spaces: tuple[str, ...]
    """The shared spaces that are used."""
    today: Callable[[], str]
    now: Callable[[], datetime]

    @property
    def intent_path(self) -> str:
        """The file that says what an unfinished run has to do."""
        return os.path.join(self.agent_folder, "forget.json")


def is_own_file(path: str) -> bool:
    """Check whether a cited path is a memory file of the workspace itself, which can be written."""
    return path in ROOT_FILES or path.startswith("memory/")


def transcript_files(parts: ForgetParts) -> dict[str, str]:
    """Return the absolute path of every transcript, archive and trace with its citation."""
    found = dict[str, str]()
    for state in parts.transcripts.scan().files:
        found[os.path.realpath(parts.transcripts.absolute(state.path))] = state.path
    for folder in parts.session_folders:
        if os.path.isdir(folder):
            for name in sorted(os.listdir(folder)):
                full = os.path.join(os.path.realpath(folder), name)
                is_file = os.path.isfile(full) and not os.path.islink(full)
                if ".jsonl" in name and is_file and not name.endswith(".lock"):
                    found.setdefault(full, f"{OWN}/{name}")
    return found


def version_files(parts: ForgetParts) -> list[str]:
    """Return the kept versions of memory files, and the edited copies that were not written."""
    return [
        path
        for folder in (parts.versions_folder, os.path.join(parts.state_dir, "edits"))
        for path in _files_below(folder)
    ]


def copy_files(parts: ForgetParts) -> list[str]:
    """Return the other files of the agent in the state folder that may repeat a text."""
    known = {
        parts.journal.path,
        parts.tombstones.path,
        parts.intent_path,
        *(os.path.join(folder, "sessions.json") for folder in parts.session_folders),
        *(
            os.path.join(parts.proposals.folder, f"{one.id}.json")
            for one in parts.proposals.list(decided=True)
        ),
    }
    transcripts = transcript_files(parts)
    agent = os.path.basename(parts.agent_folder)
    plugins = os.path.join(parts.state_dir, "plugins", f"{agent}.json")
    return [
        path
        for path in (*_files_below(parts.agent_folder), plugins)
        if path not in known
        and os.path.realpath(path) not in transcripts
        and not path.startswith(parts.history.folder)
        and not _NOT_COPIES.search(path)
        and os.path.isfile(path)
    ]


def derived_files(parts: ForgetParts) -> list[str]:
    """Return databases in the agent's folder, except the indexes of earlier versions."""
    return [
        path
        for path in _files_below(parts.agent_folder)
        if ".sqlite" in path and not is_below(path, parts.as_of_folder)
    ]


def damaged_histories(parts: ForgetParts) -> list[str]:
    """Return the damaged histories that were set aside."""
    folder, name = os.path.split(parts.history.folder)
    if not os.path.isdir(folder):
        return []
    return [
        os.path.join(folder, entry)
        for entry in os.listdir(folder)
        if entry.startswith(f"{name}.damaged-")
    ]


def read_file(path: str) -> bytes | None:
    """Return the bytes of a file; None if it has disappeared or is a link."""
    try:
        with open(open_private(path, os.O_RDONLY), "rb") as file:
            return file.read()
    except OSError:
        return None


def _files_below(folder: str) -> Iterator[str]:
    for at, _, names in os.walk(folder):
        for name in sorted(names):
            path = os.path.join(at, name)
            if not os.path.islink(path):
                yield path
