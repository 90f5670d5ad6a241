"""What a person or a program reads: text, JSON and errors out, and nothing that could harm a
terminal.

Memory text is data: control and direction characters in it are shown as escapes, so a note cannot
move the cursor or hide a line. A closed output ends the command quietly; a full one is an error.
Colour only on a terminal."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from typing import TextIO

from clawmark.model.errors import ClawmarkError, advice


class Stopped(BaseException):
    """The command ends now, and there is nothing to say: a signal came, or nobody reads on."""

    def __init__(self, exit_code: int) -> None:
        super().__init__(exit_code)
        self.exit_code = exit_code


class OutputError(ClawmarkError):
    """The answer could not be written where it was to go."""


def say(text: str = "") -> None:
    """One line, or several, on standard output."""
    _write(sys.stdout, text + "\n")


def pour(text: str) -> None:
    """Some text on standard output, without the end of a line, to be seen at once."""
    _write(sys.stdout, text)
    _write(sys.stdout, "")


def note(text: str) -> None:
    """One line beside the answer, on standard error; never a reason to fail."""
    try:
        sys.stdout.flush()
        sys.stderr.write(text + "\n")
        sys.stderr.flush()
    except (OSError, ValueError):
        return


_warnings: list[str] = []
"""Warnings about the configuration for the first JSON document of this command."""


def warn(warnings: Sequence[str]) -> None:
    """Print warnings about the configuration on standard error, and add them to the JSON document
    that follows.
    """
    for warning in warnings:
        note(f"clawmark: {plain(warning)}")
    _warnings[:] = warnings


def emit(document: object) -> None:
    """One JSON document on standard output."""
    if _warnings and isinstance(document, dict):
        document = {**document, "warnings": [*_warnings]}
        _warnings.clear()
    text = json.dumps(document, ensure_ascii=False, allow_nan=False)
    # Legal inside JSON, but many readers of JSON lines take them for the end of one.
    for character in "\x85\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    say(text)


def flush() -> None:
    """Hand over everything written so far."""
    _write(sys.stdout, "")


def report(error: ClawmarkError, *, as_json: bool) -> int:
    """Say what went wrong and what to do next; the error's exit code."""
    if as_json and not isinstance(error, OutputError):
        body = {"type": type(error).__name__, "message": error.message, "hint": error.hint}
        try:
            emit({"ok": False, "error": body})
            flush()
            return error.exit_code
        except (ClawmarkError, Stopped):
            pass  # nowhere to put the document: standard error is left
    note(f"clawmark: {plain(error.message)}")
    if error.hint:
        note(f"  {plain(error.hint)}")
    return error.exit_code


def report_unexpected(error: Exception, *, as_json: bool) -> int:
    """An error nobody foresaw: one sentence for the person, the traceback only when asked for."""
    if os.environ.get("CLAWMARK_DEBUG"):
        import traceback

        traceback.print_exception(error)
    if isinstance(error, MemoryError):
        known = ClawmarkError(
            "There was not enough memory for this.",
            hint="Give the process more, or index less at once.",
        )
    elif isinstance(error, OSError):
        where = f" ({error.filename})" if error.filename else ""
        known = ClawmarkError(
            f"The system refused: {error.strerror or error}{where}.", hint=advice(error, "")
        )
    else:
        what = f"{type(error).__name__}: {str(error)[:300]}"
        known = ClawmarkError(
            f"Something unexpected went wrong ({what}).",
            hint="Please report it; with CLAWMARK_DEBUG=1 the "
            "same command shows where it happened.",
        )
    return report(known, as_json=as_json)


def interrupted() -> int:
    """Ctrl-C: what is on disk is whole, so there is nothing to do but say so."""
    note("clawmark: interrupted.")
    return 130


def plain(text: str) -> str:
    """Text that is safe to print: line ends and tabs stay, control and direction characters become
    escapes.
    """
    if text.isprintable():
        return text
    return "".join(letter if _is_harmless(letter) else _escaped(letter) for letter in text)


def one_line(text: str) -> str:
    """The same on one line."""
    return plain(" ".join(text.split()))


def place(path: str) -> str:
    """A path or a citation, on one line whatever the file is called: a name with a line end in it
    forges no line.
    """
    return plain(path).replace("\n", "\\n").replace("\t", "\\t")


def columns(stream: TextIO | None = None) -> int:
    """How wide the terminal is; 80 where there is none."""
    try:
        return max(40, int(os.environ["COLUMNS"]))
    except (KeyError, ValueError):
        pass
    try:
        return max(40, os.get_terminal_size((stream or sys.stdout).fileno()).columns)
    except (OSError, ValueError, AttributeError):
        return 80


def is_terminal(stream: TextIO) -> bool:
    """Whether a person is watching this stream."""
    try:
        return stream.isatty() and os.environ.get("TERM") != "dumb"
    except ValueError:  # closed
        return False


def paint(text: str, style: str, stream: TextIO | None = None) -> str:
    """The text in a style (bold, dim, green, yellow, red, cyan), where there is a terminal that
    wants colour.
    """
    if not text or os.environ.get("NO_COLOR") or not is_terminal(stream or sys.stdout):
        return text
    codes = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}
    return f"\x1b[{codes[style]}m{text}\x1b[0m"


def _write(stream: TextIO, text: str) -> None:
    try:
        stream.write(text)
        if not text:
            stream.flush()
    except BrokenPipeError:
        _discard(stream)
        raise Stopped(141) from None  # as if SIGPIPE had ended us
    except OSError as error:
        _discard(stream)
        raise OutputError(
            f"The answer could not be written: {error.strerror}.", hint="Is the disk full?"
        ) from None


def _discard(stream: TextIO) -> None:
    """Send what is still in the stream's buffer nowhere, so that the interpreter does not try again
    at its end.
    """
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
        stream.flush()
    except (OSError, ValueError):
        return


def _is_harmless(letter: str) -> bool:
    if letter.isprintable() or letter in "\n\t\u00a0\u3000\u200c\u200d":
        return True
    code = ord(letter)
    is_control = (
        code < 32
        or 127 <= code < 160
        or code in (0xAD, 0x61C, 0x180E, 0xFEFF)
        or 0xFFF9 <= code <= 0xFFFB
    )
    is_direction = 0x200B <= code <= 0x200F or 0x2028 <= code <= 0x202E or 0x2060 <= code <= 0x206F
    is_odd = 0xD800 <= code <= 0xDFFF or 0xE0000 <= code <= 0xE0FFF
    return not (is_control or is_direction or is_odd)


def _escaped(letter: str) -> str:
    code = ord(letter)
    return (
        f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}" if code < 65536 else f"\\U{code:08x}"
    )
