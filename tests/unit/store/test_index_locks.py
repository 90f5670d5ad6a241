"""The write lock: one holder, bounded waiting, and a deleted lock file does no harm."""

from __future__ import annotations

import os
import re
import stat
import threading
from pathlib import Path

import pytest

import clawmark
from clawmark.model.errors import IndexBusy, IndexStoreError
from clawmark.store.sqlite.locks import WriteLock
from clawmark.store.sqlite.store import SqliteStore
from clawmark.testing.vectors import file_of


def test_a_held_lock_is_refused_to_another(tmp_path: Path) -> None:
    path = str(tmp_path / "x.lock")
    with WriteLock(path).held(0), pytest.raises(IndexBusy) as raised, WriteLock(path).held(0.01):
        raise AssertionError("two holders")
    assert raised.value.hint
    with WriteLock(path).held(0):
        assert stat.S_IMODE(Path(path).stat().st_mode) == 0o600


def test_a_waiting_holder_gets_the_lock_when_it_is_free(tmp_path: Path) -> None:
    lock = WriteLock(str(tmp_path / "x.lock"))
    order: list[str] = []
    holding, release = threading.Event(), threading.Event()

    def hold() -> None:
        with lock.held(5):
            holding.set()
            release.wait()
            order.append("first")

    thread = threading.Thread(target=hold)
    thread.start()
    holding.wait()
    threading.Timer(0.02, release.set).start()
    with WriteLock(lock.path).held(10):
        order.append("second")
    thread.join()
    assert order == ["first", "second"]


def test_a_deleted_lock_file_is_created_again(tmp_path: Path) -> None:
    path = tmp_path / "x.lock"
    with WriteLock(str(path)).held(0):
        path.unlink()
    with WriteLock(str(path)).held(0):
        assert path.exists()


def test_a_link_in_place_of_the_lock_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.lock").symlink_to(tmp_path / "elsewhere")
    with (
        pytest.raises(IndexStoreError, match="cannot be taken"),
        WriteLock(str(tmp_path / "x.lock")).held(0),
    ):
        raise AssertionError("the link was followed")
    assert not (tmp_path / "elsewhere").exists()


def test_a_lock_in_a_missing_folder_is_one_clear_error(tmp_path: Path) -> None:
    with (
        pytest.raises(IndexStoreError, match="cannot be taken"),
        WriteLock(str(tmp_path / "no" / "x.lock")).held(0),
    ):
        raise AssertionError("there is no such folder")
    assert os.listdir(tmp_path) == []


def test_waiting_for_another_thread_or_process_is_counted(tmp_path: Path) -> None:
    ours, theirs = WriteLock(str(tmp_path / "x.lock")), WriteLock(str(tmp_path / "x.lock"))
    with ours.held(0):
        with pytest.raises(IndexBusy), theirs.held(0.05):
            raise AssertionError("both hold it")
        with pytest.raises(IndexBusy), ours.held(0.05):
            raise AssertionError("held twice")
    with ours.held(0), pytest.raises(IndexBusy), theirs.held(0):
        raise AssertionError("both hold it")
    assert theirs.waits == 2


def test_readers_do_not_wait_for_writers(index: SqliteStore) -> None:
    with index.transaction() as writer:
        writer.put_file(*file_of("a.md", "before"))
    with index.transaction() as writer:
        writer.put_file(*file_of("a.md", "after"))
        with index.snapshot() as reader:
            assert [row.text for row in reader.chunks_of("a.md")] == ["before"]


def test_only_two_modules_make_connections_to_an_index_of_ours() -> None:
    source = Path(next(iter(clawmark.__path__)))
    users = {
        path.name
        for path in source.rglob("*.py")
        if re.search(r'apsw\.Connection\((?!":memory:"\))', path.read_text(encoding="utf-8"))
    }
    assert users == {"db.py", "opening.py", "seeds.py"}, (
        "the last one reads other programs' databases, which are not changed"
    )


def test_every_checkpoint_is_made_under_the_lock() -> None:
    source = Path(next(iter(clawmark.__path__)))
    users = {
        path.name
        for path in source.rglob("*.py")
        if "truncate_log(" in path.read_text(encoding="utf-8")
    }
    assert users == {"db.py", "store.py"}
