"""What a heartbeat remembers until the next one: which texts it has seen, and failures.

The state is one small JSON file. Without it, or if it is damaged, everything counts as new."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from clawmark.system import shared_json


class HeartbeatState(NamedTuple):
    """The state after the last heartbeat."""

    seen: Mapping[str, str] = {}
    """The hash of each text that the last complete heartbeat has read, by path."""
    day: str = ""
    """The day of the last complete heartbeat."""
    done_ms: int = 0
    """When the last complete heartbeat was."""
    failures: int = 0
    """How many heartbeats have failed since then."""
    failed_ms: int = 0


def load_state(path: str) -> HeartbeatState:
    """Return the stored state; raises OSError like `open`."""
    try:
        found = shared_json.load(path) or {}
    except ValueError:
        return HeartbeatState()
    seen = found.get("seen")
    numbers = (found.get(name) for name in ("doneMs", "failures", "failedMs"))
    done_ms, failures, failed_ms = (one if isinstance(one, int) else 0 for one in numbers)
    return HeartbeatState(
        seen={str(name): str(value) for name, value in seen.items()}
        if isinstance(seen, dict)
        else {},
        day=str(found.get("day", "")),
        done_ms=done_ms,
        failures=failures,
        failed_ms=failed_ms,
    )


def save_state(path: str, state: HeartbeatState) -> None:
    """Store the state; call it with the lock of the file held. Raises OSError."""
    fields: dict[str, object] = {
        "seen": dict(state.seen),
        "day": state.day,
        "doneMs": state.done_ms,
        "failures": state.failures,
        "failedMs": state.failed_ms,
    }
    shared_json.save(path, fields, durable=True)
