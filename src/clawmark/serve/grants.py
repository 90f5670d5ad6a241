"""What a token permits, and the spaces of its caller limited to that."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from clawmark.backends.team.base import (
    FOLDER,
    Appended,
    Changes,
    Published,
    SpaceInfo,
    TeamSpaces,
)
from clawmark.model.documents import Excerpt
from clawmark.model.errors import SpaceDenied
from clawmark.model.values import Found, Query
from clawmark.serve.problems import RequestFailed, denied

PERMISSIONS = ("read", "append", "publish")
BEGINNING = "cmk_"
LENGTH = len(BEGINNING) + 43


class Grant(NamedTuple):
    """What a valid token permits."""

    token: int
    """The number of the token, for logs and limits."""
    caller: int
    name: str
    """The name of the caller."""
    permissions: frozenset[str]
    spaces: frozenset[str] | None
    """The spaces it is for; None for all spaces of the caller."""


class PoolUse(NamedTuple):
    """The connections to the database."""

    size: int = 0
    idle: int = 0
    waiting: int = 0


class Team(Protocol):
    """The memory that a server serves; `DatabaseTeam` has it in PostgreSQL."""

    def grant(self, token: str) -> Grant | None:
        """Return what a token permits now; None if it is unknown, expired or revoked."""

    def spaces(self, grant: Grant) -> TeamSpaces:
        """Return the spaces of a caller."""

    def check(self) -> None:
        """Raise an error if the database does not answer, or does not have the tables."""

    def pool(self) -> PoolUse:
        """Return how many connections there are."""

    def close(self) -> None:
        """Release every connection."""


def is_token(text: str) -> bool:
    """Whether a text looks like a token, so that the database is asked about it."""
    rest = text.removeprefix(BEGINNING)
    return (
        len(text) == LENGTH
        and text.isascii()
        and text.startswith(BEGINNING)
        and rest.replace("-", "").replace("_", "").isalnum()
    )


class GrantedSpaces:
    """The spaces of a caller, limited to the permissions and the spaces of a token.

    A space that the token is not for is answered like one that does not exist."""

    def __init__(self, inner: TeamSpaces, grant: Grant) -> None:
        self._inner = inner
        self._grant = grant

    def spaces(self) -> tuple[SpaceInfo, ...]:
        self._require("read")
        may_write = not self._grant.permissions.isdisjoint(("append", "publish"))
        return tuple(
            one._replace(may_write=one.may_write and may_write)
            for one in self._inner.spaces()
            if self._is_for(one.name)
        )

    def search(self, query: Query, names: Sequence[str] = ()) -> Found:
        self._require("read")
        for name in names:
            self._check(name)
        if self._grant.spaces is not None and not names:
            known = {one.name for one in self._inner.spaces()}
            names = sorted(known & self._grant.spaces)
            if not names:
                raise SpaceDenied("The token is not for any of the spaces.", space="")
        return self._inner.search(query, names)

    def read(
        self, path: str, start: int | None = None, lines: int | None = None, max_chars: int = 12_000
    ) -> Excerpt:
        self._require("read")
        first, _, rest = path.partition("/")
        if first == FOLDER:
            self._check(rest.partition("/")[0])
        return self._inner.read(path, start, lines, max_chars)

    def append(self, space: str, text: str, *, key: str) -> Appended:
        self._require("append")
        self._check(space)
        return self._inner.append(space, text, key=key)

    def published(self, space: str) -> dict[str, str]:
        self._require("publish")
        self._check(space)
        return self._inner.published(space)

    def publish(self, space: str, documents: Sequence[Published]) -> None:
        self._require("publish")
        self._check(space)
        self._inner.publish(space, documents)

    def withdraw(self, space: str, paths: Sequence[str]) -> None:
        self._require("publish")
        self._check(space)
        self._inner.withdraw(space, paths)

    def changes(self, space: str, since: int = 0, limit: int = 100) -> Changes:
        self._require("read")
        self._check(space)
        return self._inner.changes(space, since, limit)

    def close(self) -> None:
        """Do nothing: the connections belong to the server."""

    def _require(self, permission: str) -> None:
        if permission not in self._grant.permissions:
            raise RequestFailed(denied(permission))

    def _is_for(self, space: str) -> bool:
        return self._grant.spaces is None or space in self._grant.spaces

    def _check(self, space: str) -> None:
        if not self._is_for(space):
            # The inner spaces deny a name that cannot exist with the words for any unknown space.
            raise absent(space)


def absent(space: str) -> SpaceDenied:
    """Return the error for a space that does not exist or that the caller may not see."""
    return SpaceDenied(
        f"There is no space {space[:64]!a} that you may see.",
        space=space,
        hint="`clawmark space list` shows yours.",
    )
