"""Parse and check command line arguments; anything invalid raises `UsageError`."""

from __future__ import annotations

import argparse
import itertools
import os
import re
from collections.abc import Callable, Iterable, Sequence
from types import ModuleType
from typing import Any, NoReturn

from clawmark.model.errors import ClawmarkError

# argparse looks for translations, which loads `locale` and walks folders; we have none.
argparse._ = str  # type: ignore[attr-defined]

SHORT = {
    "--workspace": "-w",
    "--agent": "-a",
    "--config": "-c",
    "--json": "-j",
    "--quiet": "-q",
    "--verbose": "-v",
    "--force": "-f",
    "--files": "-l",
    "--session": "-s",
    "--time": "-t",
    "--count": "-n",
    "--max-results": "-n",
    "--patch": "-p",
    "--yes": "-y",
}
"""The short form of a flag: the same letter in every command, and `-n` for every number of results.
"""
WITH_VALUE = ("--workspace", "--agent", "--config", "--state-dir", "-w", "-a", "-c")
_JOINED = ("--workspace=", "--agent=", "--config=", "--state-dir=", "-w", "-a", "-c")


COMMON: dict[str, dict[str, Any]] = {
    "--workspace": {"metavar": "DIR", "help": "the folder of the memory files"},
    "--agent": {"metavar": "ID", "help": "the agent that owns the memory (default: main)"},
    "--config": {
        "metavar": "FILE",
        "help": "the configuration file (default: clawmark.json in the state folder)",
    },
    "--state-dir": {
        "metavar": "DIR",
        "help": "the folder of the index and other state (default: ~/.clawmark)",
    },
    "--json": {"action": "store_true", "help": "print a single JSON document"},
    "--quiet": {"action": "store_true", "help": "print the result and errors only, no hints"},
}
"""The flags of every command, as the arguments of `add_argument`."""


class UsageError(ClawmarkError):
    """Raised when the command line is invalid."""

    exit_code = 2


class Parser(argparse.ArgumentParser):
    """An argument parser that raises `UsageError` instead of exiting, and knows the short flags."""

    def add_argument(self, *names: str, **options: Any) -> argparse.Action:
        """Add an argument; a flag in `SHORT` gets its short form."""
        return super().add_argument(*with_short(names), **options)

    def error(self, message: str) -> NoReturn:
        hint = f"`{self.prog} --help` shows the usage."
        if message.startswith("unrecognized arguments: "):
            hint = self._suggestion(message.split()) or hint
        raise UsageError(f"{message[:1].upper()}{message[1:]}.", hint=hint)

    def _suggestion(self, words: list[str]) -> str:
        """Return a hint with the flag that an unknown one resembles, or an empty string."""
        typed = next((word[2:].partition("=")[0] for word in words if word.startswith("--")), "")
        known = [flag[2:] for flag in self._option_string_actions if flag.startswith("--")]
        meant = next((flag for flag in known if typed and flag.startswith(typed)), "") or closest(
            typed, known
        )
        return f"Did you mean --{meant}?" if meant else ""


def with_short(names: Sequence[str]) -> list[str]:
    """Return the names of a flag, the short form in `SHORT` first."""
    return [*(SHORT[name] for name in names if name in SHORT), *names]


def asks_for_json(argv: Sequence[str]) -> bool:
    """Whether a command line has `--json` or `-j`, also one that cannot be parsed."""
    flags = itertools.takewhile(lambda word: word != "--", argv)
    return any(word == "--json" or (_has_letters(word, "jqvf") and "j" in word) for word in flags)


def _has_letters(word: str, letters: str) -> bool:
    """Whether a word is short flags of these letters, such as `-qv`."""
    return len(word) > 1 and word[0] == "-" and not word[1:].strip(letters)


def closest(typed: str, known: Iterable[str]) -> str:
    """Return the known word closest to a mistyped one, or an empty string.

    Only words with the same first letter are considered: `reinstall` is not `install`."""
    import difflib  # Imported late: needed for error messages only.

    near = difflib.get_close_matches(
        typed, [word for word in known if word[:1] == typed[:1]], n=1, cutoff=0.75
    )
    return near[0] if near else ""


def leading_flags(argv: list[str]) -> list[str]:
    """Return the flags before the verb, such as `--config x`."""
    end = 0
    while end < len(argv):
        if argv[end] in WITH_VALUE:
            end += 2
        elif (
            argv[end] in ("--json", "--quiet")
            or _has_letters(argv[end], "jq")
            or argv[end].startswith(_JOINED)
        ):
            end += 1
        else:
            break
    return argv[:end]


def make_parser(verb: str, summary: str, module: ModuleType) -> Parser:
    """Return the parser of a verb, including the flags common to all verbs."""
    width = _help_width()
    parser = Parser(
        prog=f"clawmark {verb}",
        description=f"{summary}.",
        epilog=getattr(module, "EXAMPLES", ""),
        formatter_class=lambda prog: argparse.RawDescriptionHelpFormatter(
            prog, max_help_position=30, width=width
        ),
        allow_abbrev=False,
        argument_default=None,
    )
    module.add_arguments(parser)
    add_common(parser)
    return parser


def add_common(parser: Parser) -> None:
    """Add the flags of every command."""
    common = parser.add_argument_group("common options")
    for name, options in COMMON.items():
        common.add_argument(*with_short((name,)), **options)


def common_flags(args: argparse.Namespace) -> list[str]:
    """Return the common flags that were given, as words of a command line."""
    given = {
        "--workspace": args.workspace,
        "--agent": args.agent,
        "--config": args.config,
        "--state-dir": args.state_dir,
    }
    return [word for flag, value in given.items() if value is not None for word in (flag, value)]


def count(low: int, high: int) -> Callable[[str], int]:
    """Return a parser for whole numbers in ASCII digits from `low` to `high`."""

    def parse(text: str) -> int:
        if not re.fullmatch("[0-9]{1,12}", text) or not low <= int(text) <= high:
            raise argparse.ArgumentTypeError(
                f"must be a whole number from {low} to {high}, not {text[:40]!a}"
            )
        return int(text)

    return parse


def share(text: str) -> float:
    """Parse a number from 0 to 1."""
    if (
        not re.fullmatch(r"[0-9]{1,3}(\.[0-9]{0,12})?|\.[0-9]{1,12}", text)
        or not 0 <= float(text) <= 1
    ):
        raise argparse.ArgumentTypeError(f"must be a number from 0 to 1, not {text[:40]!a}")
    return float(text)


def some_text(text: str) -> str:
    """Accept text that is not empty and has no NUL."""
    if not text or "\0" in text:
        raise argparse.ArgumentTypeError("must not be empty")
    return text


def stored_text(text: str) -> str:
    """Accept text that a database can store: not empty, without NUL, and valid Unicode."""
    try:
        some_text(text).encode()
    except UnicodeEncodeError:
        raise argparse.ArgumentTypeError("must be valid UTF-8") from None
    return text


def _help_width() -> int:
    # Without a width, argparse would import shutil, which costs 2 ms.
    try:
        width = int(os.environ.get("COLUMNS", "0")) or os.get_terminal_size().columns
    except (OSError, ValueError):  # standard output is not a terminal
        width = 100
    return max(50, min(width, 100)) - 2
