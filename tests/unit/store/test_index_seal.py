"""Damage is noticed: every page has a checksum, and all pages are read if the main file was
changed."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import apsw
import pytest

from clawmark.model.errors import IndexDamaged
from clawmark.store.sqlite.db import (
    checking_vfs,
    one_line,
)
from clawmark.store.sqlite.file_stamps import read_seal
from clawmark.store.sqlite.store import SqliteStore
from clawmark.testing.vectors import file_of

PAGE = 16384


def put(index: SqliteStore, path: str, *texts: str) -> None:
    with index.transaction() as writer:
        writer.put_file(*file_of(path, *texts))


def flip(path: str, at: int, *, keep_time: bool = False) -> None:
    """Change one bit, as a failing disk does (which keeps the time of the last change) or another
    program."""
    facts = os.stat(path)
    content = bytearray(Path(path).read_bytes())
    content[at] ^= 4
    Path(path).write_bytes(content)
    if keep_time:
        os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns))


@pytest.fixture
def filled(index: SqliteStore) -> SqliteStore:
    for number in range(30):
        put(index, f"{number}.md", *[f"passage {number} {line} " * 40 for line in range(10)])
    index.close()
    return index


def test_an_unchanged_index_keeps_its_seal(filled: SqliteStore) -> None:
    with filled.snapshot() as reader:
        assert read_seal(filled.path) == reader.meta.index_id != ""


def test_every_changed_bit_of_the_main_file_is_noticed_by_the_next_writer(
    filled: SqliteStore,
) -> None:
    sound = Path(filled.path).read_bytes()
    for at in range(200, len(sound), 7 * PAGE // 3):
        flip(filled.path, at)
        with pytest.raises(IndexDamaged):
            put(filled, "new.md", "text")
        filled.close()
        Path(filled.path).write_bytes(sound)
    put(filled, "new.md", "text")


def test_a_reader_never_answers_from_a_changed_page(filled: SqliteStore) -> None:
    sound = Path(filled.path).read_bytes()
    texts = {}
    with filled.snapshot() as reader:
        texts = {path: [row.text for row in reader.chunks_of(path)] for path in reader.files()}
    filled.close()
    noticed = 0
    for page in range(1, len(sound) // PAGE):
        flip(filled.path, page * PAGE + 5000)
        try:
            with filled.snapshot() as reader:
                assert {
                    path: [row.text for row in reader.chunks_of(path)] for path in reader.files()
                } == texts
        except IndexDamaged:
            noticed += 1
        filled.close()
        Path(filled.path).write_bytes(sound)
    assert noticed > 10


def test_silent_corruption_is_found_by_a_thorough_snapshot(
    filled: SqliteStore,
) -> None:
    flip(filled.path, Path(filled.path).stat().st_size - PAGE // 2, keep_time=True)
    assert read_seal(filled.path)
    with pytest.raises(IndexDamaged), filled.snapshot(thorough=True) as reader:
        if reader.integrity_problems():
            raise IndexDamaged("found")


def test_check_reads_pages_only_if_the_file_was_changed_from_outside(filled: SqliteStore) -> None:
    filled.check()
    os.utime(filled.path)
    assert not read_seal(filled.path)
    filled.check()
    assert read_seal(filled.path)
    flip(filled.path, 3 * PAGE + 100)
    with pytest.raises(IndexDamaged):
        filled.check()


@pytest.mark.parametrize(("files", "finding"), [(1, "malformed"), (40, "belongs to another index")])
def test_the_log_of_another_index_is_refused(
    filled: SqliteStore, tmp_path: Path, files: int, finding: str
) -> None:
    other = SqliteStore(str(tmp_path / "other.sqlite"))
    for number in range(files):
        put(other, f"other-{number}.md", *[f"foreign {number} {line} " * 40 for line in range(10)])
    assert Path(other.path + "-wal").stat().st_size > 0
    shutil.copyfile(other.path + "-wal", filled.path + "-wal")
    Path(filled.path + "-shm").unlink(missing_ok=True)
    with pytest.raises(IndexDamaged, match=finding), filled.snapshot() as reader:
        reader.files()
    with pytest.raises(IndexDamaged):
        put(filled, "new.md", "text")
    other.close()


def test_a_head_that_denies_the_checksums_is_damage(filled: SqliteStore) -> None:
    content = bytearray(Path(filled.path).read_bytes())
    assert content[20] == 8
    content[20] = 0
    Path(filled.path).write_bytes(content)
    with pytest.raises(IndexDamaged), filled.snapshot() as reader:
        reader.files()


def test_the_checking_vfs_is_not_the_default(filled: SqliteStore) -> None:
    assert checking_vfs() == "cksmvfs"
    assert apsw.vfs_names()[0] != "cksmvfs"


def test_a_lost_seal_is_made_again(filled: SqliteStore) -> None:
    Path(filled.path + ".seal").unlink()
    assert not read_seal(filled.path)
    with filled.snapshot() as reader:
        assert len(reader.files()) == 30
    put(filled, "new.md", "text")
    filled.close()
    assert read_seal(filled.path)


def test_messages_of_sqlite_are_shown_on_one_line() -> None:
    said = "*** in database main ***\nTree 7 page 7: unable to get the page. error code=8202"
    assert one_line(said) == "Tree 7 page 7: unable to get the page. error code=8202"
