"""Build what agents use from the settings: tools, prompt, recall, conversations.

Imports are late throughout: each function needs another part of `agent`, and hooks and tools start
a process for one of them."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from clawmark.composition import keys_of, redactor_of

if TYPE_CHECKING:
    from datetime import datetime

    from clawmark.agent.heartbeat.turn import HeartbeatReport
    from clawmark.agent.models.completer import Completer
    from clawmark.agent.prompt.sections import Prompt
    from clawmark.agent.session.conversation import Conversation, HostOptions
    from clawmark.agent.tools import Notebook, Tool
    from clawmark.config.schema import Settings
    from clawmark.memory import Memory


def make_notebook(memory: Memory) -> Notebook:
    """Return the write gate of a memory."""
    from clawmark.agent.tools import Notebook

    return Notebook(
        now=memory.now,
        read_lines=memory.workspace.read_lines,
        append=lambda entry, to, moment: memory.append(entry, to=to, at=moment),
        redactor=redactor_of(memory.settings.memory_search),
    )


def make_tools(
    memory: Memory, session_key: str | None, *, append: bool, chat_type: str
) -> list[Tool]:
    """Return the tools of a session that the settings allow."""
    from clawmark.agent import tools as agent_tools

    settings = memory.settings
    absent = set(settings.tools.denied)
    if not settings.memory_search.enabled:
        absent |= {"memory_search", "memory_get"}
    tools = agent_tools.make_tools(
        lambda text, most, least, filters: memory.search(
            text, max_results=most, min_score=least, **filters._asdict()
        ),
        lambda path, start, lines: memory.read(path, start=start, lines=lines),
        citations=settings.memory.citations,
        session_key=session_key,
        max_results=settings.memory_search.query.max_results,
        min_score=settings.memory_search.query.min_score,
        sources=settings.memory_search.sources,
        chat_type=chat_type,
        shared=settings.memory.shared_sessions,
        notebook=make_notebook(memory) if append else None,
    )
    return [tool for tool in tools if tool.name not in absent]


def make_prompt(
    memory: Memory,
    session_key: str | None,
    *,
    append: bool,
    chat_type: str,
    mode: str,
    time: bool,
    brief_status: Callable[[], tuple[str, str, int]],
) -> Prompt:
    """Return the memory's part of a session's system prompt."""
    from clawmark.agent.prompt.context import ContextReader, Limits
    from clawmark.agent.prompt.sections import Facts, build_prompt, check_mode, with_pulse
    from clawmark.agent.tools.policy import access_of

    check_mode(mode)
    now = memory.now()
    settings, startup = memory.settings, memory.settings.startup_context
    access = access_of(
        session_key,
        chat_type=chat_type,
        citations=settings.memory.citations,
        shared=settings.memory.shared_sessions,
    )
    limits = Limits(
        per_file=settings.bootstrap_max_chars,
        total=settings.bootstrap_total_max_chars,
        log_days=startup.daily_memory_days if startup.enabled else 0,
        per_log=startup.max_file_chars,
        all_logs=startup.max_total_chars,
    )
    facts = Facts(
        agent=memory.places.agent_id,
        session_key=session_key or "",
        workspace=memory.places.workspace,
        today=now.date().isoformat(),
        timezone=settings.user_timezone or now.tzname() or "",
        time=f"{now:%H:%M}" if time else "",
    )
    reader = memory.context_reader or ContextReader(memory.workspace.root)
    memory.context_reader = reader  # it caches unchanged files
    context = reader.read(access.kind, facts.today, limits, curates=access.curates)
    if not access.reads:
        return build_prompt(context, tools=(), cites=access.cites, facts=facts, mode=mode)
    tools = [tool.name for tool in memory.tools(session_key, append=append, chat_type=chat_type)]
    if settings.memory_search.enabled:
        facts = with_pulse(facts, brief_status)
    return build_prompt(context, tools=tools, cites=access.cites, facts=facts, mode=mode)


def recall_text(
    memory: Memory,
    text: str,
    session_key: str | None,
    *,
    max_results: int,
    min_score: float | None,
    chat_type: str,
) -> str:
    """Search for a message and quote what is worth recalling, if the session is private."""
    from clawmark.agent.prompt.recall import recall_block, recalled
    from clawmark.agent.prompt.recall_rule import says_something, worth_recalling
    from clawmark.text.transcripts.session_keys import is_private, kind_of
    from clawmark.text.untrusted.recalled_blocks import strip_recalled

    question = strip_recalled(text).strip()
    is_automatic = min_score is None
    if (
        not memory.settings.memory_search.enabled
        or not is_private(kind_of(session_key, chat_type))
        or (is_automatic and not says_something(question))
    ):
        return ""
    found = memory.search(
        question, max_results=max_results, min_score=min_score or 0.0, explain=is_automatic
    )
    hits = worth_recalling(found) if is_automatic else found.hits
    return recall_block([recalled(hit) for hit in hits])


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
    )

    def chat_type() -> str:
        """Return the host's current chat type, or the last one it reported: a group stays one."""
        given = host_options.chat_type if host_options else ""
        return given or parts.store.get(session_key).chat_type

    callbacks = SessionCallbacks(
        prompt=lambda: (
            memory.prompt(
                session_key,
                append=append,
                chat_type=chat_type(),
                mode=host_options.prompt_mode if host_options else "full",
                time=host_options.prompt_time if host_options else False,
            ).text
        ),
        recall=lambda text: (
            memory.recall(text, session_key, chat_type=chat_type()) if recall else ""
        ),
        started=lambda: memory.session_started(session_key),
        compacted=memory.compacted,
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
    return heartbeat.run_heartbeat(parts, force=force)


def make_question_writer(settings: Settings, completer: Completer | None) -> Completer:
    """Return the given model or the configured one; `ConfigError` when there is none."""
    from clawmark.agent.session.setup import needed_model

    return completer or needed_model(settings, os.environ, "write the questions")
