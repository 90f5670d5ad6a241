"""A new index appears complete, even if its files are deleted while they are created or opened."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from clawmark.model.errors import IndexStoreError
from clawmark.store.sqlite import db, opening
from clawmark.store.sqlite.store import SqliteStore
from clawmark.testing.vectors import file_of

SIDECARS = ("-journal", "-wal", "-shm", ".seal")


def put(index: SqliteStore, path: str) -> None:
    with index.transaction() as writer:
        writer.put_file(*file_of(path, "heron"))


def paths(index: SqliteStore) -> list[str]:
    with index.snapshot() as reader:
        return sorted(reader.files())


def files_in(folder: Path) -> set[str]:
    return {file.name for file in folder.iterdir()}


def once_when_opened(monkeypatch: pytest.MonkeyPatch, act: Callable[[], None]) -> None:
    """Run something after the main file was opened and before anything was read from it."""
    plain, left = db.identify, [act]

    def identify(connection: Any, path: str) -> str | None:
        if left:
            left.pop()()
        return plain(connection, path)

    for module in (db, opening):
        monkeypatch.setattr(module, "identify", identify)


@contextmanager
def deleting(*paths: str) -> Iterator[None]:
    """A process that deletes some files over and over."""
    code = (
        "import os, sys\nprint(flush=True)\nwhile True:\n for path in sys.argv[1:]:\n"
        "  try: os.unlink(path)\n  except OSError: continue\n"
    )
    with subprocess.Popen([sys.executable, "-c", code, *paths], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        try:
            yield
        finally:
            process.kill()


def test_an_index_is_created_while_other_processes_delete_its_files(tmp_path: Path) -> None:
    for number in range(20):
        path = str(tmp_path / f"{number}.sqlite")
        with deleting(*(path + suffix for suffix in SIDECARS)):
            index = SqliteStore(path)
            put(index, "a.md")
            index.close()
        assert os.path.exists(path)


def test_an_index_that_is_always_deleted_is_one_clear_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = SqliteStore(str(tmp_path / "index.sqlite"))
    monkeypatch.setattr(opening, "_make", lambda path, first_rows: None)
    with pytest.raises(IndexStoreError, match="is deleted as soon as it is made"):
        put(index, "a.md")


def test_an_index_deleted_while_a_writer_opens_it_is_created_again(
    index: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(index, "old.md")
    index.close()
    once_when_opened(monkeypatch, Path(index.path).unlink)
    put(index, "new.md")
    assert paths(index) == ["new.md"]


def test_a_reader_whose_index_is_replaced_while_it_opens_it_reads_the_new_one(
    index: SqliteStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = SqliteStore(str(tmp_path / "other.sqlite"))
    put(other, "new.md")
    other.close()
    put(index, "old.md")  # Its log stays; with the new main file it would be inconsistent.
    reader = SqliteStore(index.path)

    def replace() -> None:
        for suffix in SIDECARS:
            Path(index.path + suffix).unlink(missing_ok=True)
        os.replace(other.path, index.path)

    once_when_opened(monkeypatch, replace)
    assert paths(reader) == ["new.md"]
    reader.close()


def test_a_reader_whose_index_is_deleted_while_it_opens_it_finds_nothing(
    index: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(index, "old.md")
    index.close()
    once_when_opened(monkeypatch, Path(index.path).unlink)
    assert paths(index) == []


def test_drafts_of_killed_processes_are_deleted_when_an_index_is_created(
    index: SqliteStore,
) -> None:
    for name in ("index.sqlite.new-1", "index.sqlite.new-1-wal", f"index.sqlite.new-{os.getpid()}"):
        Path(index.path).with_name(name).write_text("half an index")
    put(index, "a.md")
    assert not [name for name in files_in(Path(index.path).parent) if ".new-" in name]


def test_an_index_that_cannot_be_made_leaves_nothing_behind(
    index: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(
            db, "create_statements", lambda: ["CREATE TABLE one (a)", "CREATE TABLE one (a)"]
        )
        with pytest.raises(IndexStoreError, match="already exists"):
            put(index, "a.md")
    assert files_in(Path(index.path).parent) == {"index.sqlite.lock"}
    put(index, "a.md")
    assert paths(index) == ["a.md"]
