"""What a heartbeat remembers until the next one: which texts it has seen, and failures.

The state is one small JSON file. Without it, or if it is damaged, everything counts as new."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from typing import NamedTuple

from clawmark.model.errors import ClawmarkError
from clawmark.system import shared_json

LOCK_SECONDS = 10.0


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


def remove_seen(path: str, files: Collection[str]) -> None:
    """Forget that some files were seen; they count as new. Raises OSError."""
    if not os.path.exists(path):
        return
    with shared_json.locked(path, LOCK_SECONDS) as is_locked:
        if not is_locked:
            raise ClawmarkError(f"Another process keeps {path} locked.", hint="Try again.")
        state = load_state(path)
        left = {name: value for name, value in state.seen.items() if name not in files}
        if left != state.seen:
            save_state(path, state._replace(seen=left))
