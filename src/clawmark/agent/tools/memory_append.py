"""The tool `memory_append`: a note in, its citation out, once it is on disk.

In: what a model wants kept, and whether it belongs into today's log or into MEMORY.md. Out: where
it stands, or why it was not kept. What is worth keeping is decided by `gate.py`; an accepted entry
carries its origin and its session in a comment beside it. Reading and writing are left to the
`Notebook`. A call never raises."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import NamedTuple, cast

from clawmark.agent.tools.arguments import (
    choice_argument,
    read_arguments,
    refuse_argument,
    text_argument,
)
from clawmark.agent.tools.base import Payload, Tool, complaint, log_surprise
from clawmark.agent.tools.gate import LONGEST, Held, Refusal, refuse
from clawmark.model.documents import Excerpt, Written
from clawmark.model.errors import ClawmarkError, ToolInputError, WorkspaceError
from clawmark.text.chunking.tokens import well_formed
from clawmark.text.secrets.redact import Redactor
from clawmark.text.untrusted.injection_flags import flags_of
from clawmark.text.untrusted.origin_labels import (
    ORIGINS,
    Origin,
    comment,
    session_label,
    sessions_of,
)
from clawmark.workspace.daily import daily_path

LONG_TERM = "MEMORY.md"
_HEADING = re.compile(r"\A#{1,6}\s+")

_DESCRIPTION = f"""\
Add one note to your memory. Do it when something comes up that should outlive this conversation: a decision and its \
reason, a preference, a name, a date, a promise, a lesson. Write it so that it can be understood in a year by someone who \
was not here: whole sentences, names instead of "he" and "it", at most {LONGEST:,} characters.

It goes to the end of today's log. With to set to MEMORY.md it goes to the end of what you always know: use that only for \
what will still matter in a year. Nothing that is there is changed.

Set origin to user when the user told you so, to tool when it comes from a web page, a file or a tool, and leave it out for \
your own conclusions. When the answer holds `written: true`, the note is on disk at `citation`. When it holds `error`, the \
note was not kept: the error says why, and the action what to do."""

_PARAMETERS: Payload = {
    "type": "object",
    "properties": {
        "text": {"type": "string", "description": "The note, in plain words."},
        "to": {
            "type": "string",
            "enum": ["log", LONG_TERM],
            "description": "Where it goes; today's log when left out.",
        },
        "origin": {
            "type": "string",
            "enum": list(ORIGINS),
            "description": "Whose words these are; agent when left out.",
        },
    },
    "required": ["text"],
    "additionalProperties": True,
}


class Notebook(NamedTuple):
    """The files that notes go to."""

    today: Callable[[], str]
    """The day, YYYY-MM-DD, where the user lives."""
    read_lines: Callable[[str, int, None, int, int], Excerpt]
    """(path, start, lines, most lines, most characters) → the excerpt; an absent file is an empty
    one.
    """
    append: Callable[[str, str], Written]
    """(entry, where to) → where it stands, once it is durable; to `""` is today's log."""

    redactor: Redactor
    """Finds the secrets that are not kept."""

    def check(self, text: str, to: str = "", session_key: str | None = None) -> Refusal | None:
        """Why a text is not added to a file (today's log for `""`), or None; a session's entries of
        today are counted.
        """
        path = daily_path(self.today())
        target = self._read(to or path)
        # A note of today may be promoted to what is always known; what is always known is not new.
        others = () if target.path == LONG_TERM else self._known()
        is_counted = session_key is not None and target.path == path
        entries = (
            sessions_of(target.text).count(session_label(session_key or "")) if is_counted else 0
        )
        return refuse(
            text, target=target, others=others, entries_today=entries, redactor=self.redactor
        )

    def _known(self) -> tuple[Held, ...]:
        """MEMORY.md; when it cannot be read there is nothing to compare with, and the note is not
        lost for that.
        """
        try:
            return (self._read(LONG_TERM),)
        except WorkspaceError:
            return ()

    def _read(self, path: str) -> Held:
        excerpt = self.read_lines(path, 1, None, 1 << 40, 1 << 40)
        return Held(excerpt.path, excerpt.text)


def append_tool(notebook: Notebook, session_key: str) -> Tool:
    """The tool for one session."""

    def call(given: object) -> Payload:
        try:
            return _append(notebook, session_key, read_arguments(given))
        except ToolInputError as error:
            problem = complaint(error, f"Correct {error.argument} and call memory_append again.")
            return _not_written({"reason": "argument", **problem})
        except ClawmarkError as error:
            return _not_written(complaint(error, "Tell the user that the note was not kept."))
        except Exception as error:
            log_surprise("memory_append")
            said = f"memory_append stopped at an unexpected {type(error).__name__}."
            return _not_written(
                {"error": said, "action": "Run `clawmark doctor` to see what is wrong."}
            )

    return Tool(name="memory_append", description=_DESCRIPTION, parameters=_PARAMETERS, call=call)


def _append(notebook: Notebook, session_key: str, arguments: Mapping[str, object]) -> Payload:
    refuse_argument(arguments, "agentId", "memory_append writes to the memory of this agent only")
    refuse_argument(
        arguments, "path", "a note goes to today's log or to MEMORY.md; say which with to"
    )
    text = well_formed(
        text_argument(arguments, "text", trim=True, longest=1_000_000, may_be_blank=True)
    )
    to = choice_argument(arguments, "to", ("log", LONG_TERM), default="log")
    origin = cast(Origin, choice_argument(arguments, "origin", ORIGINS, default="agent"))
    file = LONG_TERM if to == LONG_TERM else ""
    refusal = notebook.check(text, file, session_key)
    if refusal is not None:
        return _refused(refusal)
    first, *rest = text.split("\n")
    # Inside a list item a heading would be none; its words stay.
    entry = "\n".join([f"{_HEADING.sub('', first).rstrip()} {comment(origin, session_key)}", *rest])
    written = notebook.append(entry, file)
    payload: Payload = {
        "written": True,
        "path": written.path,
        "startLine": written.start_line,
        "endLine": written.end_line,
        "citation": written.citation,
    }
    flags = flags_of(text)
    return {**payload, "flags": list(flags)} if flags else payload


def _refused(refusal: Refusal) -> Payload:
    return _not_written(
        {"reason": refusal.reason, "error": refusal.message, "action": refusal.action}
    )


def _not_written(problem: Payload) -> Payload:
    return {"written": False, **problem}
