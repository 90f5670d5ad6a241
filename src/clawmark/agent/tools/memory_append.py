"""The tool `memory_append`: add a note to today's log or to MEMORY.md.

The write gate decides what is kept. An accepted entry carries its origin and session in a comment.
The note is on disk when the call returns its citation. A call never raises."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import NamedTuple, cast

from clawmark.agent.tools.arguments import (
    choice_argument,
    read_arguments,
    refuse_argument,
    text_argument,
)
from clawmark.agent.tools.base import Payload, Tool, complaint, unexpected
from clawmark.agent.tools.gate import FORGOTTEN, LONGEST, Refusal, refuse
from clawmark.agent.tools.outside_seen import OutsideSeen
from clawmark.agent.tools.policy import LOCAL, Access, tool_origin
from clawmark.agent.tools.shared_notes import (
    SHARED_DESCRIPTION,
    SharedNotebook,
    append_shared,
    with_space,
)
from clawmark.model.documents import Excerpt, Written
from clawmark.model.errors import (
    ClawmarkError,
    KeptForReview,
    ToolInputError,
    WorkspaceError,
)
from clawmark.model.provenance import Origin as Provenance
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
from clawmark.text.write_check import FileText
from clawmark.workspace.daily import daily_path, without_recent_time

LONG_TERM = "MEMORY.md"
_HEADING = re.compile(r"\A#{1,6}\s+")

_DESCRIPTION = f"""\
Add one note to your memory. Do it when something comes up that should outlive this conversation: \
a decision and its reason, a preference, a name, a date, a promise, a lesson. Write it so that it \
can be understood in a year by someone who was not here: whole sentences, names instead of "he" \
and "it", at most {LONGEST:,} characters.

It goes to the end of today's log. With to set to MEMORY.md it goes to the end of what you always \
know: use that only for what will still matter in a year. Nothing that is there is changed.

Set origin to user when the user told you so, to tool when it comes from a web page, a file or a \
tool, and leave it out for your own conclusions. When the answer holds `written: true`, the note \
is on disk at `citation`. When it holds `proposal`, the note waits there until the user accepts \
it. When it holds `error`, the note was not kept: the error says why, and the action what to do."""

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
    """Reads and writes the files that notes go to."""

    now: Callable[[], datetime]
    """The current time in the user's time zone."""
    read_lines: Callable[[str, int, None, int, int], Excerpt]
    """(path, start, lines, max lines, max characters) → the excerpt; empty if there is no file."""
    append: Callable[[str, str, datetime, Provenance], Written]
    """(entry, path, time, origin) → where it was written; the path `""` is the log of the day.
    Raises KeptForReview if the user has to accept it first."""

    redactor: Redactor
    """Finds secrets, which are refused."""
    is_forgotten: Callable[[str], bool] = lambda _: False
    """Whether the user had a text forgotten."""
    shared: SharedNotebook | None = None
    """Writes to shared spaces; None without a team."""

    def check(self, text: str, to: str, day: str, session_key: str | None = None) -> Refusal | None:
        """Return why a text must not be added to a file (`""` is the log of the day), or None.

        With a session key, the entries of that session on that day are limited.
        """
        path = daily_path(day)
        target = self._read(to or path)
        # An entry of the log may be promoted to MEMORY.md; not the other way round.
        others = () if target.path == LONG_TERM else self._known()
        is_counted = session_key is not None and target.path == path
        entries = (
            sessions_of(target.text).count(session_label(session_key or "")) if is_counted else 0
        )
        return refuse(
            text, target=target, others=others, entries_today=entries, redactor=self.redactor
        )

    def _known(self) -> tuple[FileText, ...]:
        """Return MEMORY.md; nothing if it cannot be read, so that the note is not lost."""
        try:
            return (self._read(LONG_TERM),)
        except WorkspaceError:
            return ()

    def _read(self, path: str) -> FileText:
        excerpt = self.read_lines(path, 1, None, 1 << 40, 1 << 40)
        return FileText(excerpt.path, excerpt.text)


