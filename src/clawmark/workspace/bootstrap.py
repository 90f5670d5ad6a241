"""Create the files a workspace starts with.

Nothing is ever overwritten. `MEMORY.md` and `memory/` are created by the first note.
`BOOTSTRAP.md`, the script of the first conversation, is created once in the life of a workspace; a
small state file records that.
"""

from __future__ import annotations

import json
import os
import time

from clawmark.model.errors import WorkspaceError, WorkspaceReadOnly
from clawmark.workspace.guard import Folder, open_root, reason_of, shown
from clawmark.workspace.places import AGENT_FILES

SEEDED, RITUAL = AGENT_FILES[:-1], AGENT_FILES[-1]
STATE_FOLDER = ".clawmark"
STATE_FILE = "workspace-state.json"

_TEMPLATES = os.path.join(os.path.dirname(__file__), "templates")
_OTHER_STATES = (f".openclaw/{STATE_FILE}",)
"""A workspace that OpenClaw set up had its first conversation in OpenClaw."""


def template(name: str) -> str:
    """Return the text that a new file of this name starts with."""
    with open(os.path.join(_TEMPLATES, name), encoding="utf-8") as file:
        return file.read()


def ensure_workspace(root: str, *, now: str = "") -> list[str]:
    """Create the missing files and return their names; `now` is an ISO time for the state file."""
    now = now or time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    try:
        os.makedirs(root, exist_ok=True)
        with open_root(os.path.realpath(root)) as folder:
            created = [name for name in SEEDED if _create(folder, name, template(name))]
            if _settle_ritual(folder, now):
                created.append(RITUAL)
            folder.sync()
    except OSError as error:
        kind = WorkspaceReadOnly if isinstance(error, PermissionError) else WorkspaceError
        raise kind(
            f"The workspace {shown(root)} cannot be set up: {reason_of(error)}.",
            hint="Choose a folder you can write to.",
        ) from error
    return created


def _settle_ritual(folder: Folder, now: str) -> bool:
    """Create BOOTSTRAP.md if this workspace never had one, and record how far its first run is."""
    state = _read_state(folder)
    present = folder.exists(RITUAL)
    created = False
    before = dict(state)
    if "bootstrapSeededAt" not in state and "setupCompletedAt" not in state:
        if present:
            state["bootstrapSeededAt"] = now
        elif _is_used(folder):
            state["setupCompletedAt"] = now
        else:
            created = _create(folder, RITUAL, template(RITUAL))
            state["bootstrapSeededAt"] = now
    elif "setupCompletedAt" not in state and not present:
        state["setupCompletedAt"] = now
    if state != before:
        _write_state(folder, state)
    return created


def _is_used(folder: Folder) -> bool:
    """Whether the workspace has been used before, so that it needs no first conversation."""
    if any(
        folder.exists(name) for name in ("memory", "MEMORY.md", "memory.md", ".git", *_OTHER_STATES)
    ):
        return True
    return any(_differs(folder, name) for name in ("IDENTITY.md", "USER.md"))


def _differs(folder: Folder, name: str) -> bool:
    try:
        with os.fdopen(folder.open(name), "rb") as file:
            return file.read(1 << 20) != template(name).encode()
    except OSError:
        return True


def _create(folder: Folder, name: str, text: str) -> bool:
    """Write a new file; False if the name exists."""
    try:
        fd = folder.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    except FileExistsError:
        return False
    with os.fdopen(fd, "wb") as file:
        file.write(text.encode())
        file.flush()
        os.fsync(file.fileno())
    return True


# --- the state file ---


def _read_state(folder: Folder) -> dict[str, object]:
    """Read the state of this workspace; an unreadable file counts as a finished set-up."""
    try:
        with folder.child(STATE_FOLDER) as states, os.fdopen(states.open(STATE_FILE), "rb") as file:
            state = json.loads(file.read(1 << 16))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError):
        return {"setupCompletedAt": ""}
    return state if isinstance(state, dict) else {"setupCompletedAt": ""}


def _write_state(folder: Folder, state: dict[str, object]) -> None:
    if not folder.exists(STATE_FOLDER):
        folder.make_folder(STATE_FOLDER)
    with folder.child(STATE_FOLDER) as states:
        temporary = f"{STATE_FILE}.tmp-{os.getpid()}"
        if states.exists(temporary):
            states.unlink(temporary)
        _create(states, temporary, json.dumps({"version": 1, **state}, indent=2) + "\n")
        states.rename(temporary, STATE_FILE)
        states.sync()
