"""The spaces that the declared caller may see, as its own transaction reads them."""

from __future__ import annotations

from typing import NamedTuple

from clawmark.store.postgres.servers import Connection


class Member(NamedTuple):
    """A caller's membership of one space."""

    scope: int
    space: str
    author: str
    """The name under which the caller writes."""
    may_write: bool


def memberships(connection: Connection) -> dict[str, Member]:
    """Return the memberships of the declared caller by space, in order of their names."""
    rows = connection.execute("SELECT scope, name, author, may_write FROM clawmark.my_spaces()")
    found = [Member._make(row) for row in rows.fetchall()]
    return {member.space: member for member in found}


def version_of(connection: Connection, scope: int) -> int:
    """Return the version of a space: it grows with every change."""
    row = connection.execute(
        "SELECT version FROM clawmark.indexes WHERE scope = %s", (scope,)
    ).fetchone()
    return 0 if row is None else int(row[0])


def next_version(connection: Connection, scope: int) -> int:
    """Return the version of a change; the caller holds the lock of the index."""
    row = connection.execute(
        "UPDATE clawmark.indexes SET version = version + 1 WHERE scope = %s RETURNING version",
        (scope,),
    ).fetchone()
    assert row is not None
    return int(row[0])
