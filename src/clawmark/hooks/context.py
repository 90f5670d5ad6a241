"""Build what a coding agent is shown when a session starts, within a budget of tokens.

It contains USER.md, MEMORY.md, the logs of the last days, and how to search for more. SOUL.md,
AGENTS.md and the like are left out: a coding agent has its own. The index is not opened."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from clawmark.agent.prompt.context import (
    LONG_TERM,
    Context,
    ContextFile,
    ContextReader,
    Limits,
)
from clawmark.agent.prompt.sections import Facts, build_prompt
from clawmark.composition.agent import session_access, trust_gate
from clawmark.config.schema.plugins import MEMORY_CORE
from clawmark.text.chunking.tokens import estimate_tokens
from clawmark.text.transcripts.session_keys import SessionKind

if TYPE_CHECKING:
    from clawmark.memory import Memory

TOKENS = 2_400
"""9,600 characters; Claude Code shows 10,000 characters of an answer and moves more to a file."""

_SHOWN = ("USER.md", *LONG_TERM, "memory/")
_TOOLS = ("memory_search", "memory_get", "memory_append")
_SHARES = (1.0, 0.85, 0.7, 0.5, 0.35, 0.2, 0.1)
"""Shares of the budget for files, tried in turn: the size of labels and quotes is not known before.
"""


class Shown(NamedTuple):
    """What a session is shown at its start."""

    text: str
    files: tuple[ContextFile, ...] = ()
    """The memory files in it, with the parts that are shown."""


def session_context(memory: Memory, session_key: str | None, tokens: int = TOKENS) -> Shown:
    """Return the text for a session and its files; nothing unless it is proven private."""
    settings, access = memory.settings, session_access(memory.settings, session_key)
    if not (access.is_private and access.reads) or not settings.plugins.has_memory:
        return Shown("")
    section, searching = None, settings.memory_search.enabled
    tools = access.permitted(_TOOLS if searching else _TOOLS[2:], settings.tools)
    if settings.plugins.slots.memory != MEMORY_CORE:
        tools = tuple(tool.name for tool in memory.tools(session_key, append=True))
        section = memory.slot.section(session_key, tools)
    intro = f"Your long-term memory is Clawmark: Markdown files in {memory.places.workspace}."
    cites = memory.settings.memory.citations != "off"  # "auto" shows them in private sessions
    reader = ContextReader(memory.workspace.root, gate=trust_gate(memory))
    day = memory.today()
    for share in _SHARES:
        context = _context(memory, reader, access.kind, day, int(4 * tokens * share))
        prompt = build_prompt(context, tools=tools, cites=cites, facts=Facts(), memory=section)
        text = "\n\n".join(
            [intro, *(section.text for section in prompt.sections if section.name != "runtime")]
        )
        if estimate_tokens(text) <= tokens:
            return Shown(text, (*context.files, *context.logs))
    return Shown("")


def _context(
    memory: Memory, reader: ContextReader, kind: SessionKind, day: str, room: int
) -> Context:
    """Read `room` characters: a fifth of USER.md, a third of logs, the rest of MEMORY.md."""
    startup = memory.settings.startup_context
    limits = Limits(
        per_file=room // 5,
        total=1 << 40,  # files that are not shown must not use up the room
        log_days=startup.daily_memory_days if startup.enabled else 0,
        per_log=room // 6,
        all_logs=room // 3,
    )
    seen = reader.read(kind, day, limits)
    user = [file for file in seen.files if file.name == "USER.md"]
    left = room - sum(len(file.text) for file in (*user, *seen.logs))
    rest = reader.read(kind, day, limits._replace(per_file=left, log_days=0))
    known = [file for file in rest.files if file.name in LONG_TERM]
    notices = tuple(
        notice
        for notice in seen.notices
        if notice.startswith(_SHOWN) and "there is room" not in notice
    )
    return Context(kind=kind, files=(*user, *known), logs=seen.logs, notices=notices)
