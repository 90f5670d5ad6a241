"""Turns the filters of a search into one SQL selection of chunk keys.

Paths are matched in Python, because in SQLite's GLOB `*` crosses folders."""

from typing import Any, NamedTuple

from clawmark.model.values import Filters
from clawmark.store.sqlite.db import Database, as_list
from clawmark.text.globs import path_matcher


class Selection(NamedTuple):
    """A SELECT for the keys of the visible chunks that pass the filters, and its bindings."""

    sql: str
    bindings: tuple[Any, ...]


def select(db: Database, generation: int, visible: str, filters: Filters) -> Selection:
    """Build the selection among the files `f` that meet a condition, which takes the generation
    twice.

    Chunks without a date pass neither `since` nor `until`."""
    sql = f"SELECT c.key FROM files f CROSS JOIN chunks c ON c.file = f.key WHERE {visible}"
    bindings: list[Any] = [generation, generation]
    if filters.source:
        # `memory` and `sessions` are stored with each file; an added folder is recognised by the
        # paths of its files.
        sql += " AND (f.source = ? OR lower(substr(f.path, 1, ?)) = ?)"
        prefix = f"{filters.source.lower()}:"
        bindings += [filters.source, len(prefix), prefix]
    if filters.path:
        sql += " AND f.key IN (SELECT value FROM json_each(?))"
        bindings.append(as_list(_files_at(db, generation, visible, filters.path)))
    if filters.since:
        sql += " AND c.last_day >= ?"
        bindings.append(filters.since)
    if filters.until:
        sql += " AND c.first_day <> '' AND c.first_day <= ?"
        bindings.append(filters.until)
    return Selection(sql, tuple(bindings))


def _files_at(db: Database, generation: int, visible: str, pattern: str) -> list[int]:
    matches = path_matcher(pattern)
    rows = db.rows(f"SELECT f.key, f.path FROM files f WHERE {visible}", (generation, generation))
    return [key for key, path in rows if matches(path)]
