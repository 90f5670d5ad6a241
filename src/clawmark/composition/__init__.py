"""The composition root: builds the backend of a memory from its settings.

What is built here is handed what it needs and reads no settings. `composition.agent` builds what
agents use."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from clawmark.backends.builtin import BuiltinBackend
from clawmark.composition.index_identity import index_identity
from clawmark.composition.stores import open_store, vector_engine
from clawmark.config.paths import Places
from clawmark.config.schema import Loaded, MemorySearch, QueryOptions, Remote, Settings
from clawmark.config.schema.media import Multimodal
from clawmark.embed.base import Choice, Embedder
from clawmark.engine.maintenance.source_file import SourceFile
from clawmark.engine.parts import IndexParts, Setup
from clawmark.engine.sync.scan import SyncParts
from clawmark.model.values import NO_FILTERS, Filters, Identity, MediaRules, Query, Scan
from clawmark.system.counters import Metrics, SharedCounts
from clawmark.workspace import Workspace
from clawmark.workspace.places import ROOT_FILES

if TYPE_CHECKING:
    from datetime import datetime

    from clawmark.backends.base import MemoryBackend
    from clawmark.composition.team import TeamParts
    from clawmark.engine.search.rerank import RerankStep
    from clawmark.engine.sync.media import MediaSync
    from clawmark.engine.versions.recorder import VersionRecorder
    from clawmark.engine.versions.workspace_history import WorkspaceHistory
    from clawmark.history.journal import Journal
    from clawmark.history.tombstones import Tombstones
    from clawmark.model.provenance import WriteReview
    from clawmark.model.reports import Finding
    from clawmark.store.base import ManagedStore
    from clawmark.text.secrets.redact import Redactor
    from clawmark.workspace.transcripts.files import TranscriptFiles

CANDIDATE_FLOOR = 100
"""The least number of candidates of each leg."""


def build(
    places: Places,
    loaded: Loaded,
    embedder: Embedder | None,
    provider: str | None,
    *,
    background: bool,
    clock: Callable[[], datetime] | None = None,
) -> BuiltinBackend:
    """Build the built-in backend; nothing is opened or loaded yet."""
    options = loaded.settings.memory_search
    sources, counts = source_file(places), event_counts(places)
    has_sessions = "sessions" in options.sources
    workspace = Workspace(
        root=places.workspace,
        extra_paths=options.extra_paths,
        lock_dir=os.path.join(places.state_dir, "locks"),
        sessions=open_sessions(places, loaded.settings) if has_sessions else None,
        has_memory="memory" in options.sources,
        extra_patterns=options.extra_patterns,
        sources=sources.read,
        media=_media_rules(options.multimodal),
        counts=counts,
        journal=lambda: make_journal(places, loaded.settings, clock),
        is_forgotten=lambda text: make_tombstones(places).is_forgotten(text),
        review=lambda: _write_review(places, loaded.settings, workspace),
        copies="spaces" if loaded.settings.has_team else "",
    )
    # Without a cache, only the vectors of indexed passages are kept.
    cache_entries = options.cache.max_entries if options.cache.enabled else 0
    index = open_store(places, options, cache_entries)
    choice, revive = _choose(places, loaded.settings, index, embedder, provider)
    sync = SyncParts(
        workspace=workspace,
        store=index,
        chunker=options.chunking,
        embedders=choice.embedders,
        identity=lambda: index_identity(loaded.settings, choice),
        now_ns=time.time_ns,
        fallbacks=choice.fallbacks,
        deltas=options.sync.sessions,
        media=_media_sync(workspace) if workspace.media is not None else None,
        on_text=_record_found(
            workspace, index, lambda: make_journal(places, loaded.settings, clock)
        ),
    )
    setup = _setup(places, loaded, sources.path, cache_entries)
    instant = choice.embedders[0] if choice.embedders else None
    parts = IndexParts(
        workspace=workspace,
        store=index,
        sync=sync,
        choice=choice,
        setup=setup,
        metrics=Metrics(),
        revive=revive,
        scout=instant if instant is not None and instant.traits.instant else None,
        rerank=_rerank_step(places, options) if options.query.rerank.provider != "none" else None,
        counts=counts,
    )
    return BuiltinBackend(
        parts,
        freshen=options.sync.on_search,
        background=background,
        debounce=options.sync.watch_debounce_ms / 1000,
        interval=options.sync.interval_minutes * 60.0,
        make_recorder=lambda: make_recorder(places, loaded.settings, workspace),
        is_recorded=lambda scan: _is_recorded(places, scan),
    )


def _setup(places: Places, loaded: Loaded, source_file: str, cache_entries: int) -> Setup:
    """Return what status and doctor report of the configuration."""
    options = loaded.settings.memory_search
    return Setup(
        workspace=places.workspace,
        agent_id=places.agent_id,
        config_file=places.config_file or "",
        state_dir=places.state_dir,
        sources=options.sources,
        source_file=source_file,
        vector_engine=vector_engine(options),
        cache_limit=cache_entries,
        warnings=loaded.warnings,
        has_index=loaded.settings.plugins.has_memory,
    )


def make_journal(
    places: Places, settings: Settings, clock: Callable[[], datetime] | None = None
) -> Journal:
    """Return the journal of an agent's writes."""
    # Imported here: a search writes nothing.
    from clawmark.composition.history import records

    return records.make_journal(places, settings, clock)


