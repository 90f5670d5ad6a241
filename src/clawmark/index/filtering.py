"""Which chunks a search may find: its filters as one SQL selection of chunk keys.

Paths are matched in Python, because SQLite's GLOB lets `*` cross folders; everything else is left to the query.
"""

from __future__ import annotations

from typing import Any

from clawmark.index.db import Database, as_list
from clawmark.types import Filters
from clawmark.values import NamedTuple


class Selection(NamedTuple):
    """A SELECT that gives the keys of the visible chunks that pass the filters, and its bindings."""

    sql: str
    bindings: tuple[Any, ...]


def select(db: Database, generation: int, visible: str, filters: Filters) -> Selection:
    """The selection among the files `f` that meet a condition, which takes the generation twice.

    Chunks without a date pass neither `since` nor `until`.
    """
    sql = f"SELECT c.key FROM files f CROSS JOIN chunks c ON c.file = f.key WHERE {visible}"
    bindings: list[Any] = [generation, generation]
    if filters.source:
        sql += " AND f.source = ?"
        bindings.append(filters.source)
    if filters.path:
        sql += " AND f.key IN (SELECT value FROM json_each(?))"
        bindings.append(as_list(_files_at(db, generation, filters.path)))
    if filters.since:
        sql += " AND c.last_day >= ?"
        bindings.append(filters.since)
    if filters.until:
        sql += " AND c.first_day <> '' AND c.first_day <= ?"
        bindings.append(filters.until)
    return Selection(sql, tuple(bindings))


def _files_at(db: Database, generation: int, pattern: str) -> list[int]:
    from clawmark.text.globs import path_matcher

    matches = path_matcher(pattern)
    rows = db.rows("SELECT key, path FROM files WHERE born <= ? AND (died IS NULL OR died > ?)", (generation, generation))
    return [key for key, path in rows if matches(path)]
