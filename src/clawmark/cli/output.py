"""Write text, JSON and errors to standard output and standard error.

Control and direction characters in memory text are escaped, so that a note cannot move the cursor
or hide a line. If the reader closes the output, the command ends quietly; if the disk is full, it
fails. Colour is used on terminals only."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, TextIO

from clawmark.model.errors import ClawmarkError, FilterError, advice

if TYPE_CHECKING:
    from clawmark.model.values import Degraded


class Stopped(BaseException):
    """Raised to end the command without a message, after a signal or a closed output."""

    def __init__(self, exit_code: int) -> None:
        super().__init__(exit_code)
        self.exit_code = exit_code


class OutputError(ClawmarkError):
    """Raised when the output cannot be written."""


def say(text: str = "") -> None:
    """Write lines to standard output."""
    _write(sys.stdout, text + "\n")


def pour(text: str) -> None:
    """Write text without a newline to standard output, and flush it."""
    _write(sys.stdout, text)
    _write(sys.stdout, "")


_is_quiet = False
"""Whether notes are left out (`--quiet`)."""


def set_quiet(is_quiet: bool) -> None:
    """Say whether notes are left out; errors never are."""
    global _is_quiet
    _is_quiet = is_quiet


def is_quiet() -> bool:
    """Whether notes and progress are left out."""
    return _is_quiet


def note(text: str) -> None:
    """Write a line to standard error, unless --quiet was given."""
    if not _is_quiet:
        _note(text)


def _note(text: str) -> None:
    """Write a line to standard error; a failure to write is ignored."""
    try:
        if is_terminal(sys.stderr):
            width = columns(sys.stderr)
            text = "\n".join(piece for line in text.split("\n") for piece in fold(line, width))
        sys.stdout.flush()
        sys.stderr.write(text + "\n")
        sys.stderr.flush()
    except (OSError, ValueError):
        return


_warnings: list[str] = []
"""Warnings about the configuration, added to the first JSON document of this command."""


def warn(warnings: Sequence[str]) -> None:
    """Print warnings to standard error, and add them to the JSON document that follows."""
    for warning in warnings:
        note(f"clawmark: {plain(warning)}")
    _warnings[:] = warnings


def note_degraded(degraded: Degraded, fallback_from: str = "") -> None:
    """Print why an answer is degraded and how to fix that, on standard error.

    `fallback_from` is the backend that the built-in one has replaced."""
    reason = f"{plain(degraded.reason)} {plain(degraded.fix)}".rstrip()
    if fallback_from:
        reason = f"The built-in backend answers instead of {plain(fallback_from)}. {reason}"
    note(f"clawmark: {reason}")


def emit(document: object) -> None:
    """Write one JSON document to standard output."""
    if _warnings and isinstance(document, dict):
        document = {**document, "warnings": [*_warnings]}
        _warnings.clear()
    text = json.dumps(document, ensure_ascii=False, allow_nan=False)
    # Valid inside JSON, but many readers of JSON lines treat them as line ends.
    for character in "\x85\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    say(text)


def flush() -> None:
    """Flush standard output."""
    _write(sys.stdout, "")


def report(error: ClawmarkError, *, as_json: bool) -> int:
    """Print an error and its hint; return its exit code."""
    if as_json and not isinstance(error, OutputError):
        try:
            # Imported late: a command that succeeds, or prints text, does without it.
            from clawmark.cli.as_json import error_as_json

            emit({"ok": False, "error": error_as_json(error)})
            flush()
            return error.exit_code
        except (ClawmarkError, Stopped):
            pass  # standard output cannot be written, so use standard error
    _note(f"clawmark: {plain(_with_flags(error, error.message))}")
    if error.hint:
        _note(f"  {plain(_with_flags(error, error.hint))}")
    return error.exit_code


def _with_flags(error: ClawmarkError, text: str) -> str:
    """Return a text about the argument of a search with its name on the command line."""
    return text.replace("asOf", "--as-of") if isinstance(error, FilterError) else text


def report_unexpected(error: Exception, *, as_json: bool) -> int:
    """Print an unexpected error; the traceback only with CLAWMARK_DEBUG."""
    if os.environ.get("CLAWMARK_DEBUG"):
        import traceback  # Imported late: needed for debugging only.

        traceback.print_exception(error)
    if isinstance(error, MemoryError):
        known = ClawmarkError(
            "The process ran out of memory.",
            hint="Give it more memory, or index less at once.",
        )
    elif isinstance(error, OSError):
        where = f" ({error.filename})" if error.filename else ""
        known = ClawmarkError(
            f"The operating system reported: {error.strerror or error}{where}.",
            hint=advice(error, "Check that it exists and that you may write to it, and try again."),
        )
    else:
        what = f"{type(error).__name__}: {str(error)[:300]}"
        known = ClawmarkError(
            f"An unexpected error occurred ({what}).",
            hint="Please report it; CLAWMARK_DEBUG=1 prints the traceback.",
        )
    return report(known, as_json=as_json)


def say_diff(diff: str) -> None:
    """Print a unified diff; with colours on a terminal."""
    styles = {"+": "green", "-": "red", "@": "dim"}
    # Not `splitlines`: a line may contain other separators, which are shown escaped.
    for line in diff.removesuffix("\n").split("\n") if diff else ():
        style = "bold" if line.startswith(("--- ", "+++ ")) else styles.get(line[:1])
        say(paint(plain(line), style) if style else plain(line))


def is_interactive() -> bool:
    """Whether a person can be asked: input and output are a terminal."""
    return is_terminal(sys.stdin) and is_terminal(sys.stdout)


def confirm(question: str) -> bool:
    """Ask a question on the terminal; only a yes is True."""
    say(f"{question} [y/N]")
    flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def interrupted() -> int:
    """Handle Ctrl-C: files are always complete, so there is nothing to clean up."""
    note("clawmark: interrupted.")
    return 130


def plain(text: str) -> str:
    """Escape control and direction characters; newlines and tabs are kept."""
    if text.replace("\n", "").isprintable():
        return text
    return "".join(letter if _is_safe(letter) else _escaped(letter) for letter in text)


def one_line(text: str) -> str:
    """Return safe text on one line."""
    return plain(" ".join(text.split()))


def place(path: str) -> str:
    """Return a path or citation on one line, also if the file name contains a newline."""
    return plain(path).replace("\n", "\\n").replace("\t", "\\t")


def columns(stream: TextIO | None = None) -> int:
    """Return the width of the terminal; 80 without one."""
    try:
        return max(40, int(os.environ["COLUMNS"]))
    except (KeyError, ValueError):
        pass
    try:
        return max(40, os.get_terminal_size((stream or sys.stdout).fileno()).columns)
    except (OSError, ValueError, AttributeError):
        return 80


def fold(line: str, width: int, indent: str = "") -> list[str]:
    """Break a line between words so that each piece fits `width`; longer words stay whole.

    Further pieces start below the first word, or with `indent`. Colour codes have no width."""

    def shown(text: str) -> int:
        return len(re.sub("\x1b\\[[0-9;]*m", "", text))

    if shown(line) <= width:
        return [line]
    indent = indent or line[: len(line) - len(line.lstrip(" "))]
    first, *words = line.split(" ")
    pieces = [first]
    for word in words:
        if shown(pieces[-1]) + 1 + shown(word) <= width or not pieces[-1].strip():
            pieces[-1] += f" {word}"
        else:
            pieces.append(indent + word)
    return pieces


def is_terminal(stream: TextIO) -> bool:
    """Whether the stream is a terminal."""
    try:
        return stream.isatty() and os.environ.get("TERM") != "dumb"
    except ValueError:  # closed
        return False


BASIC_STYLES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}
FIXED_COLOURS = {"red": "38;5;160", "green": "38;5;28", "yellow": "38;5;130", "cyan": "38;5;31"}
"""Colours of medium lightness, which can be read on a dark and on a light background. The basic
yellow and cyan of many terminals cannot be read on white."""


def paint(text: str, style: str, stream: TextIO | None = None) -> str:
    """Return the text in a style (bold, dim, red, …) if the stream has colours."""
    if not text or os.environ.get("NO_COLOR") or not is_terminal(stream or sys.stdout):
        return text
    code = FIXED_COLOURS.get(style) if _has_256_colours() else None
    return f"\x1b[{code or BASIC_STYLES[style]}m{text}\x1b[0m"


def _has_256_colours() -> bool:
    return bool(os.environ.get("COLORTERM")) or "256color" in os.environ.get("TERM", "")


def _write(stream: TextIO, text: str) -> None:
    try:
        stream.write(text)
        if not text:
            stream.flush()
    except BrokenPipeError:
        _discard(stream)
        raise Stopped(141) from None  # the exit code after SIGPIPE
    except OSError as error:
        _discard(stream)
        raise OutputError(
            f"The output could not be written: {error.strerror}.", hint="Is the disk full?"
        ) from None


def _discard(stream: TextIO) -> None:
    """Discard the buffer of a stream, so that the interpreter does not flush it at exit."""
    try:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, stream.fileno())
        os.close(null)
        stream.flush()
    except (OSError, ValueError):
        return


def _is_safe(letter: str) -> bool:
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
