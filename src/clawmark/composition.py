"""Settings in; the working parts of a memory out: the one place where configuration becomes
objects.

Everything that is built here is handed what it needs and reads no settings. `memory` has the verbs.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from clawmark.backends.builtin import BuiltinBackend, Parts
from clawmark.backends.source_file import SourceFile
from clawmark.config.paths import Places
from clawmark.config.schema import MemorySearch, QueryOptions, Settings
from clawmark.embed.base import Choice, Embedder
from clawmark.engine.search.time_preference import may_name_time
from clawmark.engine.sync.scan import SyncParts
from clawmark.model.errors import RerankError
from clawmark.model.values import Identity, Query
from clawmark.store.sqlite.store import Index
from clawmark.system.counters import Metrics
from clawmark.workspace import Workspace

if TYPE_CHECKING:
    from clawmark.engine.search.rerank import RerankStep
    from clawmark.text.secrets.redact import Redactor
    from clawmark.workspace.transcripts.files import TranscriptFiles

CANDIDATE_FLOOR = 100
"""Each leg brings at least so many candidates."""
NO_EXTRA_PATHS = "e861c1d291b583b9f4bf96233b72b9e6984cc92320671a0805e1063946e4b1a1"
"""The fingerprint without any, known by heart: `hashlib` is a tenth of a sync that finds nothing to
do.
"""


def build(
    places: Places,
    settings: Settings,
    embedder: Embedder | None,
    provider: str | None,
    background: bool,
) -> tuple[BuiltinBackend, Choice]:
    options = settings.memory_search
    metrics = Metrics()
    sources = SourceFile(os.path.join(places.state_dir, "sources", f"{places.agent_id}.json"))
    workspace = Workspace(
        root=places.workspace,
        extra_paths=options.extra_paths,
        lock_dir=os.path.join(places.state_dir, "locks"),
        sessions=open_sessions(places, settings) if "sessions" in options.sources else None,
        has_memory="memory" in options.sources,
        extra_patterns=options.extra_patterns,
        sources=sources.read,
    )
    index = Index(
        places.index_path,
        vector_engine=options.store.vector.engine,
        # Vectors of indexed passages are kept either way; without a cache, only those.
        cache_entries=options.cache.max_entries if options.cache.enabled else 0,
        unsearched=[source for source in ("memory", "sessions") if source not in options.sources],
    )
    choice, older = _choose(places, settings, index, embedder, provider)
    sync = SyncParts(
        workspace=workspace,
        store=index,
        chunker=options.chunking,
        embedders=choice.embedders,
        identity=lambda: _identity(settings, choice),
        now_ns=time.time_ns,
        fallbacks=choice.fallbacks,
        deltas=options.sync.sessions,
    )
    scout = choice.embedders[0] if choice.embedders and choice.embedders[0].traits.instant else None
    parts = Parts(
        workspace=workspace,
        store=index,
        sync=sync,
        embedders=choice.embedders,
        fallbacks=choice.fallbacks,
        revive=older,
        scout=scout,
        degraded=choice.degraded,
        metrics=metrics,
        instead_of=choice.instead_of,
        source_file=sources.path,
        rerank=_rerank_step(places, options) if options.query.rerank.provider != "none" else None,
    )
    debounce, interval = options.sync.watch_debounce_ms / 1000, options.sync.interval_minutes * 60.0
    return BuiltinBackend(
        parts=parts,
        freshen=options.sync.on_search,
        background=background,
        debounce=debounce,
        interval=interval,
    ), choice


def _rerank_step(places: Places, search: MemorySearch) -> RerankStep:
    """The configured reranker; one that cannot be made says so with every answer."""
    from clawmark.embed.rerank.base import Unusable, make_reranker
    from clawmark.engine.search.rerank import RerankStep

    options = search.query.rerank
    try:
        proxy = str(search.remote.get("proxy") or "")
        reranker = make_reranker(options, os.environ, places.state_dir, proxy=proxy)
    except RerankError as error:
        reranker = Unusable(options.provider, error)
    return RerankStep(reranker, options.top_k, options.timeout_ms / 1000)


def _choose(
    places: Places,
    settings: Settings,
    store: Index,
    embedder: Embedder | None,
    provider: str | None,
) -> tuple[Choice, Callable[[Identity], Embedder | None]]:
    """The embedders, and a way to make an older one again."""

    def nobody(_: Identity) -> None:
        return None

    if embedder is not None and settings.memory_search.enabled:
        from clawmark.embed.plugins import guarded

        return Choice((guarded(embedder, os.environ),), "given by the caller", None), nobody
    options = settings.memory_search
    if not options.enabled:
        return Choice((), "memorySearch.enabled is false", None), nobody
    if not options.store.vector.enabled:
        return Choice((), "memorySearch.store.vector.enabled is false", None), nobody
    if (provider or options.provider) == "none":
        return Choice((), "the provider is none: keywords answer alone", None), nobody
    from clawmark.embed.choose import Surroundings, Wanted, choose, revive

    wanted = Wanted(
        provider=options.provider,
        model=options.model,
        dims=options.output_dimensionality,
        local_model_path=options.local.model_path,
        fallback=options.fallback,
        remote=options.remote,
        entries=options.provider_entries,
    )
    if provider not in (None, options.provider):
        # The configured model, address and key belong to the configured provider, and go to no
        # other.
        wanted = wanted._replace(provider=provider, model="", dims=0, remote={})
    batch_dir = os.path.join(places.state_dir, "batches", places.agent_id)
    around = Surroundings(
        environ=os.environ,
        state_dir=places.state_dir,
        batch_dir=batch_dir,
        dims_of=lambda *names: _dims_of(store, names),
    )

    def older(identity: Identity) -> Embedder | None:
        return revive(identity, wanted, around)

    return choose(wanted, around), older


def _dims_of(store: Index, names: tuple[str, ...]) -> int:
    """The size of the vectors that the index already has of an embedder, in a space or imported
    into the cache.
    """
    with store.reading() as reader:
        spaces = (
            space.identity.dims
            for space in reader.spaces()
            if space.identity[:3] == names and space.vectors
        )
        return next(spaces, 0) or reader.cached_dims(*names)


def open_sessions(places: Places, settings: Settings) -> TranscriptFiles:
    """The agent's transcripts; what is read from them has its secrets masked, the configured ones
    by their value.
    """
    from clawmark.workspace.transcripts.files import TranscriptFiles

    masks: list[Redactor] = []

    def clean(text: str) -> str:
        if not masks:  # a search that finds nothing new has nothing to mask
            masks.append(redactor_of(settings.memory_search))
        return masks[0].clean(text)

    paths, own = settings.memory_search.sessions.paths, places.conversations_dir
    paths = (*paths, own) if own != places.sessions_dir and os.path.isdir(own) else paths
    return TranscriptFiles(
        folder=places.sessions_dir,
        paths=paths,
        workspace=os.path.realpath(places.workspace),
        clean=clean,
    )


def keys_of(options: MemorySearch) -> tuple[str, ...]:
    """Every key that is configured, to be masked wherever text is shown or stored."""
    from clawmark.backends.known_secrets import configured_keys

    return configured_keys(
        options.remote, entries=options.provider_entries, rerank_key=options.query.rerank.api_key
    )


def redactor_of(options: MemorySearch) -> Redactor:
    """What masks the configured keys and everything that looks like one."""
    from clawmark.text.secrets.redact import Redactor

    return Redactor(keys_of(options))


def make_query(
    options: QueryOptions,
    text: str,
    max_results: int | None,
    min_score: float | None,
    today: Callable[[], str],
) -> Query:
    """A complete question: what was asked, and the settings for the rest."""
    hybrid, decay = options.hybrid, options.hybrid.temporal_decay
    most = options.max_results if max_results is None else max(1, max_results)
    return Query(
        text=text,
        max_results=most,
        min_score=options.min_score if min_score is None else min_score,
        vector_weight=hybrid.vector_weight,
        text_weight=hybrid.text_weight,
        hybrid=hybrid.enabled,
        fusion=hybrid.fusion,
        candidates=max(CANDIDATE_FLOOR, most * hybrid.candidate_multiplier),
        mmr_lambda=hybrid.mmr.lambda_ if hybrid.mmr.enabled else None,
        half_life_days=decay.half_life_days if decay.enabled else None,
        today=today() if decay.enabled or may_name_time(text) else "",
    )


def _identity(settings: Settings, choice: Choice) -> dict[str, object]:
    """What the index depends on, under OpenClaw's names for it."""
    options = settings.memory_search
    best = choice.embedders[-1].identity if choice.embedders else None
    return {
        "model": best.model if best else "fts-only",
        "provider": best.provider if best else "none",
        "providerKey": best.provider_key if best else "",
        "sources": sorted(options.sources),
        "scopeHash": scope_hash(options.extra_paths),
        "chunkTokens": options.chunking.tokens,
        "chunkOverlap": options.chunking.overlap,
        "chunker": options.chunking.name,
        "vectorDims": best.dims if best else 0,
    }


def scope_hash(extra_paths: tuple[str, ...]) -> str:
    """OpenClaw's fingerprint of what is indexed beyond the workspace."""
    if not extra_paths:
        return NO_EXTRA_PATHS
    import hashlib

    scope = {
        "extraPaths": sorted({path.replace("\\", "/") for path in extra_paths}),
        "multimodal": {"enabled": False, "modalities": [], "maxFileBytes": 10_485_760},
    }
    text = json.dumps(scope, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
