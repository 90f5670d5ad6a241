"""What an agent should know when a session begins: the memory in, one text within a budget of
tokens out.

USER.md, MEMORY.md and the last days' logs, and how to ask for more. The files that say who an
OpenClaw agent is (SOUL.md, AGENTS.md …) stay out: a coding agent has its own. Who may see anything
at all is decided by the session's kind; reading and cutting are `runtime/context.py`'s part, the
words around it `runtime/prompt.py`'s. The index is not even opened."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from clawmark.agent.prompt.context import Context, ContextFile, ContextReader, Limits
from clawmark.agent.prompt.sections import Facts, build_prompt
from clawmark.agent.prompt.session_files import LONG_TERM, is_private, kind_of
from clawmark.text.chunking.tokens import estimate_tokens

if TYPE_CHECKING:
    from clawmark.memory import Memory

TOKENS = 2_400
"""Claude Code shows 10,000 characters of a hook's answer and puts more into a file; this is 9,600.
"""

_SHOWN = ("USER.md", *LONG_TERM, "memory/")
_TOOLS = ("memory_search", "memory_get", "memory_append")
_SHARES = (1.0, 0.85, 0.7, 0.5, 0.35, 0.2, 0.1)
"""Of the budget, tried in turn: labels and quotation marks take room that is known only when they
are there.
"""


class Shown(NamedTuple):
    """What a session is shown when it begins."""

    text: str
    files: tuple[ContextFile, ...] = ()
    """The memory files in it, each with the part that is shown."""


def session_context(memory: Memory, session_key: str | None, tokens: int = TOKENS) -> Shown:
    """The text for a session and the files in it; nothing for one that is not proven private."""
    if not is_private(kind_of(session_key)):
        return Shown("")
    intro = f"Your long-term memory is Clawmark: Markdown files in {memory.places.workspace}."
    cites = memory.settings.memory.citations != "off"  # "auto" shows them in private sessions
    reader = ContextReader(memory.workspace.root)
    for share in _SHARES:
        context = _context(memory, reader, session_key, int(4 * tokens * share))
        prompt = build_prompt(context, tools=_TOOLS, cites=cites, facts=Facts())
        text = "\n\n".join(
            [intro, *(section.text for section in prompt.sections if section.name != "runtime")]
        )
        if estimate_tokens(text) <= tokens:
            return Shown(text, (*context.files, *context.logs))
    return Shown("")


def _context(memory: Memory, reader: ContextReader, session_key: str | None, room: int) -> Context:
    """What is shown in about so many characters: a fifth for USER.md, a third for logs, the rest
    for MEMORY.md.
    """
    startup, kind = memory.settings.startup_context, kind_of(session_key)
    days = startup.daily_memory_days if startup.enabled else 0
    whole = 1 << 40  # files that are read and not shown take nobody's room
    seen = reader.read(
        kind,
        memory.today(),
        Limits(
            per_file=room // 5, total=whole, log_days=days, per_log=room // 6, all_logs=room // 3
        ),
    )
    user = [file for file in seen.files if file.name == "USER.md"]
    left = room - sum(len(file.text) for file in (*user, *seen.logs))
    known = [
        file
        for file in reader.read(kind, memory.today(), Limits(left, whole, 0)).files
        if file.name in LONG_TERM
    ]
    notices = tuple(
        notice
        for notice in seen.notices
        if notice.startswith(_SHOWN) and "there is room" not in notice
    )
    return Context(kind=kind, files=(*user, *known), logs=seen.logs, notices=notices)
