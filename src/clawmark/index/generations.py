"""A rebuild beside the answers: the next generation is written next to the one that is searched, then one number flips.

Rows of the next generation get keys from `building_from` up, so that a search can leave them out by their key alone.
Rows they replace stay, marked with the generation they die in. A killed rebuild is taken up again or abandoned;
either way the old generation answers all the while. Two processes may work on one rebuild: whoever is done first
publishes it, and the other one's files are then ordinary changes. All functions work inside the transaction of a
`Writer`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from clawmark.index.writer import Writer

KEYS_LEFT_FREE = 1 << 24
"""Keys kept for ordinary changes while a rebuild runs: sixteen million chunks."""
MERGE_PAGES = 100
"""How many 16 KB pages of the full-text index one sweep rewrites: some 25 ms."""


def begin(writer: Writer, identity: dict[str, Any]) -> int:
    """Start the next generation, or go on with one made for the same identity."""
    meta = writer.meta
    if meta.number("building"):
        if meta.has_facts("building_identity", identity):
            return meta.number("building")
        abandon(writer)
    if meta.number("unswept"):
        while _sweep_rows(writer, 10_000):
            continue
    building = meta.number("generation") + 1
    first = (meta.number("next_key") // KEYS_LEFT_FREE + 2) * KEYS_LEFT_FREE
    meta.set_number("building", building)
    meta.set_number("building_from", first)
    meta.set_number("building_next", first)
    meta.set_facts("building_identity", identity)
    return building


def replace_later(writer: Writer, path: str) -> int:
    """Mark a file's rows to die when the rebuild is published, and drop what the rebuild made of it before."""
    building = writer.meta.number("building")
    writer.remove_files("path = ? AND born = ?", (path, building))
    for (file,) in writer.db.rows(
        "UPDATE files SET died = ? WHERE path = ? AND died IS NULL RETURNING key", (building, path)
    ):
        writer.db.rows("UPDATE chunks SET died = ? WHERE file = ?", (building, file))
    return building


def publish(writer: Writer) -> int:
    """Flip to the generation that was built; files it did not rebuild keep their rows."""
    meta = writer.meta
    if meta.number("building"):
        meta.set_number("generation", meta.number("building"))
        meta.set_number("next_key", meta.number("building_next"))
        meta.set_number("unswept", 1)
        _forget_building(writer)
    return meta.number("generation")


def abandon(writer: Writer) -> None:
    """Delete what was built and let the rows that waited to be replaced live on; one transaction, however long."""
    meta = writer.meta
    building = meta.number("building")
    if not building:
        return
    writer.remove_files("born = ?", (building,))
    writer.db.rows("UPDATE files SET died = NULL WHERE died = ?", (building,))
    writer.db.rows("UPDATE chunks SET died = NULL WHERE died = ?", (building,))
    _forget_building(writer)


def sweep(writer: Writer, limit: int) -> int:
    """One bounded step of cleaning: replaced rows first, then the words of deleted text."""
    if writer.meta.number("unswept"):
        swept = _sweep_rows(writer, limit)
        if swept:
            return swept
    return _sweep_words(writer)


def _sweep_rows(writer: Writer, limit: int) -> int:
    generation = writer.meta.number("generation")
    gone = writer.remove_chunks(
        "key IN (SELECT key FROM chunks WHERE died <= ? LIMIT ?)",
        (generation, limit),
    )
    if gone == 0:
        writer.db.rows("DELETE FROM files WHERE died <= ?", (generation,))
        writer.meta.set_number("unswept", 0)
    return gone


def _sweep_words(writer: Writer) -> int:
    """Rewrite a part of the full-text index without the words of deleted chunks.

    Deleting only marks a chunk there; its words leave the file when their segment is merged. Merging everything, a
    few pages at a time, is the way to be sure. What is deleted meanwhile is counted anew and merged in the next
    round.
    """
    meta, db = writer.meta, writer.db
    is_first = not meta.number("merging_words")
    if is_first:
        if not meta.number("dead_words"):
            return 0
        meta.set_number("merging_words", meta.number("dead_words"))
        meta.set_number("dead_words", 0)
    before = db.total_changes()
    # A negative number puts all segments into one merge; a positive one goes on with it.
    db.rows("INSERT INTO chunks_fts (chunks_fts, rank) VALUES ('merge', ?)", (-MERGE_PAGES if is_first else MERGE_PAGES,))
    if db.total_changes() - before < 2:
        meta.set_number("merging_words", 0)
    return 1


def _forget_building(writer: Writer) -> None:
    for counter in ("building", "building_from", "building_next"):
        writer.meta.set_number(counter, 0)
    writer.meta.set_facts("building_identity", {})
