"""Look whether the user's own git repository has files of a workspace; nothing is changed there."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import NamedTuple

from dulwich.repo import Repo

from clawmark.history.repository import DAMAGE


class UserRepository(NamedTuple):
    """A repository around a workspace."""

    folder: str
    tracked: tuple[str, ...]
    """Which of the asked paths it tracks now; older commits may hold others."""


def find_repository(root: str, paths: Iterable[str]) -> UserRepository | None:
    """Return the repository that a folder is in, and which of its files are tracked."""
    folder = os.path.realpath(root)
    while not os.path.lexists(os.path.join(folder, ".git")):
        above = os.path.dirname(folder)
        if above == folder:
            return None
        folder = above
    prefix = os.path.relpath(os.path.realpath(root), folder)
    names = {path: os.path.normpath(os.path.join(prefix, path)) for path in paths}
    try:
        repo = Repo(folder)
        try:
            index = repo.open_index()
            known = {path for path, name in names.items() if os.fsencode(name) in index}
        finally:
            repo.close()
    except (*DAMAGE, OSError):
        known = set()
    return UserRepository(folder, tuple(sorted(known)))
