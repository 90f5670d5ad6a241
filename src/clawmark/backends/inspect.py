"""Answers the operational questions: what is indexed, what is due, who embeds and why, and what was left alone."""

from __future__ import annotations

import os
from collections.abc import Sequence

from clawmark.backends.builtin import Parts
from clawmark.config.paths import Places
from clawmark.config.schema import Loaded
from clawmark.embed.base import Choice, Embedder
from clawmark.index.store import Reader
from clawmark.reports import Status
from clawmark.sync.outcome import NOT_TEXT
from clawmark.sync.plan import plan_sync
from clawmark.types import Skipped, Space


def status(parts: Parts, places: Places, loaded: Loaded, choice: Choice) -> Status:
    """Measure now; nothing is created, migrated or written."""
    scan = parts.workspace.scan()
    options = loaded.settings.memory_search
    with parts.store.reading() as reader:
        state = reader.state()
        indexed = reader.files()
        plan = plan_sync(scan, reader.stats())
        spaces = tuple(space for space in state.spaces)
        active = active_embedder(spaces, parts.embedders)
        due_vectors = due_vectors_of_best(reader, spaces, parts.embedders, state.chunks)
        facts = reader.database_facts()
    version = str(facts.get("sqlite_version", ""))
    return Status(
        workspace=places.workspace,
        agent_id=places.agent_id,
        index_path=places.index_path,
        index_bytes=_bytes_of(places.index_path),
        config_file=places.config_file or "",
        files=state.files,
        chunks=state.chunks,
        due_files=plan.due,
        due_vectors=due_vectors,
        generation=state.generation,
        rebuilding=state.building is not None,
        mode="hybrid" if active else "fts-only",
        embedder=active.traits.label if active else "none: keywords only",
        embedder_reason=choice.reason,
        spaces=spaces,
        vector_engine=options.store.vector.engine if options.store.vector.enabled else "off",
        sqlite_version=version,
        sqlite_safe=has_wal_fix(version),
        cache_entries=state.cache_entries,
        cache_limit=options.cache.max_entries,
        last_sync=state.last_sync,
        skipped=(*scan.skipped, *(Skipped(path, "is no text") for path, row in indexed.items() if row.hash == NOT_TEXT)),
        scan_failures=scan.failures,
        denied_paths=parts.workspace.denied,
        degraded=choice.degraded,
        containment=parts.workspace.containment,
        warnings=loaded.warnings,
        spent=_spent(parts),
    )


def _spent(parts: Parts) -> dict[str, int]:
    if len(parts.embedders) < 2 and not parts.fallbacks:
        return {}
    from clawmark.backends.spending import ledger_of

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


def active_embedder(spaces: Sequence[Space], embedders: Sequence[Embedder]) -> Embedder | None:
    """The best embedder whose space is complete: the one that answers."""
    ready = {space.identity for space in spaces if space.ready}
    return next((embedder for embedder in reversed(embedders) if embedder.identity in ready), None)


def due_vectors_of_best(reader: Reader, spaces: Sequence[Space], embedders: Sequence[Embedder], chunks: int) -> int:
    """How many chunks still wait for a vector of the best embedder."""
    if not embedders:
        return 0
    best = [space for space in spaces if space.identity == embedders[-1].identity]
    return reader.count_due_vectors(best[0].id) if best else chunks


def has_wal_fix(version: str) -> bool:
    """Whether this SQLite is free of the WAL-reset bug (3.7.0 to 3.51.2, with fixes in 3.44.6 and 3.50.7)."""
    numbers = tuple(int(part) for part in version.split(".") if part.isdigit())
    return numbers >= (3, 51, 3) or (3, 50, 7) <= numbers < (3, 51, 0) or (3, 44, 6) <= numbers < (3, 45, 0)


def _bytes_of(path: str) -> int:
    total = 0
    for suffix in ("", "-wal"):
        try:
            total += os.stat(path + suffix).st_size
        except OSError:
            continue
    return total
