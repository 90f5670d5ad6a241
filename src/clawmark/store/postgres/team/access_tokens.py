"""Tokens of people and agents for the server: made, listed and revoked by the owner of the
database, and looked up by the server. Only the SHA-256 of a token is stored."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from datetime import datetime
from hashlib import sha256
from typing import NamedTuple

from clawmark.model.errors import SpaceInputError
from clawmark.store.postgres.servers import Connection
from clawmark.store.postgres.sessions import ROLE
from clawmark.store.postgres.team.admin import find_caller, scope_of

PREFIX = "cmk_"
_RANDOM_BYTES = 32


class TokenInfo(NamedTuple):
    """A token as it is listed; the token itself is not stored."""

    id: int
    login: str
    name: str
    label: str
    permissions: tuple[str, ...]
    spaces: tuple[str, ...] | None
    """None for all spaces of its caller."""
    created: datetime
    expires: datetime | None
    revoked: datetime | None
    last_used: datetime | None


class TokenUse(NamedTuple):
    """Whom a valid token stands for, and what it allows."""

    id: int
    name: str
    permissions: frozenset[str]
    spaces: frozenset[str] | None


_COLUMNS = (
    "t.id, c.login::text, c.name, t.label, t.permissions, t.spaces, t.created, t.expires, "
    "t.revoked, t.last_used"
)


def create_token(
    connection: Connection,
    name: str,
    *,
    login: str = "",
    label: str = "",
    permissions: Sequence[str],
    spaces: Sequence[str] | None = None,
    expires: datetime | None = None,
) -> tuple[str, TokenInfo]:
    """Make a token for a member of a space; return its text, which is not stored, and its facts."""
    caller = find_caller(connection, name, login)
    if caller is None:
        raise SpaceInputError(
            f"There is no member called {name[:80]!a} of this login.",
            argument="name",
            hint=f"Run `clawmark space grant SPACE {name[:80]}` first, with the same --login.",
        )
    for space in spaces or ():
        scope_of(connection, space)
    text = PREFIX + secrets.token_urlsafe(_RANDOM_BYTES)
    row = connection.execute(
        "INSERT INTO clawmark.tokens (caller, label, hash, permissions, spaces, expires) "
        "VALUES (%s, %s, %s, %s, %s, %s) RETURNING id",
        (
            caller,
            label,
            _digest(text),
            sorted(set(permissions)),
            None if spaces is None else sorted(set(spaces)),
            expires,
        ),
    ).fetchone()
    assert row is not None
    return text, next(one for one in list_tokens(connection) if one.id == row[0])


def list_tokens(connection: Connection) -> list[TokenInfo]:
    """Return all tokens, the oldest first."""
    rows = connection.execute(
        f"SELECT {_COLUMNS} FROM clawmark.tokens t "
        "JOIN clawmark.callers c ON c.id = t.caller ORDER BY t.id"
    ).fetchall()
    return [_made(row) for row in rows]


def revoke_token(connection: Connection, number: int) -> TokenInfo:
    """Make a token invalid from now on; the time of the first call stays."""
    connection.execute(
        "UPDATE clawmark.tokens SET revoked = coalesce(revoked, now()) WHERE id = %s", (number,)
    )
    found = next((one for one in list_tokens(connection) if one.id == number), None)
    if found is None:
        raise SpaceInputError(
            f"There is no token {number}.",
            argument="id",
            hint="`clawmark token list` shows the tokens with their numbers.",
        )
    return found


def use_token(connection: Connection, text: str) -> TokenUse | None:
    """Return whom a token stands for; None if it is unknown, revoked, expired or of another login.

    This runs as the service role, which cannot read the table of tokens."""
    if not text.startswith(PREFIX) or not text.isascii():
        return None
    with connection.transaction():
        connection.execute(f"SET LOCAL ROLE {ROLE}")
        row = connection.execute(
            "SELECT token, caller_name, allowed, only_spaces FROM clawmark.use_token(%s)",
            (_digest(text),),
        ).fetchone()
    if row is None or row[0] is None:
        return None
    number, name, permissions, spaces = row
    return TokenUse(
        id=number,
        name=name,
        permissions=frozenset(permissions),
        spaces=None if spaces is None else frozenset(spaces),
    )


def _digest(text: str) -> bytes:
    return sha256(text.encode()).digest()


def _made(row: Sequence[object]) -> TokenInfo:
    made = TokenInfo._make(row)
    spaces = None if made.spaces is None else tuple(made.spaces)
    return made._replace(permissions=tuple(made.permissions), spaces=spaces)
