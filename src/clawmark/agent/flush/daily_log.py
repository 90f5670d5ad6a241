"""Write what a flush keeps to the end of the daily log.

Each item passes the write gate on its own, so that one refused item does not affect the others.
Secrets, recalled blocks and everything that MEMORY.md or the log of today or yesterday already
contains are left out. Only private sessions are shown what these files contain. An entry goes to
the log of the day on which it is written; the day is read once per entry."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timedelta

from clawmark.agent.flush.new_lines import new_lines
from clawmark.agent.flush.prompts import LOG, strip_no_reply
from clawmark.agent.tools.arguments import read_arguments, text_argument
from clawmark.agent.tools.base import Payload, Tool, complaint, unexpected
from clawmark.agent.tools.gate import Refusal, refuse
from clawmark.agent.tools.memory_get import get_tool
from clawmark.agent.tools.policy import access_of
from clawmark.model.documents import Written
from clawmark.model.errors import ClawmarkError, KeptForReview, ToolInputError
from clawmark.model.provenance import Origin
from clawmark.text.chunking.tokens import well_formed
from clawmark.text.entry_times import without_times
from clawmark.text.secrets.redact import Redactor
from clawmark.text.untrusted.origin_labels import comment, without_comments
from clawmark.text.untrusted.recalled_blocks import strip_recalled
from clawmark.text.write_check import FileText
from clawmark.workspace import Workspace
from clawmark.workspace.daily import add_time, daily_header, format_entry, recent_times

LONG_TERM = "MEMORY.md"
LONGEST = 8_000
"""Characters of one entry; a longer one is a copy of the conversation."""
MOST_CHARS = 24_000
"""Characters of one flush."""
_UNLIMITED = 1 << 40

_BULLET = re.compile(r"[-*+] ")
_FENCES = ("```", "~~~")
_PARAMETERS: Payload = {
    "type": "object",
    "properties": {
        "text": {
            "type": "string",
            "description": "The lines to keep, in Markdown, one fact per "
            "line, each beginning with a dash.",
        }
    },
    "required": ["text"],
    "additionalProperties": True,
}


class DailyLog:
    """Appends to the daily log and records what was written and refused."""

    def __init__(
        self,
        workspace: Workspace,
        now: Callable[[], datetime],
        redactor: Redactor,
        session_key: str,
        chat_type: str = "",
        log: str = LOG,
        times: bool = False,
    ) -> None:
        self.written: list[Written] = []
        self.refused: list[str] = []
        self.proposals: list[str] = []
        """The ids of the proposals that wait for the user instead of being written."""
        self.is_used = False
        """Whether the model has tried to write something."""
        self.failure: ClawmarkError | None = None
        """Why the log could not be written, if it was not the model's fault."""
        self._workspace = workspace
        self._now = now
        self._redactor = redactor
        self._session_key = session_key
        self._access = access_of(session_key, chat_type=chat_type)
        self._times = times
        self._room = MOST_CHARS
        self._log = log

    def read(self, day: str) -> str:
        """Return the log of a day; empty if the session may not see it."""
        return self._read(self._path(day)) if self._access.reads else ""

    def verified(self) -> tuple[Written, ...]:
        """Return what was written and can be read back from the file."""
        return tuple(
            one for one in self.written if self._workspace.read_lines(one.citation).text.strip()
        )

    def tools(self, day: str) -> list[Tool]:
        """Return the tools of a flush: one reads memory files, one appends to the log."""
        description = (
            f"Add lines to the log of the day, {self._path(day)}. It can only be added to; "
            "what it holds already is "
            "left out by itself. Whatever path you give, the lines go there."
        )
        append = Tool(
            name="memory_append", description=description, parameters=_PARAMETERS, call=self._call
        )
        return [get_tool(self._workspace.read_lines, self._access), append]

    def append(self, text: str) -> Written | None:
        """Write a text; return None if the log already contains all of it.

        Raises ToolInputError if nothing of it may be kept, and KeptForReview if the user has to
        accept it first.
        """
        # Labels that the model copied from the log are not valid for its own entries.
        text = strip_no_reply(without_comments(strip_recalled(well_formed(text)).replace("\0", "")))
        room = max(0, min(LONGEST, self._room))
        if len(text) > room:
            raise _refused(f"the text has {len(text):,} characters; {room:,} are taken.")
        now = self._now()
        day, day_before = (f"{now - timedelta(days=days):%Y-%m-%d}" for days in (0, 1))
        path = self._path(day)
        # Models like to start with the title, which the log already has.
        title = rf"^#{{1,6}}[ \t]+(?:memory/)?{day}(?:\.md)?[ \t]*\n*"
        text = re.sub(title, "", text, flags=re.MULTILINE)
        accepted = self._redactor.remove(self._accepted(text, path))
        logs = "\n".join(self._read(file) for file in (self._path(day_before), path))
        new = new_lines(accepted, "\n".join((self._read(LONG_TERM), logs, *_retimed(logs, now))))
        if not new:
            return None
        time = f"{now:%H:%M}" if self._times else ""
        entry = _labelled(new, comment("agent", self._session_key), time)
        origin = Origin(actor="agent", kind="flush", trust="agent", session=self._session_key)
        try:
            written = self._workspace.append(path, entry, header=daily_header(day), origin=origin)
        except KeptForReview as kept:
            self._room -= len(entry)
            if kept.proposal:
                self.proposals.append(kept.proposal)
            raise
        self._room -= len(entry)
        self.written.append(written)
        return written

    def _accepted(self, text: str, path: str) -> str:
        """Return the items that the gate accepts; record why the others were refused."""
        accepted, refusals = list[str](), list[Refusal]()
        for item in _items(text):
            plain = _BULLET.sub("", item, count=1).strip()
            refusal = None
            if not item.startswith("#"):
                # Duplicates are removed later, line by line.
                refusal = refuse(plain, target=FileText(path, ""))
            if refusal is None:
                accepted.append(item)
            else:
                refusals.append(refusal)
        if all(item.startswith("#") for item in accepted):
            raise _refused(
                refusals[0].message if refusals else "there is nothing to keep in this text."
            )
        self.refused += [refusal.message for refusal in refusals]
        return "\n".join(accepted)

    def _call(self, given: object) -> Payload:
        self.is_used = True
        before = len(self.refused)
        try:
            written = self.append(_text_argument(read_arguments(given)))
        except ToolInputError as error:
            self.refused.append(error.message)
            problem = complaint(error, "Change the text and call memory_append again.")
            return {"written": False, **problem}
        except KeptForReview as kept:
            return {"written": False, "note": f"{kept.message} {kept.hint}"}
        except ClawmarkError as error:
            self.failure = error
            return {"written": False, **complaint(error, "It will be tried again later.")}
        except Exception as error:  # the boundary of a tool call: tools never raise to the model
            self.refused.append(type(error).__name__)
            return {"written": False, **unexpected("memory_append", error)}
        left_out: Payload = {"leftOut": self.refused[before:]} if self.refused[before:] else {}
        if written is None:
            return {"written": False, "note": "The log holds all of this already.", **left_out}
        return {"written": True, "path": written.path, "citation": written.citation, **left_out}

    def _path(self, day: str) -> str:
        """Return the log of a day; the only file that the flush appends to."""
        return self._log.replace("YYYY-MM-DD", day)

    def _read(self, path: str) -> str:
        return self._workspace.read_lines(
            path, 1, None, max_lines=_UNLIMITED, max_chars=_UNLIMITED
        ).text


