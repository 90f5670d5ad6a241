"""Removes invisible rows from the index in short steps.

These are replaced and deleted rows, the remains of an abandoned rebuild, dropped vector spaces, the
words of the previous generation, and words of deleted chunks. A step is one call of `sweep` in a
transaction of its own; if the process is killed, the next one continues. Deleted text is
overwritten (`secure_delete`), so the cost of a step depends on what it frees.

FTS5 only marks a deleted row; its words leave the file when their segment is merged, and a merge is
limited by the pages it writes, not by those it frees. Therefore a table with more dead than living
rows is never merged as a whole, but thinned out in rounds."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from clawmark.model.errors import IndexStoreError
from clawmark.store.contents import MANY_LOOSE
from clawmark.store.sqlite.schema import DEAD
from clawmark.store.sqlite.upkeep import staging

if TYPE_CHECKING:
    from clawmark.store.sqlite.transaction import SqliteTransaction

MERGE_PAGES, FEWEST_PAGES = 64, 4
"""How many 16 KB pages of the full-text index one merging step rewrites at most, and at first
(about 15 ms)."""
QUICK_SECONDS, SLOW_SECONDS = 0.02, 0.05
"""After a faster step the next one rewrites twice as much, after a slower one half. The cost of a
page depends on which rows are dead: tens of thousands in a row make it ten times as slow."""
FILES_AT_ONCE = 2000
"""How many rows of `files` one step changes (about 25 ms)."""
CHUNKS_AT_ONCE, FEWEST_CHUNKS = 500, 25
"""How many chunks one step deletes (about 25 ms).

