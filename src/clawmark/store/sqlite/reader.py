"""Questions to one snapshot of the index: everything a search, a plan or a status needs, and
nothing that changes it.

A file and its chunks are visible when their generation answers: those of a rebuild that is still
running, of a file that is not finished yet, and those that were replaced and wait to be swept are
there but never seen. Nor are files of a source that is not searched: another configuration of the
same agent may have indexed them. Ranking, scores in 0..1 and snippets are left to `search`."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any, cast

from clawmark.model.errors import IndexStoreError
from clawmark.model.values import (
    ChunkRow,
    FileRow,
    FileStat,
    Filters,
    Identity,
    SourceName,
    Space,
    Vector,
    added_source,
)
from clawmark.store.sqlite.db import Database, as_list, finding
from clawmark.store.sqlite.meta import IDENTITY_KEY, Meta, SpaceFacts
from clawmark.store.sqlite.schema import WORDS

if TYPE_CHECKING:
    from clawmark.store.sqlite.filtering import Selection
    from clawmark.store.sqlite.state import IndexState
    from clawmark.store.sqlite.vectors.base import Hidden, Residents, VectorIndex

CONTEXT_WEIGHT, ASKED_WEIGHT = 1.0, 0.3
"""What a match in a chunk's heading path or date, and in an unanswered question, is worth compared
with one in its text.
"""
STATED = "{text context} : "
"""Limits an FTS5 expression to what a chunk states."""

FEW_SELECTED = 2000
"""Up to this many chunks that pass the filters are compared one by one, which is faster than
looking for them by rank.
"""

_FILE_COLUMNS = "path, source, hash, size, mtime_ns, inode, device, seen_ns, chunks, progress"
_CHUNK_COLUMNS = (
    "c.key, f.path, f.source, c.start_line, c.end_line, c.hash, "
    "c.heading, c.text, c.first_day, c.last_day"
)
_VISIBLE = "{0}born <= ? AND ({0}died IS NULL OR {0}died > ?)"
_ALIVE = "({0}died IS NULL OR {0}died > ?)"
"""Visible, or made by the rebuild that runs."""
_BUILT_FILES = f"SELECT {_FILE_COLUMNS} FROM files WHERE born = ? AND died IS NULL"
_HIDDEN_CHUNKS = "SELECT c.key FROM files f CROSS JOIN chunks c ON c.file = f.key WHERE f.died <= ?"
SOURCES: tuple[SourceName, ...] = ("memory", "sessions")


class Reader:
    """One consistent view of the index, made by `Index.reading`; its methods fail after the block
    has ended.
    """

    def __init__(
        self,
        db: Database,
        residents: Residents,
        unsearched: Sequence[str] = (),
        meta: Meta | None = None,
    ) -> None:
        """`unsearched` are the sources that are left out of every answer."""
        self._db = db
        self._meta = meta or Meta(db)
        self._unsearched_sources = tuple(unsearched)
        self._unsearched = ", ".join(f"'{source}'" for source in SOURCES if source in unsearched)
        held = self._meta.text("sources").split() if self._meta.has("sources") else SOURCES
        self._hides_sources: bool | None = (
            None if any(source in held for source in unsearched) else False
        )
        """Whether there are files of such a source; None until it is asked for."""
        self._residents = residents
        self._engine: VectorIndex | None = None
        self._selection: Selection | None = None
        self._selected: frozenset[int] | None = None

    # --- facts ---------------------------------------------------------------------------------------------------

    def state(self) -> IndexState:
        """What the index is and holds."""
        from clawmark.store.sqlite.state import IndexState

        meta = self._meta
        files, chunks = self._db.rows(
            f"SELECT count(*), total(chunks) FROM files WHERE {self._visible()}",
            (self._generation, self._generation),
        )[0]
        return IndexState(
            generation=self._generation,
            building=self._building or None,
            identity=meta.facts(IDENTITY_KEY),
            spaces=self.spaces(),
            files=files,
            chunks=int(chunks),
            last_sync=meta.facts("last_sync"),
            cache_entries=meta.number("cache_entries"),
            dead_words=meta.number(f"dead_{self.words}") + meta.number(f"merging_{self.words}"),
            loose_words=meta.number(f"loose_{self.words}"),
            has_dead=any(map(meta.has, ("unswept", "abandoned", "emptying", "retired", "staging"))),
        )

    def spaces(self) -> tuple[Space, ...]:
        """The vector spaces alone, for a search that does not need the rest of the state."""
        return tuple(facts.space for facts in self._meta.spaces.values())

    def roots(self) -> dict[str, Any]:
        """The folders that held memory at the last sync: device and inode by path."""
        return self._meta.facts("roots")

    def is_cut_by(self, chunker: str) -> bool:
        """Whether the text was cut by this chunker; so is the text of an index that has none."""
        return self._meta.text("chunker") in ("", chunker)

    def building(self) -> int:
        """The generation a rebuild is making; 0 when none is."""
        return self._building

    def count_chunks(self) -> int:
        """How many chunks there are to find."""
        found = self._db.rows(
            f"SELECT total(chunks) FROM files WHERE {self._visible()}",
            (self._generation, self._generation),
        )
        return int(found[0][0])

    def has_chunks(self) -> bool:
        """Whether there is anything to find."""
        return bool(
            self._db.rows(
                f"SELECT 1 FROM files WHERE chunks > 0 AND {self._visible()} LIMIT 1",
                (self._generation, self._generation),
            )
        )

    def database_facts(self) -> dict[str, Any]:
        """What the driver says about the file, for `status`."""
        import apsw

        facts: dict[str, Any] = {"sqlite_version": apsw.sqlite_lib_version(), "path": self._db.path}
        for name in ("page_size", "page_count", "freelist_count", "journal_mode", "application_id"):
            facts[name] = self._db.rows(f"PRAGMA {name}")[0][0]
        try:
            facts["log_bytes"] = os.stat(self._db.path + "-wal").st_size
        except OSError:
            facts["log_bytes"] = 0
        facts["vector_engine"] = self._meta.engine
        return facts

    def healed(self) -> dict[str, Any]:
        """When and why the index before this one was set aside; empty when none was."""
        return self._meta.facts("healed")

    def integrity_problems(self) -> list[str]:
        """What SQLite finds wrong with the file, tables, indexes and full-text index; empty when it
        is sound.
        """
        # FTS5 checks what it remembers of its segments; a question makes it look whether another
        # process changed them.
        for words in WORDS:
            self._db.rows(f"SELECT rowid FROM {words} WHERE {words} MATCH '\"look\"' LIMIT 1")
        return [
            finding(text)
            for (text,) in self._db.rows("PRAGMA integrity_check", patient=True)
            if text != "ok"
        ]

    # --- files and chunks ----------------------------------------------------------------------------------------

    def stats(self, paths: Collection[str] | None = None) -> dict[str, FileStat]:
        """What a look at the disk is compared with, by path: of all visible files, or of some
        paths.
        """
        columns, visible = "path, size, mtime_ns, inode, device, seen_ns", self._visible()
        bounds = (self._generation, self._generation)
        if paths is None:
            found = self._db.rows(f"SELECT {columns} FROM files WHERE {visible}", bounds)
        else:
            # One question a path, not a list of all: that would take JSON, which a cold search does
            # without.
            query = f"SELECT {columns} FROM files WHERE path = ? AND {visible}"
            found = self._db.many(query, [(path, *bounds) for path in paths])
        return {row[0]: row[1:] for row in found}

    def files(self, paths: Sequence[str] | None = None) -> dict[str, FileRow]:
        """The visible files by path: all of them, or those of some paths."""
        among, bindings = "", list[Any]()
        if paths is not None:
            among, bindings = "path IN (SELECT value FROM json_each(?)) AND ", [json.dumps(paths)]
        found = self._db.rows(
            f"SELECT {_FILE_COLUMNS} FROM files WHERE {among}{self._visible()}",
            (*bindings, self._generation, self._generation),
        )
        make = tuple.__new__  # half the time of `_make`
        return {row[0]: make(FileRow, row) for row in found}

    def unsearched(self) -> list[str]:
        """The paths of indexed files of a source that is not searched."""
        if not self._has_unsearched():
            return []
        query = (
            f"SELECT path FROM files WHERE source IN ({self._unsearched}) AND {_VISIBLE.format('')}"
        )
        return [path for (path,) in self._db.rows(query, (self._generation, self._generation))]

    def built(self) -> dict[str, FileRow]:
        """The files a running rebuild has done; empty when none runs."""
        found = self._db.rows(_BUILT_FILES, (self._building,)) if self._building else []
        return {row[0]: FileRow._make(row) for row in found}

    def chunks(self, keys: Sequence[int]) -> dict[int, ChunkRow]:
        """The visible chunks among these keys."""
        found = self._db.rows(
            f"SELECT {_CHUNK_COLUMNS} FROM chunks c JOIN files f ON f.key = c.file "
            f"WHERE c.key IN (SELECT value FROM json_each(?)) AND {self._visible('f.')}",
            (as_list(keys), self._generation, self._generation),
        )
        return {row[0]: _chunk_row(row) for row in found}

    def chunks_of(self, path: str, lines: tuple[int, int] | None = None) -> list[ChunkRow]:
        """The chunks of one file, or those within some of its lines, in the order they were cut,
        for any source.
        """
        first, last = lines or (0, sys.maxsize)
        found = self._db.rows(
            f"SELECT {_CHUNK_COLUMNS} FROM files f JOIN chunks c ON c.file = f.key "
            f"WHERE f.path = ? AND c.start_line >= ? AND c.end_line <= ? AND "
            f"{_VISIBLE.format('f.')} ORDER BY c.key",
            (path, first, last, self._generation, self._generation),
        )
        return [_chunk_row(row) for row in found]

    # --- filters -------------------------------------------------------------------------------------------------

    def within(self, filters: Filters) -> Reader:
        """The same snapshot, in which `keywords` and `vectors` find only chunks that pass the
        filters.
        """
        from clawmark.store.sqlite.filtering import select

        narrowed = Reader(
            db=self._db,
            residents=self._residents,
            unsearched=self._unsearched_sources,
            meta=self._meta,
        )
        narrowed._selection = select(self._db, self._generation, self._visible("f."), filters)
        return narrowed

    def selected(self) -> frozenset[int]:
        """The keys of the chunks that pass the filters of `within`."""
        if self._selected is None and self._selection is not None:
            self._selected = frozenset(key for (key,) in self._db.rows(*self._selection))
        return self._selected or frozenset()

    def count_undated(self) -> int:
        """How many of the chunks that pass the filters of `within` have no date."""
        undated = self._db.rows("SELECT key FROM chunks WHERE last_day = ''")
        return len(self.selected().intersection(key for (key,) in undated))

    def sources(self) -> list[str]:
        """The names of the sources that have visible files: kinds of memory first, then folders
        that were added.
        """
        found = self._db.rows(
            f"SELECT source, path FROM files WHERE {self._visible()}",
            (self._generation, self._generation),
        )
        added = {added_source(path) for _, path in found}
        return [*sorted({source for source, _ in found}), *sorted(filter(None, added))]

    # --- words ---------------------------------------------------------------------------------------------------

    def keywords(self, expression: str, limit: int) -> list[tuple[int, float]]:
        """Chunks that match an FTS5 expression with their BM25 score (0 and up), best first."""
        words = self.words
        hidden, bindings = self._hidden_words()
        if self._selection is not None:
            hidden, bindings = f" AND +rowid IN ({self._selection.sql})", self._selection.bindings
        return self._db.rows(
            f"SELECT rowid, -bm25({words}, 1.0, {CONTEXT_WEIGHT}, {ASKED_WEIGHT}) AS score FROM "
            f"{words} "
            f"WHERE {words} MATCH ? {hidden} ORDER BY score DESC, rowid LIMIT ?",
            (expression, *bindings, limit),
        )

    def keywords_among(self, expression: str, keys: Sequence[int]) -> dict[int, float]:
        """The BM25 score that an FTS5 expression gives to those of some chunks that match it."""
        if not expression or not keys:
            return {}
        words = self.words
        # The plus keeps SQLite from starting FTS5 again for every key, which is ten times slower
        # than one pass.
        found = self._db.rows(
            f"SELECT rowid, -bm25({words}, 1.0, {CONTEXT_WEIGHT}, {ASKED_WEIGHT}) FROM {words} "
            f"WHERE {words} MATCH ? "
            "AND rowid BETWEEN ? AND ? AND +rowid IN (SELECT value FROM json_each(?))",
            (expression, min(keys), max(keys), as_list(keys)),
        )
        return dict(found)

    def count_rows_of_words(self) -> int:
        """How many passages the full-text index counts when it judges how rare a word is."""
        return int(self._db.rows(f"SELECT count(*) FROM {self.words}_docsize")[0][0])

    def count_matches(self, terms: Sequence[str]) -> list[int]:
        """How many passages match each of some FTS5 phrases."""
        words = self.words
        count = f"SELECT count(*) FROM {words} WHERE {words} MATCH ?"
        return [self._db.rows(count, (term,))[0][0] for term in terms]

    def term_scores(self, terms: Sequence[str], keys: Sequence[int]) -> dict[int, dict[int, float]]:
        """The BM25 score that each of some FTS5 phrases gives to given chunks: by chunk and number
        of the phrase.
        """
        scores: dict[int, dict[int, float]] = {}
        for number, term in enumerate(terms):
            for key, score in self.keywords_among(term, keys).items():
                scores.setdefault(key, {})[number] = score
        return scores

    # --- vectors -------------------------------------------------------------------------------------------------

    def vectors(self, space: int, query: Vector, limit: int) -> list[tuple[int, float]]:
        """The chunks nearest to a unit vector with their cosines, best first."""
        facts = self._space(space)
        if len(query) != facts.space.identity.dims * 4:
            raise IndexStoreError(
                f"The query has {len(query) // 4} dimensions where the index has "
                f"{facts.space.identity.dims}.",
                hint="Run `clawmark index` after changing the embedder.",
            )
        if limit <= 0 or not facts.space.vectors:
            return []
        if self._selection is None:
            return self._vector_engine().nearest(facts, query, limit, self._hidden_keys())
        selected = self.selected()
        if len(selected) > FEW_SELECTED:
            return self._vector_engine().nearest(
                facts, query, limit, lambda key: key not in selected
            )
        cosines = self.similarities(space, query, sorted(selected))
        return sorted(cosines.items(), key=lambda item: (-item[1], item[0]))[:limit]

    def similarities(self, space: int, query: Vector, keys: Sequence[int]) -> dict[int, float]:
        """The cosines of given chunks; those without a vector are left out."""
        from clawmark.store.sqlite.vectors.codes import exact_scores

        identity = self._space(space).space.identity
        found = self._db.rows(
            "SELECT c.key, e.embedding FROM chunks c JOIN embedding_cache e "
            "ON e.provider = ? AND e.model = ? AND e.provider_key = ? AND e.hash = c.hash "
            "WHERE c.key IN (SELECT value FROM json_each(?)) AND e.dims = ?",
            (*identity[:3], as_list(keys), len(query) // 4),
        )
        return dict(
            zip(
                [key for key, _ in found],
                exact_scores(query, [vector for _, vector in found]),
                strict=True,
            )
        )

    def noise(self, space: int) -> dict[str, Any]:
        """What was measured about chance in a space: `centre` (hex), `spread`, `passages`; empty
        when nothing was yet.
        """
        return self._meta.facts(f"noise_{space}")

    def sample_vectors(self, space: int, most: int) -> list[Vector]:
        """The vectors of up to `most` chunks of a space, spread evenly over it."""
        identity = self._space(space).space.identity
        keys = sorted(self._vector_engine().held(self._space(space)))
        step = max(1, -(-len(keys) // most))
        found = self._db.rows(
            "SELECT e.embedding FROM chunks c JOIN embedding_cache e "
            "ON e.provider = ? AND e.model = ? AND e.provider_key = ? AND e.hash = c.hash AND "
            "length(e.embedding) = 4 * ? "
            "WHERE c.key IN (SELECT value FROM json_each(?))",
            (*identity, as_list(keys[::step])),
        )
        return [vector for (vector,) in found]

    def due_keys(self, space: int) -> list[int]:
        """The chunks that the space does not hold yet, in key order.

        The chunks of a running rebuild are among them, so that they have their vectors when it is
        published."""
        return sorted(self._due(self._space(space)))

    def due_rows(
        self, space: int, keys: Sequence[int]
    ) -> list[tuple[int, str, str, Vector | None]]:
        """Those of some chunks that are still there: key, hash, text, and the vector if the cache
        has it; in key order.
        """
        identity = self._space(space).space.identity
        found = self._db.rows(
            "SELECT c.key, c.hash, c.text, e.embedding FROM chunks c LEFT JOIN embedding_cache e "
            "ON e.provider = ? AND e.model = ? AND e.provider_key = ? AND e.hash = c.hash AND "
            "length(e.embedding) = 4 * ? "
            "WHERE c.key IN (SELECT value FROM json_each(?)) ORDER BY c.key",
            (*identity, as_list(keys)),
        )
        return [(key, text_hash.hex(), text, vector) for key, text_hash, text, vector in found]

    def count_due_vectors(self, space: int) -> int:
        """How many chunks the space does not hold yet."""
        facts = self._space(space)
        if not self._meta.number("unswept") and not self._has_unsearched():
            # Every entry belongs to a chunk that counts: the difference is the answer.
            rows = self._db.rows(
                f"SELECT total(chunks) FROM files WHERE {_ALIVE.format('')}", (self._generation,)
            )[0][0]
            return int(rows) - facts.space.vectors - facts.uncovered
        return len(self._due(facts))

    def cached_dims(self, provider: str, model: str, provider_key: str) -> int:
        """The size of some cached vector of an embedder; 0 when there is none."""
        from clawmark.store.sqlite import cache

        return cache.dims_of(self._db, provider, model, provider_key)

    def cached(self, identity: Identity, hashes: Sequence[str]) -> dict[str, Vector]:
        """The cached vectors of some texts, by the SHA-256 hex of the text."""
        from clawmark.store.sqlite import cache

        return {
            text: vector for text, (_, vector) in cache.find(self._db, identity, hashes).items()
        }

    def evictable(self, limit: int) -> list[int]:
        """Rows of the cache that no chunk uses, least recently used first, as many as there are
        beyond a limit.
        """
        from clawmark.store.sqlite import cache

        entries = self._meta.number("cache_entries")
        if entries <= max(limit, self._meta.number("cache_in_use")):
            return []
        engine = self._vector_engine()
        used = frozenset(
            row for facts in self._meta.spaces.values() for row in engine.held(facts).values()
        )
        return cache.oldest(self._db, entries - limit, used)

    # --- inside --------------------------------------------------------------------------------------------------

    @property
    def _generation(self) -> int:
        return self._meta.number("generation")

    @property
    def _building(self) -> int:
        """The generation a rebuild is making, or 0."""
        return 0 if self._meta.number("abandoned") else self._meta.number("building")

    def _space(self, number: int) -> SpaceFacts:
        try:
            return self._meta.spaces[number]
        except KeyError:
            raise IndexStoreError(
                f"The index has no vector space {number}.", hint="Run `clawmark index`."
            ) from None

    def _vector_engine(self) -> VectorIndex:
        from clawmark.store.sqlite.vectors.base import open_engine

        if self._engine is None:
            self._engine = open_engine(
                self._meta.engine, self._db, self._meta.index_id, self._residents
            )
        return self._engine

    def _due(self, facts: SpaceFacts) -> set[int]:
        """Answered from an index that covers it, without reading any text."""
        alive = self._db.rows(
            f"SELECT c.key FROM files f CROSS JOIN chunks c ON c.file = f.key "
            f"WHERE {_ALIVE.format('f.')}{self._searched('f.')}",
            (self._generation,),
        )
        held = self._vector_engine().held(facts)
        return {key for (key,) in alive if key not in held}

    @property
    def words(self) -> str:
        """The full-text table that answers."""
        return WORDS[self._meta.number("words")]

    def _has_masked(self) -> bool:
        """Whether there are chunks to leave out one by one; usually there are none."""
        return bool(
            self._meta.number("masked") or self._meta.has("staging") or self._has_unsearched()
        )

    def _hidden_chunks(self) -> str:
        """The question for the chunks that are left out one by one."""
        return _HIDDEN_CHUNKS + (
            f" OR f.source IN ({self._unsearched})" if self._has_unsearched() else ""
        )

    def _visible(self, table: str = "") -> str:
        """The condition for files that are seen; it takes the generation twice."""
        return _VISIBLE.format(table) + self._searched(table)

    def _searched(self, table: str = "") -> str:
        return f" AND {table}source NOT IN ({self._unsearched})" if self._unsearched else ""

    def _has_unsearched(self) -> bool:
        """Whether the index holds files of a source that is not searched."""
        if self._hides_sources is None:
            query = f"SELECT 1 FROM files WHERE source IN ({self._unsearched}) LIMIT 1"
            self._hides_sources = bool(self._db.rows(query))
        return self._hides_sources

    def _hidden_words(self) -> tuple[str, tuple[Any, ...]]:
        """What keeps chunks that are not seen out of a full-text query; those of another generation
        are in another table.
        """
        return (
            (f" AND +rowid NOT IN ({self._hidden_chunks()})", (self._generation,))
            if self._has_masked()
            else ("", ())
        )

    def _hidden_keys(self) -> Hidden:
        """The same for vectors, which are all in one table."""
        first = self._meta.number("building_from")
        below = self._meta.number("words_from") if self._meta.number("unswept") else 0
        masked: frozenset[int] = frozenset()
        if self._has_masked():
            masked = frozenset(
                key for (key,) in self._db.rows(self._hidden_chunks(), (self._generation,))
            )
        if not (first or below or masked):
            return None
        return lambda key: key < below or 0 < first <= key or key in masked

    def close(self) -> None:
        """End the snapshot: from here on this object answers nothing."""
        self._db = cast(Database, _Ended())
        self._engine = None


class _Ended:
    """Stands where the connection was."""

    def __getattr__(self, name: str) -> Any:
        raise IndexStoreError(
            "This snapshot of the index has ended.", hint="Open another one with Index.reading()."
        )


def _chunk_row(row: Sequence[Any]) -> ChunkRow:
    return ChunkRow._make((*row[:5], row[5].hex(), *row[6:]))
