"""The one place a flush may write: the end of the log of the day it is when something is written.

In: what a model wants kept. Out: lines in `memory/YYYY-MM-DD.md`, and an account of what became of
the rest. Nothing is ever refused because of the time: around midnight a text goes to the day that
has begun. Each item passes the write gate of `tools/gate.py` by itself, so that one bad item costs
no other; left out are secrets, recalled blocks and what MEMORY.md or the log of today or yesterday
holds already. What they hold is shown to a session that is proven private, and to no other."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timedelta

from clawmark.agent.flush.new_lines import fresh_lines
from clawmark.agent.flush.prompts import spoken
from clawmark.agent.session.recent_messages import without_secrets
from clawmark.agent.tools.arguments import read_arguments, text_argument
from clawmark.agent.tools.base import Payload, Tool, complaint, log_surprise
from clawmark.agent.tools.gate import Held, Refusal, refuse
from clawmark.agent.tools.memory_get import get_tool
from clawmark.agent.tools.policy import access_of
from clawmark.model.documents import Written
from clawmark.model.errors import ClawmarkError, ToolInputError
from clawmark.text.chunking.tokens import well_formed
from clawmark.text.secrets.redact import Redactor
from clawmark.text.untrusted.origin_labels import comment, without_comments
from clawmark.text.untrusted.recalled_blocks import strip_recalled
from clawmark.workspace import Workspace
from clawmark.workspace.daily import daily_header, daily_path, format_entry

LONG_TERM = "MEMORY.md"
LONGEST = 8_000
"""Characters of one entry: a page and a half.

