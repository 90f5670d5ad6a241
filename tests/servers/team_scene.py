"""Shared spaces in a real PostgreSQL, for tests."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing
from datetime import datetime

from clawmark.backends.team import indexing
from clawmark.backends.team.base import SharedDocument
from clawmark.backends.team.direct import DirectSpaces
from clawmark.backends.team.log_chunks import RenderedEntry
from clawmark.embed.base import Choice, Traits
from clawmark.model.documents import Chunk
from clawmark.store.postgres.servers import Server
from clawmark.store.postgres.team import admin
from clawmark.testing import HashingEmbedder
from clawmark.testing.team_spaces import MEMBERS
from clawmark.text.space_paths import parse_space_path


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


def passages_of(document: SharedDocument) -> list[Chunk]:
    """Return what the index should hold of a document."""
    place = parse_space_path(document.path)
    assert place is not None
    if not place.is_log:
        return indexing.prepare(place, document.text or "", 0).chunks
    entries: list[RenderedEntry] = []
    for number, line in enumerate((document.text or "").splitlines(keepends=True), 1):
        if line.startswith("- "):
            entries.append(RenderedEntry(number, line))
        elif entries:
            entries[-1] = entries[-1]._replace(text=entries[-1].text + line)
    return indexing.prepare_log(place, entries, 0, 0).chunks
