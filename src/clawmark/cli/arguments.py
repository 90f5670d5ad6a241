"""Words on the command line in; checked values out.

Strict: what is not exactly a number in range is a usage error.
"""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Callable, Iterable
from types import ModuleType
from typing import NoReturn

from clawmark.model.errors import ClawmarkError

# argparse looks for translations of its words, which loads `locale` and walks folders; ours have
# none.
argparse._ = str  # type: ignore[attr-defined]

WITH_VALUE = ("--workspace", "--agent", "--config", "--state-dir")


class UsageError(ClawmarkError):
    """The command line cannot be understood."""

    exit_code = 2


class Parser(argparse.ArgumentParser):
    """An argument parser that raises instead of printing and leaving."""

    def error(self, message: str) -> NoReturn:
        hint = f"`{self.prog} --help` shows how it is used."
        if message.startswith("unrecognized arguments: "):
            hint = self._suggestion(message.split()) or hint
        raise UsageError(f"{message[:1].upper()}{message[1:]}.", hint=hint)

    def _suggestion(self, words: list[str]) -> str:
        """Which flag an unknown one may stand for; empty when none is close."""
        typed = next((word[2:].partition("=")[0] for word in words if word.startswith("--")), "")
        known = [flag[2:] for flag in self._option_string_actions if flag.startswith("--")]
        meant = next((flag for flag in known if typed and flag.startswith(typed)), "") or closest(
            typed, known
        )
        return f"Did you mean --{meant}?" if meant else ""


def closest(typed: str, known: Iterable[str]) -> str:
    """The known word that a mistyped one stands for; empty when no spelling is close.

    A typing error seldom changes the first letter, and words that differ there (`uninstall`) mean
    something else."""
    import difflib

    near = difflib.get_close_matches(
        typed, [word for word in known if word[:1] == typed[:1]], n=1, cutoff=0.75
    )
    return near[0] if near else ""


def leading_flags(argv: list[str]) -> list[str]:
    """The flags before the verb: `--config x` counts the same before and after it."""
    end = 0
    while end < len(argv):
        if argv[end] in WITH_VALUE:
            end += 2
        elif argv[end] == "--json" or argv[end].startswith(
            tuple(f"{flag}=" for flag in WITH_VALUE)
        ):
            end += 1
        else:
            break
    return argv[:end]


def make_parser(verb: str, summary: str, module: ModuleType) -> Parser:
    """The parser of one verb, with the flags every verb takes."""
    parser = Parser(
        prog=f"clawmark {verb}",
        description=f"{summary}.",
        epilog=getattr(module, "EXAMPLES", ""),
        formatter_class=_formatter,
        allow_abbrev=False,
        argument_default=None,
    )
    module.add_arguments(parser)
    common = parser.add_argument_group("everywhere")
    common.add_argument("--workspace", metavar="DIR", help="the folder with the memory files")
    common.add_argument(
        "--agent", metavar="ID", help="the agent whose memory it is (default: main)"
    )
    common.add_argument(
        "--config",
        metavar="FILE",
        help="the configuration file (default: clawmark.json in the state folder)",
    )
    common.add_argument(
        "--state-dir",
        metavar="DIR",
        help="where the index and our own state are (default: ~/.clawmark)",
    )
    common.add_argument(
        "--json", action="store_true", help="print one JSON document and nothing else"
    )
    return parser


def count(low: int, high: int) -> Callable[[str], int]:
    """A whole number in a range, in plain digits: not 1.5, 1e9, ١٢ or a blank."""

    def parse(text: str) -> int:
        if not re.fullmatch("[0-9]{1,12}", text) or not low <= int(text) <= high:
            raise argparse.ArgumentTypeError(
                f"must be a whole number from {low} to {high}, not {text[:40]!a}"
            )
        return int(text)

    return parse


def share(text: str) -> float:
    """A number from 0 to 1; `nan` and `inf` are none."""
    if (
        not re.fullmatch(r"[0-9]{1,3}(\.[0-9]{0,12})?|\.[0-9]{1,12}", text)
        or not 0 <= float(text) <= 1
    ):
        raise argparse.ArgumentTypeError(f"must be a number from 0 to 1, not {text[:40]!a}")
    return float(text)


def some_text(text: str) -> str:
    """A text that is not empty and could be a path."""
    if not text or "\0" in text:
        raise argparse.ArgumentTypeError("must not be empty")
    return text


def _formatter(prog: str) -> argparse.HelpFormatter:
    # The width is given because argparse would import shutil to ask for it, 2 ms for every flag
    # that is added.
    try:
        width = int(os.environ.get("COLUMNS", "0")) or 100
    except ValueError:
        width = 100
    return argparse.RawDescriptionHelpFormatter(
        prog, max_help_position=30, width=max(50, min(width, 100)) - 2
    )
