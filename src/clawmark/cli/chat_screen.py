"""Input and output of `clawmark chat`.

On a terminal, answers are wrapped between words as they arrive, and dim lines show what the agent
does and how full the context is. In a pipe, standard output has only the answers; everything else
goes to standard error. Escape sequences in texts of models and files are never printed.
"""

from __future__ import annotations

import contextlib
import json
import re
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from clawmark.agent.flush.flush import Flushed, FlushFailed
from clawmark.agent.models.completer import ToolCall
from clawmark.agent.notes.session_note import Noted, NoteFailed
from clawmark.chat.chat import Event, Recalled
from clawmark.chat.compact import Compacted
from clawmark.chat.history import Answer
from clawmark.cli.layout import cells, fitted, plural
from clawmark.cli.output import columns, is_terminal, note, one_line, paint, plain, pour
from clawmark.model.values import citation

SIGNAL_SECONDS = 0.5
"""The longest time until a signal is handled while waiting for input."""
PROMPT = "› "
_MAX_LINE_BYTES = 1_000_000


class Screen:
    """The terminal or the pipes of a conversation; if `quiet`, nothing is printed."""

    def __init__(self, *, quiet: bool) -> None:
        self.quiet = quiet
        self.is_live = not quiet and is_terminal(sys.stdin) and is_terminal(sys.stdout)
        self._wrap = WordWrap(columns()) if self.is_live else None
        self._is_waiting = False
        self._is_open = False
        self.citations: list[str] = []
        """Passages of the memory that were used for the current answer."""
        if self.is_live:
            _load_readline()

    def ask(self) -> str | None:
        """Return the next line of input; None at its end."""
        with _handling_signals():
            if not self.is_live:
                line = sys.stdin.buffer.readline(_MAX_LINE_BYTES)
                return line.decode("utf-8", "replace").rstrip("\r\n") if line else None
            try:
                return input(_marked(PROMPT))
            except EOFError:
                pour("\n")
                return None

    def interrupted(self) -> None:
        """End the input line after Ctrl-C."""
        if self.is_live:
            pour("\n")

    def wait(self) -> None:
        """Show that an answer is being made."""
        self.citations = []
        self._wait()

    def piece(self, text: str) -> None:
        """Print the next piece of an answer."""
        if not self.quiet:
            self._clear()
            self._is_open = True
            pour(self._wrap.feed(plain(text)) if self._wrap else plain(text))

    def used(self, call: ToolCall, result: str) -> None:
        """Show a tool call and its result."""
        self.close()
        line, citations = describe(call, result)
        self.citations += [one for one in citations if one not in self.citations]
        self.status(line)
        self._wait()

    def event(self, event: Event) -> None:
        """Show an event of the conversation itself."""
        line, is_waiting = describe_event(event), self._is_waiting
        self.citations += [
            one for one in getattr(event, "citations", ()) if one not in self.citations
        ]
        if line:
            self.status(line)
            if is_waiting:
                self._wait()

    def answered(self, answer: Answer, tokens: int, window: int) -> None:
        """End an answer; show the passages it used and how full the context is."""
        self.close()
        if answer.problem is not None:
            self.complain(answer.problem.message, answer.problem.hint)
        if self.is_live:
            stopped = ["stopped; press Ctrl-C again to leave"] if answer.stopped else []
            self.status(" · ".join([*stopped, f"{tokens:,} of {window:,} tokens", *self.citations]))
            pour("\n")

    def status(self, text: str) -> None:
        """Print one line that is not part of an answer."""
        self.close()
        if self.is_live:
            pour(paint(fitted(f"  {one_line(text)}", columns()), "dim") + "\n")
        elif not self.quiet:
            note(one_line(text))

    def complain(self, message: str, hint: str = "") -> None:
        """Print an error and what to do about it."""
        self.close()
        if not self.quiet:
            note(f"clawmark: {plain(message)}" + (f" {plain(hint)}" if hint else ""))

    def close(self) -> None:
        """End the line of the current answer and remove the waiting sign."""
        self._clear()
        if self._is_open:
            self._is_open = False
            pour((self._wrap.end() if self._wrap else "") + "\n")

    def _wait(self) -> None:
        if self.is_live:
            pour(paint("…", "dim"))
            self._is_waiting = True

    def _clear(self) -> None:
        """Remove the waiting sign."""
        if self._is_waiting:
            self._is_waiting = False
            pour("\r\x1b[K")


class WordWrap:
    """Wraps text that arrives in pieces between words, to lines of a given width."""

    def __init__(self, width: int) -> None:
        self._width = width
        self._used = 0
        self._word = ""

    def feed(self, text: str) -> str:
        """Return what can be printed now; an incomplete word is held back."""
        shown = ""
        for letter in text:
            if letter in " \n":
                shown += self._placed()
                shown += self._gap(letter)
            else:
                self._word += letter
        return shown

    def end(self) -> str:
        """Return the word that was held back."""
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
    """Return one line about a tool call, and the passages of the memory that it read."""
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


def describe_event(event: Event) -> str:
    """Return one line about an event of the conversation; empty if there is nothing to show."""
    match event:
        case Recalled(citations=citations):
            return f"recalled {', '.join(citations)}"
        case Flushed(written=written):
            return (
                f"saved to {', '.join(one.citation for one in written)}"
                if written
                else "nothing new to save"
            )
        case FlushFailed(message=message):
            return f"nothing was saved: {message}"
        case Compacted(summarised=summarised, kept=kept, problem=problem):
            why = f"; no summary: {problem.message}" if problem is not None else ""
            return f"compacted: {plural(summarised, 'exchange')} summarised, {kept:,} kept{why}"
        case Noted(path=path):
            return f"left a note: {path}"
        case NoteFailed(message=message):
            return f"no note: {message}"
    return ""


def _citation(payload: dict[str, object]) -> str:
    """Return the citation of a passage, or its path if the lines are unknown."""
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
    """Return the coloured prompt with the colours marked as zero width for readline."""
    return re.sub(r"(\x1b\[[0-9;]*m)", "\x01\\1\x02", paint(prompt, "cyan"))


@contextmanager
def _handling_signals() -> Iterator[None]:
    """Interrupt the wait for input regularly, so that signals are handled.

    Python runs signal handlers between two bytecodes. A signal that arrives just before a blocking
    read would only be handled after the next key.
    """
    if (
        sys.platform == "win32"
        or not hasattr(signal, "setitimer")
        or threading.current_thread() is not threading.main_thread()
    ):
        yield
        return
    before = signal.signal(signal.SIGALRM, lambda number, frame: None)
    signal.setitimer(signal.ITIMER_REAL, SIGNAL_SECONDS, SIGNAL_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _load_readline() -> None:
    """Enable line editing and history for `input`, where readline is available."""
    with contextlib.suppress(ImportError):
        import readline  # noqa: F401 - used by `input` once it is imported
