"""When sessions were flushed: for `clawmark sessions` and `clawmark status`."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

from clawmark.agent.flush.flush import retry_at
from clawmark.agent.session.session import SessionEntry, SessionStore
from clawmark.model.errors import WorkspaceError
from clawmark.model.reports import FlushTimes
from clawmark.text.dates import utc_time


def read_flush_times(folders: Iterable[str]) -> dict[str, FlushTimes]:
    """Return the times of every session that was flushed, by the file name of its transcript.

    `folders` hold the files `sessions.json`; one that cannot be read is left out."""
    found = dict[str, FlushTimes]()
    for folder in folders:
        store = SessionStore(folder)
        try:
            entries = [store.get(key) for key in store.keys()]  # noqa: SIM118 - not a mapping
        except WorkspaceError:
            continue
        for entry in entries:
            times = flush_times(entry)
            if times is not None and entry.session_id:
                name = os.path.basename(entry.session_file) or f"{entry.session_id}.jsonl"
                found[name] = times
    return found


def flush_times(entry: SessionEntry) -> FlushTimes | None:
    """Return the times of one session; None if a flush was never tried."""
    if not (entry.memory_flush_at or entry.memory_flush_failures):
        return None
    failures = max(0, entry.memory_flush_failures)
    return FlushTimes(
        last=utc_time(entry.memory_flush_at),
        failures=failures,
        failed=utc_time(entry.memory_flush_failed_at) if failures else "",
        next_attempt=utc_time(retry_at(entry)) if failures else "",
    )


def latest_flush(times: Mapping[str, FlushTimes]) -> FlushTimes | None:
    """Return the last flush of all sessions, and their failures together."""
    if not times:
        return None
    each = times.values()
    return FlushTimes(
        last=max(one.last for one in each),
        failures=sum(one.failures for one in each),
        failed=max(one.failed for one in each),
        next_attempt=min((one.next_attempt for one in each if one.next_attempt), default=""),
    )
