"""What the owner of the database does with spaces: make, list, grant, revoke and delete.

Every function takes a connection of the owner of the tables, in autocommit mode."""

from __future__ import annotations

from typing import NamedTuple

from psycopg import errors

from clawmark.model.errors import SpaceDenied, SpaceInputError
from clawmark.store.postgres.servers import Connection, Server
from clawmark.store.postgres.team import documents
from clawmark.store.postgres.team.members import next_version
from clawmark.store.postgres.team.space_store import OwnedSpaceStore
from clawmark.store.postgres.vector_indexes import owns_tables
from clawmark.text.space_paths import SpacePath, check_author, check_space_name

LOCK_SECONDS = 60.0
"""How long a change of the owner waits for the writers of a space."""


class MemberInfo(NamedTuple):
    """A member of a space, as the owner sees it."""

    login: str
    name: str
    author: str
    may_write: bool


class SpaceSummary(NamedTuple):
    """A space, as the owner sees it."""

    name: str
    documents: int
    entries: int
    members: tuple[MemberInfo, ...]


class Granted(NamedTuple):
    """A membership after `grant`."""

    space: str
    member: MemberInfo
    is_new: bool


def check_owner(connection: Connection) -> None:
    """Raise SpaceDenied unless the login owns the tables."""
    if not owns_tables(connection):
        raise SpaceDenied(
            "This login does not own the tables, so it cannot manage spaces and tokens.",
            space="",
            hint="Use the address of the login that has run `clawmark db init`.",
        )


def create_space(connection: Connection, name: str) -> None:
    """Make a space without members."""
    check_space_name(name)
    try:
        with connection.transaction():
            row = connection.execute(
                "INSERT INTO clawmark.scopes (kind, name) VALUES ('space', %s) RETURNING id",
                (name,),
            ).fetchone()
            assert row is not None
            connection.execute(
                "INSERT INTO clawmark.indexes (scope, index_id, version) VALUES "
                "(%s, floor(random() * 9e15)::bigint, "
                "floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint)",
                row,
            )
    except errors.UniqueViolation:
        raise SpaceInputError(
            f"The space {name} exists already.",
            argument="space",
            hint="`clawmark space list` shows its members.",
        ) from None


def list_spaces(connection: Connection) -> list[SpaceSummary]:
    """Return all spaces with their members, by name."""
    rows = connection.execute(
        "SELECT s.id, s.name, "
        "(SELECT count(*) FROM clawmark.documents d WHERE d.scope = s.id AND d.text IS NOT NULL), "
        "(SELECT count(*) FROM clawmark.entries e WHERE e.scope = s.id) "
        "FROM clawmark.scopes s WHERE s.kind = 'space' ORDER BY s.name COLLATE \"C\""
    ).fetchall()
    return [
        SpaceSummary(
            name=name,
            documents=files,
            entries=entries,
            members=tuple(_members(connection, scope)),
        )
        for scope, name, files, entries in rows
    ]


def grant(
    connection: Connection,
    space: str,
    name: str,
    *,
    login: str = "",
    author: str = "",
    may_write: bool = False,
) -> Granted:
    """Make a caller a member of a space, or change what it may do.

    Without `login` it is a caller of this login; without `author` it writes under its name."""
    scope = scope_of(connection, space)
    with connection.transaction():
        caller = _register(connection, name, login)
        known = connection.execute(
            "SELECT author FROM clawmark.members WHERE scope = %s AND caller = %s", (scope, caller)
        ).fetchone()
        author = author or (known[0] if known else check_author(name))
        _check_free(connection, scope, caller, check_author(author))
        if known and author != known[0] and documents.stored(connection, scope, known[0]):
            raise SpaceInputError(
                f"{name} has published files as {known[0]}.",
                argument="author",
                hint=f"Withdraw them first: `clawmark space revoke {space} {name} --withdraw`.",
            )
        connection.execute(
            "INSERT INTO clawmark.members (scope, caller, may_write, author) "
            "VALUES (%s, %s, %s, %s) ON CONFLICT (caller, scope) DO UPDATE "
            "SET may_write = excluded.may_write, author = excluded.author",
            (scope, caller, may_write, author),
        )
    found = next(one for one in _members(connection, scope) if one.author == author)
    return Granted(space, found, known is None)


