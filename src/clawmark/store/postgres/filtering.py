"""Turns the filters of a search into one SQL selection of chunk keys.

Paths are matched in Python, by the same rules as in the other store."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from clawmark.model.values import Filters
from clawmark.text.globs import path_matcher


class Selection(NamedTuple):
    """A SELECT for the keys of the visible chunks that pass the filters, and its parameters."""

    sql: str
    parameters: tuple[Any, ...]


def select(
    scope: int, visible: str, filters: Filters, paths: Callable[[], Iterable[tuple[int, str]]]
) -> Selection:
    """Build the selection among the files `f` that meet a condition; `paths` lists them.

    Chunks without a date pass neither `since` nor `until`."""
    sql = (
        "SELECT c.key FROM clawmark.files f JOIN clawmark.chunks c "
        f"ON c.scope = f.scope AND c.file = f.key WHERE f.scope = {scope} AND {visible}"
    )
    parameters: list[Any] = []
    if filters.source:
        sql += " AND (f.source = %s OR lower(left(f.path, %s)) = %s)"
        prefix = f"{filters.source.lower()}:"
        parameters += [filters.source, len(prefix), prefix]
    if filters.path:
        matches = path_matcher(filters.path)
        sql += " AND f.key = ANY (%s)"
        parameters.append([key for key, path in paths() if matches(path)])
    if filters.since:
        sql += " AND c.last_day >= %s"
        parameters.append(filters.since)
    if filters.until:
        sql += " AND c.first_day <> '' AND c.first_day <= %s"
        parameters.append(filters.until)
    return Selection(sql, tuple(parameters))