def append_tool(
    notebook: Notebook, session_key: str, access: Access = LOCAL, seen: OutsideSeen | None = None
) -> Tool:
    """Return the tool for one session; a note that repeats what it has `seen` is external."""
    provenance = tool_origin(access, session_key, "memory_append")
    spaces = access.spaces or () if notebook.shared is not None else ()

    def call(given: object) -> Payload:
        try:
            arguments = read_arguments(given)
            if notebook.shared is not None and arguments.get("space") is not None:
                return append_shared(notebook, notebook.shared, spaces, provenance, arguments)
            return _append(notebook, session_key, provenance, arguments, seen)
        except ToolInputError as error:
            problem = complaint(error, f"Correct {error.argument} and call memory_append again.")
            return _not_written({"reason": "argument", **problem})
        except ClawmarkError as error:
            return _not_written(complaint(error, "Tell the user that the note was not kept."))
        except Exception as error:  # the boundary of a tool call: tools never raise to the model
            return _not_written(unexpected("memory_append", error))

    return Tool(
        name="memory_append",
        description=f"{_DESCRIPTION}\n\n{SHARED_DESCRIPTION}" if spaces else _DESCRIPTION,
        parameters=with_space(_PARAMETERS, spaces) if spaces else _PARAMETERS,
        call=call,
    )


def _append(
    notebook: Notebook,
    session_key: str,
    provenance: Provenance,
    arguments: Mapping[str, object],
    seen: OutsideSeen | None,
) -> Payload:
    refuse_argument(arguments, "agentId", "memory_append writes to the memory of this agent only")
    refuse_argument(
        arguments, "path", "a note goes to today's log or to MEMORY.md; say which with to"
    )
    refuse_argument(arguments, "space", "there are no shared spaces here")
    text = well_formed(
        text_argument(arguments, "text", trim=True, longest=1_000_000, may_be_blank=True)
    )
    to = choice_argument(arguments, "to", ("log", LONG_TERM), default="log")
    origin = cast(Origin, choice_argument(arguments, "origin", ORIGINS, default="agent"))
    file = LONG_TERM if to == LONG_TERM else ""
    moment = notebook.now()  # read once, so that the checked day is the one that is written to
    plain = without_recent_time(text, f"{moment:%H:%M}")
    refusal = notebook.check(plain, file, moment.date().isoformat(), session_key)
    if refusal is None and notebook.is_forgotten(plain):
        refusal = FORGOTTEN
    if refusal is not None:
        return _not_written(
            {"reason": refusal.reason, "error": refusal.message, "action": refusal.action}
        )
    if seen is not None and seen.is_repeated(plain) and origin != "import":
        origin = "tool"
    first, *rest = text.split("\n")
    # A heading has no meaning inside a list item; its words are kept.
    entry = "\n".join([f"{_HEADING.sub('', first).rstrip()} {comment(origin, session_key)}", *rest])
    if origin in ("tool", "import"):  # what the model says can only lower the trust
        provenance = provenance._replace(trust="external")
    try:
        written = notebook.append(entry, file, moment, provenance)
    except KeptForReview as kept:
        return _not_written(_kept(kept))
    payload: Payload = {
        "written": True,
        "path": written.path,
        "startLine": written.start_line,
        "endLine": written.end_line,
        "citation": written.citation,
    }
    flags = flags_of(text)
    return {**payload, "flags": list(flags)} if flags else payload


def _kept(kept: KeptForReview) -> Payload:
    if not kept.proposal:
        return {"reason": "rejected", "error": kept.message, "action": kept.hint}
    return {"proposal": kept.proposal, "note": f"{kept.message} {kept.hint}"}


def _not_written(problem: Payload) -> Payload:
    return {"written": False, **problem}
