"""Find how one line of a memory file came to say what it says: each text it had, and since when.

The comparison goes back from version to version, as for replaced lines. It ends where the line was
new, or where the history begins."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, tzinfo
from itertools import islice
from typing import NamedTuple

from clawmark.history.history import History
from clawmark.history.replaced import Text, decode_text, map_lines
from clawmark.model.provenance import Origin
from clawmark.text.untrusted.origin_labels import without_comments

MOST_STATES = 500
"""How many states of a file are compared."""


class LineVersion(NamedTuple):
    """A text that a line had."""

    text: str
    since: str
    """When it was written, ISO 8601 in the user's time zone; at the beginning of the history, it
    may be older."""
    version: str
    """The version in which it appeared."""
    before: str = ""
    """The text that it replaced; empty if the line was new."""
    writers: tuple[Origin, ...] = ()
    """Who wrote to the file in that version; empty for edits by other programs."""


def trace_line(
    states: Iterable[Text], line: int, zone: tzinfo | None = None
) -> tuple[LineVersion, ...]:
    """Return the texts of a line of the first state, the newest first; nothing if there is no such
    line.

    `states` are the states of a file, the newest first. Lines are counted from 1."""
    found = list[LineVersion]()
    later: Text | None = None
    lines, at = list[str](), line - 1
    for state in islice(states, MOST_STATES):
        older = state.text.split("\n")
        if later is None:
            if not 0 <= at < len(older):
                return ()
        else:
            origin = map_lines(older, lines)
            if at not in origin.same:
                before = origin.replaced.get(at)
                found.append(
                    _version(lines[at], later, zone, older[before] if before is not None else "")
                )
                if before is None:
                    return tuple(found)
            at = origin.same.get(at, origin.replaced.get(at, 0))
        later, lines = state, older
    if later is not None:
        found.append(_version(lines[at], later, zone))
    return tuple(found)


def recorded_states(history: History, path: str) -> Iterator[Text]:
    """Yield the states of a file, the newest first, back to where it was made."""
    for version, data in history.texts(path):
        if data is None:
            return
        yield Text(decode_text(data), version.seconds, version.id)


def _version(line: str, state: Text, zone: tzinfo | None, before: str = "") -> LineVersion:
    since = datetime.fromtimestamp(int(state.seconds), UTC).astimezone(zone).isoformat()
    return LineVersion(
        text=without_comments(line),
        since=since,
        version=state.version,
        before=without_comments(before),
    )
