"""`clawmark hook`: handle a hook event of a coding agent and print one JSON object.

The exit code is always 0, because hosts wait for their hooks and treat some exit codes as "stop".
An error is one line on standard error and an empty answer."""

from __future__ import annotations

import os
import select
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from typing import NoReturn

from clawmark.cli.arguments import count, share
from clawmark.cli.open_memory import open_memory
from clawmark.cli.output import emit, flush, is_terminal, note, one_line
from clawmark.hooks.answer import HookOptions, answer
from clawmark.hooks.events import MARK, read_event
from clawmark.model.errors import ClawmarkError

EXAMPLES = """\
examples:
  clawmark hook claude-code SessionStart < event.json
  clawmark hook codex UserPromptSubmit --items 5

`clawmark install claude-code` and `clawmark install codex` register these for
you."""

MAX_BYTES = 16 << 20
INPUT_SECONDS = 2.0
"""Seconds without input after which a host is assumed to be done."""


def add_arguments(parser: ArgumentParser) -> None:
    parser.error = _ignore_usage_error  # type: ignore[method-assign]
    parser.add_argument("host", metavar="HOST", help="claude-code or codex")
    parser.add_argument(
        "event",
        metavar="EVENT",
        help="SessionStart, UserPromptSubmit, Stop, PreCompact or SessionEnd",
    )
    parser.add_argument(
        "--tokens",
        type=count(500, 100_000),
        metavar="N",
        help="SessionStart: the most tokens of context (default: 2400)",
    )
    parser.add_argument(
        "--items",
        type=count(1, 20),
        metavar="N",
        help="UserPromptSubmit: the most passages to recall (default: 3)",
    )
    parser.add_argument(
        "--bar",
        type=share,
        metavar="X",
        help="UserPromptSubmit: the lowest confidence to recall (default: 0.5)",
    )
    parser.add_argument(
        "--session", metavar="KEY", help="the session (default: the agent's main one)"
    )


def run(args: Namespace) -> int:
    answer: dict[str, object] = {}
    if not os.environ.get(MARK):
        os.environ[MARK] = "1"
        try:
            with _printed_to_stderr():
                answer = _answer(args)
        except ClawmarkError as error:
            note(one_line(f"clawmark: {error.message} {error.hint}"))
        except Exception as error:  # boundary of the process: a hook must not stop its host
            note(
                one_line(f"clawmark: the hook failed ({type(error).__name__}: {str(error)[:300]}).")
            )
    _print(answer)
    return 0


def _answer(args: Namespace) -> dict[str, object]:
    event = read_event(args.host, args.event, _read_input())
    options = HookOptions(
        session_key=args.session, tokens=args.tokens or 0, items=args.items or 0, bar=args.bar
    )
    return answer(event, lambda provider: open_memory(args, provider=provider, warn=False), options)


@contextmanager
def _printed_to_stderr() -> Iterator[None]:
    """Redirect what memory plugins print: a host reads standard output as one JSON object."""
    printing = sys.stdout
    printing.flush()
    output, errors = os.dup(1), os.open(os.devnull, os.O_WRONLY)
    with suppress(OSError):  # standard error may be closed
        os.dup2(2, errors)
    os.dup2(errors, 1)
    os.close(errors)
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        printing.flush()
        os.dup2(output, 1)
        os.close(output)


def _read_input() -> str:
    """Read the event from standard input, until its end or a timeout; nothing from a terminal."""
    if is_terminal(sys.stdin):
        return ""
    number, data = sys.stdin.fileno(), bytearray()
    while len(data) <= MAX_BYTES:
        # Windows cannot wait for pipes; there only the host's own timeout applies.
        if os.name == "posix" and not select.select([number], [], [], INPUT_SECONDS)[0]:
            break
        block = os.read(number, 1 << 16)
        if not block:
            break
        data += block
    if len(data) > MAX_BYTES:
        raise ClawmarkError(f"The host sent more than {MAX_BYTES >> 20} MiB.")
    return data.decode("utf-8", "replace")


def _print(answer: dict[str, object]) -> None:
    try:
        emit(answer)
        flush()
    except ClawmarkError as error:
        note(one_line(f"clawmark: {error.message}"))


def _ignore_usage_error(message: str) -> NoReturn:
    """Report a command line of another version without stopping the host."""
    note(
        one_line(
            f"clawmark: {message[:1].upper()}{message[1:]}. `clawmark hook --help` shows the usage."
        )
    )
    _print({})
    raise SystemExit(0)
