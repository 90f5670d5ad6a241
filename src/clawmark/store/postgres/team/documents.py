"""The documents of a space: files that its members have published, by author and path."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

from clawmark.store.postgres.servers import Connection


class DocumentRow(NamedTuple):
    """A document as it is stored; without text if it was withdrawn."""

    path: str
    """With the author: `ada/memory/team/plan.md`."""
    author: str
    hash: str
    text: str | None
    changed: datetime
    version: int


class Stored(NamedTuple):
    """What is known of a stored document without its text."""

    hash: str
    digest: bytes
    """The SHA-256 of the text."""


_COLUMNS = "path, author, hash, text, changed, version"


def stored(connection: Connection, scope: int, author: str) -> dict[str, Stored]:
    """Return the documents of an author that have a text, by path."""
    rows = connection.execute(
        "SELECT path, hash, sha256(text) FROM clawmark.documents "
        "WHERE scope = %s AND author = %s AND text IS NOT NULL ORDER BY path",
        (scope, author),
    ).fetchall()
    return {path: Stored(text_hash, bytes(digest)) for path, text_hash, digest in rows}


def find(connection: Connection, scope: int, path: str) -> DocumentRow | None:
    """Return a document by its path, also a withdrawn one."""
    row = connection.execute(
        f"SELECT {_COLUMNS} FROM clawmark.documents WHERE scope = %s AND path = %s", (scope, path)
    ).fetchone()
    return None if row is None else _made(row)


def of_paths(connection: Connection, scope: int, paths: Sequence[str]) -> dict[str, DocumentRow]:
    """Return some documents by path."""
    rows = connection.execute(
        f"SELECT {_COLUMNS} FROM clawmark.documents WHERE scope = %s AND path = ANY (%s)",
        (scope, list(paths)),
    ).fetchall()
    return {row[0]: _made(row) for row in rows}


def put(connection: Connection, scope: int, caller: int, row: DocumentRow) -> None:
    """Store or replace a document, or store that it was withdrawn."""
    text = None if row.text is None else row.text.encode()
    connection.execute(
        "INSERT INTO clawmark.documents "
        "(scope, path, author, caller, hash, text, changed, version) "
        "VALUES (%s, %s, %s, %s, %s, %s, %s, %s) ON CONFLICT (scope, path) DO UPDATE "
        "SET hash = excluded.hash, text = excluded.text, changed = excluded.changed, "
        "version = excluded.version",
        (scope, row.path, row.author, caller, row.hash, text, row.changed, row.version),
    )


def count(connection: Connection, scope: int) -> int:
    """Count the documents that have a text."""
    row = connection.execute(
        "SELECT count(*) FROM clawmark.documents WHERE scope = %s AND text IS NOT NULL", (scope,)
    ).fetchone()
    return 0 if row is None else int(row[0])


def changed_after(
    connection: Connection, scope: int, version: int, limit: int
) -> list[tuple[str, int]]:
    """Return paths and versions of what has changed after a version, in order of versions.

    The log of a day is the path of a file without a folder, such as `2026-11-18.md`."""
    rows = connection.execute(
        "SELECT path, version FROM clawmark.documents WHERE scope = %(scope)s "
        "AND version > %(version)s UNION ALL "
        "SELECT to_char(day, 'YYYY-MM-DD') || '.md', max(version) FROM clawmark.entries "
        "WHERE scope = %(scope)s AND version > %(version)s GROUP BY day "
        "ORDER BY 2 LIMIT %(limit)s",
        {"scope": scope, "version": version, "limit": limit},
    ).fetchall()
    return [(path, int(number)) for path, number in rows]


def _made(row: Sequence[Any]) -> DocumentRow:
    path, author, text_hash, text, changed, version = row
    return DocumentRow(
        path=path,
        author=author,
        hash=text_hash,
        text=None if text is None else bytes(text).decode("utf-8", "replace"),
        changed=changed,
        version=version,
    )
