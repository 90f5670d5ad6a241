"""Counters that all processes of a memory share, in a small file of the state folder.

Counting never fails: what cannot be written is lost, and a damaged file starts again from zero."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from clawmark.system import shared_json

PATIENCE = 0.2
"""Seconds to wait for another process that is counting."""


class EventCount(NamedTuple):
    """How often something has happened, and when last."""

    times: int
    last_ms: int
    """Milliseconds since 1970."""


def read_counts(path: str) -> dict[str, EventCount]:
    """Return all counters by name; empty if nothing was counted or the file is damaged."""
    try:
        return _counts(shared_json.load(path) or {})
    except (OSError, ValueError):
        return {}


def add_counts(path: str, added: Mapping[str, int], now_ms: int) -> bool:
    """Add to the counters in the file; return whether that was possible."""
    try:
        with shared_json.locked(path, PATIENCE) as is_held:
            if not is_held:
                return False
            counts = read_counts(path)
            for name, number in added.items():
                before = counts.get(name, EventCount(0, 0))
                counts[name] = EventCount(before.times + number, max(before.last_ms, now_ms))
            shared_json.save(path, {name: list(one) for name, one in counts.items()})
    except OSError:  # a full or read-only disk
        return False
    return True


def _counts(values: Mapping[str, object]) -> dict[str, EventCount]:
    """Parse what the file holds; entries of another form are left out."""
    return {
        name: EventCount(*value)
        for name, value in values.items()
        if isinstance(value, list)
        and len(value) == len(EventCount._fields)
        and all(type(number) is int and number >= 0 for number in value)
    }
