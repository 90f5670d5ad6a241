"""Report what is indexed, what is due, which embedder answers and why, and what was skipped."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Protocol

from clawmark.engine.maintenance.sources import not_markdown, report_sources
from clawmark.engine.maintenance.spending import ledger_of
from clawmark.engine.parts import (
    OUTDATED,
    IndexParts,
    active_embedder,
    count_due_vectors,
    refusal_of,
)
from clawmark.engine.sync.outcome import NOT_TEXT
from clawmark.engine.sync.scan import is_chunked_by, look
from clawmark.model.reports import Status
from clawmark.model.values import FileRow, Mode, Scan, Skipped, Space, SyncPlan, is_media
from clawmark.store.base import InspectedSnapshot
from clawmark.store.sqlite.files import shared_file_system
from clawmark.store.sqlite.running import running_sync
from clawmark.system.shared_counts import read_counts
from clawmark.text.dates import utc_time

WRONG_CONTENT = "its content does not match the extension of its name"


def status(parts: IndexParts, last_error: str = "") -> Status:
    """Compare disk and index now; nothing is created, migrated or written."""
    setup, choice, workspace, path = parts.setup, parts.choice, parts.workspace, parts.store.path
    scan, plan = look(parts.sync)
    with parts.store.snapshot() as reader:
        state = reader.state()
        indexed = reader.files()
        active = active_embedder(parts, state.spaces)
        due_vectors = count_due_vectors(reader, parts.embedders)
        unsearched = len(reader.files(which="unsearched"))
        facts, healed = reader.database_facts(), reader.facts("healed")
        is_outdated = not is_chunked_by(reader, parts.sync.chunker.name)
        media = count_media(parts, scan, indexed, reader)
    due_by_source = due_files_by_source(plan, indexed, setup.sources)
    not_text = (
        Skipped(name, WRONG_CONTENT if _is_media(row) else "is not text")
        for name, row in indexed.items()
        if row.hash == NOT_TEXT
    )
    version = str(facts.get("sqlite_version", ""))
    sources = report_sources(workspace)
    return Status(
        workspace=setup.workspace,
        agent_id=setup.agent_id,
        index_path=path,
        index_bytes=facts["bytes"] if "bytes" in facts else _bytes_of(path),
        config_file=setup.config_file,
        files=state.files,
        chunks=state.chunks,
        due_files=plan.due,
        due_by_source=due_by_source,
        due_vectors=due_vectors,
        generation=state.generation,
        rebuilding=state.building is not None,
        mode="hybrid" if active else "fts-only",
        embedder=active.traits.label if active else _inactive_label(parts),
        embedder_reason=_reason(parts, state.spaces) if active else choice.reason,
        spaces=tuple(state.spaces),
        vector_engine=setup.vector_engine or "off",
        sqlite_version=version,
        sqlite_safe=not version or has_wal_fix(version),
        cache_entries=state.cache_entries,
        cache_limit=setup.cache_limit,
        last_sync=state.last_sync,
        last_error=last_error,
        skipped=(*scan.skipped, *not_text),
        scan_failures=scan.failures,
        denied_paths=workspace.denied,
        degraded=choice.degraded
        or (OUTDATED if is_outdated else None)
        or refusal_of(parts.embedders),
        containment=workspace.containment,
        warnings=setup.warnings,
        spent=_spent(parts),
        metrics=_metrics(parts, due_by_source, due_vectors, state.last_sync),
        shared_disk=shared_file_system(path) if version else "",
        healed=_healed(healed),
        sources=sources,
        not_markdown=not_markdown(workspace, sources),
        unsearched_files=unsearched,
        media=media,
        running=facts["running"] if "running" in facts else running_sync(path),
        events=_events(parts),
    )


def count_media(
    parts: IndexParts, scan: Scan, indexed: Mapping[str, FileRow], reader: InspectedSnapshot
) -> dict[str, int]:
    """Count the images and audio files; return nothing if they are not indexed."""
    rules = parts.workspace.media
    if rules is None:
        return {}
    rows = [row for row in indexed.values() if _is_media(row)]
    kept = [row for row in rows if row.chunks]
    modalities = [rules.modality_of(row.path) for row in kept]
    skipped = [
        item
        for item in scan.skipped
        if rules.modality_of(item.path) or rules.other_modality(item.path)
    ]
    best = parts.embedders[-1] if parts.embedders else None
    vectors = (
        reader.cached(best.identity, [row.hash for row in kept])
        if best is not None and best.traits.media
        else {}
    )
    return {
        "image": modalities.count("image"),
        "audio": modalities.count("audio"),
        "skipped": len(skipped) + len(rows) - len(kept),
        "withoutVector": sum(row.hash not in vectors for row in kept),
    }


def _is_media(row: FileRow) -> bool:
    return row.source == "memory" and is_media(row.path)


class Reports(Protocol):
    """Anything that reports its status."""

    def status(self) -> Status: ...


def brief_status(parts: IndexParts, other: Reports | None = None) -> tuple[str, Mode, int]:
    """Return what a system prompt says about the memory: the embedder that answers, the mode, and
    how many files are due. `other` is the backend that answers instead of the built-in one.
    """
    if other is not None:
        facts = other.status()
        return facts.backend, facts.mode, facts.due_files
    _, plan = look(parts.sync)
    with parts.store.snapshot() as reader:
        active = active_embedder(parts, reader.spaces())
    return (active.traits.label, "hybrid", plan.due) if active else ("", "fts-only", plan.due)


def _inactive_label(parts: IndexParts) -> str:
    """Describe the embedder when no vectors answer: none is wanted, or none are made yet."""
    if not parts.embedders:
        return "none: keywords only"
    return f"{parts.embedders[-1].traits.label}, once files are indexed"


def _reason(parts: IndexParts, spaces: Sequence[Space]) -> str:
    """Explain the choice, and which embedder will follow the one that answers now."""
    ready = {space.identity for space in spaces if space.ready}
    reason = parts.choice.reason
    if not parts.embedders or parts.embedders[-1].identity in ready:
        return reason
    best = parts.embedders[-1].traits
    how = "sent it the notes" if best.remote else "made its vectors"
    return f"{reason}; {best.label} takes over once `clawmark index` has {how}"


def _healed(facts: Mapping[str, object]) -> str:
    at = facts.get("at")
    if not isinstance(at, int):
        return ""
    return f"{datetime.fromtimestamp(at / 1000):%Y-%m-%d %H:%M}: {facts.get('what', '')}"


def due_files_by_source(
    plan: SyncPlan, indexed: Mapping[str, FileRow], sources: Sequence[str]
) -> dict[str, int]:
    """Count the files of each source that differ from the index."""
    due: dict[str, int] = dict.fromkeys(sources, 0)
    for source in (
        *(state.source for state in (*plan.add, *plan.check)),
        *(indexed[path].source for path in plan.delete if path in indexed),
    ):
        due[source] = due.get(source, 0) + 1
    return due


def _events(parts: IndexParts) -> dict[str, dict[str, object]]:
    """Return how often each event has happened in any process, and when last."""
    counted = read_counts(parts.counts.path) if parts.counts is not None else {}
    return {
        name: {"count": one.times, "last": utc_time(one.last_ms)} for name, one in counted.items()
    }


def _metrics(
    parts: IndexParts, due: Mapping[str, int], due_vectors: int, last: Mapping[str, object]
) -> dict[str, float]:
    """Return the counters of this process, what was measured now, and the numbers of the last sync
    of any process.
    """
    metrics = parts.metrics
    for source, number in due.items():
        metrics.set(f"dirty.{source}", number)
    metrics.set("dirty.vectors", due_vectors)
    metrics.set("paths.denied", parts.workspace.denied)
    metrics.set("lock.waits", parts.store.lock_waits)
    for name in ("searches", "syncs"):
        metrics.count(name, 0)
    numbers = {name: value for name, value in last.items() if isinstance(value, (int, float))}
    for name, value in numbers.items():
        metrics.set(f"sync.last.{name}", value)
    made, known = numbers.get("embedded", 0), numbers.get("reused", 0)
    metrics.set("cache.hitRate", round(known / (made + known), 4) if made + known else 1.0)
    metrics.set("read.errors", numbers.get("failed", 0) + numbers.get("unlisted", 0))
    metrics.set("provider.fallback", int(bool(last.get("standIn"))))
    return metrics.snapshot()


def _spent(parts: IndexParts) -> dict[str, int]:
    summary = ledger_of(parts)
    if summary is None:
        return {}
    return {
        "callsToday": summary.today_calls,
        "tokensToday": summary.today_tokens,
        "calls": summary.total_calls,
        "tokens": summary.total_tokens,
        "dailyTokens": summary.daily_tokens,
    }


def has_wal_fix(version: str) -> bool:
    """Return whether this SQLite is free of the WAL-reset bug (3.7.0 to 3.51.2, fixed in 3.44.6 and
    3.50.7).
    """
    numbers = tuple(int(part) for part in version.split(".") if part.isdigit())
    return (
        numbers >= (3, 51, 3)
        or (3, 50, 7) <= numbers < (3, 51, 0)
        or (3, 44, 6) <= numbers < (3, 45, 0)
    )


def _bytes_of(path: str) -> int:
    total = 0
    for suffix in ("", "-wal"):
        try:
            total += os.stat(path + suffix).st_size
        except OSError:
            continue
    return total