def revoke(connection: Connection, space: str, name: str, *, login: str = "") -> str:
    """Remove a member from a space and return its author name; what it has written stays."""
    scope = scope_of(connection, space)
    gone = connection.execute(
        "DELETE FROM clawmark.members m USING clawmark.callers c WHERE m.scope = %s "
        "AND c.id = m.caller AND c.name = %s AND c.login = coalesce(%s, session_user::text) "
        "RETURNING m.author",
        (scope, name, login or None),
    ).fetchone()
    if gone is None:
        raise SpaceInputError(
            f"{name[:80]!a} is not a member of the space {space}.",
            argument="name",
            hint="`clawmark space list` shows the members and their logins; --login names one.",
        )
    return str(gone[0])


def withdraw_all(server: Server, connection: Connection, space: str, author: str) -> int:
    """Withdraw everything that an author has published in a space; return how many files."""
    scope = scope_of(connection, space)
    store = OwnedSpaceStore(server, space, scope)
    with store.transaction(timeout=LOCK_SECONDS) as index:
        paths = list(documents.stored(index.connection, scope, author))
        for path in paths:
            index.connection.execute(
                "UPDATE clawmark.documents SET hash = '', text = NULL, changed = now(), "
                "version = %s WHERE scope = %s AND path = %s",
                (next_version(index.connection, scope), scope, path),
            )
            index.delete_file(SpacePath(space, path).cited)
    return len(paths)


def delete_space(connection: Connection, space: str) -> None:
    """Delete a space with its documents, its log and its index."""
    scope = scope_of(connection, space)
    connection.execute("DELETE FROM clawmark.scopes WHERE id = %s", (scope,))


def scope_of(connection: Connection, space: str) -> int:
    """Return the number of a space; SpaceInputError if it does not exist."""
    row = connection.execute(
        "SELECT id FROM clawmark.scopes WHERE kind = 'space' AND name = %s",
        (check_space_name(space),),
    ).fetchone()
    if row is None:
        raise SpaceInputError(
            f"There is no space {space}.",
            argument="space",
            hint="`clawmark space list` shows the spaces; `clawmark space create` makes one.",
        )
    return int(row[0])


def find_caller(connection: Connection, name: str, login: str) -> int | None:
    """Return a caller by its name and its login, by default this one."""
    row = connection.execute(
        "SELECT id FROM clawmark.callers "
        "WHERE name = %s AND login = coalesce(%s, session_user::text)",
        (name, login or None),
    ).fetchone()
    return None if row is None else int(row[0])


def _register(connection: Connection, name: str, login: str) -> int:
    """Return a caller, which is made if necessary; its login must exist."""
    check_author(name)
    if (
        login
        and not connection.execute(
            "SELECT 1 FROM pg_catalog.pg_roles WHERE rolname = %s AND rolcanlogin", (login,)
        ).fetchone()
    ):
        raise SpaceInputError(
            f"The database has no login {login[:80]!a}.",
            argument="login",
            hint="Make it first: CREATE ROLE … LOGIN; then GRANT clawmark_service TO it.",
        )
    connection.execute(
        "INSERT INTO clawmark.callers (login, name) VALUES (coalesce(%s, session_user::text), %s) "
        "ON CONFLICT DO NOTHING",
        (login or None, name),
    )
    caller = find_caller(connection, name, login)
    assert caller is not None
    return caller


def _check_free(connection: Connection, scope: int, caller: int, author: str) -> None:
    """Raise SpaceInputError if another caller writes, or has written, under a name."""
    taken = connection.execute(
        "SELECT 1 FROM clawmark.members WHERE scope = %(scope)s AND author = %(author)s "
        "AND caller <> %(caller)s UNION ALL "
        "SELECT 1 FROM clawmark.documents WHERE scope = %(scope)s AND author = %(author)s "
        "AND caller <> %(caller)s UNION ALL "
        "SELECT 1 FROM clawmark.entries WHERE scope = %(scope)s AND author = %(author)s "
        "AND caller <> %(caller)s LIMIT 1",
        {"scope": scope, "author": author, "caller": caller},
    ).fetchone()
    if taken is not None:
        raise SpaceInputError(
            f"Another member of the space writes, or has written, as {author}.",
            argument="author",
            hint="Choose another name with --author.",
        )


def _members(connection: Connection, scope: int) -> list[MemberInfo]:
    rows = connection.execute(
        "SELECT c.login::text, c.name, m.author, m.may_write FROM clawmark.members m "
        "JOIN clawmark.callers c ON c.id = m.caller WHERE m.scope = %s "
        'ORDER BY m.author COLLATE "C"',
        (scope,),
    ).fetchall()
    return [MemberInfo._make(row) for row in rows]
