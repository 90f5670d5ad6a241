"""Build what forgetting works with from the settings of a memory."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from clawmark import composition
from clawmark.agent.consolidation.usage import UsageCounts
from clawmark.agent.forget.own import find_own, forget_own
from clawmark.agent.forget.parts import ForgetParts
from clawmark.agent.forget.plan import make_plan
from clawmark.agent.forget.run import finish_interrupted as finish
from clawmark.agent.forget.run import forget
from clawmark.agent.forget.values import ForgetPlan, ForgetReport, Selection
from clawmark.agent.plugins.lancedb.settings import read_settings
from clawmark.agent.session.setup import model_name
from clawmark.backends.lancedb.table import MemoryTable
from clawmark.backends.qmd.erase import erase as erase_qmd
from clawmark.composition import history_folder, make_tombstones
from clawmark.composition.heartbeat import heartbeat_file
from clawmark.composition.history.records import as_of_folder, make_journal
from clawmark.composition.usage import usage_file
from clawmark.embed.services.remote import RemoteEmbedder
from clawmark.history.history import History
from clawmark.model.errors import ClawmarkError, ConfigError, TombstonesDamaged, reason_of
from clawmark.model.reports import Finding
from clawmark.store.base import ManagedStore
from clawmark.system.log_records import get_logger

if TYPE_CHECKING:
    from clawmark.config.paths import Places
    from clawmark.memory import Memory

__all__ = [
    "ForgetPlan",
    "ForgetReport",
    "Selection",
    "find_own",
    "finish_interrupted",
    "forget",
    "forget_own",
    "make_plan",
]

_LOG = get_logger("clawmark.forget")
LANCEDB = "memory-lancedb"


def make_parts(
    memory: Memory, store: ManagedStore, sync_index: Callable[[], object]
) -> ForgetParts:
    """Return the places of a memory."""
    places = memory.places
    folder = history_folder(places)
    return ForgetParts(
        workspace=memory.workspace,
        transcripts=memory.workspace.sessions or composition.open_sessions(places, memory.settings),
        session_folders=tuple(dict.fromkeys((places.sessions_dir, places.conversations_dir))),
        state_dir=places.state_dir,
        agent_folder=os.path.dirname(folder),
        versions_folder=os.path.join(places.state_dir, "versions"),
        journal=make_journal(places, memory.settings),
        history=History(folder),
        tombstones=make_tombstones(places),
        proposals=memory.review,
        usage=UsageCounts(usage_file(places)),
        heartbeat_file=heartbeat_file(places),
        as_of_folder=as_of_folder(places),
        sources=composition.source_file(places),
        store=store,
        sync_index=sync_index,
        clear_backends=lambda: _clear_backends(memory),
        providers=_providers(memory),
        database=store.path if memory.settings.memory_search.store.uri else "",
        spaces=memory.settings.team.spaces if memory.settings.has_team else (),
        today=memory.today,
        now=memory.now,
    )


def finish_interrupted(parts: ForgetParts) -> None:
    """Finish what a killed process has begun to forget, and say so."""
    report = finish(parts)
    if report is not None:
        _LOG.warning("%s", " ".join(("An interrupted forget was finished.", *report.unreachable)))


def finish_or_log(parts: ForgetParts) -> None:
    """Finish an interrupted forget for a command that does something else."""
    try:
        finish_interrupted(parts)
    except (ClawmarkError, OSError) as error:
        _LOG.warning(
            "An interrupted forget is not finished: %s. The next command tries again.",
            reason_of(error),
        )


def findings(places: Places) -> list[Finding]:
    """Return what `doctor` says about the list of forgotten texts; nothing if it is sound."""
    try:
        make_tombstones(places).check()
    except TombstonesDamaged as error:
        return [Finding("problem", error.message, error.hint)]
    return []


def _clear_backends(memory: Memory) -> None:
    """Remove what other backends have stored; it is made again from the files."""
    places = memory.places
    qmd = os.path.join(places.state_dir, "qmd", places.agent_id)
    if os.path.isdir(qmd):
        export = memory.settings.qmd.sessions.export_dir or os.path.join(qmd, "sessions")
        erase_qmd(qmd, os.path.realpath(os.path.expanduser(export)))
    _clear_table(memory)


def _clear_table(memory: Memory) -> None:
    """Bring the LanceDB table up to date, or delete it if it is not in use."""
    config = memory.settings.plugins.entry(LANCEDB).config
    try:
        folder = read_settings(config, os.environ).db_path
    except ConfigError:
        folder = ""
    folder = folder or os.path.join(memory.places.state_dir, "memory", "lancedb")
    table = MemoryTable(os.path.join(folder, memory.places.agent_id))
    if table.exists():
        table.drop()  # the next sync of the plugin makes it again from memory/captured


def _providers(memory: Memory) -> tuple[str, ...]:
    """Return the services that texts may have been sent to."""
    embedders = (*memory.choice.embedders, *memory.choice.fallbacks)
    found = [
        f"The embedding service {one.identity.provider} ({one.identity.model})"
        for one in embedders
        if isinstance(one, RemoteEmbedder)
    ]
    model = model_name(memory.settings, os.environ)
    return (*dict.fromkeys(found), *([f"The chat model {model}"] if model else []))
