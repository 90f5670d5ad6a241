"""The names of spaces and authors, and the paths under which documents of a space are cited.

spaces/team/2026-11-18.md                    the log of a day, owned by the space
spaces/team/ada/memory/team/plan.md          a file that ada has published"""

from __future__ import annotations

import re
from typing import NamedTuple

from clawmark.model.errors import SpaceInputError

FOLDER = "spaces"
"""The first part of every cited path of a space, and the folder that `clawmark pull` fills."""
LONGEST_PATH = 512
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}")
_LOG = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}\.md")
_NAME_HINT = (
    "Use 1 to 63 lower-case letters, digits, dots, dashes and underscores; the first is a letter "
    "or a digit."
)


class SpacePath(NamedTuple):
    """A cited path of a space in its parts."""

    space: str
    path: str
    """Within the space: `2026-11-18.md` or `ada/memory/team/plan.md`."""

    @property
    def is_log(self) -> bool:
        return bool(_LOG.fullmatch(self.path))

    @property
    def author(self) -> str:
        """Who has published it; empty for a log."""
        author, slash, _ = self.path.partition("/")
        return author if slash else ""

    @property
    def cited(self) -> str:
        return f"{FOLDER}/{self.space}/{self.path}"


def is_name(text: str) -> bool:
    """Return whether a text can be the name of a space or an author."""
    return bool(_NAME.fullmatch(text))


def check_space_name(name: str) -> str:
    """Return the name of a space; raise SpaceInputError for one that cannot be used."""
    if not is_name(name):
        raise SpaceInputError(
            f"{name[:80]!a} cannot be the name of a space.", argument="space", hint=_NAME_HINT
        )
    return name


def check_author(name: str) -> str:
    """Return the name of an author; raise SpaceInputError for one that cannot be used."""
    if not is_name(name) or name.endswith(".md"):
        raise SpaceInputError(
            f"{name[:80]!a} cannot be the name of an author.",
            argument="author",
            hint=f"{_NAME_HINT} It does not end with .md.",
        )
    return name


def check_published_path(path: str) -> str:
    """Return the path of a published file; raise SpaceInputError for one that cannot be stored."""
    parts = path.split("/")
    if not path.isprintable() or "\\" in path or any(part in ("", ".", "..") for part in parts):
        raise _bad_path(path, "is not a path below the workspace")
    if not path.lower().endswith(".md"):
        raise _bad_path(path, "is not a Markdown file")
    if len(path) > LONGEST_PATH:
        raise _bad_path(path, f"has more than {LONGEST_PATH} characters")
    return path


def _bad_path(path: str, why: str) -> SpaceInputError:
    return SpaceInputError(
        f"{path[:80]!a} {why}, so it cannot be published.",
        argument="path",
        hint="Publish Markdown files by their path in the workspace, such as memory/team/plan.md.",
    )


def parse_space_path(path: str) -> SpacePath | None:
    """Return the parts of a cited path; None if it is not one of a space."""
    folder, _, rest = path.removeprefix("./").partition("/")
    space, slash, inner = rest.partition("/")
    if folder != FOLDER or not slash or not inner:
        return None
    return SpacePath(space, inner)


def log_path(space: str, day: str) -> SpacePath:
    """Return the path of the log of a day."""
    return SpacePath(space, f"{day}.md")


def published_path(space: str, author: str, path: str) -> SpacePath:
    """Return the path of a published file."""
    return SpacePath(space, f"{author}/{path}")
