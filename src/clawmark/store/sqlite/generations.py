"""Rebuilds the index next to the generation that answers, then switches to the new one.

Chunks of the next generation get keys from `building_from` up, so that a search can exclude their
vectors by key, and their words go into a full-text table of their own. Files they replace stay,
marked with the generation they die in. A killed rebuild is continued or abandoned; the old
generation answers in both cases. Two processes may work on one rebuild: the first to finish
publishes it, and the files of the other are then ordinary changes. All functions run inside a
`SqliteTransaction` and are short; what could take long is left to `sweeping`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from clawmark.store.sqlite.schema import STAGED
from clawmark.store.sqlite.upkeep.sweeping import THINNING

if TYPE_CHECKING:
    from clawmark.model.values import FileRow
    from clawmark.store.sqlite.transaction import SqliteTransaction

KEYS_LEFT_FREE = 1 << 24
"""Keys reserved for ordinary changes while a rebuild runs: sixteen million chunks."""


def begin(writer: SqliteTransaction, identity: dict[str, Any]) -> int:
    """Start the next generation or continue one with the same identity; 0 = sweep first."""
    meta = writer.meta
    building = meta.number("building")
    if building and not meta.number("abandoned"):
        if meta.has_facts("building_identity", identity):
            return building
        abandon(writer)
    if any(map(meta.number, ("abandoned", "unswept", "emptying"))):
        return 0
    # Numbers are not reused, so that a process can tell that its rebuild was abandoned.
    building = 1 + max(meta.number("generation"), meta.number("last_built"))
    first = (meta.number("next_key") // KEYS_LEFT_FREE + 2) * KEYS_LEFT_FREE
    meta.set_number("building", building)
    meta.set_number("last_built", building)
    meta.set_number("building_from", first)
    meta.set_number("building_next", first)
    meta.set_facts("building_identity", identity)
    return building


def is_building(writer: SqliteTransaction, number: int) -> bool:
    """Return whether this rebuild is still running."""
    return 0 < number == writer.meta.number("building") and not writer.meta.number("abandoned")


def publish(writer: SqliteTransaction, number: int) -> list[FileRow]:
    """Switch to the generation that was built, or return the visible files it lacks.

    Nothing happens if another process has published or abandoned it."""
    missing = unbuilt(writer, number)
    if missing or not is_building(writer, number):
        return missing
    meta = writer.meta
    # Files staged for the old generation have their words in the table that no longer answers.
    writer.retire("died = ? AND born < ?", (STAGED, number))
    meta.set_number("generation", number)
    meta.set_number("next_key", meta.number("building_next"))
    meta.set_number("emptying", THINNING)
    # Finishing an interrupted merge of the old words would copy what is about to be deleted.
    meta.set_number(f"merging_{writer.words}", 0)
    meta.set_number("words", 1 - meta.number("words"))
    meta.set_number("words_from", meta.number("building_from"))
    meta.set_number("unswept", 1)
    identity = meta.facts("building_identity")
    if identity:
        meta.set_facts("identity", identity)
    meta.end_rebuild()
    return []


def unbuilt(writer: SqliteTransaction, number: int) -> list[FileRow]:
    """Return the visible files that have not been rebuilt."""
    if not is_building(writer, number):
        return []
    left = writer.db.rows("SELECT path FROM files WHERE died IS NULL AND born < ?", (number,))
    return list(writer.files([path for (path,) in left]).values()) if left else []


def abandon(writer: SqliteTransaction) -> None:
    """Abandon a rebuild: nothing can be added to it from now on, and `sweeping` removes it."""
    if writer.meta.number("building"):
        writer.meta.set_number("abandoned", 1)
        writer.meta.set_number("emptying", THINNING)
