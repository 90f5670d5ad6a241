"""A rebuild beside the answers: the next generation is written next to the one that is searched,
then one number flips.

Chunks of the next generation get keys from `building_from` up, so that a search can leave their
vectors out by the key alone, and their words go into a full-text table of their own. Files they
replace stay, marked with the generation they die in. A killed rebuild is taken up again or
abandoned; either way the old generation answers all the while. Two processes may work on one
rebuild: whoever is done first publishes it, and the other one's files are then ordinary changes.
All functions work inside the transaction of a `Writer`, and each of them is short: what could take
long is left to `sweeping`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from clawmark.model.errors import IndexStoreError
from clawmark.store.sqlite.schema import STAGED
from clawmark.store.sqlite.upkeep.sweeping import THINNING

if TYPE_CHECKING:
    from clawmark.model.values import FileRow
    from clawmark.store.sqlite.writer import Writer

KEYS_LEFT_FREE = 1 << 24
"""Keys kept for ordinary changes while a rebuild runs: sixteen million chunks."""


def begin(writer: Writer, identity: dict[str, Any]) -> int:
    """Start the next generation, or go on with one made for the same identity; 0 when something
    must be swept first.
    """
    meta = writer.meta
    building = meta.number("building")
    if building and not meta.number("abandoned"):
        if meta.has_facts("building_identity", identity):
            return building
        abandon(writer)
    if any(map(meta.number, ("abandoned", "unswept", "emptying"))):
        return 0
    # Never a number that was used before, so that a process whose rebuild was abandoned can tell.
    building = 1 + max(meta.number("generation"), meta.number("last_built"))
    first = (meta.number("next_key") // KEYS_LEFT_FREE + 2) * KEYS_LEFT_FREE
    meta.set_number("building", building)
    meta.set_number("last_built", building)
    meta.set_number("building_from", first)
    meta.set_number("building_next", first)
    meta.set_facts("building_identity", identity)
    return building


def is_building(writer: Writer, number: int) -> bool:
    """Whether this rebuild is still running."""
    return 0 < number == writer.meta.number("building") and not writer.meta.number("abandoned")


def publish(writer: Writer, number: int) -> int:
    """Flip to the generation that was built, unless another process did or abandoned it."""
    meta = writer.meta
    if is_building(writer, number):
        if unbuilt(writer, number):
            raise IndexStoreError("The rebuild is not complete.", hint="Run `clawmark index`.")
        # What is staged for the old generation has its words in the table that will not answer any
        # more.
        writer.retire("died = ? AND born < ?", (STAGED, number))
        meta.set_number("generation", number)
        meta.set_number("next_key", meta.number("building_next"))
        meta.set_number("emptying", THINNING)
        # A merge of the old words that was cut off is not worth finishing: it would copy what is
        # about to be deleted.
        meta.set_number(f"merging_{writer.words}", 0)
        meta.set_number("words", 1 - meta.number("words"))
        meta.set_number("words_from", meta.number("building_from"))
        meta.set_number("unswept", 1)
        forget_building(writer)
    return meta.number("generation")


def unbuilt(writer: Writer, number: int) -> list[FileRow]:
    """The files that answer now and have not been rebuilt."""
    if not is_building(writer, number):
        return []
    left = writer.db.rows("SELECT path FROM files WHERE died IS NULL AND born < ?", (number,))
    return list(writer.files([path for (path,) in left]).values()) if left else []


def abandon(writer: Writer) -> None:
    """Give up a rebuild: nothing can be added to it from here on, and `sweeping` undoes it."""
    if writer.meta.number("building"):
        writer.meta.set_number("abandoned", 1)
        writer.meta.set_number("emptying", THINNING)


def forget_building(writer: Writer) -> None:
    """No rebuild is running any more."""
    for counter in ("building", "building_from", "building_next"):
        writer.meta.set_number(counter, 0)
    writer.meta.set_facts("building_identity", {})
