"""What a person sees of a conversation: pieces of answers, tools that were used and events in;
lines on a terminal out.

On a terminal answers are broken between words as they come, what the agent does stands dim beside
them, and the context meter under them. In a pipe standard output holds the answers and nothing
else; the rest goes to standard error. Everything a model or a file says is printed as data: no
escape sequence of theirs reaches the terminal."""

from __future__ import annotations

import contextlib
import json
import re
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from clawmark.agent.flush.flush import Flushed, FlushFailed
from clawmark.agent.notes.session_note import Noted, NoteFailed
from clawmark.chat.compact import Compacted
from clawmark.chat.talk import Reminded
from clawmark.cli.layout import cells, fitted, plural
from clawmark.cli.output import columns, is_terminal, note, one_line, paint, plain, pour
from clawmark.model.values import citation

if TYPE_CHECKING:
    from clawmark.agent.models.completer import ToolCall
    from clawmark.chat.agent import Answer
    from clawmark.chat.talk import Event

HEARING_SECONDS = 0.5
"""The longest that a signal goes unheard while somebody is waited for."""
PROMPT = "› "
_LONGEST_MESSAGE = 1_000_000
"""Bytes of one line; nobody types more."""


class Screen:
    """The terminal, or the pipes, that a conversation is held through; a `quiet` one shows nothing."""

    def __init__(self, *, quiet: bool) -> None:
        self.quiet = quiet
        self.is_live = not quiet and is_terminal(sys.stdin) and is_terminal(sys.stdout)
        self._flow = Flow(columns()) if self.is_live else None
        self._is_waiting = False
        self._is_open = False
        self.citations: list[str] = []
        """What the answer rests on, as far as the memory was asked for it."""
        if self.is_live:
            _load_readline()

    def ask(self) -> str | None:
        """The next line that somebody types; None when there is no more."""
        with _hearing_signals():
            if not self.is_live:
                line = sys.stdin.buffer.readline(_LONGEST_MESSAGE)
                return line.decode("utf-8", "replace").rstrip("\r\n") if line else None
            try:
                return input(_marked(PROMPT))
            except EOFError:
                pour("\n")
                return None

    def interrupted(self) -> None:
        """Somebody pressed Ctrl-C while nothing was said."""
        if self.is_live:
            pour("\n")

    def wait(self) -> None:
        """Show that an answer is under way."""
        self.citations = []
        self._wait()

    def piece(self, text: str) -> None:
        """The next words of an answer."""
        if not self.quiet:
            self._clear()
            self._is_open = True
            pour(self._flow.feed(plain(text)) if self._flow else plain(text))

    def used(self, call: ToolCall, result: str) -> None:
        """A tool that was used, and what came of it."""
        self.close()
        said, citations = describe(call, result)
        self.citations += [one for one in citations if one not in self.citations]
        self.aside(said)
        self._wait()

    def event(self, event: Event) -> None:
        """Something that happened to the conversation itself."""
        said, is_waiting = tell(event), self._is_waiting
        self.citations += [
            one for one in getattr(event, "citations", ()) if one not in self.citations
        ]
        if said:
            self.aside(said)
            if is_waiting:
                self._wait()

    def answered(self, answer: Answer, tokens: int, window: int) -> None:
        """The end of an answer, with what it rests on and how full the context is."""
        self.close()
        if answer.problem is not None:
            self.complain(answer.problem.message, answer.problem.hint)
        if self.is_live:
            said = ["stopped; Ctrl-C again leaves"] if answer.stopped else []
            self.aside(" · ".join([*said, f"{tokens:,} of {window:,} tokens", *self.citations]))
            pour("\n")

    def aside(self, text: str) -> None:
        """One line beside the answers."""
        self.close()
        if self.is_live:
            pour(paint(fitted(f"  {one_line(text)}", columns()), "dim") + "\n")
        elif not self.quiet:
            note(one_line(text))

    def complain(self, message: str, hint: str = "") -> None:
        """One sentence about what went wrong, and what to do."""
        self.close()
        if not self.quiet:
            note(f"clawmark: {plain(message)}" + (f" {plain(hint)}" if hint else ""))

    def close(self) -> None:
        """End the line that an answer has begun, and the waiting for one."""
        self._clear()
        if self._is_open:
            self._is_open = False
            pour((self._flow.end() if self._flow else "") + "\n")

    def _wait(self) -> None:
        if self.is_live:
            pour(paint("…", "dim"))
            self._is_waiting = True

    def _clear(self) -> None:
        """Take the sign of waiting away."""
        if self._is_waiting:
            self._is_waiting = False
            pour("\r\x1b[K")


