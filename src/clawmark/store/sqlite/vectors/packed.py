"""Packs rows of fixed width into a few long blobs of `chunks_vec`, for the vector engines.

A block holds up to some hundred or thousand entries. It has a head row (capacity, count, live,
revision) and one row per part: `keys` (chunk keys), `rows` (rows of the embedding cache), and the
codes of an engine. Appending writes into the last block in place; removing sets the key to 0; a
block that is a fifth dead moves its living entries to the end. The head is a row of its own because
changing one column of a row rewrites all of it.

Space -3 holds the chunks that the model of space 3 does not cover: entries without codes, with
cache row 0."""

from array import array
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from clawmark.store.sqlite.db import Database

PARTS = {"keys": 1, "rows": 2, "int8": 3}
SMALLEST_BLOCK, LARGEST_BLOCK = 256, 4096
LARGEST_PART = 4 * 1024 * 1024
DEAD_SHARE = 0.2

_SHIFT, _STEP = 32, 8
_DEAD = bytes(8)


class Head(NamedTuple):
    """The head of a block."""

    block: int
    capacity: int
    used: int
    """Entries written, including dead ones."""
    live: int
    revision: int
    """The space's revision when the block last changed."""


def row_id(space: int, block: int, part: int = 0) -> int:
    """Return the row id of a part of a block; part 0 is the head."""
    return (space << _SHIFT) + block * _STEP + part


def heads(db: Database, space: int) -> list[Head]:
    """Return the blocks of a space in order."""
    found = db.rows(
        "SELECT block, capacity, count, live, revision FROM chunks_vec "
        "WHERE id >= ? AND id < ? AND part = 'head' ORDER BY id",
        (row_id(space, 0), row_id(space + 1, 0)),
    )
    return [Head(*row) for row in found]


def read_part(db: Database, space: int, head: Head, part: str, width: int) -> bytes:
    """Return the written entries of one part."""
    buffer = bytearray(head.used * width)
    list(db.read_blobs([(row_id(space, head.block, PARTS[part]), memoryview(buffer))]))
    return bytes(buffer)