def make_tombstones(places: Places) -> Tombstones:
    """Return what was forgotten of an agent's memory."""
    # Imported here: a search writes nothing.
    from clawmark.history.tombstones import Tombstones

    folder = os.path.join(places.state_dir, "agents", places.agent_id)
    return Tombstones(os.path.join(folder, "tombstones.json"))


def make_recorder(
    places: Places, settings: Settings, workspace: Workspace
) -> VersionRecorder | None:
    """Return what records the versions of a workspace; None if that is switched off."""
    # Imported here: a search records nothing.
    from clawmark.composition.history import versions

    return versions.make_recorder(places, settings, workspace)


def history_folder(places: Places) -> str:
    """Return the folder of the versions of an agent's workspace."""
    return os.path.join(places.state_dir, "agents", places.agent_id, "history.git")


def _is_recorded(places: Places, scan: Scan) -> bool:
    """Return whether the newest version of a workspace has the files of a scan."""
    folder = history_folder(places)
    if not os.path.isdir(folder):
        return False
    # Imported here: a search records nothing. Settings are not needed if nothing has changed.
    from clawmark.history.recorded_files import is_recorded

    return is_recorded(
        folder,
        [file for file in scan.files if file.path in ROOT_FILES or file.path.startswith("memory/")],
    )


def open_history(
    places: Places, settings: Settings, workspace: Workspace, now: Callable[[], datetime]
) -> WorkspaceHistory:
    """Return the versions of a workspace, for `Memory.history`."""
    # Imported here: a search does without it.
    from clawmark.composition.history import versions

    return versions.make_workspace_history(places, settings, workspace, now)


def history_findings(places: Places, settings: Settings, *, fix: bool) -> list[Finding]:
    """Report what is wrong with the history of a workspace, for `clawmark doctor`."""
    # Imported here: only `doctor` needs it.
    from clawmark.composition.history import versions

    return versions.history_findings(places, settings, fix=fix)


def _record_found(
    workspace: Workspace, store: ManagedStore, journal: Callable[[], Journal]
) -> Callable[[Sequence[tuple[str, str]]], None]:
    """Return what records text of changed files that no write has recorded, and once a minute how
    interrupted writes ended."""
    settled = [float("-inf")]

    def record(files: Sequence[tuple[str, str]]) -> None:
        # Imported here: most searches find nothing changed.
        from clawmark.composition.history import records

        if time.monotonic() - settled[0] > 60:
            records.record_outcomes(workspace, journal())
            settled[0] = time.monotonic()
        records.record_found(store, journal(), files)

    return record


def _write_review(places: Places, settings: Settings, workspace: Workspace) -> WriteReview:
    """Return what keeps the writes of agents for the user's decision."""
    # Imported here: a search writes nothing.
    from clawmark.composition.history.review import make_write_review

    return make_write_review(places, settings, workspace)


def _media_rules(options: Multimodal) -> MediaRules | None:
    return MediaRules(options.wanted, options.max_file_bytes) if options.wanted else None


def choose_backend(
    builtin: BuiltinBackend, settings: Settings, places: Places, *, background: bool
) -> MemoryBackend:
    """Return the configured backend."""
    # Only the selected backend is imported.
    if not (settings.plugins.has_memory and settings.memory_search.enabled):
        from clawmark.backends.none import NoMemoryBackend, NoSearchBackend

        is_off = settings.plugins.has_memory
        return NoSearchBackend(builtin) if is_off else NoMemoryBackend(builtin)
    if settings.memory.backend != "builtin":
        from clawmark.composition.backends import open_other

        return open_other(builtin, settings, places, background=background)
    store = settings.memory_search.store
    if store.uri and store.fallback == "sqlite":
        from clawmark.composition.stores.local_index import with_local_index

        return with_local_index(builtin, settings, places)
    return builtin


def require_index(settings: Settings) -> None:
    """Raise ConfigError if the memory slot is empty: then there is no index."""
    if not settings.plugins.has_memory:
        from clawmark.backends.none import empty_slot

        raise empty_slot()


def source_file(places: Places) -> SourceFile:
    """Return the list of the folders that were added to a memory."""
    return SourceFile(os.path.join(places.state_dir, "sources", f"{places.agent_id}.json"))


def event_counts(places: Places) -> SharedCounts:
    """Return the counters of a memory that all its processes share."""
    return SharedCounts(os.path.join(places.state_dir, "counts", f"{places.agent_id}.json"))


def _rerank_step(places: Places, search: MemorySearch) -> RerankStep:
    from clawmark.composition.rerank import rerank_step

    return rerank_step(places, search)


