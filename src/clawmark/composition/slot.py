"""Build the memory slot of a memory: the plugins in use, and the hooks that hosts call."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from copy import deepcopy
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple

from clawmark.agent.plugins.base import (
    FlushPolicy,
    PluginContext,
    PluginSession,
    SearchOptions,
)
from clawmark.agent.plugins.failures import PluginFailures, failures_path
from clawmark.agent.plugins.lifecycle import Lifecycle, SessionHooks
from clawmark.agent.plugins.slot import MemorySlot, list_plugins, open_slot
from clawmark.agent.tools.memory_forget import Forgetter
from clawmark.composition import redactor_of
from clawmark.composition.agent import search_scope, session_access
from clawmark.composition.history.trust import make_gate
from clawmark.composition.team_memory import shared_notebook
from clawmark.composition.usage import counting_search
from clawmark.config.schema.plugins import MEMORY_CORE
from clawmark.model.reports import Finding, PluginReport, Status
from clawmark.system.log_records import get_logger

if TYPE_CHECKING:
    from types import ModuleType

    from clawmark.agent.tools.shared_notes import SharedNotebook
    from clawmark.embed.base import Embedder
    from clawmark.memory import Memory


class SlotParts(NamedTuple):
    """The memory slot of one memory."""

    slot: MemorySlot
    lifecycle: Lifecycle
    failures: PluginFailures
    memory: Memory

    def session(
        self, session_key: str | None, chat_type: str = "", *, sandboxed: bool = False
    ) -> PluginSession:
        """Return the session that a plugin is called for."""
        access = session_access(
            self.memory.settings, session_key, chat_type=chat_type, sandboxed=sandboxed
        )
        may_search = search_scope(self.memory.settings, session_key, chat_type)
        return PluginSession(session_key, access, may_search)

    def hooks(
        self, session_key: str | None, chat_type: str = "", *, sandboxed: bool = False
    ) -> SessionHooks:
        """Return the lifecycle hooks of a session."""
        session = self.session(session_key, chat_type, sandboxed=sandboxed)
        return SessionHooks(self.lifecycle, session)

    def section(self, session_key: str | None, tools: Collection[str], chat_type: str = "") -> str:
        """Return what the active plugin says about tools with these names."""
        return self.slot.active.plugin.prompt_section(self.session(session_key, chat_type), tools)

    def flush_policy(self) -> FlushPolicy | None:
        return self.slot.consolidator.plugin.flush_policy()

    def report(self) -> tuple[PluginReport, ...]:
        """Return the installed plugins, what each does, and why the others are not used."""
        return list_plugins(self.slot, self.memory.settings.plugins)

    def complete_status(self, status: Status) -> Status:
        """Add the plugin in the slot, and what is wrong with plugins."""
        return status._replace(memory_plugin=self.slot.name, plugin_problems=self._problems())

    def findings(self) -> list[Finding]:
        """Return what `doctor` says about plugins; nothing about memory-core unless it fails."""
        name = self.slot.name
        unused = [
            Finding("problem", problem, "`clawmark plugins` lists the installed ones.")
            for problem in self.slot.problems
        ]
        failed = [
            Finding("note", sentence, "Correct its configuration, update it or remove it.")
            for sentence in self._problems()[len(unused) :]
        ]
        active = [Finding("ok", f"Memory plugin: {name}.", "")] if name != MEMORY_CORE else []
        return [*active, *unused, *failed]

    def _problems(self) -> tuple[str, ...]:
        failed = (
            f"{one.sentence} It happened {_times(one.times)}, last at {one.last}."
            for one in self.failures.recent()
        )
        return (*self.slot.problems, *failed)


def build_slot(memory: Memory, *, log: bool = True) -> SlotParts:
    """Make the configured plugins; `log` logs why one of them is not used."""
    places, plugins = memory.places, memory.settings.plugins
    path = failures_path(places.state_dir, places.agent_id)
    failures = PluginFailures(path, memory.metrics, memory.now)
    slot = open_slot(
        plugins, lambda name: make_context(memory, name, plugins.entry(name).config), failures
    )
    if log:
        for problem in slot.problems:
            get_logger("clawmark.plugins").warning(problem)
    return SlotParts(
        slot=slot,
        lifecycle=Lifecycle(slot, failures, gate=make_gate(memory)),
        failures=failures,
        memory=memory,
    )


def make_context(memory: Memory, name: str, config: Mapping[str, object]) -> PluginContext:
    """Return what a plugin of a memory is made with."""
    settings, search = memory.settings, memory.settings.memory_search

    def embedder() -> Embedder | None:
        chosen = memory.choice.embedders
        return chosen[-1] if chosen else None

    return PluginContext(
        name=name,
        config=deepcopy(config),  # a plugin may change what it is given
        agent_id=memory.places.agent_id,
        state_dir=memory.places.state_dir,
        workspace=memory.workspace,
        redactor=redactor_of(search),
        environ=os.environ,
        now=memory.now,
        search=counting_search(memory),
        read=memory.read,
        embedder=embedder,
        append=memory.append,
        forgetter=make_forgetter(memory),
        search_options=SearchOptions(
            enabled=search.enabled,
            citations=settings.memory.citations,
            max_results=search.query.max_results,
            min_score=search.query.min_score,
            sources=search.sources,
        ),
        gate=make_gate(memory),
        shared=_shared_notebook(memory),
    )


def _shared_notebook(memory: Memory) -> SharedNotebook | None:
    return shared_notebook(memory) if memory.settings.has_team else None


def make_forgetter(memory: Memory) -> Forgetter:
    """Return what forgets on behalf of an agent."""

    def functions() -> ModuleType:
        # Imported when it is used: listing the tools does not need it.
        return import_module("clawmark.composition.history.forget")

    return Forgetter(
        find=lambda text: functions().find_own(memory._forget_parts(), text),
        forget=lambda text: functions().forget_own(memory._forget_parts(), text),
    )


def _times(number: int) -> str:
    return "once" if number == 1 else f"{number:,} times"
