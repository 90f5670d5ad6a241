"""Build a backend other than the built-in one, with the built-in one as its fallback.

A backend is `qmd`, or an entry point of the group `clawmark.backends` in an installed package."""

from __future__ import annotations

import os
import time
from importlib.metadata import entry_points
from typing import TYPE_CHECKING

from clawmark.backends.answer_check import AnswerCheck
from clawmark.backends.base import BackendContext, MemoryBackend
from clawmark.backends.fallback import FallbackBackend, TimeLimits
from clawmark.backends.qmd.answers import SnippetLimits
from clawmark.backends.qmd.backend import FIRST_SECONDS, QmdBackend, SearchOptions
from clawmark.backends.qmd.indexer import Indexer, IndexerOptions
from clawmark.backends.qmd.process import QmdFolders, QmdProcess
from clawmark.composition import event_counts, redactor_of
from clawmark.config.schema.qmd import QmdLimits, QmdOptions, QmdUpdate
from clawmark.model.errors import BackendUnavailable

if TYPE_CHECKING:
    from clawmark.backends.builtin import BuiltinBackend
    from clawmark.config.paths import Places
    from clawmark.config.schema import Settings

GROUP = "clawmark.backends"


def open_other(
    builtin: BuiltinBackend, settings: Settings, places: Places, *, background: bool
) -> FallbackBackend:
    """Return the backend that `memory.backend` names; it is opened at its first use."""
    name, counts = settings.memory.backend, event_counts(places)
    context = BackendContext(
        workspace=builtin.parts.workspace,
        folder=os.path.join(places.state_dir, name, places.agent_id),
        agent_id=places.agent_id,
        settings=settings,
        background=background,
        describe=builtin.status,
    )
    fallback = FallbackBackend(
        name,
        lambda: make_qmd(context) if name == "qmd" else _installed(name, context),
        builtin,
        AnswerCheck(name, context.workspace),
        limits=_time_limits(settings) if name == "qmd" else TimeLimits(),
        clean=redactor_of(settings.memory_search).clean,
        on_fallback=lambda: counts.add("fallbacks"),
    )
    if background and name == "qmd":
        fallback.start()
    return fallback


def _installed(name: str, context: BackendContext) -> MemoryBackend:
    """Open the backend of an installed package; only this one is imported."""
    found = list(dict.fromkeys(entry_points(group=GROUP, name=name)))
    if len(found) != 1:
        known = ", ".join(sorted({"builtin", "qmd", *entry_points(group=GROUP).names}))
        message = (
            f'The backend "{name}" is offered by more than one installed package.'
            if found
            else f'No installed package offers a memory backend called "{name}".'
        )
        raise BackendUnavailable(
            message, backend=name, hint=f"Set memory.backend to one of: {known}."
        )
    made: MemoryBackend = found[0].load()(context)
    return made


def make_qmd(context: BackendContext) -> QmdBackend:
    """Build the QMD backend; nothing is started yet unless it has a background worker."""
    settings, qmd = context.settings, context.settings.qmd
    update, folders = qmd.update, QmdFolders(context.folder)
    indexer = Indexer(
        context.workspace,
        QmdProcess(qmd.command, folders, context.workspace.root, os.environ),
        _indexer_options(context, qmd),
        time.time_ns,
    )
    limits, usual = qmd.limits, QmdLimits()
    options = SearchOptions(
        mode=qmd.search_mode,
        most=limits.max_results or usual.max_results,
        snippets=SnippetLimits(
            one=limits.max_snippet_chars or usual.max_snippet_chars,
            all=limits.max_injected_chars or usual.max_injected_chars,
        ),
        seconds=(limits.timeout_ms or usual.timeout_ms) / 1000,
        freshen=settings.memory_search.sync.on_search,
        wait_for_first=update.wait_for_boot_sync,
        default_min_score=settings.memory_search.query.min_score,
    )
    return QmdBackend(
        indexer,
        options,
        context.describe,
        background=context.background,
        update_on_start=update.on_boot,
        debounce=update.debounce_ms / 1000,
        interval=update.interval * 60,
    )


def _indexer_options(context: BackendContext, qmd: QmdOptions) -> IndexerOptions:
    update, usual, search = qmd.update, QmdUpdate(), context.settings.memory_search
    own_memory = qmd.include_default_memory and "memory" in search.sources
    export = qmd.sessions.export_dir or os.path.join(context.folder, "sessions")
    names = {
        os.path.realpath(
            os.path.join(context.workspace.root, os.path.expanduser(entry["path"]))
        ): entry["name"]
        for entry in (*qmd.paths, *context.settings.qmd_search.extra_collections)
        if "name" in entry
    }
    return IndexerOptions(
        agent=context.agent_id,
        own_memory=own_memory,
        names=names,
        export_folder=os.path.realpath(os.path.expanduser(export))
        if "sessions" in search.sources
        else "",
        retention_days=qmd.sessions.retention_days,
        uses_vectors=qmd.search_mode != "search",
        embed_interval=update.embed_interval * 60,
        command_seconds=(update.command_timeout_ms or usual.command_timeout_ms) / 1000,
        update_seconds=(update.update_timeout_ms or usual.update_timeout_ms) / 1000,
        embed_seconds=(update.embed_timeout_ms or usual.embed_timeout_ms) / 1000,
    )


def _time_limits(settings: Settings) -> TimeLimits:
    """Return limits above those that QMD's commands have anyway."""
    qmd, usual = settings.qmd, QmdUpdate()
    update = (qmd.update.update_timeout_ms or usual.update_timeout_ms) / 1000
    embed = (qmd.update.embed_timeout_ms or usual.embed_timeout_ms) / 1000
    search = (qmd.limits.timeout_ms or QmdLimits().timeout_ms) / 1000
    first = update if qmd.update.wait_for_boot_sync else FIRST_SECONDS
    return TimeLimits(answer=3 * search + first + 30.0, sync=2 * update + embed + 60.0)
