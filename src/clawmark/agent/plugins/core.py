"""The plugin `memory-core`: the tools, the prompt and the flush over the memory files.

Its configuration may name other plugins to combine it with:

    plugins: {entries: {"memory-core": {config: {recall: "memory-lancedb"}}}}
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from clawmark.agent.flush.prompts import LOG, PROMPT, SYSTEM
from clawmark.agent.plugins.base import (
    Companions,
    FlushPolicy,
    LifecycleHooks,
    PluginContext,
    PluginSession,
)
from clawmark.agent.prompt.recall import recall_block, recall_hits
from clawmark.agent.prompt.recall_rule import says_something, worth_recalling
from clawmark.agent.prompt.sections import memory_section
from clawmark.agent.prompt.trust_gate import TrustGate
from clawmark.agent.tools import Notebook, Tool, tools_for
from clawmark.agent.tools.outside_seen import SessionsSeen
from clawmark.model.errors import ConfigError
from clawmark.model.values import Found, NothingFound
from clawmark.text.transcripts.session_keys import SessionKind, is_private
from clawmark.text.untrusted.recalled_blocks import strip_recalled

RECALLED = 3
MORE = 4
"""How many times as many passages are looked at if some of them are left out."""
OUT_OF_SCOPE = Found(
    hits=(),
    nothing=NothingFound(
        "not-allowed", "The rules of memory.qmd.scope do not let this session search.", None
    ),
    mode="fts-only",
    provider="none",
    model="",
    degraded=None,
    due_files=0,
    milliseconds=0.0,
)


class MemoryCore:
    """The built-in memory; a `MemoryPlugin`."""

    def __init__(self, context: PluginContext) -> None:
        self.companions = _companions(context.config)
        self._context = context
        self._seen = SessionsSeen()

    def tools(self, session: PluginSession, *, append: bool) -> list[Tool]:
        """Return `memory_search` and `memory_get`, and where writing is allowed `memory_append` and
        `memory_forget`."""
        context, options = self._context, self._context.search_options
        tools = tools_for(
            session.access,
            search=lambda text, most, least, filters, **options: (
                context.search(
                    text, max_results=most, min_score=least, **filters._asdict(), **options
                )
                if session.may_search
                else OUT_OF_SCOPE
            ),
            read=lambda path, start, lines: context.read(path, start=start, lines=lines),
            read_as_of=lambda path, start, lines, day: context.read(
                path, start=start, lines=lines, as_of=day
            ),
            citations=options.citations,
            session_key=session.key,
            max_results=options.max_results,
            min_score=options.min_score,
            sources=options.sources,
            notebook=self._notebook() if append else None,
            forgetter=context.forgetter if append else None,
            gate=context.gate,
            seen=self._seen.of(session.key or ""),
        )
        absent = () if options.enabled else ("memory_search", "memory_get")
        return [tool for tool in tools if tool.name not in absent]

    def prompt_section(self, session: PluginSession, tools: Collection[str]) -> str:
        return memory_section(tools, session.access.cites)

    def flush_policy(self) -> FlushPolicy:
        return FlushPolicy(prompt=PROMPT, system_prompt=SYSTEM, log=LOG)

    def hooks(self) -> LifecycleHooks:
        return LifecycleHooks(before_agent_start=self._recall)

    def close(self) -> None:
        pass

    def _recall(self, session: PluginSession, message: str) -> str:
        if not self._context.search_options.enabled or not session.may_search:
            return ""
        context = self._context
        return recall(context.search, message, session.access.kind, gate=context.gate)

    def _notebook(self) -> Notebook:
        context = self._context
        return Notebook(
            now=context.now,
            read_lines=context.workspace.read_lines,
            append=lambda entry, to, moment, origin: context.append(
                entry, to=to, at=moment, origin=origin
            ),
            redactor=context.redactor,
            is_forgotten=context.workspace.is_forgotten,
            shared=context.shared,
        )


def make(context: PluginContext) -> MemoryCore:
    """Make the plugin; raises ConfigError."""
    return MemoryCore(context)


def recall(
    search: Callable[..., Found],
    message: str,
    kind: SessionKind,
    *,
    gate: TrustGate,
    max_results: int = RECALLED,
    min_score: float | None = None,
) -> str:
    """Search for a message and quote what is worth recalling; nothing outside private sessions.

    With `min_score`, every passage from that score on is recalled. What came from outside is left
    out, and does not take the place of other passages."""
    question = strip_recalled(message).strip()
    is_automatic = min_score is None
    if not is_private(kind) or (is_automatic and not says_something(question)):
        return ""
    for most in (max_results, MORE * max_results):
        found = search(question, max_results=most, min_score=min_score or 0.0, explain=is_automatic)
        hits = worth_recalling(found) if is_automatic else found.hits
        chosen = recall_hits(hits, gate, max_results, question)
        if not chosen.left_out or len(chosen.items) == max_results or len(found.hits) < most:
            break
    return recall_block(chosen.items, left_out=chosen.left_out)


def _companions(config: Mapping[str, object]) -> Companions:
    named: dict[str, str] = {}
    for key in Companions._fields:
        name = config.get(key, "")
        if not isinstance(name, str):
            raise ConfigError(
                f"plugins.entries.memory-core.config.{key} must be the name of a plugin.",
                key=f"plugins.entries.memory-core.config.{key}",
                hint="`clawmark plugins` lists the installed ones.",
            )
        named[key] = name
    return Companions(**named)