def _media_sync(workspace: Workspace) -> MediaSync:
    # Imported late: only memories with images or audio need it.
    from clawmark.engine.sync.media import MediaSync

    return MediaSync(workspace)


def _choose(
    places: Places,
    settings: Settings,
    store: ManagedStore,
    embedder: Embedder | None,
    provider: str | None,
) -> tuple[Choice, Callable[[Identity], Embedder | None]]:
    """Return the embedders, and a function that makes the embedder of an older space."""

    def revive_none(_: Identity) -> None:
        return None

    options = settings.memory_search
    if embedder is not None and options.enabled and settings.plugins.has_memory:
        from clawmark.embed.plugins import guarded

        return Choice((guarded(embedder, os.environ),), "given by the caller", None), revive_none
    if not settings.plugins.has_memory:
        return Choice((), "the memory slot is empty", None), revive_none
    if not options.enabled:
        return Choice((), "memorySearch.enabled is false", None), revive_none
    if not options.store.vector.enabled:
        return Choice((), "memorySearch.store.vector.enabled is false", None), revive_none
    if (provider or options.provider) == "none":
        return Choice((), "the provider is none: keywords answer alone", None), revive_none
    from clawmark.embed import choose, embedder_options

    wanted = embedder_options.EmbeddingOptions(
        provider=options.provider,
        model=options.model,
        dims=options.output_dimensionality,
        local_model_path=options.local.model_path,
        fallback=options.fallback,
        remote=options.remote,
        entries=options.provider_entries,
    )
    if provider not in (None, options.provider):
        # The configured model, address and key belong to the configured provider only.
        wanted = wanted._replace(provider=provider, model="", dims=0, remote=Remote())
    batch_dir = os.path.join(places.state_dir, "batches", places.agent_id)
    around = embedder_options.EmbedderContext(
        environ=os.environ,
        state_dir=places.state_dir,
        batch_dir=batch_dir,
        dims_of=lambda *names: _dims_of(store, names),
    )

    def older(identity: Identity) -> Embedder | None:
        return choose.revive(identity, wanted, around)

    return choose.choose(wanted, around), older


def _dims_of(store: ManagedStore, names: tuple[str, ...]) -> int:
    """Return the vector size of an embedder's space or of its imported vectors in the cache."""
    with store.snapshot() as reader:
        spaces = (
            space.identity.dims
            for space in reader.spaces()
            if space.identity[:3] == names and space.vectors
        )
        return next(spaces, 0) or reader.cached_dims(*names)


def open_sessions(places: Places, settings: Settings) -> TranscriptFiles:
    """Return the agent's transcripts, which are read with secrets and configured keys masked."""
    from clawmark.workspace.transcripts.files import TranscriptFiles

    masks: list[Redactor] = []

    def clean(text: str) -> str:
        if not masks:  # made when a transcript is first read
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
    """Return every configured key, to be masked wherever text is shown or stored."""
    from clawmark.backends.known_secrets import configured_keys

    return configured_keys(
        options.remote, entries=options.provider_entries, rerank_key=options.query.rerank.api_key
    )


def redactor_of(options: MemorySearch) -> Redactor:
    """Return what masks the configured keys and everything that looks like one."""
    from clawmark.text.secrets.redact import Redactor

    return Redactor(keys_of(options))


def read_filters(
    settings: Settings, given: Mapping[str, str | None], today: Callable[[], str]
) -> Filters:
    """Return the parsed filters of a search."""
    if not any(given.values()):
        return NO_FILTERS
    # Imported late: it needs datetime, and most searches have no filter.
    from clawmark.text.filters import make_filters

    return make_filters(
        since=given["since"],
        until=given["until"],
        path=given["path"],
        source=given["source"],
        today=today,
        space=given["space"],
        has_spaces=settings.has_team,
    )


def join_team(
    builtin: BuiltinBackend, own: MemoryBackend, settings: Settings, places: Places
) -> TeamParts | None:
    """Return the configured team of a memory; None without one."""
    if not settings.has_team:
        return None
    # Imported late: most memories have no team.
    from clawmark.composition.team import build_team

    return build_team(builtin, own, settings, places)


def periodic_pull(settings: Settings, team: TeamParts | None) -> Callable[[], Sequence[str]] | None:
    """Return what a process that watches the files does to pull the spaces; None for nothing."""
    return team.pull_quietly if team is not None and settings.team.pull else None


def make_query(
    options: QueryOptions,
    text: str,
    max_results: int | None,
    min_score: float | None,
    today: Callable[[], str],
) -> Query:
    """Complete a question with the configured search options."""
    # Imported late: a sync does without it.
    from clawmark.engine.search import time_preference as times

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
        today=today() if decay.enabled or times.may_name_time(text) else "",
    )


def make_clock(settings: Settings, clock: Callable[[], datetime] | None) -> Callable[[], datetime]:
    """Return the given clock, or one that gives the current time in the user's time zone."""

    def now() -> datetime:
        # Imported late: it needs datetime, and a cold search rarely needs the day.
        from clawmark.system.clock import now_in

        return now_in(settings.user_timezone)

    return clock or now
