"""The LanceDB table `memories`: one row for each captured entry that has a vector.

The table is derived from the files and can be deleted at any time. It is opened again for each
operation, so that the rows of other processes are seen. The callers hold a lock: LanceDB cannot
remove an old version while another process reads it."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from importlib import import_module
from typing import Any, NamedTuple

from clawmark.backends.lancedb.entries import Captured, as_id
from clawmark.model.errors import BackendUnavailable, IndexDamaged
from clawmark.model.values import Identity, Vector
from clawmark.system.private_files import make_private_folder

NAME = "memories"
_IDENTITY = b"clawmark.identity"
_COLUMNS = ("id", "text", "category", "importance", "path")
_MOST_FRAGMENTS = 100
"""Each write adds a fragment; above this many they are merged."""


class Row(NamedTuple):
    """A row without its vector."""

    id: str
    text: str
    category: str
    importance: float
    path: str


class MemoryTable:
    """The rows of one agent; `lancedb` is imported when the table is first opened or created."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self._path = os.path.join(folder, f"{NAME}.lance")
        self._seen: tuple[int, dict[str, Row]] | None = None

    def exists(self) -> bool:
        """Check whether there is a table, without importing `lancedb`."""
        return os.path.isdir(self._path)

    def identity(self) -> Identity | None:
        """Return the embedder of the vectors; None without a table."""
        if not self.exists():
            return None
        with _translated():
            return _identity(_open(self.folder))

    def rows(self) -> Mapping[str, Row]:
        """Return the rows by id; they are read again only if the table has changed."""
        if not self.exists():
            return {}
        with _translated():
            table = _open(self.folder)
            version = int(table.version)
            if self._seen is None or self._seen[0] != version:
                read = table.search().select(list(_COLUMNS)).limit(table.count_rows() or 1)
                rows = (Row(**row) for row in read.to_arrow().to_pylist())
                self._seen = version, {row.id: row for row in rows}
        return self._seen[1]

    def put(
        self, entries: Sequence[Captured], vectors: Sequence[Vector], made_by: Identity
    ) -> None:
        """Add or update rows; the table is created if it does not exist."""
        dims = len(vectors[0]) // 4
        with _translated():
            if not self.exists():
                make_private_folder(self.folder)
                schema = _schema(made_by._replace(dims=dims))
                _lancedb().connect(self.folder).create_table(NAME, schema=schema)
                self._seen = None
            table = _open(self.folder)
            if not is_same_space(_identity(table), made_by._replace(dims=dims)):
                raise ValueError("its vectors were made by another embedder")
            data = _arrow(entries, vectors, table.schema)
            merge = table.merge_insert("id").when_matched_update_all()
            merge.when_not_matched_insert_all().execute(data)

    def delete(self, ids: Sequence[str]) -> None:
        """Mark rows as deleted; `tidy` removes their text from the disk."""
        listed = ", ".join(f"'{one}'" for one in map(as_id, ids) if one)
        if not listed or not self.exists():
            return
        with _translated():
            table = _open(self.folder)
            table.delete(f"id IN ({listed})")

    def tidy(self) -> None:
        """Remove the text of deleted and replaced rows from the disk.

        LanceDB only marks such rows, and a process may be killed before this call. The rows that
        are left are written to new files, and the old versions are deleted."""
        if not self.exists():
            return
        with _translated():
            table = _open(self.folder)
            fragments = int(table.stats()["fragment_stats"]["num_fragments"])
            leftovers = self._count("_deletions") or self._count("data") > fragments
            if not leftovers and fragments <= _MOST_FRAGMENTS:
                return
            schema, rows = table.schema, table.to_arrow()
            self._seen = None
            database = _lancedb().connect(self.folder)
            table = database.create_table(NAME, data=rows, schema=schema, mode="overwrite")
            # A millisecond instead of zero, for which LanceDB warns about other readers.
            table.optimize(cleanup_older_than=timedelta(milliseconds=1), delete_unverified=True)

    def nearest(self, vector: Vector, most: int) -> dict[str, float]:
        """Return the ids of the nearest rows with their cosines."""
        if not self.exists():
            return {}
        with _translated():
            table = _open(self.folder)
            identity = _identity(table)
            if identity is None or identity.dims * 4 != len(vector):
                return {}
            numbers: Any = memoryview(vector).cast("f")
            search = table.search(list(numbers)).distance_type("cosine")
            read = search.select(["id", "_distance"]).limit(most).to_arrow()
            return {row["id"]: 1.0 - row["_distance"] for row in read.to_pylist()}

    def check(self) -> None:
        """Import `lancedb`, and open the table if there is one."""
        _lancedb()
        self.rows()

    def _count(self, name: str) -> int:
        folder = os.path.join(self._path, name)
        return len(os.listdir(folder)) if os.path.isdir(folder) else 0

    def drop(self) -> None:
        """Delete the table, also if it is damaged."""
        self._seen = None
        shutil.rmtree(self._path, ignore_errors=True)


def is_same_space(stored: Identity | None, made: Identity) -> bool:
    """Check whether vectors can be compared; a service may not know its size before it is used."""
    if stored is None or stored[:3] != made[:3]:
        return False
    return made.dims in (0, stored.dims)


def _schema(identity: Identity) -> Any:
    pa = _pyarrow()
    vector = pa.list_(pa.float32(), identity.dims)
    columns = {
        "id": pa.string(),
        "text": pa.string(),
        "vector": vector,
        "importance": pa.float64(),
        "category": pa.string(),
        "createdAt": pa.int64(),
        "path": pa.string(),
    }
    metadata = {_IDENTITY: json.dumps(identity).encode()}
    return pa.schema([pa.field(name, kind) for name, kind in columns.items()], metadata=metadata)


def _identity(table: Any) -> Identity | None:
    try:
        return Identity(*json.loads((table.schema.metadata or {})[_IDENTITY]))
    except (KeyError, ValueError, TypeError):
        return None


def _arrow(entries: Sequence[Captured], vectors: Sequence[Vector], schema: Any) -> Any:
    rows = [
        {
            "id": entry.id,
            "text": entry.text,
            "vector": list(memoryview(vector).cast("f")),
            "importance": entry.importance,
            "category": entry.category,
            "createdAt": entry.created_ms,
            "path": entry.path,
        }
        for entry, vector in zip(entries, vectors, strict=True)
    ]
    return _pyarrow().Table.from_pylist(rows, schema=schema)


def _open(folder: str) -> Any:
    return _lancedb().connect(folder).open_table(NAME)


@contextmanager
def _translated() -> Iterator[None]:
    """Turn errors of LanceDB into an error after which the table is rebuilt."""
    try:
        yield
    except (OSError, RuntimeError, ValueError, KeyError, TypeError) as error:
        first = str(error).partition("\n")[0][:200]
        raise IndexDamaged(
            f"The LanceDB table cannot be used: {first}.",
            hint="It is rebuilt from memory/captured by the next sync.",
        ) from error


def _lancedb() -> Any:
    return _imported("lancedb")


def _pyarrow() -> Any:
    return _imported("pyarrow")


def _imported(name: str) -> Any:
    """Import an optional package; it takes seconds, so only where the table is used."""
    try:
        return import_module(name)
    except ImportError as error:
        raise BackendUnavailable(
            f"The package {name} cannot be imported ({error}).",
            backend="lancedb",
            hint="Run pip install 'clawmark[lancedb]'.",
        ) from error
