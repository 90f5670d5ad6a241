"""Match paths against patterns: `*` and `?` stay within a folder, `**` crosses folders.

A pattern without a slash is compared with the file's name in any folder; `notes/` means everything
below that folder. The name of an added source counts as a folder: `notes:` means everything in the
source `notes`. A pattern is matched folder by folder, so that many stars cannot take long."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from fnmatch import translate

from clawmark.model.values import added_source


def path_matcher(pattern: str) -> Callable[[str], bool]:
    """Return a case-sensitive matcher for paths with forward slashes."""
    pattern = pattern.removeprefix("./")
    source = added_source(pattern)
    ways = [_parts(pattern)]
    if source:  # or a file name with a colon
        ways.append(_parts(f"{source}:/{pattern[len(source) + 1 :]}"))

    def matches(path: str) -> bool:
        name = added_source(path)
        names = f"{name}:/{path[len(name) + 1 :]}".split("/") if name else path.split("/")
        return any(_matches(parts, names) for parts in ways)

    return matches


def _parts(pattern: str) -> list[Callable[[str], object] | None]:
    """Return a matcher for each part of a pattern; None stands for any number of names."""
    if pattern.endswith("/"):
        pattern += "**"
    elif "/" not in pattern:
        pattern = f"**/{pattern}"
    return [
        None if part == "**" else re.compile(translate(part)).match for part in pattern.split("/")
    ]


def _matches(parts: Sequence[Callable[[str], object] | None], names: Sequence[str]) -> bool:
    """Whether the parts match the names in order."""
    reached = {0}
    for part in parts:
        if part is None:
            reached = set(range(min(reached), len(names) + 1))
        else:
            reached = {at + 1 for at in reached if at < len(names) and part(names[at])}
        if not reached:
            return False
    return len(names) in reached