class Flow:
    """Text in pieces in; the same with line breaks between words out, for lines of a certain width."""

    def __init__(self, width: int) -> None:
        self._width = width
        self._used = 0
        self._word = ""

    def feed(self, text: str) -> str:
        """What can be shown now; the beginning of a word waits for its end."""
        shown = ""
        for letter in text:
            if letter in " \n":
                shown += self._placed()
                shown += self._gap(letter)
            else:
                self._word += letter
        return shown

    def end(self) -> str:
        """What was still waiting."""
        rest = self._placed()
        self._used = 0
        return rest

    def _placed(self) -> str:
        word, self._word = self._word, ""
        size = cells(word)
        is_too_long = self._used and self._used + size > self._width
        self._used = size if is_too_long else self._used + size
        return f"\n{word}" if is_too_long else word

    def _gap(self, letter: str) -> str:
        if letter == "\n":
            self._used = 0
        elif self._used < self._width:
            self._used += 1
        else:
            return ""
        return letter


def describe(call: ToolCall, result: str) -> tuple[str, list[str]]:
    """One line about a tool that was used, and the passages of the memory it has shown or written."""
    arguments, payload = _object(call.arguments), _object(result)
    if "error" in payload:
        return f"{call.name}: {payload['error']}", []
    match call.name:
        case "memory_search":
            hits = payload.get("results")
            found = (
                [_citation(hit) for hit in hits if isinstance(hit, dict)]
                if isinstance(hits, list)
                else []
            )
            return (
                f'searched memory for "{arguments.get("query", "")}": '
                f"{', '.join(found) or 'nothing found'}",
                found,
            )
        case "memory_get":
            return f"read {_citation(payload)}", [_citation(payload)]
        case "memory_append":
            return f"remembered {payload.get('citation', '')}", []
        case "file_read":
            return f"read {payload.get('path', '')}", []
        case "file_write" | "file_edit":
            written = payload.get("lines")
            return (
                f"wrote {payload.get('path', '')} "
                f"({plural(written if isinstance(written, int) else 0, 'line')})",
                [],
            )
        case "file_delete":
            return f"deleted {payload.get('path', '')}", []
    return f"used {call.name}", []


def tell(event: Event) -> str:
    """One line about something that happened to the conversation; nothing where there is nothing to
    tell.
    """
    match event:
        case Reminded(citations=citations):
            return f"recalled {', '.join(citations)}"
        case Flushed(written=written):
            return (
                f"saved to {', '.join(one.citation for one in written)}"
                if written
                else "nothing new to save"
            )
        case FlushFailed(message=message):
            return f"nothing was saved: {message}"
        case Compacted(left_out=left_out, kept=kept, problem=problem):
            why = f"; no summary: {problem.message}" if problem is not None else ""
            return f"compacted: {plural(left_out, 'exchange')} summarised, {kept:,} kept{why}"
        case Noted(path=path):
            return f"left a note: {path}"
        case NoteFailed(message=message):
            return f"no note: {message}"
    return ""


def _citation(payload: dict[str, object]) -> str:
    """Where a passage stands; its path alone where lines are not shown."""
    if isinstance(payload.get("citation"), str):
        return str(payload["citation"])
    start, lines = payload.get("from"), payload.get("lines")
    path = str(payload.get("path", ""))
    if not isinstance(start, int) or not isinstance(lines, int) or lines < 1:
        return path

    return citation(path, start, start + lines - 1)


def _object(text: str) -> dict[str, object]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _marked(prompt: str) -> str:
    """The prompt in colour, the colour marked as taking no room: readline counts letters."""
    return "".join(
        f"\x01{part}\x02" if part.startswith("\x1b") else part
        for part in _parts(paint(prompt, "cyan"))
    )


def _parts(text: str) -> list[str]:
    return re.split(r"(\x1b\[[0-9;]*m)", text)


@contextmanager
def _hearing_signals() -> Iterator[None]:
    """Let signals be heard while somebody is waited for.

    Python hears of a signal between two steps of its own, and a call that has just begun to wait is
    none: one that comes in that moment would wait for the next key. A timer ends the waiting for an
    instant, again and again."""
    if (
        sys.platform == "win32"
        or not hasattr(signal, "setitimer")
        or threading.current_thread() is not threading.main_thread()
    ):
        yield
        return
    before = signal.signal(signal.SIGALRM, lambda number, frame: None)
    signal.setitimer(signal.ITIMER_REAL, HEARING_SECONDS, HEARING_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _load_readline() -> None:
    """Arrow keys and earlier lines, where Python has them."""
    with contextlib.suppress(ImportError):
        import readline  # noqa: F401 - `input` uses it once it is loaded
