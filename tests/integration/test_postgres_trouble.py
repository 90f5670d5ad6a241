"""PostgreSQL in trouble: clear errors without the password, and work that goes on afterwards."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import psycopg
import pytest
from commands import new_place
from postgres import fresh_database

from clawmark.model.errors import ConfigError, IndexBusy, IndexStoreError
from clawmark.store.postgres import migrate
from clawmark.store.postgres.servers import Server
from clawmark.store.postgres.store import PostgresStore
from clawmark.testing.store_samples import any_of, put, texts_of

SECRET = "hunter2sesame"


def end_connections(uri: str) -> None:
    """End every other connection to the database, as a failover does."""
    with psycopg.connect(uri) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )


def test_lost_idle_connections_are_replaced(
    postgres_index: PostgresStore, postgres_uri: str
) -> None:
    put(postgres_index, "a.md", "alpha")
    end_connections(postgres_uri)
    assert texts_of(postgres_index, "alpha") == ["alpha"]
    end_connections(postgres_uri)
    put(postgres_index, "a.md", "alpha beta")
    assert texts_of(postgres_index, "alpha") == ["alpha beta"]


def test_a_connection_lost_during_a_write_leaves_nothing_of_it(
    postgres_index: PostgresStore, postgres_uri: str
) -> None:
    put(postgres_index, "a.md", "alpha")
    with (
        pytest.raises(IndexStoreError, match="cannot be reached") as raised,
        postgres_index.transaction() as transaction,
    ):
        transaction.delete_file("a.md")
        end_connections(postgres_uri)
        transaction.delete_file("b.md")
    assert "clawmark db status" in raised.value.hint
    assert texts_of(postgres_index, "alpha") == ["alpha"]


def test_a_full_pool_is_reported_as_busy(postgres_uri: str) -> None:
    server = Server(postgres_uri, pool_size=2, pool_seconds=0.2)
    with closing(PostgresStore(server, "test")) as store, ExitStack() as stack:
        for _ in range(2):
            stack.enter_context(store.snapshot())
        with pytest.raises(IndexBusy, match="All 2 connections"), store.snapshot():
            raise AssertionError("a third connection was given")


def test_a_slow_query_is_ended(postgres_uri: str) -> None:
    with (
        closing(PostgresStore(Server(postgres_uri, query_seconds=0.1), "test")) as store,
        pytest.raises(IndexStoreError, match=r"ended after 0\.1 s") as raised,
        store.snapshot() as snapshot,
    ):
        snapshot.rows("SELECT pg_sleep(20) WHERE %s > 0")
    assert "clawmark db upgrade" in raised.value.hint


def test_writers_of_one_index_take_turns_and_others_do_not_wait(postgres_uri: str) -> None:
    with (
        closing(PostgresStore(Server(postgres_uri), "ada")) as first,
        closing(PostgresStore(Server(postgres_uri), "ada")) as second,
        closing(PostgresStore(Server(postgres_uri), "ben")) as other,
    ):
        with first.transaction():
            for timeout in (0.0, 0.05):
                with pytest.raises(IndexBusy), second.transaction(timeout=timeout):
                    raise AssertionError("two writers")
            with other.transaction(timeout=0.0):
                pass
            with second.snapshot() as snapshot:
                assert snapshot.files() == {}
        assert second.lock_waits == 2
        assert put(second, "a.md", "alpha")


def test_many_writers_lose_nothing(postgres_uri: str) -> None:
    def write(name: str) -> None:
        with closing(PostgresStore(Server(postgres_uri, pool_size=2), "ada")) as store:
            for number in range(5):
                put(store, f"{name}-{number}.md", f"heron {name} {number}")

    threads = [threading.Thread(target=write, args=(f"w{one}",)) for one in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with (
        closing(PostgresStore(Server(postgres_uri), "ada")) as store,
        store.snapshot() as snapshot,
    ):
        assert len(snapshot.files()) == 30
        assert snapshot.count_keywords([any_of("heron")]) == (30, [30])
        assert len(snapshot.search_keywords(any_of("heron"), 100)) == 30
        assert snapshot.integrity_problems() == []


@pytest.mark.parametrize(
    "uri",
    [
        f"postgresql://ada:{SECRET}@127.0.0.1:1/memory",
        f"postgresql://ada:{SECRET}@127.0.0.1:1/memory?nonsense=1",
        f"postgresql://ada:{SECRET}@[::1/memory",
        f"mysql://ada:{SECRET}@localhost/memory",
    ],
)
def test_no_message_shows_the_password(uri: str) -> None:
    with (
        pytest.raises((IndexStoreError, ConfigError)) as raised,
        closing(PostgresStore(Server(uri), "test")) as store,
        store.snapshot(),
    ):
        raise AssertionError("opened")
    assert raised.value.hint
    assert SECRET not in raised.value.message + raised.value.hint + str(raised.value.args)


def test_the_command_line_names_the_database_and_hides_the_password(tmp_path: Path) -> None:
    place = new_place(tmp_path)
    config = tmp_path / "c.json5"
    config.write_text(
        f'{{ memorySearch: {{ store: {{ uri: "postgresql://a:{SECRET}@127.0.0.1:1/m" }} }} }}'
    )
    for verb in (["search", "x"], ["index"], ["status"], ["doctor"], ["db", "status"],
                 ["config", "show"], ["config", "show", "--json"]):  # fmt: skip
        ran = place.run(*verb, "--config", str(config))
        assert SECRET not in ran.out + ran.err
        assert "Traceback" not in ran.err
        if verb[0] != "config":
            assert "127.0.0.1:1/m cannot be reached" in ran.out + ran.err, verb
            assert ran.code == 3, verb


def test_tables_are_made_once_by_several_processes(postgres_template: tuple[str, str]) -> None:
    with fresh_database(postgres_template[0]) as uri:
        done: list[tuple[str, ...]] = []
        threads = [
            threading.Thread(target=lambda: done.append(migrate.upgrade(Server(uri))))
            for _ in range(3)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        names = [migration.name for migration in migrate.migrations()]
        assert sorted(name for one in done for name in one) == sorted(names)
        status = migrate.database_status(Server(uri))
        assert (status.applied, status.pending) == (tuple(names), ())
        assert status.vector_version


def _not_set_up(uri: str) -> None:
    with psycopg.connect(uri) as connection:
        connection.execute("DROP SCHEMA clawmark CASCADE")


def _older(uri: str) -> None:
    with psycopg.connect(uri) as connection:
        connection.execute("DELETE FROM clawmark.migrations WHERE version > 1")


def _newer(uri: str) -> None:
    with psycopg.connect(uri) as connection:
        connection.execute("INSERT INTO clawmark.migrations VALUES (9999, '9999_future')")


@pytest.mark.parametrize(
    ("change", "hint"),
    [(_not_set_up, "clawmark db init"), (_older, "db upgrade"), (_newer, "Update Clawmark")],
)
def test_other_tables_than_this_version_has_are_refused(
    change: Callable[[str], Any], hint: str, postgres_uri: str
) -> None:
    change(postgres_uri)
    with (
        closing(PostgresStore(Server(postgres_uri), "test")) as store,
        pytest.raises(IndexStoreError) as raised,
        store.snapshot(),
    ):
        raise AssertionError("opened")
    assert hint in raised.value.hint
