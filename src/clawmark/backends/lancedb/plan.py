"""Decide what makes the table match the files."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from clawmark.backends.lancedb.entries import Captured
from clawmark.backends.lancedb.table import Row


class RowPlan(NamedTuple):
    """The rows to write and to delete."""

    put: tuple[Captured, ...]
    delete: tuple[str, ...]
    added: tuple[str, ...]
    """Files that have no row yet."""
    updated: tuple[str, ...]
    deleted: tuple[str, ...]
    """Files of which only rows are left."""

    @property
    def due_files(self) -> int:
        return len(self.added) + len(self.updated) + len(self.deleted)


def plan_rows(
    entries: Sequence[Captured],
    rows: Mapping[str, Row],
    unread: Collection[str] = (),
    *,
    force: bool = False,
) -> RowPlan:
    """Compare entries and rows; the rows of files that could not be read (`unread`) stay."""
    wanted = {entry.id: entry for entry in entries}
    put = tuple(
        entry
        for entry in entries
        if force or (known := rows.get(entry.id)) is None or known != row_of(entry)
    )
    delete = tuple(
        row.id for row in rows.values() if row.id not in wanted and row.path not in unread
    )
    indexed = {row.path for row in rows.values()}
    listed = {entry.path for entry in entries}
    changed = {entry.path for entry in put} | {rows[one].path for one in delete}
    return RowPlan(
        put=put,
        delete=delete,
        added=tuple(sorted(changed - indexed)),
        updated=tuple(sorted(changed & indexed & listed)),
        deleted=tuple(sorted((changed & indexed) - listed)),
    )


def row_of(entry: Captured) -> Row:
    """Return the row of an entry."""
    return Row(
        id=entry.id,
        text=entry.text,
        category=entry.category,
        importance=entry.importance,
        path=entry.path,
    )
