"""Agents in one database see their own rows only, whatever SQL the service role runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing

import psycopg
import pytest
from postgres import in_database
from psycopg import errors

from clawmark.model.errors import IndexStoreError
from clawmark.model.values import KeywordQuery
from clawmark.store.postgres.servers import Server
from clawmark.store.postgres.store import PostgresStore
from clawmark.testing.store_samples import any_of, found, put
from clawmark.testing.vectors import fill, identity_of, random_vectors

TABLES = (
    "indexes", "facts", "files", "chunks", "words", "terms", "editions", "spaces", "vectors",
    "coverage", "cache", "running",
)  # fmt: skip


@pytest.fixture
def stores(postgres_uri: str) -> Iterator[tuple[PostgresStore, PostgresStore]]:
    with ExitStack() as stack:
        yield tuple(  # type: ignore[misc]
            stack.enter_context(closing(PostgresStore(Server(postgres_uri), name)))
            for name in ("ada", "ben")
        )


def fill_both(stores: tuple[PostgresStore, PostgresStore]) -> None:
    for store in stores:
        fill(store, "memory/a.md", random_vectors(5, 8, seed=1), 8)
        put(store, "memory/b.md", "heron plan", "otter lake")
        with store.transaction() as transaction:
            transaction.set_facts("identity", {"chunker": "1"})


def declared(uri: str, caller: int) -> psycopg.Connection[tuple[object, ...]]:
    """A connection of the service role for a caller, with all of SQL at its disposal."""
    connection = psycopg.connect(uri)
    connection.execute("SET ROLE clawmark_service")
    connection.execute("SELECT set_config('clawmark.caller', %s, false)", (str(caller),))
    return connection


def test_a_caller_sees_and_changes_its_own_rows_only(
    stores: tuple[PostgresStore, PostgresStore], postgres_uri: str
) -> None:
    fill_both(stores)
    scopes = []
    for store in stores:
        with store.snapshot() as snapshot:
            scopes.append(snapshot.scope)
    assert stores[0]._declared is not None
    with declared(postgres_uri, stores[0]._declared[0]) as connection:
        for table in TABLES:
            rows = connection.execute(f"SELECT DISTINCT scope FROM clawmark.{table}").fetchall()
            assert rows in ([(scopes[0],)], []), table
            gone = connection.execute(
                f"DELETE FROM clawmark.{table} WHERE scope = %s", (scopes[1],)
            ).rowcount
            assert gone == 0, table
        found_keys = connection.execute(
            "SELECT count(*) FROM clawmark.chunks_with(%s, (SELECT array_agg(term) "
            "FROM clawmark.terms), false, 100)",
            (scopes[1],),
        ).fetchone()
        assert found_keys == (0,)
        with pytest.raises(errors.InsufficientPrivilege):
            connection.execute(
                "INSERT INTO clawmark.facts (scope, name, value) VALUES (%s, 'x', '{}')",
                (scopes[1],),
            )
    with psycopg.connect(postgres_uri) as connection:
        connection.execute("SET ROLE clawmark_service")
        for table in ("callers", "scopes", "members"):
            with pytest.raises(errors.InsufficientPrivilege), connection.transaction():
                connection.execute(f"SELECT * FROM clawmark.{table}")


def test_lookups_by_terms_find_chunks_of_the_callers_scopes_only(
    stores: tuple[PostgresStore, PostgresStore], postgres_uri: str
) -> None:
    fill_both(stores)
    scopes, terms = [], []
    for store in stores:
        with store.snapshot() as snapshot:
            scopes.append(snapshot.scope)
            terms.append([term for (term,) in snapshot.rows(
                "SELECT term FROM clawmark.terms WHERE scope = %s"
            )])  # fmt: skip
    assert stores[0]._declared is not None
    lookups = (
        "SELECT count(*) FROM clawmark.chunks_with(%(scope)s, %(terms)s, false, 100)",
        "SELECT count(*) FROM clawmark.best_with(%(scope)s, ARRAY(SELECT ARRAY[term]::text "
        "FROM unnest(%(terms)s) term), %(terms)s, array_fill(1.0::float8, "
        "ARRAY[cardinality(%(terms)s)]), 0.3, 0.1, 0.3, '{}', 100, 100)",
    )
    with declared(postgres_uri, stores[0]._declared[0]) as connection:
        for lookup in lookups:
            found_of = {
                (scope, at): connection.execute(
                    lookup, {"scope": scope, "terms": terms[at]}
                ).fetchone()
                for scope in scopes
                for at in (0, 1)
            }
            assert found_of.pop((scopes[0], 0)) == (7,)
            assert set(found_of.values()) == {(0,)}


def test_without_a_declared_caller_every_read_fails(
    stores: tuple[PostgresStore, PostgresStore], postgres_uri: str
) -> None:
    fill_both(stores)
    with psycopg.connect(postgres_uri, autocommit=True) as connection:
        connection.execute(
            "INSERT INTO clawmark.running SELECT id, gen_random_uuid(), '{}', now() "
            "FROM clawmark.scopes"
        )
        connection.execute("SET ROLE clawmark_service")
        for table in TABLES:
            with pytest.raises(errors.UndefinedObject):
                connection.execute(f"SELECT * FROM clawmark.{table}")
        with connection.transaction():
            connection.execute("SELECT set_config('clawmark.caller', '1', true)")
        for table in TABLES:
            # A setting that was set once is empty afterwards.
            with pytest.raises(errors.InvalidTextRepresentation):
                connection.execute(f"SELECT * FROM clawmark.{table}")


def test_a_login_cannot_declare_the_caller_of_another_login(
    stores: tuple[PostgresStore, PostgresStore], postgres_uri: str
) -> None:
    fill_both(stores)
    login = "other_" + postgres_uri.partition("test_")[2][:12]
    with psycopg.connect(postgres_uri) as connection:
        connection.execute(f"CREATE ROLE {login} LOGIN")
        connection.execute(f"GRANT clawmark_service TO {login}")
    try:
        uri = in_database(postgres_uri, user=login)
        assert stores[0]._declared is not None
        with declared(uri, stores[0]._declared[0]) as connection:
            assert connection.execute("SELECT count(*) FROM clawmark.chunks").fetchone() == (0,)
        with closing(PostgresStore(Server(uri), "ada")) as same_name:
            with same_name.snapshot() as snapshot:
                assert snapshot.files() == {}
            put(same_name, "mine.md", "my own heron")
            same_name.tidy(force=True)
            with same_name.snapshot() as snapshot:
                assert found(snapshot, "heron") == ["my own heron"]
        with stores[0].snapshot() as snapshot:
            assert found(snapshot, "heron") == ["heron plan"]
    finally:
        with psycopg.connect(postgres_uri) as connection:
            connection.execute(f"DROP ROLE {login}")


def test_a_login_without_the_service_role_has_no_access(postgres_uri: str) -> None:
    login = "bare_" + postgres_uri.partition("test_")[2][:12]
    with psycopg.connect(postgres_uri) as connection:
        connection.execute(f"CREATE ROLE {login} LOGIN")
    try:
        uri = in_database(postgres_uri, user=login)
        with (
            closing(PostgresStore(Server(uri), "ada")) as store,
            pytest.raises(IndexStoreError, match="no access") as raised,
            store.snapshot(),
        ):
            raise AssertionError("opened")
        assert "GRANT clawmark_service" in raised.value.hint
    finally:
        with psycopg.connect(postgres_uri) as connection:
            connection.execute(f"DROP ROLE {login}")


def answers(store: PostgresStore) -> object:
    """Everything that a search can read."""
    vectors = random_vectors(3, 8, seed=5)
    queries = [any_of("heron"), any_of("heron plan"), KeywordQuery(pairs=(("heron", "plan"),))]
    with store.snapshot() as snapshot:
        (space,) = snapshot.spaces()
        return (
            [snapshot.search_keywords(query, 50) for query in queries],
            snapshot.count_keywords(queries),
            [snapshot.nearest(space.id, vector, 50) for vector in vectors],
            snapshot.chunks(range(1, 100)),
            snapshot.files(),
            snapshot.state(),
            snapshot.count_due(space.id),
            snapshot.integrity_problems(),
        )


def test_what_another_agent_does_changes_no_answer_score_or_count(
    stores: tuple[PostgresStore, PostgresStore],
) -> None:
    fill_both(stores)
    mine, other = stores
    before = answers(mine)
    put(other, "memory/b.md", *["heron plan heron plan"] * 30)
    put(other, "memory/c.md", "heron " * 50)
    number = other.begin_rebuild({"chunker": "2"})
    put(other, "memory/a.md", "heron", building=number)
    with other.transaction() as transaction:
        transaction.delete_file("memory/b.md")
        transaction.drop_space(transaction.spaces()[0].id)
        transaction.add_space(identity_of(16))
    other.tidy(force=True)
    assert answers(mine) == before
    other.set_aside("corrupt")
    assert answers(mine) == before