Fewer in a small index, because the log takes space too."""
FEW_DEAD = 1000
"""This many dead rows can always be merged away at once."""
TOO_MANY_LOOSE = 64
"""Every commit adds a segment to the full-text index, and a search reads each of them: with 6,000
chunks it takes half the time when 18 segments have been merged into one, which takes a tenth of the
time it took to index them. This is done at the end of a sync that leaves `MANY_LOOSE`; during a
sync it is only ensured that there are not too many."""
MOVED_AT_ONCE = 64
"""How many pages one step moves to free space (about 15 ms)."""
MANY_FREE, FEW_FREE = 8, 16
"""Done if more than this fraction of the file is free, and more than a few pages."""
THINNING = 4
"""Of the rows of a table that is emptied, every fourth is left for the next round."""


def sweep(writer: SqliteTransaction, limit: int | None) -> int:
    """Do one step; return 0 if there is nothing left to do."""
    staging.give_up_stale(writer)
    limit = limit or min(CHUNKS_AT_ONCE, max(FEWEST_CHUNKS, page_count(writer) // 12))
    for step in (_undo_abandoned, _sweep_rows, _sweep_spaces, _shrink, _empty_words, _sweep_words):
        done = step(writer, limit)
        if done:
            return done
    return 0


def _undo_abandoned(writer: SqliteTransaction, _: int) -> int:
    """Restore the files that were to be replaced, and mark what was built as dead."""
    meta, db = writer.meta, writer.db
    if not meta.number("abandoned"):
        return 0
    building = meta.number("building")
    some = "key IN (SELECT key FROM files WHERE {} LIMIT ?)"
    before = db.total_changes()
    db.rows(
        f"UPDATE files SET died = NULL WHERE {some.format('died = ?')}", (building, FILES_AT_ONCE)
    )
    built = some.format("born = ? AND died IS NOT ?")
    db.rows(f"UPDATE files SET died = ? WHERE {built}", (DEAD, building, DEAD, FILES_AT_ONCE))
    # `building_from` tells where its words are; it is cleared when all of its rows are swept.
    meta.set_number("unswept", 1)
    return db.total_changes() - before


def _sweep_rows(writer: SqliteTransaction, limit: int) -> int:
    meta, db = writer.meta, writer.db
    if not meta.number("unswept"):
        return 0
    if has_many_dead(writer):
        return _sweep_words(writer, limit)
    generation = meta.number("generation")
    doomed = db.rows(
        "SELECT c.key FROM files f CROSS JOIN chunks c ON c.file = f.key WHERE f.died BETWEEN ? "
        "AND ? LIMIT ?",
        (DEAD, generation, limit),
    )
    if doomed:
        writer.remove_chunks([key for (key,) in doomed])
        return len(doomed)
    before = db.total_changes()
    dead = "SELECT key FROM files WHERE died BETWEEN ? AND ? LIMIT ?"
    db.rows(f"DELETE FROM files WHERE key IN ({dead})", (DEAD, generation, FILES_AT_ONCE))
    gone = db.total_changes() - before
    if not gone:
        meta.set_number("unswept", 0)
        meta.set_number("masked", 0)
        if meta.number("abandoned"):
            meta.set_number("abandoned", 0)
            meta.end_rebuild()
    return max(gone, 1)


def _sweep_spaces(writer: SqliteTransaction, _: int) -> int:
    """Delete the vectors of a dropped space, one block at a time."""
    retired = writer.meta.facts("retired")
    for number, engine in retired.items():
        try:
            if writer.drop_some(int(number), engine):
                return 1
        except IndexStoreError:
            # Its engine is no longer installed; what it left does no harm.
            continue
        del retired[number]
        writer.meta.set_facts("retired", retired)
        return 1
    return 0


def _empty_words(writer: SqliteTransaction, limit: int) -> int:
    """Empty the full-text table that does not answer: in rounds, most rows are deleted and the rest
    is merged."""
    meta, table = writer.meta, writer.other_words
    every = meta.number("emptying")
    if not every:
        return 0
    if meta.number(f"merging_{table}"):
        return _merge_all(writer, table)
    few = min(FEW_DEAD, max(FEWEST_CHUNKS, page_count(writer) // 8))
    condition = f"id % {every} <> 0" if row_count(writer, table) > few else "1"
    doomed = writer.db.rows(f"SELECT id FROM {table}_docsize WHERE {condition} LIMIT ?", (limit,))
    if doomed:
        delete_words(writer, table, [key for (key,) in doomed])
        return 1
    if meta.number(f"dead_{table}"):
        meta.set_number("emptying", every * THINNING)
        return _merge_all(writer, table)
    meta.set_number("emptying", 0)
    return 1


def _sweep_words(writer: SqliteTransaction, _: int = 0) -> int:
    """Merge a part of the full-text table that answers into one segment, without the words of
    deleted chunks.

    What is deleted during the merge is counted again and merged in the next round."""
    meta, table = writer.meta, writer.words
    if (
        meta.number(f"merging_{table}")
        or meta.number(f"dead_{table}")
        or meta.number(f"loose_{table}") >= MANY_LOOSE
    ):
        return _merge_all(writer, table)
    return 0


def _shrink(writer: SqliteTransaction, _: int) -> int:
    """Return free space at the end of the file to the disk, if there is much of it."""
    free, pages = int(writer.db.rows("PRAGMA freelist_count")[0][0]), page_count(writer)
    if free <= max(FEW_FREE, pages // MANY_FREE):
        return 0
    writer.db.rows(
        f"PRAGMA incremental_vacuum({min(MOVED_AT_ONCE, max(FEWEST_PAGES, pages // 48))})"
    )
    return 1


def has_many_dead(writer: SqliteTransaction) -> bool:
    """Return whether the table that answers must be merged before more of its rows are deleted."""
    dead = writer.meta.number(f"dead_{writer.words}")
    if writer.meta.number(f"merging_{writer.words}"):
        return dead > FEW_DEAD
    return dead > FEW_DEAD and dead > row_count(writer, writer.words)


def delete_words(writer: SqliteTransaction, table: str, keys: Sequence[int]) -> None:
    """Delete the words of some chunks."""
    writer.db.many(f"DELETE FROM {table} WHERE rowid = ?", [(key,) for key in keys])
    for number in (f"dead_{table}", "words_deleted"):
        writer.meta.set_number(number, writer.meta.number(number) + len(keys))


def note_new_words(writer: SqliteTransaction, table: str) -> None:
    """Count the segment that this commit adds to a full-text table; merge a few if there are
    many."""
    loose = writer.meta.number(f"loose_{table}") + 1
    writer.meta.set_number(f"loose_{table}", loose)
    if loose > TOO_MANY_LOOSE:
        # Half a step: the other half of the time was spent on the writes before.
        _merge(writer, table, _pages(writer) // 2)


def _merge_all(writer: SqliteTransaction, table: str) -> int:
    """Do one step of merging everything in a table into one segment."""
    meta, merging, pace = writer.meta, f"merging_{table}", f"pace_{table}"
    is_first = not meta.number(merging)
    if is_first:
        dead = meta.number(f"dead_{table}")
        meta.set_number(pace, FEWEST_PAGES if dead else MERGE_PAGES)
        meta.set_number(merging, max(1, dead))
        meta.set_number(f"dead_{table}", 0)
        meta.set_number(f"loose_{table}", 0)
    living = row_count(writer, table)
    pages = max(
        1, min(meta.number(pace), _pages(writer)) * living // (living + meta.number(merging))
    )
    began = time.monotonic()
    # A negative number puts all segments into one merge; a positive one continues it.
    if _merge(writer, table, -pages if is_first else pages) < 2:
        meta.set_number(merging, 0)
    meta.set_number(pace, _next_pace(meta.number(pace), time.monotonic() - began))
    return 1


def _next_pace(pages: int, took: float) -> int:
    if took > SLOW_SECONDS:
        return max(1, pages // 2)
    return min(MERGE_PAGES, 2 * max(1, pages)) if took < QUICK_SECONDS else pages


def _merge(writer: SqliteTransaction, table: str, pages: int) -> int:
    before = writer.db.total_changes()
    writer.db.rows(f"INSERT INTO {table} ({table}, rank) VALUES ('merge', ?)", (pages,))
    return writer.db.total_changes() - before


def _pages(writer: SqliteTransaction) -> int:
    """Return how many pages a step may rewrite; few in a small index with two generations, where
    the log counts too."""
    return (
        min(MERGE_PAGES, max(FEWEST_PAGES, page_count(writer) // 48))
        if writer.holds_two
        else MERGE_PAGES
    )


def row_count(writer: SqliteTransaction, table: str) -> int:
    """Count the living rows of a full-text table."""
    return int(writer.db.rows(f"SELECT count(*) FROM {table}_docsize")[0][0])


def page_count(writer: SqliteTransaction) -> int:
    """Count the pages of the index, including free ones."""
    return int(writer.db.rows("PRAGMA page_count")[0][0])
