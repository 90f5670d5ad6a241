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

    from clawmark.agent.models.completer import Completer
    from clawmark.agent.prompt.context import ContextReader
    from clawmark.agent.prompt.sections import Prompt
    from clawmark.agent.session.conversation import Conversation, HostOptions
    from clawmark.agent.tools import Notebook, Tool
    from clawmark.agent.tools.policy import Access
    from clawmark.config.paths import Places
    from clawmark.config.schema import Settings
    from clawmark.memory import Memory
    from clawmark.model.reports import FlushTimes


def make_notebook(memory: Memory) -> Notebook:
    """Return the write gate of a memory."""
    from clawmark.agent.tools import Notebook

    return Notebook(
        today=memory.today,
        read_lines=memory.workspace.read_lines,
        append=lambda entry, to, day: memory.append(entry, to=to, day=day),
        redactor=redactor_of(memory.settings.memory_search),
    )


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
    )


def make_tools(
    memory: Memory, session_key: str | None, *, append: bool, chat_type: str, sandboxed: bool
) -> list[Tool]:
    """Return the tools of a session that the settings allow."""
    from clawmark.agent import tools as agent_tools

    settings = memory.settings
    absent = set[str]()
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
    access = session_access(settings, session_key, chat_type=chat_type, sandboxed=sandboxed)
    permitted = access.permitted([tool.name for tool in tools], settings.tools)
    return [tool for tool in tools if tool.name in permitted and tool.name not in absent]


def make_prompt(
    memory: Memory,
    context_reader: ContextReader,
    session_key: str | None,
    *,
    append: bool,
    chat_type: str,
    sandboxed: bool,
    brief_status: Callable[[], tuple[str, str, int]],
) -> Prompt:
    """Return the memory's part of a session's system prompt."""
    from clawmark.agent.prompt.context import Context, Limits
    from clawmark.agent.prompt.sections import Facts, build_prompt, with_pulse

    settings, startup = memory.settings, memory.settings.startup_context
    access = session_access(settings, session_key, chat_type=chat_type, sandboxed=sandboxed)
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
        today=memory.today(),
        timezone=settings.user_timezone,
    )
    if access.sandbox == "none":
        facts = facts._replace(workspace="")
        context = Context(kind=access.kind, files=(), logs=(), notices=())
    else:
        context = context_reader.read(access.kind, facts.today, limits)
    if not access.reads:
        return build_prompt(context, tools=(), cites=access.cites, facts=facts)
    given = memory.tools(session_key, append=append, chat_type=chat_type, sandboxed=sandboxed)
    tools = [tool.name for tool in given]
    if settings.memory_search.enabled:
        facts = with_pulse(facts, brief_status)
    return build_prompt(context, tools=tools, cites=access.cites, facts=facts)


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
    """Search for a message and quote what is worth recalling, if the session is private."""
    from clawmark.agent.prompt.recall import recall_block, recalled
    from clawmark.agent.prompt.recall_rule import says_something, worth_recalling
    from clawmark.text.untrusted.recalled_blocks import strip_recalled

    question = strip_recalled(text).strip()
    is_automatic = min_score is None
    access = session_access(memory.settings, session_key, chat_type=chat_type, sandboxed=sandboxed)
    if (
        not memory.settings.memory_search.enabled
        or not (access.reads and access.is_private)
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

    sandboxed = host_options is not None and host_options.sandboxed
    callbacks = SessionCallbacks(
        prompt=lambda: (
            memory.prompt(
                session_key, append=append, chat_type=chat_type(), sandboxed=sandboxed
            ).text
        ),
        recall=lambda text: (
            memory.recall(text, session_key, chat_type=chat_type(), sandboxed=sandboxed)
            if recall
            else ""
        ),
        started=lambda: memory.session_started(session_key),
        compacted=memory.compacted,
    )
    return Conversation(
        session_key=session_key, parts=parts, callbacks=callbacks, host_options=host_options
    )


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
