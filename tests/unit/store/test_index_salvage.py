"""Vectors of an index that was set aside are recovered into the cache of the new one."""

from __future__ import annotations

import os
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from clawmark.model.errors import IndexDamaged
from clawmark.store.sqlite.store import SqliteStore
from clawmark.store.sqlite.upkeep.salvage import AT_ONCE, MOST_EMPTY, _readable
from clawmark.testing.vectors import fill, identity_of, random_vectors

PAGE, TABLE_LEAF = 16384, 13
MODEL = identity_of(64).model.encode()


def set_aside(index: SqliteStore) -> None:
    """Damage the header of the table of files and create a new index."""
    with pytest.raises(IndexDamaged):
        index.check()
    aside = index.set_aside("corrupt")
    assert aside
    with index.transaction() as writer:
        writer.set_facts("healed", {"at": 1, "what": "It broke.", "aside": os.path.basename(aside)})


def spoil(index: SqliteStore, pages: range) -> None:
    content = bytearray(Path(index.path).read_bytes())
    for page in pages:
        content[page * PAGE + 100] ^= 1
    Path(index.path).write_bytes(content)


@pytest.fixture
def hashes(index: SqliteStore) -> dict[str, bytes]:
    vectors = random_vectors(400, 64, seed=1)
    keys = fill(index, "a.md", vectors, 64)
    with index.snapshot() as reader:
        rows = reader.chunks(keys)
    index.close()
    return {rows[key].hash: vector for key, vector in zip(keys, vectors, strict=True)}


def test_every_readable_vector_is_recovered(index: SqliteStore, hashes: dict[str, bytes]) -> None:
    pages = Path(index.path).stat().st_size // PAGE
    spoil(index, range(pages - 2, pages))
    set_aside(index)
    count = index.recover_vectors()
    assert 200 < count <= 400
    with index.snapshot() as reader:
        kept = reader.cached(identity_of(64), list(hashes))
        assert len(kept) == count == reader.state().cache_entries
        assert all(kept[text] == hashes[text] for text in kept)


def test_recovery_runs_once(index: SqliteStore, hashes: dict[str, bytes]) -> None:
    pages = Path(index.path).stat().st_size // PAGE
    spoil(index, range(pages - 1, pages))
    set_aside(index)
    assert index.recover_vectors() > 0
    assert index.recover_vectors() == 0
    with index.snapshot() as reader:
        assert reader.facts("healed") == {"at": 1, "what": "It broke."}


def test_nothing_is_recovered_from_a_file_that_is_not_a_database(
    index: SqliteStore, hashes: dict[str, bytes]
) -> None:
    Path(index.path).write_bytes(b"rubbish" * 1000)
    set_aside(index)
    assert index.recover_vectors() == 0


def test_nothing_is_recovered_if_no_index_was_set_aside(
    index: SqliteStore, hashes: dict[str, bytes]
) -> None:
    assert index.recover_vectors() == 0


def install_draft(index: SqliteStore, one: int, other: int) -> None:
    """Copy a page over another one: both are intact, but one is in the wrong place."""
    content = Path(index.path).read_bytes()
    page = content[other * PAGE : (other + 1) * PAGE]
    Path(index.path).write_bytes(content[: one * PAGE] + page + content[(one + 1) * PAGE :])


def test_a_misplaced_page_neither_stops_recovery_nor_adds_wrong_vectors(
    index: SqliteStore, hashes: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("clawmark.store.sqlite.upkeep.salvage.MOST_EMPTY", 5)
    sound = Path(index.path).read_bytes()
    pages = [sound[start : start + PAGE] for start in range(0, len(sound), PAGE)]
    leaves = [
        number for number, page in enumerate(pages) if page[0] == TABLE_LEAF and MODEL in page
    ]
    assert len(leaves) > 5
    for one, other in product((leaves[0], leaves[4]), range(1, len(pages))):
        if one == other:
            continue
        for file in Path(index.path).parent.glob("*.sqlite*"):
            file.unlink()
        Path(index.path).write_bytes(sound)
        install_draft(index, one, other)
        set_aside(index)
        assert index.recover_vectors() > 300
        with index.snapshot() as reader:
            kept = reader.cached(identity_of(64), list(hashes))
        assert all(kept[text] == hashes[text] for text in kept)
        index.close()


def test_recovery_stops_after_many_broken_pages() -> None:
    asked = list[int]()

    class Broken:
        def rows(
            self, sql: str, bindings: tuple[int, ...] = (), *, patient: bool
        ) -> list[tuple[int]]:
            if not bindings:
                return [(2**40 if "max" in sql else 1,)]
            asked.append(bindings[0])
            raise IndexDamaged("The page is broken.", hint="")

    found: Any = _readable(Broken())  # type: ignore[arg-type]
    assert [rows for rows in found if rows] == []
    assert max(asked) < AT_ONCE * MOST_EMPTY
