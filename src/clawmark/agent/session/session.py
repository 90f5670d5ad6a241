"""The sessions of an agent: `sessions.json` beside the transcripts, under OpenClaw's names.

In: a folder and a session key. Out: what is known of that session; changes are made under a lock,
to one key, and every field that means nothing to us stays as it was. A file that is damaged is set
aside and a new one begun: what it held were counters, and the transcripts are still there. What the
numbers mean is left to `flush` and `session_note`."""

import os
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple

from clawmark.model.errors import WorkspaceError
from clawmark.system import shared_json as statefile

PATIENCE = 60.0
"""Seconds. A holder writes two small files; 200 sessions that end together wait for each other."""

Fields = Mapping[str, object]


class SessionEntry(NamedTuple):
    """One session as it is remembered; every field has a value, so nobody asks whether it was
    given.
    """

    key: str
    session_id: str = ""
    """Empty for a session that never was."""
    updated_at: int = 0
    """Milliseconds since 1970, as all times here."""
    session_file: str = ""
    chat_type: str = ""
    total_tokens: int = 0
    """How full the context was after the last answer."""
    total_tokens_fresh: bool = False
    compaction_count: int = 0
    memory_flush_at: int = 0
    memory_flush_compaction_count: int = -1
    """The cycle in which the last flush was; -1 when there was none."""
    memory_flush_bytes: int = 0
    """How long the transcript was then."""
    memory_flush_lines: int = 0
    """How many lines that flush wrote."""
    memory_flush_failed_at: int = 0
    memory_flush_failures: int = 0
    memory_flush_started_at: int = 0
    """When a flush began that has not ended yet; 0 otherwise."""
    session_note: str = ""
    """The note that was made of this session."""
    ended: bool = False
    others: Fields = {}  # noqa: RUF012 - a field of a tuple, never changed
    """Everything as it stands in the file."""


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)


_FIELDS = {
    name: (_camel(name), kind)
    for name, kind in SessionEntry.__annotations__.items()
    if name != "key" and kind in (str, int, bool)
}
"""Our names, their names in the file, and what they must be."""


class SessionStore:
    """The sessions of one agent; several processes and threads may share the folder."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.path = os.path.join(folder, "sessions.json")

    def get(self, key: str) -> SessionEntry:
        """What is known of a session; nothing known is an entry too."""
        return _entry(key, self._load().get(key))

    def keys(self) -> list[str]:
        """Every session that is remembered."""
        return list(self._load())

    def update(self, key: str, **fields: object) -> SessionEntry:
        """Change some fields, by their names in `SessionEntry`; None takes one away.

        The entry as it then is.
        """
        return self.change(key, lambda entry: fields)

    def change(self, key: str, decide: Callable[[SessionEntry], Fields | None]) -> SessionEntry:
        """Let a function see the entry and say what to change, with nobody in between; None changes
        nothing.
        """
        with self._locked():
            sessions = self._load(heal=True)
            before = _entry(key, sessions.get(key))
            fields = decide(before)
            if fields is None:
                return before
            sessions[key] = _changed(before.others, fields)
            statefile.save(self.path, sessions, durable=True)
            return _entry(key, sessions[key])

    @contextmanager
    def _locked(self) -> Iterator[None]:
        try:
            with statefile.locked(self.path, PATIENCE) as is_held:
                if not is_held:
                    message = f"Another process has held {self.path} for {PATIENCE:.0f} seconds."
                    raise WorkspaceError(message, hint="Look for a stopped clawmark process.")
                yield
        except OSError as error:
            raise _unusable(self.path, error) from error

    def _load(self, *, heal: bool = False) -> dict[str, object]:
        """The file's object.

        Only who holds the lock sets a damaged one aside: another may just have replaced it.
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
    """A name for a new session that no other has."""
    return str(uuid.uuid4())


def fresh_fields(session_id: str, session_file: str, now_ms: int) -> Fields:
    """What a session begins with: counters of the one before under the same key are gone."""
    counters = (
        "total_tokens",
        "total_tokens_fresh",
        "memory_flush_at",
        "memory_flush_compaction_count",
        "memory_flush_bytes",
        "memory_flush_lines",
        "memory_flush_failed_at",
        "memory_flush_failures",
        "memory_flush_started_at",
        "session_note",
        "ended",
    )
    cleared: dict[str, object] = dict.fromkeys(counters)
    return {
        **cleared,
        "session_id": session_id,
        "session_file": session_file,
        "updated_at": now_ms,
        "compaction_count": 0,
    }


def _entry(key: str, given: object) -> SessionEntry:
    """A stored object as an entry; what has the wrong type counts as absent."""
    others = given if isinstance(given, dict) else {}
    known: dict[str, object] = {}
    for name, (camel, kind) in _FIELDS.items():
        value = others.get(camel)
        if isinstance(value, float) and kind is int and value.is_integer():
            value = int(value)  # a number that JavaScript wrote
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
