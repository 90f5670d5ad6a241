"""Decide which files of a workspace are published into which space, and which are withdrawn.

A file is published only if a pattern of the space matches it. MEMORY.md has to be named itself: a
pattern such as `**` does not include it. Copies of what others have published are never published.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from fnmatch import fnmatchcase
from typing import NamedTuple

from clawmark.backends.team.files.local_paths import local_path
from clawmark.model.errors import PathDenied
from clawmark.model.values import FileState, is_in_workspace
from clawmark.text.globs import path_matcher
from clawmark.text.space_paths import FOLDER, LONGEST_PATH, published_path

NAMED_ONLY = ("MEMORY.md", "memory.md")
"""Files that are published only if a pattern is exactly their name."""


class PublishPlan(NamedTuple):
    """What has to be done for a space to hold what the rules say."""

    space: str
    publish: tuple[str, ...]
    """Files that are new there or have changed, by path."""
    withdraw: tuple[str, ...]
    """Files that are there and should not be."""
    unchanged: int


def rules_of(
    spaces: Iterable[str], publish: Mapping[str, tuple[str, ...]]
) -> dict[str, tuple[str, ...]]:
    """Return the patterns of each space: as configured, or its own folder below `memory/`."""
    return {space: publish.get(space, (f"memory/{space}/**",)) for space in spaces}


def published_files(files: Iterable[FileState], patterns: Collection[str]) -> tuple[FileState, ...]:
    """Return the files of a scan that these patterns publish."""
    matchers = [_matcher(pattern) for pattern in patterns]
    return tuple(
        state
        for state in files
        if _may_be_published(state, patterns) and any(matches(state.path) for matches in matchers)
    )


def plan_publish(
    space: str,
    wanted: Mapping[str, str],
    published: Mapping[str, str],
    kept: Callable[[str], bool] = lambda _: False,
) -> PublishPlan:
    """Compare the hashes of the files to publish with those that the space has.

    `kept` says of a published path that its file could not be looked at: it stays as it is."""
    return PublishPlan(
        space=space,
        publish=tuple(
            sorted(path for path, digest in wanted.items() if published.get(path) != digest)
        ),
        withdraw=tuple(sorted(path for path in published if path not in wanted and not kept(path))),
        unchanged=sum(published.get(path) == digest for path, digest in wanted.items()),
    )


def _may_be_published(state: FileState, patterns: Collection[str]) -> bool:
    path = state.path
    if state.source != "memory" or not is_in_workspace(path) or path.startswith(f"{FOLDER}/"):
        return False
    if path in NAMED_ONLY and path not in patterns:
        return False
    try:
        local_path(published_path("space", "author", path).cited)
    except PathDenied:  # a name that other systems cannot have, or not Markdown
        return False
    return path.isprintable() and len(path) <= LONGEST_PATH


def _matcher(pattern: str) -> Callable[[str], bool]:
    """Return a matcher for paths; a pattern without a folder means files at the top only."""
    if "/" in pattern:
        return path_matcher(pattern)
    return lambda path: "/" not in path and fnmatchcase(path, pattern)
