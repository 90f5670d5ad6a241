"""Reads one snapshot of the SQLite index.

A file and its chunks are visible if their generation answers. Not visible are the files of a
running rebuild, files that are not completely stored yet, replaced files that wait to be swept, and
files of a source that is not searched: another configuration of the same agent may have indexed
them."""

import json
import os
import sys
from collections.abc import Collection, Sequence
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any, cast

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
    SourceName,
    Space,
    Vector,
)
from clawmark.store.sqlite import cache
from clawmark.store.sqlite.db import SQLITE_VERSION, Database, as_list, one_line
from clawmark.store.sqlite.keywords.counts import WordsState
from clawmark.store.sqlite.keywords.reader import KeywordReader
from clawmark.store.sqlite.meta import Meta, SpaceFacts
from clawmark.store.sqlite.schema import WORDS

if TYPE_CHECKING:
    from clawmark.store.contents import DueChunk, IndexState
    from clawmark.store.sqlite.filtering import Selection
    from clawmark.store.sqlite.keywords.counts import KeptCounts
    from clawmark.store.sqlite.vectors.base import Hidden, Residents, VectorIndex

FEW_SELECTED = 2000
"""Up to this many chunks that pass the filters are compared one by one, which is faster than
finding them by rank."""

_FILE_COLUMNS = "path, source, hash, size, mtime_ns, inode, device, seen_ns, chunks, progress"
_CHUNK_COLUMNS = (
    "c.key, f.path, f.source, c.start_line, c.end_line, c.hash, "
    "c.heading, c.text, c.first_day, c.last_day"
)
_VISIBLE = "{0}born <= ? AND ({0}died IS NULL OR {0}died > ?)"
_ALIVE = "({0}died IS NULL OR {0}died > ?)"
"""Visible, or made by the running rebuild."""
_HIDDEN_CHUNKS = "SELECT c.key FROM files f CROSS JOIN chunks c ON c.file = f.key WHERE f.died <= ?"
_VECTORS_OF_CHUNKS = (
    "chunks c {} JOIN embedding_cache e ON e.provider = ? AND e.model = ? AND e.provider_key = ? "
    "AND e.hash = c.hash AND length(e.embedding) = 4 * ? "
    "WHERE c.key IN (SELECT value FROM json_each(?))"
)
SOURCES: tuple[SourceName, ...] = ("memory", "sessions")


