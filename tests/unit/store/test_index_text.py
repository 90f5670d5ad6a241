"""Deleted text leaves the tables, and after sweeping also the pages of the file."""

from __future__ import annotations

from pathlib import Path

import pytest

from clawmark.store.sqlite.store import SqliteStore
from clawmark.testing.store_samples import any_of
from clawmark.testing.vectors import file_of, fill, random_vectors


def test_a_deleted_file_leaves_no_rows(index: SqliteStore) -> None:
    fill(index, "a.md", random_vectors(3, 8, seed=1), 8)
    with index.transaction() as writer:
        writer.delete_file("a.md")
        writer.delete_file("never-there.md")
    with index.snapshot() as reader:
        assert reader.files() == {}
        assert reader.search_keywords(any_of("passage"), 5) == []
        assert reader.db.rows("SELECT count(*) FROM chunks") == [(0,)]
        assert reader.db.rows("SELECT count(*) FROM chunks_vec") == [(0,)]


@pytest.mark.parametrize("how", ["drop", "replace", "rebuild"])
def test_deleted_text_is_in_no_page_of_the_file(how: str, index: SqliteStore) -> None:
    """Words too: a full-text index keeps them in sorted lists, which a search of the bytes would
    find."""
    secret = "xylophonequartz"
    with index.transaction() as writer:
        writer.put_file(*file_of("a.md", f"the password is {secret}", heading=secret))
        for number in range(40):
            writer.put_file(*file_of(f"{number}.md", f"other text number {number} " * 20))
    index.close()
    assert secret.encode() in Path(index.path).read_bytes()
    with index.transaction() as writer:
        if how == "drop":
            writer.delete_file("a.md")
        elif how == "replace":
            writer.put_file(*file_of("a.md", "nothing to see"))
        else:
            number = writer.begin_rebuild()
            writer.put_file(*file_of("a.md", "nothing to see"), building=number)
            for other in range(40):
                writer.put_file(
                    *file_of(f"{other}.md", f"other text number {other} " * 20), building=number
                )
            writer.publish(number)
    with index.snapshot() as reader:
        assert reader.state().dead_words > 0 or reader.state().has_dead
    sweep(index)
    with index.snapshot() as reader:
        assert (reader.state().dead_words, reader.state().has_dead) == (0, False)
        assert len(reader.search_keywords(any_of("number"), 100)) == 40
        assert reader.integrity_problems() == []
    index.close()
    files = [Path(index.path + suffix).read_bytes() for suffix in ("", "-wal")]
    for part in (secret.encode(), b"quartz", b"xylophon"):
        assert not any(part in content for content in files)


def sweep(index: SqliteStore) -> int:
    rounds = 0
    while True:
        with index.transaction() as writer:
            if not writer.sweep():
                return rounds
        rounds += 1
        assert rounds < 1000


def test_sweeping_a_clean_index_does_nothing(index: SqliteStore) -> None:
    with index.transaction() as writer:
        writer.put_file(*file_of("a.md", "alpha"))
    assert sweep(index) == 0
