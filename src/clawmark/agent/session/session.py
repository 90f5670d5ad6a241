"""The sessions of an agent, stored in `sessions.json` next to the transcripts.

The file has OpenClaw's field names. Changes are made to one key under a lock, and unknown fields
are preserved. A damaged file is moved away and a new one started: it only contains counters, and
the transcripts still exist."""

import os
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Literal, NamedTuple

from clawmark.model.errors import WorkspaceError
from clawmark.system import shared_json as statefile

PATIENCE = 60.0
"""Seconds to wait for the lock; many sessions may end at the same time."""

Fields = Mapping[str, object]


class SessionEntry(NamedTuple):
    """What is recorded about a session; missing fields have their defaults."""

    key: str
    session_id: str = ""
    """Empty if there is no such session."""
    updated_at: int = 0
    """Milliseconds since 1970, like all times here."""
    session_file: str = ""
    chat_type: str = ""
    total_tokens: int = 0
    """How full the context was after the last answer."""
    total_tokens_fresh: bool = False
    compaction_count: int = 0
    memory_flush_at: int = 0
    memory_flush_compaction_count: int = -1
    """The compaction cycle of the last flush; -1 if there was none."""
    memory_flush_bytes: int = 0
    """Size of the transcript at the last flush."""
    memory_flush_lines: int = 0
    """Lines written by the last flush."""
    memory_flush_failed_at: int = 0
    memory_flush_failures: int = 0
    memory_flush_started_at: int = 0
    """Start of a flush that has not ended; 0 otherwise."""
    session_note: str = ""
    """Path of the session note."""
    ended: bool = False
    others: Fields = {}  # noqa: RUF012 - a field of a tuple, never changed
    """All fields as they are in the file."""


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)


_FIELDS = {
    name: (_camel(name), kind)
    for name, kind in SessionEntry.__annotations__.items()
    if name != "key" and kind in (str, int, bool)
}
"""Field names with their names in the file and their types."""


class SessionStore:
    """The sessions of one agent; safe for several processes and threads."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.path = os.path.join(folder, "sessions.json")

    def get(self, key: str) -> SessionEntry:
        """Return the entry of a session; an empty one if it is unknown."""
        return _entry(key, self._load().get(key))

    def keys(self) -> list[str]:
        """Return the keys of all sessions."""
        return list(self._load())

    def update(self, key: str, **fields: object) -> SessionEntry:
        """Change fields by their names in `SessionEntry` (None removes one); return the entry."""
        return self.change(key, lambda entry: fields)

    def change(self, key: str, decide: Callable[[SessionEntry], Fields | None]) -> SessionEntry:
        """Atomically change the fields that `decide` returns; None changes nothing."""
        with self._locked():
            sessions = self._load(heal=True)
            before = _entry(key, sessions.get(key))
            fields = decide(before)
            if fields is None:
                return before
            sessions[key] = _changed(before.others, fields)
            statefile.save(self.path, sessions, durable=True)
            return _entry(key, sessions[key])

    def remove(self, is_unwanted: Callable[[SessionEntry], bool]) -> int:
        """Remove sessions, and return how many."""
        if not os.path.exists(self.path):
            return 0
        with self._locked():
            sessions = self._load(heal=True)
            gone = [key for key, given in sessions.items() if is_unwanted(_entry(key, given))]
            if gone:
                kept = {key: sessions[key] for key in sessions if key not in gone}
                statefile.save(self.path, kept, durable=True)
            return len(gone)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        try:
            with statefile.locked(self.path, PATIENCE) as is_held:
                if not is_held:
                    message = f"Another process has held {self.path} for {PATIENCE:.0f} seconds."
                    raise WorkspaceError(message, hint="Look for a suspended clawmark process.")
                yield
        except OSError as error:
            raise _unusable(self.path, error) from error

    def _load(self, *, heal: bool = False) -> dict[str, object]:
        """Return the content of the file.

        `heal` moves a damaged file away; the caller must hold the lock.
        """
        try:
            return statefile.load(self.path) or {}
        except ValueError:
            if heal:
                statefile.set_aside(self.path)
            return {}
        except OSError as error:
            raise _unusable(self.path, error) from error


def new_session_id() -> str:
    """Return a unique session id."""
    return str(uuid.uuid4())


def fresh_fields(session_id: str, session_file: str, now_ms: int) -> Fields:
    """Return the fields of a new session; counters of the previous one are removed."""
    kept = ("chat_type", "compaction_count")
    return {
        **{name: None for name in _FIELDS if name not in kept},
        "session_id": session_id,
        "session_file": session_file,
        "updated_at": now_ms,
        "compaction_count": 0,
    }


def _entry(key: str, given: object) -> SessionEntry:
    """Parse a stored object; fields of the wrong type are ignored."""
    others = given if isinstance(given, dict) else {}
    known: dict[str, object] = {}
    for name, (camel, kind) in _FIELDS.items():
        value = others.get(camel)
        if isinstance(value, float) and kind is int and value.is_integer():
            value = int(value)  # JavaScript may write 3 as 3.0
        if isinstance(value, kind) and not (kind is int and isinstance(value, bool)):
            known[name] = value
    return SessionEntry(key, others=others, **known)  # type: ignore[arg-type]


def _changed(before: Fields, fields: Fields) -> dict[str, object]:
    after = dict(before)
    for name, value in fields.items():
        camel = _FIELDS[name][0]
        if value is None:
            after.pop(camel, None)
        else:
            after[camel] = value
    return after


def _unusable(path: str, error: OSError) -> WorkspaceError:
    return WorkspaceError(
        f"{path} cannot be used: {error.strerror or type(error).__name__}.",
        hint="Check the state folder and its disk.",
    )


# --- Rollover ---


class Rollover(NamedTuple):
    """When a session ends by itself; checked when the next message arrives."""

    daily_hour: int | None = 4
    """The hour, in the user's time zone, at which the session of a day ends; None for never."""
    idle_minutes: int = 0
    """0 for never."""


def rolled_over(last_ms: int, now: datetime, rollover: Rollover) -> Literal["daily", "idle"] | None:
    """Return why a session that was last used at `last_ms` is over; None if it continues."""
    if last_ms <= 0:
        return None
    if rollover.daily_hour is not None:
        end = now.replace(hour=rollover.daily_hour % 24, minute=0, second=0, microsecond=0)
        end = end if end <= now else end - timedelta(days=1)
        if last_ms < int(end.timestamp() * 1000):
            return "daily"
    now_ms = int(now.timestamp() * 1000)
    return "idle" if 0 < rollover.idle_minutes * 60_000 < now_ms - last_ms else None
