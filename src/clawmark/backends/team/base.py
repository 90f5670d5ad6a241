"""The protocol of a team's memory: the shared spaces that one caller may see.

A space is a set of Markdown documents with readers and writers. Its members publish files of their
workspaces into it, and append entries to its log, which has one file for each day. There are two
implementations: `direct` works in PostgreSQL, `remote` asks a Clawmark server.

Paths of a space are cited with its name:

    spaces/team/2026-11-18.md                    the log of a day, owned by the space
    spaces/team/ada/memory/team/plan.md          a file that ada has published

`clawmark.testing.team_spaces_contract` checks an implementation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from clawmark.model.documents import Excerpt
from clawmark.model.values import Found, Query


class SpaceInfo(NamedTuple):
    """A space as its members see it."""

    name: str
    may_write: bool
    documents: int
    entries: int


class Published(NamedTuple):
    """A file of the caller's workspace that is published into a space."""

    path: str
    """Relative to the workspace, with forward slashes."""
    text: str
    hash: str
    """The SHA-256 of the file's bytes."""


class SharedDocument(NamedTuple):
    """A document of a space; without text if it was withdrawn."""

    path: str
    """As cited: `spaces/team/…`."""
    author: str
    """Who published it; empty for a log, whose entries name their authors."""
    hash: str
    text: str | None
    changed: str
    """When, as ISO 8601 in UTC."""
    version: int
    """The version of the space with which it changed."""


class Changes(NamedTuple):
    """Documents of a space that changed after a version, in order of their versions."""

    documents: tuple[SharedDocument, ...]
    version: int
    """Ask again with this version for what follows."""
    is_complete: bool
    """Whether nothing more has changed for now."""


class Appended(NamedTuple):
    """An entry of a space's log; it is stored durably."""

    path: str
    start_line: int
    end_line: int
    author: str
    at: str
    """When, as ISO 8601 in UTC."""
    is_repeated: bool = False
    """Whether an earlier call with the same key has stored it."""


class TeamSpaces(Protocol):
    """The shared spaces that one caller may see; methods may be called from several threads.

    A space that does not exist and one that the caller may not see raise the same `SpaceDenied`. So
    does writing without permission, with its own message. `SpaceInputError` is raised for a path, a
    text or a key that cannot be stored, and `SpacesUnavailable` if the database or the server does
    not answer."""

    def spaces(self) -> tuple[SpaceInfo, ...]:
        """Return the spaces that the caller may read, by name."""

    def search(self, query: Query, names: Sequence[str] = ()) -> Found:
        """Search some spaces, or all that the caller may read; each hit has its space and author.

        The statistics of words are those of each space."""

    def read(
        self, path: str, start: int | None = None, lines: int | None = None, max_chars: int = 12_000
    ) -> Excerpt:
        """Return lines of a document by its cited path; an absent document is `missing`."""

    def append(self, space: str, text: str, *, key: str) -> Appended:
        """Append an entry to today's log of a space.

        `key` identifies the call: repeated with the same key and text, for example after a lost
        connection, it stores nothing twice and returns the first result."""

    def published(self, space: str) -> dict[str, str]:
        """Return the hashes of the files that the caller has published in a space, by path."""

    def publish(self, space: str, documents: Sequence[Published]) -> None:
        """Store or replace files of the caller, all of them or none."""

    def withdraw(self, space: str, paths: Sequence[str]) -> None:
        """Remove files of the caller from a space; absent ones are ignored."""

    def changes(self, space: str, since: int = 0, limit: int = 100) -> Changes:
        """Return what has changed in a space after a version."""

    def close(self) -> None:
        """Release every connection; closing twice is allowed."""
