"""Shared spaces in a real PostgreSQL, for tests."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing
from datetime import datetime

from clawmark.backends.team.direct import DirectSpaces
from clawmark.embed.base import Choice, Traits
from clawmark.store.postgres.servers import Server
from clawmark.store.postgres.team import admin
from clawmark.testing import HashingEmbedder
from clawmark.testing.team_spaces import MEMBERS


class FastEmbedder(HashingEmbedder):
    """A hashing embedder that is used while a document is stored, as the static model is."""

    @property
    def traits(self) -> Traits:
        return super().traits._replace(instant=True)


def make_spaces(uri: str, members: Mapping[str, Mapping[str, bool]] = MEMBERS) -> None:
    """Make spaces with members: whether each may write, by name and space."""
    with closing(Server(uri)) as server, server.direct() as connection:
        for space, names in members.items():
            admin.create_space(connection, space)
            for name, may_write in names.items():
                admin.grant(connection, space, name, may_write=may_write)


def open_direct(uri: str, name: str, clock: Callable[[], datetime] | None = None) -> DirectSpaces:
    """Open the spaces of a member, with a fast embedder."""
    return DirectSpaces(Server(uri), name, Choice((FastEmbedder(),), "test", None), clock=clock)