class SqliteSnapshot:
    """A consistent view of the index; see `Snapshot` for the methods."""

    def __init__(
        self,
        db: Database,
        residents: "Residents",
        unsearched: Sequence[str] = (),
        meta: Meta | None = None,
    ) -> None:
        """Leave the sources in `unsearched` out of every answer."""
        self.db = db
        self.meta = meta or Meta(db)
        self._unsearched_sources = tuple(unsearched)
        self._unsearched = ", ".join(f"'{source}'" for source in SOURCES if source in unsearched)
        held = self.meta.text("sources").split() if self.meta.has("sources") else SOURCES
        self._hides_sources: bool | None = (
            None if any(source in held for source in unsearched) else False
        )
        """Whether there are files of such a source; None until it is needed."""
        self._residents = residents
        self._engine: VectorIndex | None = None
        self._selection: Selection | None = None
        self._selected: frozenset[int] | None = None
        self._keywords: KeywordReader | None = None

    # --- facts ------------------------------------------------------------------------------------

    def state(self) -> "IndexState":
        """Count what the index holds."""
        meta = self.meta
        files, chunks = self.db.rows(
            f"SELECT count(*), total(chunks) FROM files WHERE {self._visible()}",
            (self.generation, self.generation),
        )[0]
        state: IndexState = _contents().IndexState(
            generation=self.generation,
            building=self.building or None,
            identity=self.facts("identity"),
            spaces=self.spaces(),
            files=files,
            chunks=int(chunks),
            last_sync=self.facts("last_sync"),
            cache_entries=meta.number("cache_entries"),
            dead_words=meta.number(f"dead_{self.words}") + meta.number(f"merging_{self.words}"),
            loose_words=meta.number(f"loose_{self.words}"),
            has_dead=any(map(meta.has, ("unswept", "abandoned", "emptying", "retired", "staging"))),
        )
        return state

    @property
    def generation(self) -> int:
        return self.meta.number("generation")

    @property
    def building(self) -> int:
        return 0 if self.meta.number("abandoned") else self.meta.number("building")

    def spaces(self) -> tuple[Space, ...]:
        return tuple(facts.space for facts in self.meta.spaces.values())

    def facts(self, name: str) -> dict[str, Any]:
        return self.meta.facts(name)

    def count_chunks(self, *, undated: bool = False) -> int:
        if undated:
            if self._selection is None:
                return self.within(Filters()).count_chunks(undated=True)
            without = self.db.rows("SELECT key FROM chunks WHERE last_day = ''")
            return len(self._selected_keys().intersection(key for (key,) in without))
        return self._count_visible() if self._selection is None else len(self._selected_keys())

    def _count_visible(self) -> int:
        """Count the visible chunks; filters do not apply."""
        if "chunks" not in self.meta.counts:
            found = self.db.rows(
                f"SELECT total(chunks) FROM files WHERE {self._visible()}",
                (self.generation, self.generation),
            )
            self.meta.counts["chunks"] = int(found[0][0])
        return self.meta.counts["chunks"]

    def database_facts(self) -> dict[str, Any]:
        """Return what the driver says about the file, for `status`."""
        facts: dict[str, Any] = {"sqlite_version": SQLITE_VERSION, "path": self.db.path}
        for name in ("page_size", "page_count", "freelist_count", "journal_mode", "application_id"):
            facts[name] = self.db.rows(f"PRAGMA {name}")[0][0]
        try:
            facts["log_bytes"] = os.stat(self.db.path + "-wal").st_size
        except OSError:
            facts["log_bytes"] = 0
        facts["vector_engine"] = self.meta.engine
        return facts

    def integrity_problems(self) -> list[str]:
        """Return what SQLite finds wrong with the file, its tables, indexes and full-text index."""
        # FTS5 checks its cached segments; a query makes it notice changes by another process.
        for words in WORDS:
            self.db.rows(f"SELECT rowid FROM {words} WHERE {words} MATCH '\"look\"' LIMIT 1")
        return [
            one_line(text)
            for (text,) in self.db.rows("PRAGMA integrity_check", patient=True)
            if text != "ok"
        ]

    # --- files and chunks -------------------------------------------------------------------------

    def stats(self, paths: Collection[str] | None = None) -> dict[str, FileStat]:
        columns, visible = "path, size, mtime_ns, inode, device, seen_ns", self._visible()
        bounds = (self.generation, self.generation)
        if paths is None:
            found = self.db.rows(f"SELECT {columns} FROM files WHERE {visible}", bounds)
        else:
            query = f"SELECT {columns} FROM files WHERE path = ? AND {visible}"
            found = self.db.many(query, [(path, *bounds) for path in paths])
        found.reverse()
        stats: dict[str, FileStat] = {}
        while found:  # each row is freed when it is copied: there may be hundreds of thousands
            row = found.pop()
            stats[row[0]] = row[1:]
        return stats

    def files(
        self, paths: Sequence[str] | None = None, *, which: FileSet = "visible"
    ) -> dict[str, FileRow]:
        bindings: list[Any] = [self.generation, self.generation]
        condition = self._visible()
        if which == "rebuilt":
            condition, bindings = "born = ? AND died IS NULL", [self.building]
        elif which == "unsearched":
            condition = f"{_VISIBLE.format('')} AND source IN ({self._unsearched})"
        if (which == "rebuilt" and not self.building) or (
            which == "unsearched" and not self._has_unsearched()
        ):
            return {}
        if paths is not None:
            condition += " AND path IN (SELECT value FROM json_each(?))"
            bindings.append(json.dumps(list(paths)))
        found = self.db.rows(f"SELECT {_FILE_COLUMNS} FROM files WHERE {condition}", bindings)
        make = tuple.__new__  # takes half the time of `_make`
        return {row[0]: make(FileRow, row) for row in found}

    def chunks(self, keys: Sequence[int]) -> dict[int, ChunkRow]:
        found = self.db.rows(
            f"SELECT {_CHUNK_COLUMNS} FROM chunks c JOIN files f ON f.key = c.file "
            f"WHERE c.key IN (SELECT value FROM json_each(?)) AND {self._visible('f.')}",
            (as_list(keys), self.generation, self.generation),
        )
        return {row[0]: _chunk_row(row) for row in found}

    def chunks_of(self, path: str, lines: tuple[int, int] | None = None) -> list[ChunkRow]:
        first, last = lines or (0, sys.maxsize)
        found = self.db.rows(
            f"SELECT {_CHUNK_COLUMNS} FROM files f JOIN chunks c ON c.file = f.key "
            f"WHERE f.path = ? AND c.start_line >= ? AND c.end_line <= ? AND "
            f"{_VISIBLE.format('f.')} ORDER BY c.key",
            (path, first, last, self.generation, self.generation),
        )
        return [_chunk_row(row) for row in found]

    # --- filters ----------------------------------------------------------------------------------

    def within(self, filters: Filters) -> "SqliteSnapshot":
        narrowed = SqliteSnapshot(
            db=self.db,
            residents=self._residents,
            unsearched=self._unsearched_sources,
            meta=self.meta,
        )
        narrowed._keywords = self._keywords
        # Imported late: most searches have no filters.
        from clawmark.store.sqlite import filtering

        narrowed._selection = filtering.select(
            self.db, self.generation, self._visible("f."), filters
        )
        return narrowed

    def _selected_keys(self) -> frozenset[int]:
        """The keys of the chunks that pass the filters."""
        if self._selected is None and self._selection is not None:
            self._selected = frozenset(key for (key,) in self.db.rows(*self._selection))
        return self._selected or frozenset()

    # --- keywords ---------------------------------------------------------------------------------

    def search_keywords(self, query: KeywordQuery, limit: int) -> list[tuple[int, float]]:
        reader = self.keyword_reader()
        if self._selection is None:
            only, bindings = self._hidden_words()
            return reader.search(query, limit, only, bindings)
        only, share = f" AND +rowid IN ({self._selection.sql})", self._selected_share()
        return reader.search(query, limit, only, self._selection.bindings, share)

    def score_keywords(
        self, queries: Sequence[KeywordQuery], keys: Sequence[int]
    ) -> list[dict[int, float]]:
        return self.keyword_reader().score(queries, keys)

    def count_keywords(self, queries: Sequence[KeywordQuery]) -> KeywordCounts:
        counts = self.keyword_reader().counts
        return KeywordCounts(counts.rows(), list(map(counts.of_query, queries)))

    def keyword_reader(self) -> KeywordReader:
        """Return what searches the full-text table that answers."""
        if self._keywords is None:
            self._keywords = KeywordReader(self.db, self.words_state(), self._kept_counts())
        return self._keywords

    def words_state(self) -> WordsState:
        """Return which full-text table answers, and how far it has been changed."""
        return WordsState(
            index_id=self.meta.index_id,
            table=self.words,
            generation=self.generation,
            next_key=self.meta.number("next_key"),
            deleted=self.meta.number("words_deleted"),
        )

    def _kept_counts(self) -> "KeptCounts":
        return self.db.kept_counts

    def _selected_share(self) -> float:
        return len(self._selected_keys()) / max(1, self.keyword_reader().counts.rows())

    # --- vectors ----------------------------------------------------------------------------------

    def nearest(
        self, space: int, query: Vector, limit: int, also: Sequence[int] = ()
    ) -> list[tuple[int, float]]:
        facts = self._space(space)
        if len(query) != facts.space.identity.dims * 4:
            raise IndexStoreError(
                f"The query has {len(query) // 4} dimensions where the index has "
                f"{facts.space.identity.dims}.",
                hint="Run `clawmark index` after changing the embedder.",
            )
        found = self._nearest(facts, query, limit) if limit > 0 and facts.space.vectors else []
        known = {key for key, _ in found}
        return found + self._similarities(facts, query, [key for key in also if key not in known])

    def _nearest(self, facts: SpaceFacts, query: Vector, limit: int) -> list[tuple[int, float]]:
        if self._selection is None:
            return self._vector_engine().nearest(facts, query, limit, self._hidden_keys())
        selected = self._selected_keys()
        if len(selected) > FEW_SELECTED:
            return self._vector_engine().nearest(
                facts, query, limit, lambda key: key not in selected
            )
        cosines = self._similarities(facts, query, sorted(selected))
        return sorted(cosines, key=lambda item: (-item[1], item[0]))[:limit]

    def _similarities(
        self, facts: SpaceFacts, query: Vector, keys: Sequence[int]
    ) -> list[tuple[int, float]]:
        """The cosines of given chunks; those without a vector are left out."""
        # Imported late: a keyword search does not need it.
        from clawmark.store.similarity import dot_products

        if not keys:
            return []
        found = self.db.rows(
            f"SELECT c.key, e.embedding FROM {_VECTORS_OF_CHUNKS.format('')}",
            (*facts.space.identity, as_list(keys)),
        )
        cosines = dot_products(query, [vector for _, vector in found])
        return list(zip([key for key, _ in found], cosines, strict=True))

    def sample_vectors(self, space: int, most: int) -> list[Vector]:
        facts = self._space(space)
        keys = sorted(self._vector_engine().held(facts))
        step = max(1, -(-len(keys) // most))
        found = self.db.rows(
            f"SELECT e.embedding FROM {_VECTORS_OF_CHUNKS.format('')}",
            (*facts.space.identity, as_list(keys[::step])),
        )
        return [vector for (vector,) in found]

    def due_keys(self, space: int) -> list[int]:
        return sorted(self._due(self._space(space)))

    def due_chunks(self, space: int, keys: Sequence[int]) -> "list[DueChunk]":
        found = self.db.rows(
            f"SELECT c.key, c.hash, c.text, e.embedding "
            f"FROM {_VECTORS_OF_CHUNKS.format('LEFT')} ORDER BY c.key",
            (*self._space(space).space.identity, as_list(keys)),
        )
        due_chunk = _contents().DueChunk
        return [
            due_chunk(key=key, hash=text_hash.hex(), text=text, vector=vector)
            for key, text_hash, text, vector in found
        ]

    def count_due(self, space: int) -> int:
        facts = self._space(space)
        if self.meta.number("unswept") or self._has_unsearched():
            return len(self._due(facts))
        # Every entry belongs to a chunk that counts: the difference is the answer.
        if self.meta.number("building"):
            alive = f"SELECT total(chunks) FROM files WHERE {_ALIVE.format('')}"
            total = int(self.db.rows(alive, (self.generation,))[0][0])
        else:
            total = self._count_visible()
        return total - facts.space.vectors - facts.uncovered

    # --- embedding cache --------------------------------------------------------------------------

    def cached_dims(self, provider: str, model: str, provider_key: str) -> int:
        """Return the dimensions of some cached vector of an embedder; 0 if there is none."""
        return cache.dims_of(self.db, provider, model, provider_key)

    def cached(self, identity: Identity, hashes: Sequence[str]) -> dict[str, Vector]:
        """Return the cached vectors of some texts, by the SHA-256 hex of the text."""
        return {text: vector for text, (_, vector) in cache.find(self.db, identity, hashes).items()}

    def cached_hashes(self) -> dict[Identity, list[str]]:
        """Return the hashes of all texts in the cache by embedder, least recently used first."""
        return cache.hashes(self.db)

    def evictable(self, limit: int) -> list[int]:
        """Return the cache rows above a limit that no chunk uses, least recently used first."""
        entries = self.meta.number("cache_entries")
        if entries <= max(limit, self.meta.number("cache_in_use")):
            return []
        engine = self._vector_engine()
        used = frozenset(
            row for facts in self.meta.spaces.values() for row in engine.held(facts).values()
        )
        return cache.oldest(self.db, entries - limit, used)

    # --- internal ---------------------------------------------------------------------------------

    def _space(self, number: int) -> SpaceFacts:
        try:
            return self.meta.spaces[number]
        except KeyError:
            raise IndexStoreError(
                f"The index has no vector space {number}.", hint="Run `clawmark index`."
            ) from None

    def _vector_engine(self) -> "VectorIndex":
        # Imported late: a keyword search does not need it.
        from clawmark.store.sqlite.vectors.base import open_engine

        if self._engine is None:
            self._engine = open_engine(
                self.meta.engine, self.db, self.meta.index_id, self._residents
            )
        return self._engine

    def _due(self, facts: SpaceFacts) -> set[int]:
        """The keys of the due chunks; answered from a covering index, without reading any text."""
        alive = self.db.rows(
            f"SELECT c.key FROM files f CROSS JOIN chunks c ON c.file = f.key "
            f"WHERE {_ALIVE.format('f.')}{self._searched('f.')}",
            (self.generation,),
        )
        held = self._vector_engine().held(facts)
        return {key for (key,) in alive if key not in held}

    @property
    def words(self) -> str:
        """The full-text table of the generation that answers."""
        return WORDS[self.meta.number("words")]

    def _has_masked(self) -> bool:
        """Whether there are chunks to leave out one by one; usually there are not."""
        return bool(
            self.meta.number("masked") or self.meta.has("staging") or self._has_unsearched()
        )

    def _hidden_chunks(self) -> str:
        """The query for the chunks that are left out one by one."""
        return _HIDDEN_CHUNKS + (
            f" OR f.source IN ({self._unsearched})" if self._has_unsearched() else ""
        )

    def _visible(self, table: str = "") -> str:
        """The condition for visible files; it takes the generation twice."""
        return _VISIBLE.format(table) + self._searched(table)

    def _searched(self, table: str = "") -> str:
        return f" AND {table}source NOT IN ({self._unsearched})" if self._unsearched else ""

    def _has_unsearched(self) -> bool:
        """Whether the index holds files of a source that is not searched."""
        if self._hides_sources is None:
            query = f"SELECT 1 FROM files WHERE source IN ({self._unsearched}) LIMIT 1"
            self._hides_sources = bool(self.db.rows(query))
        return self._hides_sources

    def _hidden_words(self) -> tuple[str, tuple[Any, ...]]:
        """The condition that keeps invisible chunks out of a full-text query.

        Those of another generation are in another table."""
        return (
            (f" AND +rowid NOT IN ({self._hidden_chunks()})", (self.generation,))
            if self._has_masked()
            else ("", ())
        )

    def _hidden_keys(self) -> "Hidden":
        """Which chunks to leave out of a vector search; vectors of all generations are in one
        table."""
        first = self.meta.number("building_from")
        below = self.meta.number("words_from") if self.meta.number("unswept") else 0
        masked: frozenset[int] = frozenset()
        if self._has_masked():
            masked = frozenset(
                key for (key,) in self.db.rows(self._hidden_chunks(), (self.generation,))
            )
        if not (first or below or masked):
            return None
        return lambda key: key < below or 0 < first <= key or key in masked

    def close(self) -> None:
        self.db = cast(Database, _Ended())
        self._engine = None


class _Ended:
    """Takes the place of the connection when a snapshot has ended."""

    def __getattr__(self, name: str) -> Any:
        raise IndexStoreError(
            "This snapshot of the index has ended.", hint="Open another one with `snapshot()`."
        )


def _chunk_row(row: Sequence[Any]) -> ChunkRow:
    return ChunkRow._make((*row[:5], row[5].hex(), *row[6:]))


def _contents() -> ModuleType:
    # Imported late: a search does without these values.
    return import_module("clawmark.store.contents")
