"""The SQLite store: what opening creates, refuses and keeps."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

import apsw
import pytest

from clawmark.model.errors import IndexBusy, IndexDamaged, IndexFromTheFuture, IndexStoreError
from clawmark.store.sqlite.db import checking_vfs
from clawmark.store.sqlite.locks import WriteLock
from clawmark.store.sqlite.store import SqliteStore
from clawmark.testing.store_samples import any_of
from clawmark.testing.vectors import file_of, identity_of


def put(index: SqliteStore, path: str, *texts: str) -> None:
    with index.transaction() as writer:
        writer.put_file(*file_of(path, *texts))


def paths(index: SqliteStore) -> list[str]:
    with index.snapshot() as reader:
        return sorted(reader.files())


def tamper(index: SqliteStore, statements: str) -> None:
    """Change the database as another version of Clawmark could, with correct checksums."""
    other = apsw.Connection(index.path, vfs=checking_vfs())
    other.execute(statements)
    other.close()


def test_reading_where_no_index_is_finds_nothing_and_creates_nothing(
    index: SqliteStore, tmp_path: Path
) -> None:
    with index.snapshot() as reader:
        assert reader.files() == {}
        assert reader.search_keywords(any_of("zebra"), 10) == []
        assert reader.chunks([1]) == {}
        state = reader.state()
    assert (state.files, state.chunks, state.spaces, state.last_sync) == (0, 0, (), {})
    assert not os.path.exists(index.path)
    assert list(tmp_path.iterdir()) == []


def test_a_new_index_is_seen_by_the_next_snapshot(index: SqliteStore) -> None:
    assert paths(index) == []
    put(index, "a.md", "text")
    assert paths(index) == ["a.md"]


def test_an_empty_file_counts_as_no_index_yet(index: SqliteStore) -> None:
    Path(index.path).touch()
    assert paths(index) == []
    put(index, "a.md", "text")
    assert paths(index) == ["a.md"]


def test_files_are_private_under_every_umask(tmp_path: Path) -> None:
    index = SqliteStore(str(tmp_path / "state" / "memory" / "main.sqlite"))
    before = os.umask(0)
    try:
        put(index, "a.md", "text")
    finally:
        os.umask(before)
    for folder in (tmp_path / "state", tmp_path / "state" / "memory"):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    modes = {
        file.name: stat.S_IMODE(file.stat().st_mode)
        for file in (tmp_path / "state" / "memory").iterdir()
    }
    assert {f"main.sqlite{suffix}" for suffix in ("", "-wal", "-shm", ".lock", ".seal")} == set(
        modes
    )
    assert set(modes.values()) == {0o600}
    index.close()


def test_counts_are_kept_between_snapshots_until_something_is_written(index: SqliteStore) -> None:
    put(index, "a.md", "one", "two")
    with index.snapshot() as reader:
        assert reader.count_chunks() == 2
        first = reader.meta
    with index.snapshot() as reader:
        assert reader.meta is first
    other = SqliteStore(index.path)
    put(other, "b.md", "three")
    other.close()
    with index.snapshot() as reader:
        assert reader.count_chunks() == 3
    put(index, "c.md", "four")
    with index.snapshot() as reader:
        assert reader.count_chunks() == 4


def test_using_an_ended_snapshot_is_an_error(index: SqliteStore) -> None:
    put(index, "a.md", "text")
    with index.snapshot() as reader:
        assert reader.files()
    with pytest.raises(IndexStoreError, match="has ended"):
        reader.files()
    with index.transaction() as writer:
        assert writer.files()
    with pytest.raises(IndexStoreError, match="has ended"):
        writer.put_file(*file_of("b.md", "text"))


def test_a_reader_cannot_write(index: SqliteStore) -> None:
    put(index, "a.md", "text")
    with index.snapshot() as reader, pytest.raises(IndexStoreError):
        reader.db.rows("DELETE FROM files")
    assert paths(index) == ["a.md"]


@pytest.mark.parametrize(
    "statement",
    ["ATTACH 'other.sqlite' AS other", "PRAGMA journal_mode=OFF", "CREATE VIEW v AS SELECT 1"],
)
def test_unneeded_statements_are_denied(index: SqliteStore, statement: str) -> None:
    with index.transaction() as writer, pytest.raises(IndexStoreError):
        writer.db.rows(statement)


def test_a_busy_index_raises_index_busy(index: SqliteStore) -> None:
    put(index, "a.md", "text")
    with (
        WriteLock(index.path + ".lock").held(1.0),
        pytest.raises(IndexBusy),
        index.transaction(timeout=0),
    ):
        raise AssertionError("the lock was not respected")
    put(index, "b.md", "text")
    assert paths(index) == ["a.md", "b.md"]


def test_threads_take_turns_and_lose_nothing(index: SqliteStore) -> None:
    def work(number: int) -> None:
        for step in range(5):
            put(index, f"{number}-{step}.md", f"text {number} {step}")
            assert f"{number}-{step}.md" in paths(index)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(paths(index)) == 30


def test_a_closed_index_can_be_used_again(index: SqliteStore) -> None:
    put(index, "a.md", "text")
    index.close()
    assert paths(index) == ["a.md"]
    put(index, "b.md", "text")
    index.close()
    index.close()
    assert paths(index) == ["a.md", "b.md"]


def test_closing_leaves_an_empty_log(index: SqliteStore) -> None:
    put(index, "a.md", "text")
    assert Path(index.path + "-wal").stat().st_size > 0
    index.close()
    assert Path(index.path + "-wal").stat().st_size == 0


def test_a_long_log_is_checkpointed_by_its_writer(index: SqliteStore) -> None:
    for number in range(12):
        put(index, f"{number}.md", *[f"word{number}x{line} " * 40 for line in range(400)])
        assert Path(index.path + "-wal").stat().st_size < 16 * 1024 * 1024


def test_a_deleted_index_is_rebuilt_even_if_its_old_log_is_left(index: SqliteStore) -> None:
    put(index, "old.md", "old")
    Path(index.path).unlink()
    assert paths(index) == []
    put(index, "new.md", "new")
    assert paths(index) == ["new.md"]
    with index.snapshot() as reader:
        assert reader.integrity_problems() == []


@pytest.mark.parametrize(
    "content", [b"this is not a database at all" * 40, b"SQLite format 3\x00" + b"\xff" * 5000]
)
def test_a_file_that_is_not_a_database_is_damaged(index: SqliteStore, content: bytes) -> None:
    Path(index.path).write_bytes(content)
    with pytest.raises(IndexDamaged, match="damaged") as raised:
        paths(index)
    assert "clawmark index" in raised.value.hint
    with pytest.raises(IndexDamaged):
        put(index, "a.md", "text")
    assert Path(index.path).read_bytes() == content


def test_the_database_of_another_program_is_not_changed(index: SqliteStore) -> None:
    other = apsw.Connection(index.path)
    other.execute("CREATE TABLE precious (text)")
    other.close()
    before = Path(index.path).read_bytes()
    with pytest.raises(IndexDamaged, match="not one of Clawmark's"):
        put(index, "a.md", "text")
    assert Path(index.path).read_bytes() == before


@pytest.mark.parametrize(
    "change",
    [
        "CREATE TRIGGER t AFTER INSERT ON files BEGIN DELETE FROM chunks; END",
        "CREATE VIEW v AS SELECT * FROM files",
        "CREATE TABLE extra (x)",
        "ALTER TABLE files ADD COLUMN more TEXT",
        "DROP TABLE embedding_cache",
        "DROP INDEX files_died",
    ],
)
def test_one_object_more_less_or_different_is_damage(index: SqliteStore, change: str) -> None:
    put(index, "a.md", "text")
    index.close()
    tamper(index, change)
    with pytest.raises(IndexDamaged):
        paths(index)
    with pytest.raises(IndexDamaged):
        put(index, "b.md", "text")


def test_an_index_of_a_newer_clawmark_is_not_changed(index: SqliteStore) -> None:
    put(index, "a.md", "text")
    index.close()
    tamper(
        index,
        "UPDATE meta SET value = '99' WHERE key = 'schema_version'; CREATE TABLE from_the_future "
        "(x)",
    )
    with pytest.raises(IndexFromTheFuture, match="newer Clawmark"):
        paths(index)
    with pytest.raises(IndexFromTheFuture):
        put(index, "b.md", "text")


@pytest.mark.parametrize("key", ["generation", "spaces", "last_sync"])
def test_unreadable_facts_are_damage(index: SqliteStore, key: str) -> None:
    put(index, "a.md", "text")
    index.close()
    tamper(index, f"INSERT OR REPLACE INTO meta VALUES ('{key}', '{{{{')")
    with pytest.raises(IndexDamaged), index.snapshot() as reader:
        reader.state()


def test_a_damaged_index_is_set_aside_and_built_again(index: SqliteStore, tmp_path: Path) -> None:
    for number in range(1, 5):
        Path(index.path).write_bytes(b"rubbish %d" % number * 100)
        Path(index.path + "-wal").write_bytes(b"stale")
        with pytest.raises(IndexDamaged):
            paths(index)
        assert index.set_aside("corrupt") == f"{index.path}.corrupt-{number}"
        assert paths(index) == []
        assert index.set_aside("corrupt") == ""
    put(index, "a.md", "text")
    assert paths(index) == ["a.md"]
    kept = sorted(file.name for file in tmp_path.iterdir() if "corrupt" in file.name)
    assert kept == [
        f"index.sqlite.corrupt-{number}{suffix}"
        for number in (3, 4)
        for suffix in ("", "-shm", "-wal")
    ]


def test_state_contains_the_stored_facts(index: SqliteStore) -> None:
    with index.transaction() as writer:
        writer.set_facts("identity", {"chunker": "markdown/1", "sources": ["memory"]})
        writer.set_facts("last_sync", {"at": 1, "ä": "ö"})
        space = writer.add_space(identity_of(8))
        assert writer.add_space(identity_of(8)) == space
        other = writer.add_space(identity_of(8, "other"))
        writer.set_ready(other.id)
    with index.snapshot() as reader:
        state = reader.state()
    assert state.identity == {"chunker": "markdown/1", "sources": ["memory"]}
    assert state.last_sync == {"at": 1, "ä": "ö"}
    assert [(space.identity.model, space.ready) for space in state.spaces] == [
        ("test", False),
        ("other", True),
    ]
    assert (state.generation, state.building) == (1, None)


def test_database_facts_name_version_and_journal(index: SqliteStore) -> None:
    put(index, "a.md", "text")
    with index.snapshot() as reader:
        facts = reader.database_facts()
        assert reader.integrity_problems() == []
    assert facts["sqlite_version"] == apsw.sqlite_lib_version()
    assert (facts["page_size"], facts["journal_mode"], facts["vector_engine"]) == (
        16384,
        "wal",
        "blocks",
    )


def test_an_unknown_space_is_an_error_with_a_next_step(index: SqliteStore) -> None:
    put(index, "a.md", "text")
    with (
        index.snapshot() as reader,
        pytest.raises(IndexStoreError, match="no vector space 7") as raised,
    ):
        reader.count_due(7)
    assert raised.value.hint


def test_a_name_that_is_not_unicode_is_one_clear_error(index: SqliteStore) -> None:
    with pytest.raises(IndexStoreError, match="not valid Unicode"), index.transaction() as writer:
        writer.put_file(*file_of("bad\udcff.md", "text"))
    assert paths(index) == []
