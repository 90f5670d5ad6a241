"""Answers the operational questions: what is indexed, what is due, who embeds and why, and what was
left alone.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from datetime import datetime

from clawmark.backends.builtin import Parts, answering, due_vectors_of_best, refusal_of
from clawmark.backends.freshening import OUTDATED
from clawmark.backends.sources import not_markdown, report_sources
from clawmark.config.paths import Places
from clawmark.config.schema import Loaded
from clawmark.embed.base import Choice, Embedder
from clawmark.engine.maintenance.spending import ledger_of
from clawmark.engine.sync.outcome import NOT_TEXT
from clawmark.engine.sync.scan import is_chunked_by, look
from clawmark.model.reports import Status
from clawmark.model.values import FileRow, Mode, Skipped, Space, SyncPlan
from clawmark.store.sqlite.files import shared_file_system
from clawmark.store.sqlite.running import running_sync


def status(
    parts: Parts, places: Places, loaded: Loaded, choice: Choice, last_error: str = ""
) -> Status:
    """Measure now; nothing is created, migrated or written."""
    scan, plan = look(parts.sync)
    options = loaded.settings.memory_search
    with parts.store.snapshot() as reader:
        state = reader.state()
        indexed = reader.files()
        due_by_source = due_files_by_source(plan, indexed, options.sources)
        spaces = tuple(space for space in state.spaces)
        active = active_embedder(parts, spaces)
        due_vectors = due_vectors_of_best(reader, parts.embedders)
        unsearched = len(reader.files(which="unsearched"))
        facts, healed = reader.database_facts(), reader.facts("healed")
        is_cut_otherwise = not is_chunked_by(reader, parts.sync.chunker.name)
    version = str(facts.get("sqlite_version", ""))
    sources = report_sources(parts.workspace)
    return Status(
        workspace=places.workspace,
        agent_id=places.agent_id,
        index_path=places.index_path,
        index_bytes=_bytes_of(places.index_path),
        config_file=places.config_file or "",
        files=state.files,
        chunks=state.chunks,
        due_files=plan.due,
        due_by_source=due_by_source,
        due_vectors=due_vectors,
        generation=state.generation,
        rebuilding=state.building is not None,
        mode="hybrid" if active else "fts-only",
        embedder=active.traits.label if active else _nobody(parts),
        embedder_reason=_reason(choice, parts, spaces) if active else choice.reason,
        spaces=spaces,
        vector_engine=options.store.vector.engine if options.store.vector.enabled else "off",
        sqlite_version=version,
        sqlite_safe=has_wal_fix(version),
        cache_entries=state.cache_entries,
        cache_limit=options.cache.max_entries if options.cache.enabled else 0,
        last_sync=state.last_sync,
        last_error=last_error,
        skipped=(
            *scan.skipped,
            *(Skipped(path, "is no text") for path, row in indexed.items() if row.hash == NOT_TEXT),
        ),
        scan_failures=scan.failures,
        denied_paths=parts.workspace.denied,
        degraded=choice.degraded
        or (OUTDATED if is_cut_otherwise else None)
        or refusal_of(parts.embedders),
        containment=parts.workspace.containment,
        warnings=loaded.warnings,
        spent=_spent(parts),
        metrics=_metrics(parts, due_by_source, due_vectors, state.last_sync),
        shared_disk=shared_file_system(places.index_path),
        healed=_healed(healed),
        search_enabled=options.enabled,
        sources=sources,
        not_markdown=not_markdown(parts.workspace, sources),
        unsearched_files=unsearched,
        running=running_sync(places.index_path),
    )


def _nobody(parts: Parts) -> str:
    """Said where no vectors answer: because none are wanted, or because none are made yet."""
    return (
        f"{parts.embedders[-1].traits.label}, once files are indexed"
        if parts.embedders
        else "none: keywords only"
    )


def _reason(choice: Choice, parts: Parts, spaces: Sequence[Space]) -> str:
    """Why this one, and who follows when another one answers so far: notes should go to no service
    that was not named.
    """
    ready = {space.identity for space in spaces if space.ready}
    if not parts.embedders or parts.embedders[-1].identity in ready:
        return choice.reason
    best = parts.embedders[-1].traits
    how = "sent it the notes" if best.remote else "made its vectors"
    return f"{choice.reason}; {best.label} takes over once `clawmark index` has {how}"


def _healed(facts: Mapping[str, object]) -> str:
    at = facts.get("at")
    if not isinstance(at, int):
        return ""

    return f"{datetime.fromtimestamp(at / 1000):%Y-%m-%d %H:%M}: {facts.get('what', '')}"


def due_files_by_source(
    plan: SyncPlan, indexed: Mapping[str, FileRow], sources: Sequence[str]
) -> dict[str, int]:
    """How many files of each source differ from what is indexed."""
    due: dict[str, int] = dict.fromkeys(sources, 0)
    for source in (
        *(state.source for state in (*plan.add, *plan.check)),
        *(indexed[path].source for path in plan.delete if path in indexed),
    ):
        due[source] = due.get(source, 0) + 1
    return due


def _metrics(
    parts: Parts, due: Mapping[str, int], due_vectors: int, last: Mapping[str, object]
) -> dict[str, float]:
    """The counters of this process, what is measured now, and the numbers of the last sync, whoever
    made it.
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


def pulse(parts: Parts) -> tuple[str, Mode, int]:
    """What a conversation should know of the memory: who makes the vectors that answer, the mode,
    how many files are due.
    """
    _, plan = look(parts.sync)
    with parts.store.snapshot() as reader:
        active = active_embedder(parts, reader.spaces())
    return (active.traits.label, "hybrid", plan.due) if active else ("", "fts-only", plan.due)


def _spent(parts: Parts) -> dict[str, int]:
    if len(parts.embedders) < 2 and not parts.fallbacks:
        return {}

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


def active_embedder(parts: Parts, spaces: Sequence[Space]) -> Embedder | None:
    """The best embedder whose space is complete: the one that answers, an older one included."""
    ready = {space.identity for space in spaces if space.ready}
    return next(
        (one for one in reversed(answering(parts, spaces, {})) if one.identity in ready), None
    )


def has_wal_fix(version: str) -> bool:
    """Whether this SQLite is free of the WAL-reset bug (3.7.0 to 3.51.2, with fixes in 3.44.6 and
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