def _text_argument(arguments: Mapping[str, object]) -> str:
    """Return `text`, or `content`, its name in the corresponding tool of OpenClaw."""
    name = "content" if "text" not in arguments and "content" in arguments else "text"
    return text_argument(arguments, name, trim=False, longest=1_000_000)


def _items(text: str) -> Iterator[str]:
    """Yield the top-level items, headings and paragraphs, each with its nested lines."""
    item: list[str] = []
    is_fenced = False
    for line in text.split("\n"):
        starts = not is_fenced and (
            _BULLET.match(line)
            or line.startswith("#")
            or (item and not item[-1].strip() and line[:1] > " ")
        )
        is_fenced ^= line.lstrip().startswith(_FENCES)
        if starts and item:
            yield "\n".join(item)
            item = []
        item.append(line)
    yield "\n".join(item)


def _refused(message: str) -> ToolInputError:
    return ToolInputError(message, argument="text")


def _retimed(logs: str, now: datetime) -> list[str]:
    """Return logs without the times of entries, and with each time that an entry may have now."""
    plain = without_times(logs)
    recent = recent_times(f"{now:%H:%M}")
    return [plain, *(re.sub(r"(?m)^([-*+] )", rf"\g<1>{time} ", plain) for time in recent)]


def _labelled(text: str, label: str, time: str) -> str:
    """Add the time and the label to every top-level item; a text without items becomes one."""
    lines = text.split("\n")
    if not any(_BULLET.match(line) for line in lines):
        lines = format_entry(text).rstrip("\n").split("\n")
    is_fenced = False
    labelled = []
    for line in lines:
        is_fenced ^= line.lstrip().startswith(_FENCES)
        if _BULLET.match(line) and not is_fenced:
            line = f"{add_time(line, time)} {label}"
        labelled.append(line)
    return "\n".join(labelled) + "\n"
