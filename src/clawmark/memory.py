"""The library's front door and the one place where configuration becomes working objects.

    with Memory.open("~/agent") as memory:
        for hit in memory.search("which database did we pick?").hits:
            print(hit.citation, hit.snippet)

Everything below is handed what it needs; only this module reads settings.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING

from clawmark.backends.builtin import BuiltinBackend, Parts
from clawmark.config.load import load
from clawmark.config.paths import Places, resolve_places
from clawmark.config.schema import Loaded, Settings
from clawmark.embed.base import Choice, Embedder
from clawmark.errors import ConfigError
from clawmark.index.store import Index
from clawmark.observe import Metrics
from clawmark.sync.look import SyncParts
from clawmark.types import Found, Identity, Query, Scan, SyncPlan
from clawmark.workspace import Workspace

if TYPE_CHECKING:
    from datetime import datetime

    from clawmark.backends.spending import Spending
    from clawmark.documents import Excerpt, Written
    from clawmark.reports import Finding, Progress, Status, SyncReport, VerifyReport
    from clawmark.tools import Tool

# Enough that the better leg is never starved: 100 candidates found 1.5 points more than 24.
CANDIDATE_FLOOR = 100


class Memory:
    """The memory of one agent: search it, read it, add to it."""

    def __init__(
        self,
        places: Places,
        loaded: Loaded,
        embedder: Embedder | None = None,
        provider: str | None = None,
        clock: Callable[[], datetime] | None = None,
    ) -> None:
        self.places = places
        self.loaded = loaded
        self._clock = clock
        self._backend, self.choice = _build(places, loaded.settings, embedder, provider)

    @classmethod
    def open(
        cls,
        workspace: str | os.PathLike[str] | None = None,
        *,
        agent: str | None = None,
        config: str | os.PathLike[str] | None = None,
        state_dir: str | os.PathLike[str] | None = None,
        embedder: Embedder | None = None,
        provider: str | None = None,
        overrides: Mapping[str, object] | None = None,
        clock: Callable[[], datetime] | None = None,
    ) -> Memory:
        """Open a workspace; nothing is read, loaded or created until it is needed.

        `embedder` or `provider` stand in for the configured provider; `overrides` are settings by their dotted key, as
        `{"memorySearch.query.maxResults": 3}`; `clock` tells the time where a day matters (today's log, the age of a note).
        """
        places = resolve_places(_text(workspace), agent, _text(config), _text(state_dir))
        loaded = load(places, overrides or {})
        return cls(places, loaded, embedder, provider, clock)

    @property
    def settings(self) -> Settings:
        return self.loaded.settings

    @property
    def metrics(self) -> Metrics:
        return self._backend.parts.metrics

    def search(
        self,
        text: str,
        *,
        max_results: int | None = None,
        min_score: float | None = None,
        explain: bool = False,
        freshen: bool = True,
    ) -> Found:
        """Find what the memory holds about something; an empty answer says why."""
        query = self._query(text, max_results, min_score, explain)
        return self._backend.search(query, freshen=freshen)

    def read(self, path: str, *, start: int | None = None, lines: int | None = None) -> Excerpt:
        """Lines of a memory file, by its path or by a citation; at most 120 lines or 12,000 characters at once."""
        return self._backend.read(path, start, lines)

    def append(self, text: str, *, to: str = "") -> Written:
        """Add an entry to today's log, or to `MEMORY.md`; it is on disk when this returns."""
        from clawmark.workspace.daily import format_entry

        workspace = self._backend.parts.workspace
        return workspace.append(to, format_entry(text)) if to else workspace.remember(text, self.today())

    def plan(self) -> tuple[SyncPlan, Scan]:
        """What `sync` would do now."""
        return self._backend.plan()

    def sync(
        self,
        *,
        force: bool = False,
        progress: Callable[[Progress], None] | None = None,
        instant_only: bool = False,
    ) -> SyncReport:
        """Bring the index in step with the files; `force` builds the next generation while the old one answers."""
        from clawmark.sync.run import SyncRequest

        return self._backend.sync(SyncRequest(force=force, instant_only=instant_only, progress=progress))

    def status(self) -> Status:
        """The answers to the operational questions."""
        from clawmark.backends.inspect import status

        return status(self._backend.parts, self.places, self.loaded, self.choice)

    def spending(self) -> Spending:
        """What a full sync would send to the best embedder, and for how much; nothing is sent to find out."""
        from clawmark.backends.spending import spending

        return spending(self._backend)

    def doctor(self, *, fix: bool = False) -> list[Finding]:
        """What is wrong, why, and what to do; `fix` does what is safe to do."""
        from clawmark.backends.doctor import examine

        return examine(self._backend, self.places, self.loaded, self.choice, fix=fix)

    def verify(self) -> VerifyReport:
        """Derive every row from its file again and compare."""
        from clawmark.backends.verify import verify

        return verify(self._backend.parts)

    def tools(self, session_key: str = "") -> list[Tool]:
        """`memory_search` and `memory_get` as tools for any agent; the session key decides about citations."""
        from clawmark.tools import make_tools

        query = self.settings.memory_search.query
        return make_tools(
            lambda text, most, least: self.search(text, max_results=most, min_score=least),
            lambda path, start, lines: self.read(path, start=start, lines=lines),
            citations=self.settings.memory.citations,
            session_key=session_key,
            max_results=query.max_results,
            min_score=query.min_score,
        )

    def today(self) -> str:
        """Today's date where the user lives."""
        if self._clock is not None:
            return self._clock().date().isoformat()
        from datetime import datetime

        zone = self.settings.user_timezone
        if not zone:
            return datetime.now().date().isoformat()
        from zoneinfo import ZoneInfo

        return datetime.now(ZoneInfo(zone)).date().isoformat()

    def close(self) -> None:
        """Close the index and the workspace."""
        self._backend.close()

    def __enter__(self) -> Memory:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def _query(self, text: str, max_results: int | None, min_score: float | None, explain: bool) -> Query:
        options = self.settings.memory_search.query
        hybrid = options.hybrid
        most = options.max_results if max_results is None else max(1, max_results)
        decay = hybrid.temporal_decay
        return Query(
            text,
            most,
            options.min_score if min_score is None else min_score,
            hybrid.vector_weight,
            hybrid.text_weight,
            hybrid.enabled,
            max(CANDIDATE_FLOOR, most * hybrid.candidate_multiplier),
            hybrid.mmr.lambda_ if hybrid.mmr.enabled else None,
            decay.half_life_days if decay.enabled else None,
            self.today() if decay.enabled else "",
            explain,
        )


def _text(path: str | os.PathLike[str] | None) -> str | None:
    return None if path is None else os.path.expanduser(os.fspath(path))


def _choose(
    places: Places, settings: Settings, store: Index, embedder: Embedder | None, provider: str | None
) -> tuple[Choice, Callable[[Identity], Embedder | None]]:
    """The embedders, and a way to make an older one again."""

    def nobody(_: Identity) -> None:
        return None

    if embedder is not None:
        return Choice((embedder,), "given by the caller", None), nobody
    options = settings.memory_search
    if not options.store.vector.enabled:
        return Choice((), "memorySearch.store.vector.enabled is false", None), nobody
    if (provider or options.provider) == "none":
        return Choice((), "the provider is none: keywords answer alone", None), nobody
    from clawmark.embed.choose import Surroundings, Wanted, choose, revive

    if provider is not None:
        # The configured address and key belong to the configured provider, and go to no other.
        remote = options.remote if provider == options.provider else {}
        wanted = Wanted(provider, fallback=options.fallback, remote=remote)
    else:
        wanted = Wanted(
            options.provider,
            options.model,
            options.output_dimensionality,
            options.local.model_path,
            options.fallback,
            options.remote,
        )
    batch_dir = os.path.join(places.state_dir, "batches", places.agent_id)
    around = Surroundings(os.environ, places.state_dir, batch_dir, lambda *names: _dims_of(store, names))

    def older(identity: Identity) -> Embedder | None:
        return revive(identity, wanted, around)

    return choose(wanted, around), older


def _dims_of(store: Index, names: tuple[str, ...]) -> int:
    """The size of the vectors that the index already has of an embedder."""
    with store.reading() as reader:
        return next((space.identity.dims for space in reader.spaces() if space.identity[:3] == names), 0)


def _build(
    places: Places, settings: Settings, embedder: Embedder | None, provider: str | None
) -> tuple[BuiltinBackend, Choice]:
    options = settings.memory_search
    if not options.enabled:
        raise ConfigError(
            "Memory search is switched off.",
            key="memorySearch.enabled",
            hint="Set memorySearch.enabled to true in the configuration.",
        )
    metrics = Metrics()
    workspace = Workspace(places.workspace, options.extra_paths, lock_dir=os.path.join(places.state_dir, "locks"))
    index = Index(places.index_path, vector_engine=options.store.vector.engine, cache_entries=options.cache.max_entries)
    choice, older = _choose(places, settings, index, embedder, provider)
    sync = SyncParts(
        workspace,
        index,
        options.chunking,
        choice.embedders,
        lambda: _identity(settings, choice),
        time.time_ns,
        choice.fallbacks,
    )
    scout = choice.embedders[0] if choice.embedders and choice.embedders[0].traits.instant else None
    parts = Parts(workspace, index, sync, choice.embedders, choice.fallbacks, older, scout, choice.degraded, metrics)
    return BuiltinBackend(parts, freshen=options.sync.on_search), choice


def _identity(settings: Settings, choice: Choice) -> dict[str, object]:
    """What the index depends on, under OpenClaw's names for it."""
    from clawmark.text.chunk import chunker_name

    options = settings.memory_search
    best = choice.embedders[-1].identity if choice.embedders else None
    return {
        "model": best.model if best else "fts-only",
        "provider": best.provider if best else "none",
        "providerKey": best.provider_key if best else "",
        "sources": sorted(options.sources),
        "scopeHash": _scope_hash(options.extra_paths),
        "chunkTokens": options.chunking.tokens,
        "chunkOverlap": options.chunking.overlap,
        "chunker": chunker_name(options.chunking.mode, options.chunking.tokens, options.chunking.overlap),
        "vectorDims": best.dims if best else 0,
    }


def _scope_hash(extra_paths: tuple[str, ...]) -> str:
    """OpenClaw's fingerprint of what is indexed beyond the workspace."""
    import hashlib
    import json

    scope = {
        "extraPaths": sorted({path.replace("\\", "/") for path in extra_paths}),
        "multimodal": {"enabled": False, "modalities": [], "maxFileBytes": 10_485_760},
    }
    text = json.dumps(scope, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
