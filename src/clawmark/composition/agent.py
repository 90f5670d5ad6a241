"""Build what agents use from the settings: tools, prompt, recall, conversations.

Imports are late throughout: each function needs another part of `agent`, and hooks and tools start
a process for one of them."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from clawmark.composition import keys_of, redactor_of
from clawmark.config.schema.plugins import MEMORY_CORE, NO_MEMORY
from clawmark.model.values import OWN_MEMORY

if TYPE_CHECKING:
    from datetime import datetime

    from clawmark.agent.heartbeat.turn import HeartbeatReport
    from clawmark.agent.models.completer import Completer
    from clawmark.agent.prompt.sections import Prompt
    from clawmark.agent.prompt.trust_gate import TrustGate
    from clawmark.agent.session.conversation import Conversation, HostOptions
    from clawmark.agent.tools import Notebook, Tool
    from clawmark.agent.tools.policy import Access
    from clawmark.composition.slot import SlotParts
    from clawmark.config.paths import Places
    from clawmark.config.schema import Settings
    from clawmark.memory import Memory
    from clawmark.model.reports import FlushTimes


def make_notebook(memory: Memory) -> Notebook:
    """Return the write gate of a memory."""
    from clawmark.agent.tools import Notebook

    return Notebook(
        now=memory.now,
        read_lines=memory.workspace.read_lines,
        append=lambda entry, to, moment, origin: memory.append(
            entry, to=to, at=moment, origin=origin
        ),
        redactor=redactor_of(memory.settings.memory_search),
    )


def trust_gate(memory: Memory) -> TrustGate:
    """Return what decides which entries may be put into a prompt unasked."""
    from clawmark.composition.history.trust import make_gate

    return make_gate(memory)


def build_slot(memory: Memory, *, log: bool) -> SlotParts:
    """Make the configured memory plugins."""
    from clawmark.composition.slot import build_slot

    return build_slot(memory, log=log)


def search_scope(settings: Settings, session_key: str | None, chat_type: str) -> bool:
    """Return whether `memory.qmd.scope` lets a session search; it holds while another backend
    answers instead of QMD, too.
    """
    if settings.memory.backend != "qmd" or session_key is None:
        return True
    from clawmark.backends.qmd.scope import is_allowed

    return is_allowed(settings.qmd.scope, session_key, chat_type)


def session_access(
    settings: Settings, session_key: str | None, *, chat_type: str = "", sandboxed: bool = False
) -> Access:
    """Return what the settings let a session do with the memory."""
    from clawmark.agent.tools.policy import access_of

    return access_of(
        session_key,
        chat_type=chat_type,
        citations=settings.memory.citations,
        shared=settings.memory.shared_sessions,
        sandbox=settings.sandbox,
        sandboxed=sandboxed,
        spaces=settings.team.spaces if settings.has_team else None,
        team_shared=settings.team.shared_sessions if settings.has_team else (),
    )


def make_tools(
    memory: Memory, session_key: str | None, *, append: bool, chat_type: str, sandboxed: bool
) -> list[Tool]:
    """Return the tools of the memory plugin that the settings allow for a session."""
    parts = memory.slot
    session = parts.session(session_key, chat_type, sandboxed=sandboxed)
    active, may_append = parts.slot.active, append and session.access.writes
    tools = active.plugin.tools(session, append=may_append)
    names = [tool.name for tool in tools]
    permitted = set(session.access.permitted(names, memory.settings.tools, active.name))
    if "memory_append" in set(names) - permitted:
        permitted.discard("memory_forget")  # what may not write must not remove either
    return [tool for tool in tools if tool.name in permitted]


def make_prompt(
    memory: Memory,
    session_key: str | None,
    *,
    append: bool,
    chat_type: str,
    mode: str,
    time: bool,
    sandboxed: bool,
    brief_status: Callable[[], tuple[str, str, int]],
) -> Prompt:
    """Return the memory's part of a session's system prompt."""
    from clawmark.agent.prompt.context import Context, ContextReader, Limits
    from clawmark.agent.prompt.sections import Facts, build_prompt, check_mode, with_pulse

    check_mode(mode)
    now = memory.now()
    settings, startup = memory.settings, memory.settings.startup_context
    session = memory.slot.session(session_key, chat_type, sandboxed=sandboxed)
    access, active = session.access, memory.slot.slot.active
    limits = Limits(
        per_file=settings.bootstrap_max_chars,
        total=settings.bootstrap_total_max_chars,
        # Logs are quoted memory; without a memory only the workspace's own files are shown.
        log_days=startup.daily_memory_days if startup.enabled and active.name != NO_MEMORY else 0,
        per_log=startup.max_file_chars,
        all_logs=startup.max_total_chars,
    )
    facts = Facts(
        agent=memory.places.agent_id,
        session_key=session_key or "",
        workspace=memory.places.workspace,
        plugin="" if active.name == MEMORY_CORE else active.name,
        today=now.date().isoformat(),
        timezone=settings.user_timezone or now.tzname() or "",
        time=f"{now:%H:%M}" if time else "",
    )
    reader = memory.context_reader or ContextReader(memory.workspace.root, gate=trust_gate(memory))
    memory.context_reader = reader  # it caches unchanged files
    if access.sandbox == "none":
        facts = facts._replace(workspace="")
        context = Context(kind=access.kind, files=(), logs=(), notices=())
    else:
        context = reader.read(access.kind, facts.today, limits, curates=access.curates)
    if not access.reads:
        return build_prompt(
            context, tools=(), cites=access.cites, facts=facts, memory="", mode=mode
        )
    given = memory.tools(session_key, append=append, chat_type=chat_type, sandboxed=sandboxed)
    tools = [tool.name for tool in given]
    if settings.memory_search.enabled and active.name == MEMORY_CORE:
        facts = with_pulse(facts, brief_status)
    section = active.plugin.prompt_section(session, tools)
    return build_prompt(
        context, tools=tools, cites=access.cites, facts=facts, memory=section, mode=mode
    )


def recall_text(
    memory: Memory,
    text: str,
    session_key: str | None,
    *,
    max_results: int,
    min_score: float | None,
    chat_type: str,
    sandboxed: bool,
) -> str:
    """Return what the memory plugin recalls for a message, as a block of quoted data."""
    from clawmark.agent.plugins.core import recall

    parts = memory.slot
    if parts.slot.recall.name != MEMORY_CORE:
        return parts.hooks(session_key, chat_type, sandboxed=sandboxed).before_agent_start(text)
    session = parts.session(session_key, chat_type, sandboxed=sandboxed)
    may_search = session.may_search and session.access.reads
    if not memory.settings.memory_search.enabled or not may_search:
        return ""
    return recall(
        partial(memory.search, space=OWN_MEMORY),  # what others wrote is never recalled unasked
        text,
        session.access.kind,
        gate=trust_gate(memory),
        max_results=max_results,
        min_score=min_score,
    )


def make_conversation(
    memory: Memory,
    session_key: str,
    *,
    completer: Completer | None,
    context_window: int,
    append: bool,
    recall: bool,
    host_options: HostOptions | None,
    now: Callable[[], datetime],
) -> Conversation:
    """Return a session of a host that talks to a model."""
    from clawmark.agent.session.conversation import Conversation, SessionCallbacks, open_parts

    parts = open_parts(
        memory.settings,
        memory.places.conversations_dir,
        memory.workspace,
        keys_of(memory.settings.memory_search),
        now,
        completer,
        context_window,
    )._replace(flush_policy=memory.slot.flush_policy(), gate=trust_gate(memory))

    def chat_type() -> str:
        """Return the host's current chat type, or the last one it reported: a group stays one."""
        given = host_options.chat_type if host_options else ""
        return given or parts.store.get(session_key).chat_type

    sandboxed = host_options is not None and host_options.sandboxed
    callbacks = SessionCallbacks(
        prompt=lambda: (
            memory.prompt(
                session_key,
                append=append,
                chat_type=chat_type(),
                mode=host_options.prompt_mode if host_options else "full",
                time=host_options.prompt_time if host_options else False,
                sandboxed=sandboxed,
            ).text
        ),
        recall=lambda text: (
            memory.recall(text, session_key, chat_type=chat_type(), sandboxed=sandboxed)
            if recall or memory.slot.slot.recalls_automatically
            else ""
        ),
        started=lambda: memory.session_started(session_key),
        compacted=memory.compacted,
        hooks=lambda: memory.slot.hooks(session_key, chat_type(), sandboxed=sandboxed),
    )
    return Conversation(
        session_key=session_key, parts=parts, callbacks=callbacks, host_options=host_options
    )


def run_heartbeat(
    memory: Memory,
    completer: Completer | None,
    *,
    model: str,
    apply: bool,
    days: int,
    force: bool,
) -> HeartbeatReport:
    """Run one heartbeat of a memory."""
    from clawmark.composition import heartbeat

    parts = heartbeat.make_heartbeat(memory, completer, model, apply=apply, days=days)
    consolidated = heartbeat.consolidate_if_due(memory, completer, model)
    report = heartbeat.run_heartbeat(parts, force=force)
    return report._replace(consolidation=consolidated)


def flush_times(places: Places) -> tuple[dict[str, FlushTimes], FlushTimes | None]:
    """Return when the sessions of an agent were flushed, by the file name of the transcript, and
    all of them together.
    """
    from clawmark.agent.flush.times import latest_flush, read_flush_times

    times = read_flush_times(dict.fromkeys((places.sessions_dir, places.conversations_dir)))
    return times, latest_flush(times)


def make_question_writer(settings: Settings, completer: Completer | None) -> Completer:
    """Return the given model or the configured one; `ConfigError` when there is none."""
    from clawmark.agent.session.setup import needed_model

    return completer or needed_model(settings, os.environ, "write the questions")
