"""The entries of a space's log. They are only ever added; the database refuses to change one."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime
from typing import Any, NamedTuple

from clawmark.store.postgres.servers import Connection
from clawmark.store.postgres.snapshot import PostgresSnapshot


class EntryRow(NamedTuple):
    """An entry, and its lines in the log of its day."""

    version: int
    day: date
    """In UTC, as all times of a log."""
    at: datetime
    author: str
    text: str
    start_line: int
    end_line: int


_COLUMNS = "version, day, at, author, text, start_line, end_line"


def find(connection: Connection, scope: int, caller: int, key: str) -> EntryRow | None:
    """Return the entry that a call with this key has stored."""
    row = connection.execute(
        f"SELECT {_COLUMNS} FROM clawmark.entries WHERE scope = %s AND caller = %s AND key = %s",
        (scope, caller, key),
    ).fetchone()
    return None if row is None else _made(row)


def of_day(connection: Connection, scope: int, day: date, from_line: int = 1) -> list[EntryRow]:
    """Return the entries of a day in order, or those that end at a line or after it."""
    rows = connection.execute(
        f"SELECT {_COLUMNS} FROM clawmark.entries WHERE scope = %(scope)s AND day = %(day)s "
        "AND start_line >= coalesce((SELECT max(start_line) FROM clawmark.entries "
        "WHERE scope = %(scope)s AND day = %(day)s AND start_line <= %(line)s), 0) "
        "ORDER BY start_line",
        {"scope": scope, "day": day, "line": from_line},
    ).fetchall()
    return [_made(row) for row in rows]


def authors_of(
    connection: Connection, scope: int, day: date, first_line: int, last_line: int
) -> list[str]:
    """Return who wrote some lines of a log, by name."""
    rows = connection.execute(
        "SELECT DISTINCT author FROM clawmark.entries WHERE scope = %s AND day = %s "
        "AND start_line <= %s AND end_line >= %s ORDER BY author",
        (scope, day, last_line, first_line),
    ).fetchall()
    return [str(row[0]) for row in rows]


def last_line(connection: Connection, scope: int, day: date) -> int:
    """Return the last line of a log; 0 if the day has no entries."""
    row = connection.execute(
        "SELECT end_line FROM clawmark.entries WHERE scope = %s AND day = %s "
        "ORDER BY start_line DESC LIMIT 1",
        (scope, day),
    ).fetchone()
    return 0 if row is None else int(row[0])


def last_passage(snapshot: PostgresSnapshot, path: str, cut_with: str) -> int:
    """Return the first line of the last passage of a log; 0 if it has to be cut from the start."""
    found = snapshot.rows(
        "SELECT max(c.start_line) FROM clawmark.files f "
        "JOIN clawmark.chunks c ON c.scope = f.scope AND c.file = f.key "
        "WHERE f.scope = %s AND f.path = %s AND f.edition = %s AND f.progress = %s "
        "AND f.staged_at IS NULL",
        path,
        snapshot.generation,
        cut_with,
    )
    return int(found[0][0] or 0)


def next_time(connection: Connection, scope: int, now: datetime | None) -> datetime:
    """Return when the next entry is added: now, but not before the last entry.

    Without `now` it is the time of the database, which is the same for all members."""
    row = connection.execute(
        "SELECT clock_timestamp(), (SELECT at FROM clawmark.entries WHERE scope = %s "
        "ORDER BY version DESC LIMIT 1)",
        (scope,),
    ).fetchone()
    assert row is not None
    current = (now or row[0]).astimezone(UTC)
    return current if row[1] is None else max(current, row[1].astimezone(UTC))


def add(connection: Connection, scope: int, caller: int, key: str, row: EntryRow) -> None:
    """Store an entry."""
    connection.execute(
        f"INSERT INTO clawmark.entries ({_COLUMNS}, scope, caller, key) "
        "VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s)",
        (
            row.version,
            row.day,
            row.at,
            row.author,
            row.text.encode(),
            row.start_line,
            row.end_line,
            scope,
            caller,
            key,
        ),
    )


def count(connection: Connection, scope: int) -> int:
    """Count the entries of a space."""
    row = connection.execute(
        "SELECT count(*) FROM clawmark.entries WHERE scope = %s", (scope,)
    ).fetchone()
    return 0 if row is None else int(row[0])


def _made(row: Sequence[Any]) -> EntryRow:
    version, day, at, author, text, start_line, end_line = row
    return EntryRow(
        version=version,
        day=day,
        at=at.astimezone(UTC),
        author=author,
        text=bytes(text).decode("utf-8", "replace"),
        start_line=start_line,
        end_line=end_line,
    )