More is a copy of the conversation, not what matters in it.
"""
MOST_CHARS = 24_000
"""Characters of one flush."""
_WHOLE = 1 << 40

_BULLET = re.compile(r"[-*+] ")
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


class DayLog:
    """Writes to the log of the day, and remembers what it wrote."""

    def __init__(
        self,
        workspace: Workspace,
        now: Callable[[], datetime],
        redactor: Redactor,
        session_key: str,
        chat_type: str = "",
    ) -> None:
        self.written: list[Written] = []
        self.refused: list[str] = []
        self.is_used = False
        """Whether the model wanted something kept, whatever became of it."""
        self.failure: ClawmarkError | None = None
        """Why the log could not be written; nothing the model could do about."""
        self._workspace = workspace
        self._now = now
        self._redactor = redactor
        self._session_key = session_key
        self._access = access_of(session_key, chat_type=chat_type)
        self._room = MOST_CHARS

    @property
    def day(self) -> str:
        return self._now().date().isoformat()

    def held(self) -> str:
        """What the log of today holds, as far as the session may see it."""
        return self._read(daily_path(self.day)) if self._access.reads else ""

    def verified(self) -> tuple[Written, ...]:
        """What was written and is there: the lines are read again from the file."""
        return tuple(
            one for one in self.written if self._workspace.read_lines(one.citation).text.strip()
        )

    def tools(self) -> list[Tool]:
        """The two tools of a flush: one reads memory files, one adds to the log."""
        described = (
            f"Add lines to the log of the day, {daily_path(self.day)}. It can only be added to; "
            f"what it holds already is "
            "left out by itself. Whatever path you give, the lines go there."
        )
        return [
            get_tool(self._workspace.read_lines, self._access),
            Tool(
                name="memory_append", description=described, parameters=_PARAMETERS, call=self._call
            ),
        ]

    def append(self, text: str) -> Written | None:
        """Keep a text; None when the log holds all of it already.

        Raises ToolInputError when nothing of it may be kept.
        """
        # Labels that it read in the log and repeats are not its own to give.
        text = spoken(without_comments(strip_recalled(well_formed(text)).replace("\0", "")))
        if len(text) > min(LONGEST, self._room):
            raise _refused(
                f"the text has {len(text):,} characters; {max(0, min(LONGEST, self._room)):,} "
                f"are taken."
            )
        day = self.day
        # A log has one title; models like to begin with it.
        text = re.sub(
            rf"^#{{1,6}}[ \t]+(?:memory/)?{day}(?:\.md)?[ \t]*\n*", "", text, flags=re.MULTILINE
        )
        passed = without_secrets(self._gated(text, daily_path(day)), self._redactor)
        # What is always known was perhaps recalled a moment ago, and is no news either.
        known = [
            self._read(path) for path in (LONG_TERM, daily_path(_day_before(day)), daily_path(day))
        ]
        kept = fresh_lines(passed, "\n".join(known))
        if not kept:
            return None
        entry = _labelled(kept, comment("agent", self._session_key))
        written = self._workspace.append(daily_path(day), entry, header=daily_header(day))
        self._room -= len(entry)
        self.written.append(written)
        return written

    def _gated(self, text: str, path: str) -> str:
        """The items that may become memory; why the others may not is kept."""
        kept, refusals = list[str](), list[Refusal]()
        for item in _items(text):
            refusal = (
                None
                if item.startswith("#")
                else refuse(_BULLET.sub("", item, count=1).strip(), target=Held(path, ""))
            )
            if refusal is None:
                kept.append(item)
            else:
                refusals.append(refusal)
        if all(item.startswith("#") for item in kept):
            raise _refused(
                refusals[0].message if refusals else "there is nothing to keep in this text."
            )
        self.refused += [refusal.message for refusal in refusals]
        return "\n".join(kept)

    def _call(self, given: object) -> Payload:
        self.is_used = True
        before = len(self.refused)
        try:
            written = self.append(_text_of(read_arguments(given)))
        except ToolInputError as error:
            self.refused.append(error.message)
            return {
                "written": False,
                **complaint(error, "Change the text and call memory_append again."),
            }
        except ClawmarkError as error:
            self.failure = error
            return {"written": False, **complaint(error, "It will be tried again later.")}
        except Exception as error:
            log_surprise("memory_append")
            self.refused.append(type(error).__name__)
            return {
                "written": False,
                "error": f"memory_append stopped at an unexpected {type(error).__name__}.",
            }
        left_out: Payload = {"leftOut": self.refused[before:]} if self.refused[before:] else {}
        if written is None:
            return {"written": False, "note": "The log holds all of this already.", **left_out}
        return {"written": True, "path": written.path, "citation": written.citation, **left_out}

    def _read(self, path: str) -> str:
        return self._workspace.read_lines(path, 1, None, max_lines=_WHOLE, max_chars=_WHOLE).text


def _text_of(arguments: Mapping[str, object]) -> str:
    """The text under the name it should have, or under the one of the tool that OpenClaw has for
    this.
    """
    name = "content" if "text" not in arguments and "content" in arguments else "text"
    return text_argument(arguments, name, trim=False, longest=1_000_000)


def _items(text: str) -> Iterator[str]:
    """The top-level items, headings and paragraphs of a text, each with what hangs below it."""
    item: list[str] = []
    inside = False
    for line in text.split("\n"):
        begins = not inside and (
            _BULLET.match(line)
            or line.startswith("#")
            or (item and not item[-1].strip() and line[:1] > " ")
        )
        inside ^= line.lstrip().startswith(("```", "~~~"))
        if begins and item:
            yield "\n".join(item)
            item = []
        item.append(line)
    yield "\n".join(item)


def _refused(message: str) -> ToolInputError:
    return ToolInputError(message, argument="text")


def _labelled(text: str, label: str) -> str:
    """Every item on its own line with where it came from; a text without items becomes one."""
    lines = text.split("\n")
    if not any(_BULLET.match(line) for line in lines):
        lines = format_entry(text).rstrip("\n").split("\n")
    inside = False
    labelled = []
    for line in lines:
        inside ^= line.lstrip().startswith(("```", "~~~"))
        labelled.append(f"{line} {label}" if _BULLET.match(line) and not inside else line)
    return "\n".join(labelled) + "\n"


def _day_before(day: str) -> str:
    return (datetime.fromisoformat(day) - timedelta(days=1)).date().isoformat()
