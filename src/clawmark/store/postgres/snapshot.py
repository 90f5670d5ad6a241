"""Reads one snapshot of an index in PostgreSQL: one transaction that sees one moment.

A file and its chunks are visible if their edition answers and the file is complete."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from typing import Any, cast

from clawmark.model.errors import IndexStoreError
from clawmark.model.values import (
    ChunkRow,
    FileRow,
    FileSet,
    FileStat,
    Filters,
    Identity,
    KeywordCounts,
    KeywordQuery,
    Space,
    Vector,
)
from clawmark.store.contents import DueChunk, IndexState
from clawmark.store.postgres import vectors
from clawmark.store.postgres.filtering import Selection, select
from clawmark.store.postgres.keywords import KeywordIndex
from clawmark.store.postgres.matching import Totals
from clawmark.store.postgres.rows import Ended, Held, IndexRow, chunk_row, file_row
from clawmark.store.postgres.servers import Connection, Server
from clawmark.store.postgres.vectors import VectorQuery

RUNNING_SECONDS = 120
"""A sync that has not reported for this long is not running any more."""
_FILE_COLUMNS = (
    "path, source, hash, size, mtime_ns, inode::text, device::text, seen_ns, chunks, progress"
)
_CHUNK_COLUMNS = (
    "c.key, f.path, f.source, c.start_line, c.end_line, c.hash, "
    "c.heading, c.text, c.first_day, c.last_day"
)
_SOURCES = ("memory", "sessions")


class PostgresSnapshot:
    """A consistent view of the index; see `Snapshot` for the methods."""

    def __init__(
        self,
        connection: Connection,
        server: Server,
        scope: int,
        row: IndexRow,
        unsearched: Sequence[str] = (),
    ) -> None:
        """Leave the sources in `unsearched` out of every answer."""
        self.connection = connection
        self.server = server
        self.scope = scope
        self.row = row
        self._unsearched = tuple(source for source in _SOURCES if source in unsearched)
        self._words: KeywordIndex | None = None
        self._selection: Selection | None = None
        self._is_narrowed = False
        self._staged: list[int] | None = None
        self._hides: bool | None = None

    # --- facts ------------------------------------------------------------------------------------

    @property
    def generation(self) -> int:
        return self.row.generation

    @property
    def building(self) -> int:
        return self.row.building

    def facts(self, name: str) -> dict[str, Any]:
        rows = self.rows("SELECT value FROM clawmark.facts WHERE scope = %s AND name = %s", name)
        return cast(dict[str, Any], json.loads(rows[0][0])) if rows else {}

    def spaces(self) -> tuple[Space, ...]:
        return tuple(held.space for held in self._held().values())

    def state(self) -> IndexState:
        """Count what the index holds."""
        files, chunks = self.rows(
            "SELECT count(*), coalesce(sum(chunks), 0) FROM clawmark.files "
            f"WHERE scope = %s AND {self._visible()}"
        )[0]
        cached = self.rows("SELECT count(*) FROM clawmark.cache WHERE scope = %s")[0][0]
        return IndexState(
            generation=self.generation,
            building=self.building or None,
            identity=self.facts("identity"),
            spaces=self.spaces(),
            files=files,
            chunks=int(chunks),
            last_sync=self.facts("last_sync"),
            cache_entries=cached,
            dead_words=0,
            loose_words=0,
            has_dead=self.has_dead(),
        )

    def has_dead(self) -> bool:
        """Return whether rows of replaced or abandoned editions are left."""
        self._settle()
        return bool(
            self.rows(
                "SELECT 1 FROM clawmark.editions WHERE scope = %s AND edition <> ALL (%s) LIMIT 1",
                [self.generation, self.building],
            )
        )

    def database_facts(self) -> dict[str, Any]:
        """Return what `status` says about the database."""
        size = self.rows(
            "SELECT coalesce(sum(octet_length(text)), 0) FROM clawmark.chunks WHERE scope = %s"
        )[0][0]
        running = self.rows(
            "SELECT facts FROM clawmark.running WHERE scope = %s "
            "AND noted_at > now() - make_interval(secs => %s) ORDER BY noted_at DESC LIMIT 1",
            RUNNING_SECONDS,
        )
        return {
            "path": self.server.shown,
            "bytes": int(size),
            "running": json.loads(running[0][0]) if running else {},
        }

    def integrity_problems(self) -> list[str]:
        """Return what is wrong with the counts that searches rely on."""
        self._settle()
        problems = []
        words, tokens = self.rows(
            "SELECT count(*), coalesce(sum(length), 0) FROM clawmark.words w "
            f"WHERE scope = %s AND edition = {self.generation}{self._complete('w.file')}"
        )[0]
        chunks = self.rows(
            "SELECT count(*) FROM clawmark.chunks c "
            f"WHERE scope = %s AND edition = {self.generation}{self._complete('c.file')}"
        )[0][0]
        if words != chunks or (words, tokens) != tuple(self._totals()):
            problems.append("the counts of chunks and words differ from the rows")
        wrong = self.rows(
            "SELECT count(*) FROM (SELECT t.term, count(*) AS chunks FROM clawmark.words w, "
            f"unnest(w.terms) t(term) WHERE w.scope = %s AND w.edition = {self.generation}"
            f"{self._complete('w.file')} GROUP BY t.term) real FULL JOIN (SELECT term, chunks "
            f"FROM clawmark.terms WHERE scope = {self.scope} AND edition = {self.generation} "
            "AND chunks <> 0) counted USING (term) "
            "WHERE real.chunks IS DISTINCT FROM counted.chunks"
        )[0][0]
        if wrong:
            problems.append(f"the counts of {wrong} words differ from the rows")
        return problems

    # --- files and chunks -------------------------------------------------------------------------

    def stats(self, paths: Collection[str] | None = None) -> dict[str, FileStat]:
        only, parameters = ("", ()) if paths is None else (" AND path = ANY (%s)", (list(paths),))
        found = self.rows(
            "SELECT path, size, mtime_ns, inode::text, device::text, seen_ns FROM clawmark.files "
            f"WHERE scope = %s AND {self._visible()}{only}",
            *parameters,
        )
        return {
            path: (size, mtime, int(inode), int(device), seen)
            for path, size, mtime, inode, device, seen in found
        }

    def files(
        self, paths: Sequence[str] | None = None, *, which: FileSet = "visible"
    ) -> dict[str, FileRow]:
        condition = self._visible()
        if which == "rebuilt":
            condition = f"edition = {self.building or -1} AND staged_at IS NULL"
        elif which == "unsearched":
            condition = f"{self._answering()} AND source = ANY ('{{{','.join(self._unsearched)}}}')"
        only, parameters = ("", ()) if paths is None else (" AND path = ANY (%s)", (list(paths),))
        found = self.rows(
            f"SELECT {_FILE_COLUMNS} FROM clawmark.files WHERE scope = %s AND {condition}{only}",
            *parameters,
        )
        return {row[0]: file_row(row) for row in found}

    def chunks(self, keys: Sequence[int]) -> dict[int, ChunkRow]:
        found = self.rows(
            f"SELECT {_CHUNK_COLUMNS} FROM clawmark.chunks c JOIN clawmark.files f "
            f"ON f.scope = c.scope AND f.key = c.file WHERE c.scope = %s AND c.key = ANY (%s) "
            f"AND {self._visible('f.')}",
            list(keys),
        )
        return {row[0]: chunk_row(row) for row in found}

    def chunks_of(self, path: str, lines: tuple[int, int] | None = None) -> list[ChunkRow]:
        first, last = lines or (0, 2**31 - 1)
        found = self.rows(
            f"SELECT {_CHUNK_COLUMNS} FROM clawmark.files f JOIN clawmark.chunks c "
            f"ON c.scope = f.scope AND c.file = f.key WHERE f.scope = %s AND f.path = %s "
            f"AND c.start_line >= %s AND c.end_line <= %s AND {self._answering('f.')} "
            "ORDER BY c.key",
            path,
            min(first, 2**31 - 1),
            min(last, 2**31 - 1),
        )
        return [chunk_row(row) for row in found]

    def count_chunks(self, *, undated: bool = False) -> int:
        selection = self._selected() or Selection(
            f"SELECT c.key FROM clawmark.chunks c WHERE c.scope = {self.scope} "
            f"AND c.edition = {self.generation}{self._complete('c.file')}",
            (),
        )
        if not undated and self._selected() is None:
            return self._totals().chunks
        sql = selection.sql + (" AND c.first_day = ''" if undated else "")
        row = self.connection.execute(
            f"SELECT count(*) FROM ({sql}) s", selection.parameters
        ).fetchone()
        assert row is not None
        return int(row[0])

    # --- filters ----------------------------------------------------------------------------------

    def within(self, filters: Filters) -> PostgresSnapshot:
        self._settle()
        narrowed = PostgresSnapshot(
            self.connection, self.server, self.scope, self.row, self._unsearched
        )
        narrowed._words, narrowed._staged = self._words, self._staged
        narrowed._is_narrowed = True
        narrowed._selection = select(self.scope, self._visible("f."), filters, self._paths)
        return narrowed

    def _paths(self) -> list[tuple[int, str]]:
        return self.rows(
            f"SELECT key, path FROM clawmark.files WHERE scope = %s AND {self._visible()}"
        )

    def _selected(self) -> Selection | None:
        """The chunks that pass the filters; None if that is every chunk of the edition."""
        if self._selection is None and self._has_unsearched():
            self._selection = select(self.scope, self._visible("f."), Filters(), list)
        return self._selection

    # --- keywords ---------------------------------------------------------------------------------

    def search_keywords(self, query: KeywordQuery, limit: int) -> list[tuple[int, float]]:
        return self.words.search(query, limit, self._selected())

    def score_keywords(
        self, queries: Sequence[KeywordQuery], keys: Sequence[int]
    ) -> list[dict[int, float]]:
        return self.words.score(queries, keys)

    def count_keywords(self, queries: Sequence[KeywordQuery]) -> KeywordCounts:
        return KeywordCounts(self._totals().chunks, self.words.count(queries))

    # --- vectors ----------------------------------------------------------------------------------

    def nearest(
        self, space: int, query: Vector, limit: int, also: Sequence[int] = ()
    ) -> list[tuple[int, float]]:
        held = self._space(space)
        identity = held.space.identity
        if len(query) != identity.dims * 4:
            raise IndexStoreError(
                f"The query has {len(query) // 4} dimensions where the index has {identity.dims}.",
                hint="Run `clawmark index` after changing the embedder.",
            )
        wanted = VectorQuery(
            scope=self.scope,
            space=space,
            identity=identity,
            edition=self.generation,
            query=query,
            limit=limit,
        )
        found = (
            vectors.nearest(self.connection, wanted, held.space.vectors, self._selected())
            if limit > 0 and held.space.vectors
            else []
        )
        known = {key for key, _ in found}
        others = [key for key in also if key not in known]
        return found + vectors.cosines_of(self.connection, wanted, others)

    def sample_vectors(self, space: int, most: int) -> list[Vector]:
        held = self._space(space)
        step = max(1, -(-held.space.vectors // most))
        found = self.rows(
            "SELECT e.embedding FROM (SELECT v.key, row_number() OVER (ORDER BY v.key) AS place "
            "FROM clawmark.vectors v WHERE v.scope = %s AND v.space = %s "
            "AND v.embedding IS NOT NULL) v "
            f"JOIN clawmark.chunks c ON c.scope = {self.scope} AND c.key = v.key "
            f"JOIN clawmark.cache e ON e.scope = {self.scope} AND e.hash = c.hash "
            "AND e.provider = %s AND e.model = %s AND e.provider_key = %s AND e.dims = %s "
            "WHERE v.place %% %s = 0",
            space,
            *held.space.identity,
            step,
        )
        return [bytes(vector) for (vector,) in found]

    def due_keys(self, space: int) -> list[int]:
        self._space(space)
        return [key for (key,) in self.rows(self._due(space, "c.key") + " ORDER BY c.key")]

    def due_chunks(self, space: int, keys: Sequence[int]) -> list[DueChunk]:
        found = self.rows(
            "SELECT c.key, c.hash, c.text, e.embedding FROM clawmark.chunks c "
            "LEFT JOIN clawmark.cache e ON e.scope = c.scope AND e.hash = c.hash "
            "AND e.provider = %s AND e.model = %s AND e.provider_key = %s AND e.dims = %s "
            "WHERE c.scope = %s AND c.key = ANY (%s) ORDER BY c.key",
            list(keys),
            before=self._space(space).space.identity,
        )
        return [
            DueChunk(
                key=key,
                hash=bytes(text_hash).hex(),
                text=bytes(text).decode(),
                vector=None if vector is None else bytes(vector),
            )
            for key, text_hash, text, vector in found
        ]

    def count_due(self, space: int) -> int:
        held = self._space(space)
        if self._has_unsearched():
            return int(self.rows(self._due(space, "count(*)"))[0][0])
        self._settle()
        # Every entry belongs to a chunk that counts: the difference is the answer.
        editions = {self.generation, self.building}
        total = self.rows(
            "SELECT coalesce(sum(chunks), 0) FROM clawmark.editions "
            "WHERE scope = %s AND edition = ANY (%s)",
            list(editions),
        )[0][0]
        return int(total) - sum(
            held.vectors.get(edition, 0) + held.uncovered.get(edition, 0) for edition in editions
        )

    def _due(self, space: int, what: str) -> str:
        alive = (
            f"f.edition IN ({self.generation}, {self.building}) AND f.staged_at IS NULL"
            f"{self._searched('f.')}"
        )
        return (
            f"SELECT {what} FROM clawmark.files f JOIN clawmark.chunks c "
            "ON c.scope = f.scope AND c.file = f.key "
            f"WHERE f.scope = %s AND {alive} AND NOT EXISTS (SELECT FROM clawmark.vectors v "
            f"WHERE v.scope = c.scope AND v.space = {space} AND v.key = c.key)"
        )

    # --- embedding cache --------------------------------------------------------------------------

    def cached_dims(self, provider: str, model: str, provider_key: str) -> int:
        """Return the dimensions of some cached vector of an embedder; 0 if there is none."""
        found = self.rows(
            "SELECT dims FROM clawmark.cache WHERE scope = %s AND provider = %s AND model = %s "
            "AND provider_key = %s LIMIT 1",
            provider,
            model,
            provider_key,
        )
        return int(found[0][0]) if found else 0

    def cached(self, identity: Identity, hashes: Sequence[str]) -> dict[str, Vector]:
        """Return the cached vectors of some texts, by the SHA-256 hex of the text."""
        found = self.rows(
            "SELECT hash, embedding FROM clawmark.cache WHERE scope = %s AND hash = ANY (%s) "
            "AND provider = %s AND model = %s AND provider_key = %s AND dims = %s",
            [bytes.fromhex(text) for text in hashes],
            *identity,
        )
        return {bytes(text).hex(): bytes(vector) for text, vector in found}

    def cached_hashes(self) -> dict[Identity, list[str]]:
        """Return the hashes of all texts in the cache by embedder, least recently used first."""
        found = self.rows(
            "SELECT provider, model, provider_key, dims, array_agg(encode(hash, 'hex') "
            "ORDER BY used_at, hash) FROM clawmark.cache WHERE scope = %s "
            "GROUP BY provider, model, provider_key, dims"
        )
        return {Identity._make(row[:4]): row[4] for row in found}

    # --- internal ---------------------------------------------------------------------------------

    def rows(self, sql: str, *parameters: Any, before: Sequence[Any] = ()) -> list[Any]:
        """Run a query whose first parameter, after those in `before`, is the scope."""
        return self.connection.execute(
            sql, (*before, self.scope, *parameters), binary=True
        ).fetchall()

    @property
    def words(self) -> KeywordIndex:
        """The words of the edition that answers."""
        if self._words is None:
            self._words = KeywordIndex(
                self.connection,
                self.scope,
                self.generation,
                self._totals(),
                self._staged_files(),
            )
        return self._words

    def _held(self) -> dict[int, Held]:
        found = self.rows(
            "SELECT s.id, s.provider, s.model, s.provider_key, s.dims, s.ready, "
            "coalesce(array_agg(c.edition) FILTER (WHERE c.edition IS NOT NULL), '{}'), "
            "coalesce(array_agg(c.vectors) FILTER (WHERE c.edition IS NOT NULL), '{}'), "
            "coalesce(array_agg(c.uncovered) FILTER (WHERE c.edition IS NOT NULL), '{}') "
            "FROM clawmark.spaces s LEFT JOIN clawmark.coverage c "
            "ON c.scope = s.scope AND c.space = s.id WHERE s.scope = %s "
            "GROUP BY s.id, s.provider, s.model, s.provider_key, s.dims, s.ready ORDER BY s.id"
        )
        held = {}
        for number, provider, model, provider_key, dims, ready, editions, counts, others in found:
            identity = Identity(
                provider=provider, model=model, provider_key=provider_key, dims=dims
            )
            space = Space(id=number, identity=identity, ready=ready, vectors=sum(counts))
            held[number] = Held(
                space,
                dict(zip(editions, counts, strict=True)),
                dict(zip(editions, others, strict=True)),
            )
        return held

    def _space(self, number: int) -> Held:
        try:
            return self._held()[number]
        except KeyError:
            raise IndexStoreError(
                f"The index has no vector space {number}.", hint="Run `clawmark index`."
            ) from None

    def _settle(self) -> None:
        """Write the counts that are kept until the end of a transaction, before they are read."""

    def _totals(self) -> Totals:
        self._settle()
        found = self.rows(
            "SELECT chunks, tokens FROM clawmark.editions WHERE scope = %s AND edition = %s",
            self.generation,
        )
        return Totals(*found[0]) if found else Totals(0, 0)

    def _staged_files(self) -> list[int]:
        if self._staged is None:
            found = self.rows(
                "SELECT key FROM clawmark.files WHERE scope = %s AND staged_at IS NOT NULL"
            )
            self._staged = [key for (key,) in found]
        return self._staged

    def _complete(self, column: str) -> str:
        """The condition that leaves out the chunks of files that are not complete yet."""
        staged = ",".join(map(str, self._staged_files()))
        return f" AND {column} <> ALL ('{{{staged}}}'::bigint[])" if staged else ""

    def _answering(self, table: str = "") -> str:
        return f"{table}edition = {self.generation} AND {table}staged_at IS NULL"

    def _visible(self, table: str = "") -> str:
        return self._answering(table) + self._searched(table)

    def _searched(self, table: str = "") -> str:
        names = ",".join(self._unsearched)
        return f" AND {table}source <> ALL ('{{{names}}}')" if names else ""

    def _has_unsearched(self) -> bool:
        """Whether the index holds files of a source that is not searched."""
        if self._hides is None:
            names = ",".join(self._unsearched)
            self._hides = bool(names) and bool(
                self.rows(
                    "SELECT 1 FROM clawmark.files WHERE scope = %s "
                    f"AND source = ANY ('{{{names}}}') LIMIT 1"
                )
            )
        return self._hides

    def close(self) -> None:
        self.connection = cast(Connection, Ended())
        self._words = None
