"""`clawmark diff`: show how the memory files changed, as a unified diff."""

from __future__ import annotations

import re
from argparse import ArgumentParser, Namespace
from datetime import datetime, tzinfo
from typing import NamedTuple

from clawmark.cli.arguments import UsageError, some_text
from clawmark.cli.open_memory import open_memory
from clawmark.cli.output import emit, note, place, say_diff
from clawmark.engine.versions.workspace_history import WorkspaceHistory
from clawmark.history.repository import Version
from clawmark.model.errors import FileMissing

INTERMIXED = True
"""Flags may stand between the words."""
MOST_WORDS = 3
_PATH = re.compile(r"MEMORY\.md|memory\.md|(\./)?memory(/.*)?|.*\.md", re.IGNORECASE)

EXAMPLES = """\
examples:
  clawmark diff                            # the last change
  clawmark diff MEMORY.md                  # the last change of this file
  clawmark diff MEMORY.md yesterday        # from yesterday's version until now
  clawmark diff 3f2a91c0 8b07d114          # between two versions

A version is the beginning of its id, as `clawmark history` shows it, or a day
or time: 2026-11-01, "2026-11-01 14:30", 7d, 2w, yesterday. Of a day, it is the
last version."""


class Words(NamedTuple):
    """What the words of the command line name; empty if they do not."""

    path: str
    old: str
    new: str


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "words",
        nargs="*",
        type=some_text,
        metavar="[PATH] [VERSION [VERSION]]",
        help="a file or folder, and the versions to compare (default: the last change)",
    )


def run(args: Namespace) -> int:
    words = parse_words(args.words)
    with open_memory(args) as memory:
        history = memory.history
        start, end = _versions(history, words)
        if end is None:
            raise FileMissing(
                f"The history has no version{f' of {place(words.path)}' if words.path else ''}.",
                hint="`clawmark history` lists the versions.",
            )
        diff = history.diff_between(start, end, words.path)
        zone = memory.now().tzinfo
    if args.json:
        emit({"from": start.id if start else None, "to": end.id, "diff": diff})
        return 0
    since = f"{_name(start, zone)} → " if start else ""
    note(f"clawmark: {since}{_name(end, zone)}{'' if diff else ': no difference'}")
    say_diff(diff)
    return 0


def parse_words(words: list[str]) -> Words:
    """Return the path and the versions; the first word is a path if it reads like one."""
    if len(words) > MOST_WORDS:
        raise UsageError("Name at most one path and two versions.")
    is_path = bool(words) and _PATH.fullmatch(words[0]) is not None
    path = words[0].removeprefix("./").rstrip("/") if is_path else ""
    old, new, *more = [*words[is_path:], "", ""]
    if any(more):
        raise UsageError(f"{words[0]!r} is not a memory file, and there are two versions already.")
    return Words(path, old, new)


def _versions(history: WorkspaceHistory, words: Words) -> tuple[Version | None, Version | None]:
    if not words.old:
        return history.last_change(words.path) or (None, None)
    newest = history.newest()
    return history.find(words.old), history.find(words.new) if words.new else newest


def _name(version: Version, zone: tzinfo | None) -> str:
    when = datetime.fromtimestamp(version.seconds, zone)
    return f"{version.id[:8]} ({when:%Y-%m-%d %H:%M})"
