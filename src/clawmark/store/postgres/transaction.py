"""Changes an index in PostgreSQL, within one transaction opened by `PostgresStore.transaction`.

The transaction holds the lock of the index. What is replaced or deleted is removed at once, and the
counts of terms, chunks and vectors are changed with the rows. Keys are never used twice."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from clawmark.model.documents import Chunk
from clawmark.model.errors import IndexBusy, IndexStoreError
from clawmark.model.values import FileRow, Identity, Space, Vector, noise_fact
from clawmark.store.base import ChunkWords
from clawmark.store.postgres import statements
from clawmark.store.postgres.counting import PendingCounts
from clawmark.store.postgres.rows import IndexRow
from clawmark.store.postgres.servers import Connection, Server
from clawmark.store.postgres.snapshot import PostgresSnapshot
from clawmark.store.postgres.tokens import array_text, hasher_of
from clawmark.store.postgres.vectors import as_halfvec

TOUCH_AFTER_NS = 60 * 1_000_000_000
"""A use of a cached vector within a minute of the last one is not recorded."""
SWEPT_AT_ONCE = 2_000
STALE_SECONDS = 60
"""A staged file that has not grown for this long belongs to a process that died."""


class PostgresTransaction(PostgresSnapshot):
    """A snapshot that can be changed; see `WriteTransaction` for the methods."""

    def __init__(
        self,
        connection: Connection,
        server: Server,
        scope: int,
        row: IndexRow,
        clock: Callable[[], int],
    ) -> None:
        super().__init__(connection, server, scope, row)
        self.now = clock
        self._counts = PendingCounts(connection, scope)
        self._written_key = row.next_key

    def finish(self) -> None:
        """Write what is kept until the end of the transaction; called before it is committed."""
        self._counts.write()
        if self._written_key != self.row.next_key:
            self._run(
                "UPDATE clawmark.indexes SET next_key = %s WHERE scope = %s",
                (self.row.next_key, self.scope),
            )
            self._written_key = self.row.next_key

    # --- text -------------------------------------------------------------------------------------

    def put_file(
        self,
        row: FileRow,
        chunks: Sequence[Chunk],
        words: Sequence[ChunkWords],
        *,
        building: int = 0,
    ) -> list[int]:
        edition = self._edition(building)
        self._make_way(row.path, edition)
        file = self._insert_file(row._replace(chunks=len(chunks)), edition, is_staged=False)
        return self._insert_chunks(file, edition, chunks, words, is_counted=True)

    def extend_file(
        self,
        row: FileRow,
        first_line: int,
        chunks: Sequence[Chunk],
        words: Sequence[ChunkWords],
        *,
        was: str,
        building: int = 0,
    ) -> bool:
        edition = self._edition(building)
        found = self.rows(
            "SELECT key FROM clawmark.files WHERE scope = %s AND path = %s AND progress = %s "
            "AND edition = %s AND staged_at IS NULL",
            row.path,
            was,
            edition,
        )
        if not found:
            return False
        file = found[0][0]
        doomed = self.rows(
            "SELECT key FROM clawmark.chunks WHERE scope = %s AND file = %s AND start_line >= %s",
            file,
            first_line,
        )
        self._remove_chunks([key for (key,) in doomed], edition)
        self._run(
            "UPDATE clawmark.files SET hash = %s, size = %s, mtime_ns = %s, inode = %s, "
            "device = %s, seen_ns = %s, chunks = chunks - %s + %s, progress = %s "
            "WHERE scope = %s AND key = %s",
            (*row[2:8], len(doomed), len(chunks), row.progress, self.scope, file),
        )
        self._insert_chunks(file, edition, chunks, words, is_counted=True)
        return True

    def stage_file(self, row: FileRow, *, building: int = 0) -> int:
        """Begin a file that is stored in several transactions, and return its key."""
        return self._insert_file(row, self._edition(building), is_staged=True)

    def add_chunks(self, file: int, chunks: Sequence[Chunk], words: Sequence[ChunkWords]) -> None:
        """Store more chunks of a staged file; they are not visible yet."""
        _, edition = self._staged_origin(file)
        self._run(
            "UPDATE clawmark.files SET staged_at = now() WHERE scope = %s AND key = %s",
            (self.scope, file),
        )
        self._insert_chunks(file, edition, chunks, words, is_counted=False)

    def finish_file(self, file: int) -> None:
        """Make a staged file visible in place of the version before it."""
        path, edition = self._staged_origin(file)
        if edition not in (self.generation, self.building):
            raise IndexBusy(
                "The index was rebuilt while a file was stored.", hint="Run `clawmark index`."
            )
        self._make_way(path, edition)
        self._run(
            "UPDATE clawmark.files SET staged_at = NULL WHERE scope = %s AND key = %s",
            (self.scope, file),
        )
        self._staged = None
        keys = self.rows("SELECT key FROM clawmark.chunks WHERE scope = %s AND file = %s", file)
        self._count([key for (key,) in keys], edition, 1)

    def touch_file(self, row: FileRow) -> None:
        self._run(
            "UPDATE clawmark.files SET size = %s, mtime_ns = %s, inode = %s, device = %s, "
            "seen_ns = %s WHERE scope = %s AND path = %s AND hash = %s",
            (*row[3:8], self.scope, row.path, row.hash),
        )

    def delete_file(self, path: str) -> None:
        self._remove_files("path = %s", path)

    # --- vectors ----------------------------------------------------------------------------------

    def add_space(self, identity: Identity) -> Space:
        for space in self.spaces():
            if space.identity == identity:
                return space
        number = self.row.next_space
        self._set_row(next_space=number + 1)
        self._run(
            "INSERT INTO clawmark.spaces (scope, id, provider, model, provider_key, dims) "
            "VALUES (%s, %s, %s, %s, %s, %s)",
            (self.scope, number, *identity),
        )
        return Space(id=number, identity=identity, ready=False, vectors=0)

    def put_vectors(self, space: int, rows: Sequence[tuple[int, str, Vector | None]]) -> None:
        identity = self._space(space).space.identity
        self.cache_vectors(
            identity, {text: vector for _, text, vector in rows if vector is not None}
        )
        added = self.connection.execute(
            statements.PUT_VECTORS,
            (
                space,
                [key for key, _, _ in rows],
                [bytes.fromhex(text) for _, text, _ in rows],
                [None if vector is None else as_halfvec(vector) for _, _, vector in rows],
                self.scope,
            ),
        ).fetchall()
        for edition, covered, uncovered in added:
            self._count_vectors(space, edition, covered, uncovered)

    def set_ready(self, space: int) -> None:
        self._space(space)
        self._run(
            "UPDATE clawmark.spaces SET ready = true WHERE scope = %s AND id = %s",
            (self.scope, space),
        )

    def drop_space(self, space: int) -> None:
        self._space(space)
        for table, column in (("vectors", "space"), ("coverage", "space"), ("spaces", "id")):
            self._run(
                f"DELETE FROM clawmark.{table} WHERE scope = %s AND {column} = %s",
                (self.scope, space),
            )
        self.set_facts(noise_fact(space), {})

    def cache_vectors(self, identity: Identity, vectors: Mapping[str, Vector]) -> None:
        if any(len(vector) != identity.dims * 4 for vector in vectors.values()):
            raise IndexStoreError(
                f"A vector of {identity.model} does not have {identity.dims} numbers.",
                hint="Run `clawmark doctor`.",
            )
        if vectors:
            self._run(
                statements.CACHE_VECTORS,
                (
                    self.scope,
                    *identity,
                    self.now(),
                    [bytes.fromhex(text) for text in vectors],
                    [*vectors.values()],
                ),
            )

    def cached(self, identity: Identity, hashes: Sequence[str]) -> dict[str, Vector]:
        """Return the cached vectors of some texts and mark them as used now."""
        now = self.now()
        self._run(
            "UPDATE clawmark.cache SET used_at = %s WHERE scope = %s AND hash = ANY (%s) "
            "AND provider = %s AND model = %s AND provider_key = %s AND used_at < %s",
            (
                now,
                self.scope,
                [bytes.fromhex(text) for text in hashes],
                *identity[:3],
                now - TOUCH_AFTER_NS,
            ),
        )
        return super().cached(identity, hashes)

    def trim_cache(self, limit: int, most: int) -> int:
        """Delete up to `most` of the least recently used vectors above a limit that no chunk uses;
        return how many.
        """
        return self._run(
            statements.TRIM_CACHE,
            (self.scope, most, self.scope, limit, self.scope),
        )

    # --- facts ------------------------------------------------------------------------------------

    def set_facts(self, name: str, facts: dict[str, Any]) -> None:
        self._run("DELETE FROM clawmark.facts WHERE scope = %s AND name = %s", (self.scope, name))
        if facts:
            self._run(
                "INSERT INTO clawmark.facts (scope, name, value) VALUES (%s, %s, %s)",
                (self.scope, name, json.dumps(facts)),
            )

    # --- rebuilds ---------------------------------------------------------------------------------

    def begin_rebuild(self, identity: dict[str, Any]) -> int:
        """Start a rebuild, or continue one with the same identity, and return its number."""
        wanted = json.loads(json.dumps(identity))
        if self.building and json.loads(self.row.building_identity) == wanted:
            return self.building
        number = 1 + max(self.generation, self.row.last_built)
        self._set_row(building=number, last_built=number, building_identity=json.dumps(identity))
        return number

    def publish(self, building: int) -> list[FileRow]:
        if not building or building != self.building:
            return []
        missing = self.rows(
            "SELECT f.path FROM clawmark.files f WHERE f.scope = %s AND f.edition = %s "
            "AND f.staged_at IS NULL AND NOT EXISTS (SELECT FROM clawmark.files n "
            "WHERE n.scope = f.scope AND n.edition = %s AND n.path = f.path "
            "AND n.staged_at IS NULL)",
            self.generation,
            building,
        )
        if missing:
            return list(self.files([path for (path,) in missing]).values())
        identity = json.loads(self.row.building_identity)
        self._set_row(generation=building, building=0, building_identity="{}")
        self._note_edition(building)
        if identity:
            self.set_facts("identity", identity)
        return []

    def sweep(self) -> int:
        """Delete some rows of editions that neither answer nor are built; return how many."""
        alive = [self.generation, self.building]
        self._remove_files(
            "staged_at < now() - make_interval(secs => %s) AND edition = ANY (%s)",
            STALE_SECONDS,
            alive,
        )
        dead = self.rows(
            "SELECT key FROM clawmark.chunks WHERE scope = %s AND edition <> ALL (%s) LIMIT %s",
            alive,
            SWEPT_AT_ONCE,
        )
        keys = [key for (key,) in dead]
        for table in ("chunks", "words", "vectors"):
            self._run(
                f"DELETE FROM clawmark.{table} WHERE scope = %s AND key = ANY (%s)",
                (self.scope, keys),
            )
        if not keys:
            for table in ("files", "terms", "coverage", "editions"):
                self._run(
                    f"DELETE FROM clawmark.{table} WHERE scope = %s AND edition <> ALL (%s)",
                    (self.scope, alive),
                )
            self._run("DELETE FROM clawmark.terms WHERE scope = %s AND chunks <= 0", (self.scope,))
        return len(keys)

    def clear(self) -> None:
        """Remove everything but the cache; the next sync fills the index again."""
        for table in (
            "chunks", "words", "terms", "vectors", "coverage", "editions", "files", "spaces",
            "facts",
        ):  # fmt: skip
            self._run(f"DELETE FROM clawmark.{table} WHERE scope = %s", (self.scope,))
        self._words = None

    # --- internal ---------------------------------------------------------------------------------

    def _settle(self) -> None:
        self._counts.write()

    def _run(self, sql: str, parameters: Sequence[Any]) -> int:
        return self.connection.execute(sql, parameters).rowcount

    def _set_row(self, **values: Any) -> None:
        columns = ", ".join(f"{name} = %s" for name in values)
        self._run(
            f"UPDATE clawmark.indexes SET {columns} WHERE scope = %s",
            (*values.values(), self.scope),
        )
        self.row = self.row._replace(**values)
        self._words = None

    def _edition(self, building: int) -> int:
        """The edition that a file written now belongs to."""
        if building and building == self.building:
            return building
        if building > self.generation:
            raise IndexBusy(
                "Another process is rebuilding the index with other settings.",
                hint="Let it finish, then run `clawmark index`.",
            )
        return self.generation

    def _staged_origin(self, file: int) -> tuple[str, int]:
        found = self.rows(
            "SELECT path, edition FROM clawmark.files WHERE scope = %s AND key = %s "
            "AND staged_at IS NOT NULL",
            file,
        )
        if not found:
            raise IndexBusy(
                "A file was indexed by another process, or changed, while it was indexed here.",
                hint="Run `clawmark index`.",
            )
        return found[0][0], found[0][1]

    def _make_way(self, path: str, edition: int) -> None:
        """Remove what a new version of a file replaces.

        A change of the visible files also removes the version of a running rebuild, which is made
        again then."""
        if edition == self.generation:
            self._remove_files("path = %s AND staged_at IS NULL", path)
        else:
            self._remove_files("path = %s AND staged_at IS NULL AND edition = %s", path, edition)

    def _insert_file(self, row: FileRow, edition: int, *, is_staged: bool) -> int:
        (file,) = self._new_keys(1)
        self._run(statements.INSERT_FILE, (self.scope, file, edition, *row, is_staged))
        self._staged = None
        return file

    def _insert_chunks(
        self,
        file: int,
        edition: int,
        chunks: Sequence[Chunk],
        words: Sequence[ChunkWords],
        *,
        is_counted: bool,
    ) -> list[int]:
        keys = self._new_keys(len(chunks))
        if is_counted:
            self._words = None
            self._counts.add(edition, ())
        if not keys:
            return keys
        self._run(
            statements.INSERT_CHUNKS,
            (
                self.scope,
                edition,
                file,
                keys,
                [chunk.start_line for chunk in chunks],
                [chunk.end_line for chunk in chunks],
                [chunk.text.encode() for chunk in chunks],
                [bytes.fromhex(chunk.hash) for chunk in chunks],
                [chunk.heading.encode() for chunk in chunks],
                [chunk.first_day for chunk in chunks],
                [chunk.last_day for chunk in chunks],
            ),
        )
        hasher = hasher_of(self.scope, edition)
        packed = [hasher.pack(texts) for texts in words]
        self._run(
            statements.INSERT_WORDS,
            (
                self.scope,
                edition,
                file,
                keys,
                [one.length for one in packed],
                [array_text(one.columns) for one in packed],
                [array_text(one.terms) for one in packed],
                [array_text(one.stated) for one in packed],
                [None if one.asked is None else array_text(one.asked) for one in packed],
                [one.sequence for one in packed],
            ),
        )
        if is_counted:
            self._counts.add(edition, packed)
        return keys

    def _new_keys(self, count: int) -> list[int]:
        first = self.row.next_key
        self.row = self.row._replace(next_key=first + count)
        return list(range(first, first + count))

    def _remove_files(self, where: str, *parameters: Any) -> None:
        for file, edition, is_staged in self.rows(
            "SELECT key, edition, staged_at IS NOT NULL FROM clawmark.files "
            f"WHERE scope = %s AND {where}",
            *parameters,
        ):
            keys = self.rows("SELECT key FROM clawmark.chunks WHERE scope = %s AND file = %s", file)
            self._remove_chunks([key for (key,) in keys], edition, is_counted=not is_staged)
            self._run(
                "DELETE FROM clawmark.files WHERE scope = %s AND key = %s", (self.scope, file)
            )
        self._staged = None

    def _remove_chunks(self, keys: Sequence[int], edition: int, *, is_counted: bool = True) -> None:
        """Delete chunks with their words and vectors."""
        if not keys:
            return
        if is_counted:
            self._count(keys, edition, -1)
        gone = self.connection.execute(
            "WITH gone AS (DELETE FROM clawmark.vectors WHERE scope = %s AND space IN "
            "(SELECT id FROM clawmark.spaces WHERE scope = %s) AND key = ANY (%s) "
            "RETURNING space, embedding IS NOT NULL AS is_covered) "
            "SELECT space, count(*) FILTER (WHERE is_covered), "
            "count(*) FILTER (WHERE NOT is_covered) FROM gone GROUP BY space",
            (self.scope, self.scope, list(keys)),
        ).fetchall()
        for space, covered, uncovered in gone:
            self._count_vectors(space, edition, -covered, -uncovered)
        for table in ("chunks", "words"):
            self._run(
                f"DELETE FROM clawmark.{table} WHERE scope = %s AND key = ANY (%s)",
                (self.scope, list(keys)),
            )

    def _count(self, keys: Sequence[int], edition: int, sign: int) -> None:
        """Add chunks to the counts of an edition and of its terms, or subtract them."""
        self._words = None
        self._counts.change(edition, keys, sign)

    def _note_edition(self, edition: int) -> None:
        self._run(
            "INSERT INTO clawmark.editions (scope, edition) VALUES (%s, %s) ON CONFLICT DO NOTHING",
            (self.scope, edition),
        )

    def _count_vectors(self, space: int, edition: int, covered: int, uncovered: int) -> None:
        self._run(
            "INSERT INTO clawmark.coverage AS c (scope, space, edition, vectors, uncovered) "
            "VALUES (%s, %s, %s, %s, %s) ON CONFLICT (scope, space, edition) DO UPDATE "
            "SET vectors = c.vectors + excluded.vectors, "
            "uncovered = c.uncovered + excluded.uncovered",
            (self.scope, space, edition, covered, uncovered),
        )
