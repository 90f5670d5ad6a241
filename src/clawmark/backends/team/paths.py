"""Cited paths of shared spaces: `spaces/team/2026-11-18.md`, `spaces/team/ada/memory/plan.md`."""

from __future__ import annotations

import re
from typing import NamedTuple

from clawmark.backends.team.base import FOLDER
from clawmark.model.errors import PathDenied

MOST_CHARS = 1000
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}")
_LOG = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}\.md")
_FORBIDDEN = re.compile(r'[\x00-\x1f\x7f\\<>:"|?*\ud800-\udfff]')


class SpacePath(NamedTuple):
    """A document of a space."""

    space: str
    author: str
    """Empty for a log."""
    path: str
    """The name of the log, or the path of the file in the author's workspace."""

    @property
    def cited(self) -> str:
        return "/".join(part for part in (FOLDER, *self) if part)


def is_space_name(name: str) -> bool:
    """Whether a text may be the name of a space or an author."""
    return _NAME.fullmatch(name) is not None


def is_space_path(path: str) -> bool:
    """Whether a path is meant to be one of a shared space."""
    return path.removeprefix("./").startswith(f"{FOLDER}/")


def parse_space_path(path: str) -> SpacePath:
    """Return the parts of a cited path; raises PathDenied for one that cannot exist.

    No accepted path can leave the folder of its space, be hidden, or be anything but Markdown, so
    it may be written as a file."""
    first, *parts = path.removeprefix("./").split("/")
    is_log = len(parts) == 2 and _LOG.fullmatch(parts[1]) is not None
    if (
        first != FOLDER
        or len(path) > MOST_CHARS
        or not (is_log or len(parts) > 2)
        or not all(is_space_name(name) for name in parts[: 1 if is_log else 2])
        or not all(_is_plain(part) for part in parts)
        or not parts[-1].endswith(".md")
    ):
        shown = ascii(path[:100])[1:-1]
        raise PathDenied(
            f"{shown} is not a document of a shared space.",
            path=path,
            rule="not-memory",
            hint="Such paths are spaces/SPACE/YYYY-MM-DD.md and spaces/SPACE/AUTHOR/FILE.md.",
        )
    if is_log:
        return SpacePath(parts[0], "", parts[1])
    return SpacePath(parts[0], parts[1], "/".join(parts[2:]))


def _is_plain(part: str) -> bool:
    """Whether a component names a visible file or folder on every system."""
    return (
        bool(part)
        and not part.startswith(".")
        and not part.endswith((".", " "))
        and len(part.encode("utf-8", "surrogatepass")) <= 255
        and _FORBIDDEN.search(part) is None
    )
