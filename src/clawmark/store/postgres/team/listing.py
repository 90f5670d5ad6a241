"""What a space holds, without the texts: its documents, the days of its log, its newest entries."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import NamedTuple

from clawmark.model.values import citation
from clawmark.store.postgres.servers import Connection
from clawmark.text.space_paths import FOLDER


class LogEntry(NamedTuple):
    """An entry of a log."""

    space: str
    author: str
    day: str
    time: str
    """`14:05`, in UTC."""
    text: str
    start_line: int
    end_line: int

    @property
    def path(self) -> str:
        return f"{FOLDER}/{self.space}/{self.day}.md"

    @property
    def citation(self) -> str:
        return citation(self.path, self.start_line, self.end_line)


class LogDay(NamedTuple):
    """The log of a day."""

    path: str
    day: str
    entries: int
    authors: tuple[str, ...]


class ListedDocument(NamedTuple):
    """A published document."""

    path: str
    author: str
    name: str
    """Its path in the workspace of its author."""
    changed: str
    """`2026-11-18 14:05`, in UTC."""


class Listing(NamedTuple):
    """What a space holds: logs, newest first, and documents by author and path."""

    days: tuple[LogDay, ...]
    documents: tuple[ListedDocument, ...]


def newest_entries(
    connection: Connection, spaces: Mapping[int, str], most: int
) -> tuple[LogEntry, ...]:
    """Return the newest entries of some spaces, given by scope and name; the newest first."""
    rows = connection.execute(
        "SELECT scope, author, at, text, start_line, end_line FROM clawmark.entries "
        "WHERE scope = ANY (%s) ORDER BY at DESC, version DESC LIMIT %s",
        (list(spaces), most),
    ).fetchall()
    return tuple(
        LogEntry(
            space=spaces[scope],
            author=author,
            day=f"{_utc(at):%Y-%m-%d}",
            time=f"{_utc(at):%H:%M}",
            text=bytes(text).decode("utf-8", "replace"),
            start_line=start,
            end_line=end,
        )
        for scope, author, at, text, start, end in rows
    )


def listing(connection: Connection, scope: int, space: str, most: int) -> Listing:
    """List a space; `most` limits both parts."""
    days = connection.execute(
        "SELECT to_char(day, 'YYYY-MM-DD'), count(*), array_agg(DISTINCT author ORDER BY author) "
        "FROM clawmark.entries WHERE scope = %s GROUP BY day ORDER BY day DESC LIMIT %s",
        (scope, most),
    ).fetchall()
    documents = connection.execute(
        "SELECT path, author, changed FROM clawmark.documents "
        "WHERE scope = %s AND text IS NOT NULL ORDER BY author, path LIMIT %s",
        (scope, most),
    ).fetchall()
    return Listing(
        days=tuple(
            LogDay(
                path=f"{FOLDER}/{space}/{day}.md",
                day=day,
                entries=int(count),
                authors=tuple(authors),
            )
            for day, count, authors in days
        ),
        documents=tuple(
            ListedDocument(
                path=f"{FOLDER}/{space}/{path}",
                author=author,
                name=path.removeprefix(f"{author}/"),
                changed=f"{_utc(changed):%Y-%m-%d %H:%M}",
            )
            for path, author, changed in documents
        ),
    )


def _utc(moment: datetime) -> datetime:
    return moment.astimezone(UTC)