def append(db: Database, space: int, revision: int, parts: Mapping[str, bytes]) -> None:
    """Append entries; `parts` holds the bytes of all of them for every part, including `keys`."""
    total = len(parts["keys"]) // 8
    widths = {name: len(data) // total for name, data in parts.items()}
    blocks = heads(db, space)
    written = 0
    while written < total:
        if not blocks or blocks[-1].used == blocks[-1].capacity:
            blocks.append(_new_block(db, space, blocks, widths))
        tail = blocks[-1]
        size = min(tail.capacity - tail.used, total - written)
        for name, data in parts.items():
            width = widths[name]
            piece = data[written * width : (written + size) * width]
            db.write_blob(row_id(space, tail.block, PARTS[name]), [(tail.used * width, piece)])
        blocks[-1] = tail._replace(used=tail.used + size, live=tail.live + size, revision=revision)
        _save_head(db, space, blocks[-1])
        written += size


def remove(
    db: Database, space: int, revision: int, keys: frozenset[int], widths: Mapping[str, int]
) -> int:
    """Mark the entries of these chunks as dead and return how many there were; `widths` are bytes
    per entry of each part."""
    removed = 0
    crowded = []
    for head in heads(db, space):
        here = _numbers(db, space, head, "keys")
        if keys.isdisjoint(here):
            continue
        dead = [slot for slot, key in enumerate(here) if key in keys]
        db.write_blob(
            row_id(space, head.block, PARTS["keys"]), [(slot * 8, _DEAD) for slot in dead]
        )
        changed = head._replace(live=head.live - len(dead), revision=revision)
        _save_head(db, space, changed)
        removed += len(dead)
        if changed.used - changed.live > changed.used * DEAD_SHARE:
            crowded.append(head.block)
    for block in crowded:
        # Read again, because the previous block may have moved its entries into this one.
        head = next(head for head in heads(db, space) if head.block == block)
        _move_to_tail(db, space, head, widths)
    return removed


def drop_some(db: Database, space: int) -> bool:
    """Delete a block of a space or of its uncovered chunks; return False if there is none left."""
    for number in (space, -space):
        for head in heads(db, number)[:1]:
            _delete_block(db, number, head.block)
            return True
    return False


def add_uncovered(db: Database, space: int, revision: int, keys: Sequence[int]) -> None:
    """Record chunks that never get a vector."""
    if keys:
        append(
            db, -space, revision, {"keys": array("q", keys).tobytes(), "rows": bytes(8 * len(keys))}
        )


def remove_uncovered(db: Database, space: int, revision: int, keys: frozenset[int]) -> int:
    """Remove such chunks and return how many there were."""
    return remove(db, -space, revision, keys, {"keys": 8, "rows": 8})


def held(db: Database, space: int, among: frozenset[int] | None) -> dict[int, int]:
    """Return the living entries of a space (all, or some), covered or not, with their cache
    rows."""
    found: dict[int, int] = {}
    for number in (space, -space):
        for head in heads(db, number):
            keys = _numbers(db, number, head, "keys")
            if among is not None and among.isdisjoint(keys):
                continue
            entries = zip(keys, _numbers(db, number, head, "rows"), strict=True)
            found.update(
                entries if among is None else [entry for entry in entries if entry[0] in among]
            )
    found.pop(0, None)
    return found


def rows_in_use(db: Database, space: int, among: frozenset[int]) -> set[int]:
    """Return those of the given cache rows that a living entry of a space refers to."""
    used: set[int] = set()
    for head in heads(db, space):
        rows = _numbers(db, space, head, "rows")
        if not among.isdisjoint(rows):
            keys = _numbers(db, space, head, "keys")
            used.update(row for key, row in zip(keys, rows, strict=True) if key and row in among)
    return used


def pick(data: bytes, width: int, slots: Sequence[int]) -> bytes:
    """Return the entries at some positions, joined."""
    return b"".join([data[slot * width : (slot + 1) * width] for slot in slots])


def _new_block(db: Database, space: int, blocks: Sequence[Head], widths: Mapping[str, int]) -> Head:
    """Return the capacity of the next block: it grows with the space, so that small ones waste
    little and large ones have few blocks."""
    quarter = sum(head.used for head in blocks) // 4
    capacity = min(LARGEST_BLOCK, max(SMALLEST_BLOCK, 1 << quarter.bit_length() >> 1))
    while capacity * max(widths.values()) > LARGEST_PART:
        capacity //= 2
    head = Head(
        block=blocks[-1].block + 1 if blocks else 0,
        capacity=max(capacity, 1),
        used=0,
        live=0,
        revision=0,
    )
    db.many(
        "INSERT INTO chunks_vec (id, space, block, part, data) VALUES (?, ?, ?, ?, zeroblob(?))",
        [
            (row_id(space, head.block, PARTS[name]), space, head.block, name, head.capacity * width)
            for name, width in widths.items()
        ],
    )
    db.rows(
        "INSERT INTO chunks_vec (id, space, block, part, capacity, count, live, revision) "
        "VALUES (?, ?, ?, 'head', ?, 0, 0, 0)",
        (row_id(space, head.block), space, head.block, head.capacity),
    )
    return head


def _save_head(db: Database, space: int, head: Head) -> None:
    db.rows(
        "UPDATE chunks_vec SET count = ?, live = ?, revision = ? WHERE id = ?",
        (head.used, head.live, head.revision, row_id(space, head.block)),
    )


def _move_to_tail(db: Database, space: int, head: Head, widths: Mapping[str, int]) -> None:
    """Delete a block and append its living entries again."""
    keys = _numbers(db, space, head, "keys")
    slots = [slot for slot, key in enumerate(keys) if key]
    kept = {
        name: pick(read_part(db, space, head, name, width), width, slots)
        for name, width in widths.items()
    }
    _delete_block(db, space, head.block)
    if slots:
        append(db, space, head.revision, kept)


def _delete_block(db: Database, space: int, block: int) -> None:
    first = row_id(space, block)
    db.rows("DELETE FROM chunks_vec WHERE id >= ? AND id < ?", (first, first + _STEP))


def _numbers(db: Database, space: int, head: Head, part: str) -> "array[int]":
    numbers = array("q")
    numbers.frombytes(read_part(db, space, head, part, 8))
    return numbers
