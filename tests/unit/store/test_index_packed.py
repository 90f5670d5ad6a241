"""Packed blocks grow, die in parts, are compacted and never lose a living entry."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from pathlib import Path

import pytest

from clawmark.store.sqlite.db import Database
from clawmark.store.sqlite.meta import first_rows
from clawmark.store.sqlite.opening import open_writer
from clawmark.store.sqlite.vectors import packed

WIDTHS = {"keys": 8, "rows": 8, "int8": 3}


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Database]:
    opened = open_writer(str(tmp_path / "index.sqlite"), first_rows("blocks"))
    yield opened
    opened.close()


def add(db: Database, keys: range, revision: int = 1) -> None:
    parts = {
        "keys": array("q", keys).tobytes(),
        "rows": array("q", [key + 1000 for key in keys]).tobytes(),
        "int8": b"".join([bytes([key % 251, key % 7, 5]) for key in keys]),
    }
    packed.append(db, 1, revision, parts)


def contents(db: Database) -> dict[int, tuple[int, bytes]]:
    found = {}
    for head in packed.heads(db, 1):
        keys, rows = array("q"), array("q")
        keys.frombytes(packed.read_part(db, 1, head, "keys", 8))
        rows.frombytes(packed.read_part(db, 1, head, "rows", 8))
        codes = packed.read_part(db, 1, head, "int8", 3)
        assert head.live == sum(key != 0 for key in keys)
        found.update(
            {key: (rows[at], codes[at * 3 : at * 3 + 3]) for at, key in enumerate(keys) if key}
        )
    return found


def expected(keys: list[int]) -> dict[int, tuple[int, bytes]]:
    return {key: (key + 1000, bytes([key % 251, key % 7, 5])) for key in keys}


def test_entries_appended_in_pieces_are_complete(db: Database) -> None:
    for start in range(1, 6000, 371):
        add(db, range(start, min(start + 371, 6000)))
    assert contents(db) == expected(list(range(1, 6000)))
    heads = packed.heads(db, 1)
    assert [head.used for head in heads[:-1]] == [head.capacity for head in heads[:-1]]
    assert heads[0].capacity == packed.SMALLEST_BLOCK
    assert heads[-1].capacity > heads[0].capacity


def test_a_few_removed_entries_stay_as_holes(db: Database) -> None:
    add(db, range(1, 201))
    assert packed.remove(db, 1, 2, frozenset([5, 77, 9999]), WIDTHS) == 2
    (head,) = packed.heads(db, 1)
    assert (head.used, head.live, head.revision) == (200, 198, 2)
    assert contents(db) == expected([key for key in range(1, 201) if key not in (5, 77)])


def test_a_block_that_is_a_fifth_dead_is_compacted(db: Database) -> None:
    add(db, range(1, 1025))
    gone = frozenset(range(1, 400))
    assert packed.remove(db, 1, 2, gone, WIDTHS) == 399
    assert contents(db) == expected(list(range(400, 1025)))
    assert all(
        head.used - head.live <= head.used * packed.DEAD_SHARE for head in packed.heads(db, 1)
    )


def test_a_space_without_entries_has_no_rows(db: Database) -> None:
    add(db, range(1, 3000))
    assert packed.remove(db, 1, 2, frozenset(range(1, 3000)), WIDTHS) == 2999
    assert db.rows("SELECT count(*) FROM chunks_vec") == [(0,)]
    add(db, range(5000, 5010), revision=3)
    assert contents(db) == expected(list(range(5000, 5010)))


def test_entries_without_codes_are_kept_apart(db: Database) -> None:
    add(db, range(1, 11))
    packed.add_uncovered(db, 1, 1, [20, 21])
    assert packed.held(db, 1, None) == {**{key: key + 1000 for key in range(1, 11)}, 20: 0, 21: 0}
    assert packed.held(db, 1, frozenset([3, 20, 99])) == {3: 1003, 20: 0}
    assert packed.remove_uncovered(db, 1, 2, frozenset([20])) == 1
    while packed.drop_some(db, 1):
        continue
    assert packed.held(db, 1, None) == {}
    assert db.rows("SELECT count(*) FROM chunks_vec") == [(0,)]


def test_wide_entries_get_smaller_blocks(db: Database) -> None:
    width = 300_000
    packed.append(db, 1, 1, {"keys": array("q", range(1, 31)).tobytes(), "int8": bytes(30 * width)})
    assert all(head.capacity * width <= packed.LARGEST_PART for head in packed.heads(db, 1))
    assert sum(head.used for head in packed.heads(db, 1)) == 30
