"""What the database itself refuses: rows of other spaces, writing as another author, changing a log
and reading tokens, with any SQL that the service role may run."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import ExitStack, closing

import psycopg
import pytest
from postgres import fresh_database, in_database
from psycopg import errors
from team_scene import make_spaces, open_direct

from clawmark.backends.team.base import Published
from clawmark.model.errors import SpaceDenied
from clawmark.store.postgres import migrate
from clawmark.store.postgres.servers import Server
from clawmark.store.postgres.store import PostgresStore
from clawmark.store.postgres.team.access_tokens import create_token
from clawmark.testing.store_samples import put

WORLD = {
    "team": {"ada": True, "ben": False, "cy": True},
    "ops": {"cy": True, "dan": False},
    "empty": {"dan": True},
}
SCOPED = (
    "indexes", "facts", "files", "chunks", "words", "terms", "editions", "spaces", "vectors",
    "coverage", "cache", "running", "documents", "entries",
)  # fmt: skip
HIDDEN = ("callers", "scopes", "members", "tokens")


@pytest.fixture
def world(postgres_uri: str) -> Iterator[str]:
    """Spaces with documents and logs, private indexes, and tokens."""
    make_spaces(postgres_uri, WORLD)
    with ExitStack() as stack:
        for space, names in WORLD.items():
            for name, may_write in names.items():
                if may_write:
                    spaces = stack.enter_context(closing(open_direct(postgres_uri, name)))
                    spaces.append(space, f"{name} saw a heron in {space}.", key="1")
                    spaces.publish(space, [Published("memory/a.md", f"The otter of {name}.", "1")])
        for name in ("ada", "eve"):
            store = stack.enter_context(closing(PostgresStore(Server(postgres_uri), name)))
            put(store, "memory/p.md", f"the private heron of {name}")
        server = stack.enter_context(closing(Server(postgres_uri)))
        with server.direct() as connection:
            create_token(connection, "cy", permissions=["read"])
    yield postgres_uri


def declared(uri: str, caller: int) -> psycopg.Connection[tuple[object, ...]]:
    """A connection of the service role for a caller, with all of SQL at its disposal."""
    connection = psycopg.connect(uri, autocommit=True)
    connection.execute("SET ROLE clawmark_service")
    connection.execute("SELECT set_config('clawmark.caller', %s, false)", (str(caller),))
    return connection


def facts(uri: str) -> tuple[dict[str, int], dict[str, int], dict[int, set[int]]]:
    """The numbers of callers and of spaces, and the scopes of each caller, as the owner sees it."""
    with psycopg.connect(uri) as connection:
        callers: dict[str, int] = dict(
            connection.execute("SELECT name, id FROM clawmark.callers").fetchall()
        )
        scopes: dict[str, int] = dict(
            connection.execute(
                "SELECT name, id FROM clawmark.scopes WHERE kind = 'space'"
            ).fetchall()
        )
        members: dict[int, set[int]] = {}
        for caller, scope in connection.execute("SELECT caller, scope FROM clawmark.members"):
            members.setdefault(caller, set()).add(scope)
    return callers, scopes, members


def test_every_table_without_a_condition_shows_the_rows_of_the_caller_only(world: str) -> None:
    callers, _, members = facts(world)
    for name in random.Random(7).sample([*callers.values(), 0, 999], len(callers) + 2):
        with declared(world, name) as connection:
            for table in SCOPED:
                rows = connection.execute(f"SELECT scope FROM clawmark.{table}").fetchall()
                assert {scope for (scope,) in rows} <= members.get(name, set()), table
                for hidden in HIDDEN:
                    with pytest.raises(errors.InsufficientPrivilege):
                        connection.execute(f"SELECT * FROM clawmark.{hidden}")
    with declared(world, callers["cy"]) as connection:
        rows = connection.execute("SELECT DISTINCT scope FROM clawmark.entries").fetchall()
        assert len(rows) == 2


def test_without_a_declared_caller_nothing_is_read(world: str) -> None:
    with psycopg.connect(world, autocommit=True) as connection:
        connection.execute("SET ROLE clawmark_service")
        for sql in (
            "SELECT * FROM clawmark.documents",
            "SELECT * FROM clawmark.entries",
            "SELECT * FROM clawmark.my_spaces()",
            "SELECT clawmark.writes_as(1, 1, 'ada')",
        ):
            with pytest.raises(errors.UndefinedObject):
                connection.execute(sql)


@pytest.mark.parametrize("text", [b"\xff\xfe", b"", b"-\n", b"\0", b"hi\r- 14:05 cy: I agree"])
def test_no_entry_keeps_a_log_from_being_read_or_forges_a_line(world: str, text: bytes) -> None:
    callers, scopes, _ = facts(world)
    with declared(world, callers["ada"]) as connection:
        connection.execute(
            "INSERT INTO clawmark.entries (scope, version, day, at, author, caller, key, text, "
            "start_line, end_line) VALUES (%s, 1, '2026-01-01', '2026-01-01 12:00Z', 'ada', %s, "
            "'k', %s, 3, 3)",
            (scopes["team"], callers["ada"], text),
        )
    with closing(open_direct(world, "cy")) as cy:
        log = cy.read("spaces/team/2026-01-01.md").text.splitlines()
        assert log[2].startswith("- 12:00 ada: ")
        assert not any(line.startswith("-") for line in log[3:])
        assert "spaces/team/2026-01-01.md" in [one.path for one in cy.changes("team").documents]


def test_no_statement_writes_as_another_author_or_changes_a_log(world: str) -> None:
    callers, scopes, _ = facts(world)
    ada, cy, team, ops = callers["ada"], callers["cy"], scopes["team"], scopes["ops"]
    add = (
        "INSERT INTO clawmark.documents (scope, path, author, caller, hash, text, changed, version)"
        " VALUES (%s, %s, %s, %s, 'x', 'x', now(), 1)"
    )
    entry = (
        "INSERT INTO clawmark.entries (scope, version, day, at, author, caller, key, text, "
        "start_line, end_line) VALUES (%s, 1, '2026-01-01', '2026-01-01 12:00Z', %s, %s, 'k', "
        "'x', 1, 1)"
    )
    with declared(world, ada) as connection:
        for values in (
            (team, "cy/b.md", "cy", ada),
            (team, "cy/b.md", "cy", cy),
            (team, "ada/b.md", "ada", cy),
            (ops, "ada/b.md", "ada", ada),
        ):
            with pytest.raises(errors.InsufficientPrivilege):
                connection.execute(add, values)
        with pytest.raises(errors.CheckViolation):
            connection.execute(add, (team, "cy/b.md", "ada", ada))
        for place in ((team, "cy", ada), (team, "ada", cy), (ops, "ada", ada)):
            with pytest.raises(errors.InsufficientPrivilege):
                connection.execute(entry, place)
        changed = connection.execute("UPDATE clawmark.documents SET hash = 'y', version = -1")
        assert changed.rowcount == 1  # its own
        with pytest.raises(errors.InsufficientPrivilege):
            connection.execute("UPDATE clawmark.documents SET author = 'cy', path = 'cy/z.md'")
        for sql in (
            "DELETE FROM clawmark.documents",
            "DELETE FROM clawmark.entries",
            "UPDATE clawmark.entries SET text = 'forged'",
            "TRUNCATE clawmark.entries",
            "INSERT INTO clawmark.members (scope, caller, may_write) VALUES (1, 1, true)",
            "UPDATE clawmark.tokens SET revoked = NULL",
        ):
            with pytest.raises(errors.InsufficientPrivilege):
                connection.execute(sql)
    with declared(world, callers["ben"]) as connection:
        with pytest.raises(errors.InsufficientPrivilege):
            connection.execute(add, (team, "ben/b.md", "ben", callers["ben"]))
        with pytest.raises(errors.InsufficientPrivilege):
            connection.execute(entry, (team, "ben", callers["ben"]))
        for table in ("indexes", "files", "chunks", "words", "terms", "vectors", "cache"):
            gone = connection.execute(f"DELETE FROM clawmark.{table}").rowcount
            assert gone == 0, table


def test_a_login_cannot_use_members_or_tokens_of_another_login(world: str) -> None:
    login = "other_" + world.partition("test_")[2][:12]
    with psycopg.connect(world) as connection:
        connection.execute(f"CREATE ROLE {login} LOGIN")
        connection.execute(f"GRANT clawmark_service TO {login}")
    try:
        uri = in_database(world, user=login)
        callers, _, _ = facts(world)
        with declared(uri, callers["cy"]) as connection:
            assert connection.execute("SELECT * FROM clawmark.my_spaces()").fetchall() == []
            assert connection.execute("SELECT * FROM clawmark.documents").fetchall() == []
            named = connection.execute("SELECT clawmark.caller_named('cy')").fetchone()
            assert named == (None,)
        with psycopg.connect(world) as connection:
            digest = connection.execute("SELECT hash FROM clawmark.tokens").fetchone()
        assert digest is not None
        with psycopg.connect(uri) as connection:
            connection.execute("SET ROLE clawmark_service")
            used = connection.execute("SELECT * FROM clawmark.use_token(%s)", digest).fetchone()
            assert used == (None, None, None, None)
        with closing(open_direct(uri, "cy")) as spaces:
            assert spaces.spaces() == ()
            with pytest.raises(SpaceDenied):
                spaces.changes("team")
    finally:
        with psycopg.connect(world) as connection:
            connection.execute(f"DROP ROLE {login}")


def test_a_permission_that_is_taken_away_ends_at_once(world: str) -> None:
    with (
        closing(open_direct(world, "ada")) as ada,
        psycopg.connect(world, autocommit=True) as owner,
    ):
        assert ada.spaces()[0].may_write
        owner.execute("UPDATE clawmark.members SET may_write = false WHERE author = 'ada'")
        with pytest.raises(SpaceDenied, match="not write"):
            ada.append("team", "x", key="2")
        owner.execute("DELETE FROM clawmark.members WHERE author = 'ada'")
        with pytest.raises(SpaceDenied, match="There is no space"):
            ada.read("spaces/team/ada/memory/a.md")
        assert ada.spaces() == ()


def test_a_database_without_spaces_is_upgraded(postgres_template: tuple[str, str]) -> None:
    with fresh_database(postgres_template[0]) as uri:
        with psycopg.connect(uri, autocommit=True) as connection:
            for migration in migrate.migrations()[:2]:
                migrate._apply(connection, migration)
        with psycopg.connect(uri, autocommit=True) as connection:
            connection.execute("SET ROLE clawmark_service")
            connection.execute("SELECT clawmark.open_private('ada')")
        with closing(Server(uri)) as server:
            assert migrate.upgrade(server) == ("0003_spaces", "0004_best_chunks")
            assert migrate.upgrade(server) == ()
        with closing(PostgresStore(Server(uri), "ada")) as store:
            put(store, "memory/p.md", "heron")
        make_spaces(uri, {"team": {"ada": True}})
        with closing(open_direct(uri, "ada")) as spaces:
            spaces.append("team", "The heron.", key="1")
            assert spaces.spaces()[0].entries == 1
