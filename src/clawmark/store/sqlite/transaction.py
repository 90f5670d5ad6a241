"""Changes the SQLite index, within one transaction opened by `SqliteStore.transaction`.

No transaction takes long, however large the input: text that is replaced or deleted is removed with
the transaction, unless that would be hundreds of chunks; those are marked, invisible from then on,
and swept later. `staging` stores files too large for one transaction, `generations` makes rebuilds,
`sweeping` cleans up. Chunk keys are never reused, so a remembered key never means another text."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from clawmark.model.documents import Chunk
from clawmark.model.errors import IndexBusy, IndexStoreError
from clawmark.model.values import (
    FileRow,
    Identity,
    Space,
    Vector,
    noise_fact,
)
from clawmark.store.base import ChunkWords
from clawmark.store.contents import IndexState
from clawmark.store.sqlite import cache, generations
from clawmark.store.sqlite.db import Database, as_list
from clawmark.store.sqlite.keywords.counts import KeptCounts
from clawmark.store.sqlite.keywords.reader import KeywordReader
from clawmark.store.sqlite.meta import SpaceFacts
from clawmark.store.sqlite.schema import DEAD, STAGED, WORDS
from clawmark.store.sqlite.snapshot import SqliteSnapshot
from clawmark.store.sqlite.upkeep import staging, sweeping
from clawmark.store.sqlite.vectors import packed
from clawmark.store.sqlite.vectors.base import Entry, open_engine

_INSERT_FILE = (
    "INSERT INTO files (path, source, hash, size, mtime_ns, inode, device, seen_ns, chunks, "
    "progress, born, died) "
    "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
_INSERT_CHUNK = (
    "INSERT INTO chunks (key, file, start_line, end_line, text, hash, heading, first_day, "
    "last_day) "
    "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
_INSERT_WORDS = "INSERT INTO {} (rowid, text, context, asked) VALUES (?, ?, ?, ?)"

DELETED_AT_ONCE = 500
"""How many chunks one transaction deletes (about 25 ms). More are marked and swept later."""


class SqliteTransaction(SqliteSnapshot):
    """A snapshot that can be changed; see `WriteTransaction` for the methods."""

    def __init__(self, db: Database, engine: str, clock: Callable[[], int]) -> None:
        # What this transaction loads may be rolled back, so readers do not share it.
        super().__init__(db, {})
        self.now = clock
        self._room = DELETED_AT_ONCE
        self._new_words: set[str] = set()
        self._many_dead: bool | None = None
        self._swept = False
        self._removed: list[int] = []
        if self.meta.engine != engine:
            self._change_engine(engine)

    # --- text -------------------------------------------------------------------------------------

    def put_file(
        self,
        row: FileRow,
        chunks: Sequence[Chunk],
        words: Sequence[ChunkWords],
        *,
        building: int = 0,
    ) -> list[int]:
        """Replace a file and return the keys of its chunks.

        With `building`, the rows belong to that generation and the old ones answer until it is
        published. If another process has already published it, this is an ordinary change."""
        born = self._born(building)
        self._make_way(row.path, born)
        self.meta.add_source(row.source)
        self.db.rows(_INSERT_FILE, (*row[:8], len(chunks), row.progress, born, None))
        return self._insert_chunks(self.db.last_key(), born, chunks, words)

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
        """Replace the chunks of a file from a line on.

        Return False and change nothing if the progress stored with the file is not `was`."""
        born = self._born(building)
        of_path = f"SELECT key FROM files WHERE path = ? AND progress = ? AND {self._at_hand(born)}"
        found = self.db.rows(of_path, (row.path, was))
        if not found:
            return False
        file = found[0][0]
        doomed = self.db.rows(
            "SELECT key FROM chunks WHERE file = ? AND start_line >= ?", (file, first_line)
        )
        self.remove_chunks([key for (key,) in doomed])
        self.db.rows(
            "UPDATE files SET hash = ?, size = ?, mtime_ns = ?, inode = ?, device = ?, seen_ns = "
            "?, "
            "chunks = chunks - ? + ?, progress = ? WHERE key = ?",
            (*row[2:8], len(doomed), len(chunks), row.progress, file),
        )
        self._insert_chunks(file, born, chunks, words)
        return True

    def stage_file(self, row: FileRow, *, building: int = 0) -> int:
        """Begin a file that is too large for one transaction and return its key.

        `row.chunks` is its final number of chunks. The caller holds the staging lock: rows of the
        same file that are already staged are replaced."""
        self.retire("path = ? AND died = ?", (row.path, STAGED))
        self.meta.add_source(row.source)
        self.db.rows(_INSERT_FILE, (*row, self._born(building), STAGED))
        file = self.db.last_key()
        staging.note(self, file)
        return file

    def add_chunks(
        self, file: int, chunks: Sequence[Chunk], words: Sequence[ChunkWords]
    ) -> list[int]:
        """Store more chunks of a staged file; they are not visible yet."""
        _, born = staging.origin(self, file)
        staging.note(self, file)
        return self._insert_chunks(file, born, chunks, words)

    def finish_file(self, file: int) -> None:
        """Make a staged file visible in place of the version before it."""
        path, born = staging.origin(self, file)
        self._make_way(path, self._born(born), keep=file)
        self.db.rows("UPDATE files SET died = NULL WHERE key = ?", (file,))
        staging.forget(self, file)

    def touch_file(self, row: FileRow) -> None:
        self.db.rows(
            "UPDATE files SET size = ?, mtime_ns = ?, inode = ?, device = ?, seen_ns = ? WHERE "
            "path = ? AND hash = ?",
            (*row[3:8], row.path, row.hash),
        )

    def delete_file(self, path: str) -> None:
        self.retire("path = ? AND died IS NOT ?", (path, DEAD))

    # --- vectors ----------------------------------------------------------------------------------

    def add_space(self, identity: Identity) -> Space:
        for facts in self.meta.spaces.values():
            if facts.space.identity == identity:
                return facts.space
        number = self.meta.number("next_space")
        self.meta.set_number("next_space", number + 1)
        space = Space(number, identity, ready=False, vectors=0)
        self.meta.set_space(number, SpaceFacts(space, uncovered=0, revision=1))
        return space

    def put_vectors(self, space: int, rows: Sequence[tuple[int, str, Vector | None]]) -> None:
        """Store vectors as (chunk key, hash of its text, vector); without one, it is not covered.

        Ignore chunks that have changed or got a vector in the meantime. The hash is compared
        because a key may come from an index that was deleted since."""
        facts = self._space(space)
        cached = self._store_in_cache(facts.space.identity, rows)
        keys = frozenset(key for key, _, _ in rows)
        known = dict(
            self.db.rows(
                "SELECT key, hash FROM chunks WHERE key IN (SELECT value FROM json_each(?))",
                (as_list(keys),),
            )
        )
        held = self._vector_engine().held(facts, keys)
        fresh = {
            key: Entry(key, cached.get(text, 0), vector)
            for key, text, vector in rows
            if key not in held and key in known and known[key] == bytes.fromhex(text)
        }
        if fresh:
            covered = sum(entry.vector is not None for entry in fresh.values())
            added = facts._replace(revision=facts.revision + 1)
            self._vector_engine().add(added, list(fresh.values()))
            self._count(added, covered, len(fresh) - covered)

    def set_ready(self, space: int) -> None:
        facts = self._space(space)
        self.meta.set_space(space, facts._replace(space=facts.space._replace(ready=True)))

    def drop_space(self, space: int) -> None:
        self._space(space)
        self.meta.set_facts("retired", self.meta.facts("retired") | {str(space): self.meta.engine})
        self.meta.set_space(space, None)
        self.set_facts(noise_fact(space), {})

    def cache_vectors(self, identity: Identity, vectors: Mapping[str, Vector]) -> None:
        self._store_in_cache(identity, [(0, text, vector) for text, vector in vectors.items()])

    def cached(self, identity: Identity, hashes: Sequence[str]) -> dict[str, Vector]:
        """Return the cached vectors of some texts and mark them as used now."""
        found = cache.find(self.db, identity, hashes)
        cache.touch(self.db, [row for row, _ in found.values()], self.now())
        return {text: vector for text, (_, vector) in found.items()}

    def forget_cached(self, rows: Sequence[int]) -> int:
        """Delete those of the given cache rows that no chunk uses, and return how many."""
        self._forget_removed()
        unused = set(rows)
        for space in self.meta.spaces:
            unused -= packed.rows_in_use(self.db, space, frozenset(unused))
        gone = cache.delete(self.db, sorted(unused))
        entries = self.meta.number("cache_entries") - gone
        self.meta.set_number("cache_entries", entries)
        self.meta.set_number("cache_in_use", entries)
        return gone

    # --- facts ------------------------------------------------------------------------------------

    def state(self) -> IndexState:
        """Count what the index holds, including the changes of this transaction."""
        self._forget_removed()
        return super().state()

    def _count_visible(self) -> int:
        self.meta.counts.clear()  # This transaction may have changed it.
        return super()._count_visible()

    def keyword_reader(self) -> KeywordReader:
        self._keywords = None  # This transaction may have changed the words.
        return super().keyword_reader()

    def _kept_counts(self) -> KeptCounts:
        return {}  # What this transaction counts may be rolled back.

    def set_facts(self, name: str, facts: dict[str, Any]) -> None:
        self.meta.set_facts(name, facts)

    # --- generations ------------------------------------------------------------------------------

    def begin_rebuild(self, identity: dict[str, Any] | None = None) -> int:
        """Start the next generation, or continue one with the same identity; return its number.

        Return 0 if something has to be swept first, in transactions of its own."""
        return generations.begin(self, identity or {})

    def publish(self, building: int) -> list[FileRow]:
        """Make a rebuild visible, or return the visible files that it lacks.

        Nothing happens if another process has published or abandoned the rebuild."""
        return generations.publish(self, building)

    def sweep(self, limit: int | None = None) -> int:
        """Delete some replaced or dropped rows, then words of deleted text; return 0 when done.

        Call it in transactions of its own; each call takes about 25 ms at most."""
        self._swept = True
        return sweeping.sweep(self, limit)

    def abandon(self) -> None:
        """Abandon an unpublished rebuild; `sweep` removes it."""
        generations.abandon(self)

    # --- internal: for this module, `generations`, `staging`, `sweeping` and `store` --------------

    @property
    def index_id(self) -> str:
        """The random id of this index, for its seal."""
        return self.meta.index_id

    @property
    def holds_two(self) -> bool:
        """Whether the file holds a second generation that is being made or swept."""
        is_after_rebuild = self._swept and self.meta.number("generation") > 1
        return is_after_rebuild or any(
            map(self.meta.has, ("building", "unswept", "abandoned", "emptying"))
        )

    def retire(self, where: str, bindings: Sequence[Any]) -> None:
        """Delete files with their chunks, words and vectors, or mark large ones for `sweep`."""
        for file, chunks, died in self.db.rows(
            f"SELECT key, chunks, died FROM files WHERE {where}", bindings
        ):
            if chunks <= self._room and not self._has_many_dead():
                self._room -= chunks
                self.remove_chunks(
                    [
                        key
                        for (key,) in self.db.rows("SELECT key FROM chunks WHERE file = ?", (file,))
                    ]
                )
                self.db.rows("DELETE FROM files WHERE key = ?", (file,))
            else:
                self.db.rows("UPDATE files SET died = ? WHERE key = ?", (DEAD, file))
                self.meta.set_number("unswept", 1)
                self.meta.set_number("masked", 1)
            if died == STAGED:
                staging.forget(self, file)

    def remove_chunks(self, keys: Sequence[int]) -> None:
        """Delete chunks with their words and vectors."""
        if keys:
            self.db.many("DELETE FROM chunks WHERE key = ?", [(key,) for key in keys])
            for table, dead in self._by_table(keys).items():
                # A table that neither answers nor is being filled is emptied as a whole later.
                if table == self.words or generations.is_building(
                    self, self.meta.number("building")
                ):
                    sweeping.delete_words(self, table, dead)
            self._removed.extend(keys)

    def _has_many_dead(self) -> bool:
        if self._many_dead is None:
            self._many_dead = sweeping.has_many_dead(self)
        return self._many_dead

    def drop_some(self, space: int, engine: str) -> bool:
        """Delete a part of a dropped space; return False when nothing is left."""
        return open_engine(engine, self.db, self.meta.index_id, {}).drop_some(space)

    def finish(self) -> None:
        """Write what was kept in memory until the end of the transaction."""
        self._forget_removed()
        for table in self._new_words:
            sweeping.note_new_words(self, table)
        self.meta.save(self.db)

    def _born(self, building: int) -> int:
        """The generation a file written now belongs to."""
        if generations.is_building(self, building):
            return building
        if building > self.generation:
            raise IndexBusy(
                "Another process is rebuilding the index with other settings.",
                hint="Let it finish, then run `clawmark index`.",
            )
        return self.generation

    def _at_hand(self, born: int) -> str:
        """The condition for the version of a file to change: the rebuilt or the visible one."""
        now = self.generation
        return (
            f"born = {born} AND died IS NULL"
            if born > now
            else f"born <= {now} AND (died IS NULL OR died > {now})"
        )

    def _make_way(self, path: str, born: int, keep: int = 0) -> None:
        """Retire what a new version of a file replaces; in a rebuild, when it is published."""
        if born <= self.generation:
            self.retire("path = ? AND key <> ? AND died IS NOT ?", (path, keep, DEAD))
            return
        self.retire(
            "path = ? AND key <> ? AND ((born = ? AND died IS NULL) OR died = ?)",
            (path, keep, born, STAGED),
        )
        self.db.rows(
            "UPDATE files SET died = ? WHERE path = ? AND died IS NULL AND born < ?",
            (born, path, born),
        )

    def _insert_chunks(
        self, file: int, born: int, chunks: Sequence[Chunk], words: Sequence[ChunkWords]
    ) -> list[int]:
        keys = self._new_keys(
            len(chunks), "building_next" if generations.is_building(self, born) else "next_key"
        )
        self.db.many(
            _INSERT_CHUNK,
            [
                (
                    key,
                    file,
                    chunk.start_line,
                    chunk.end_line,
                    chunk.text,
                    bytes.fromhex(chunk.hash),
                    *chunk[4:],
                )
                for key, chunk in zip(keys, chunks, strict=True)
            ],
        )
        table = self.other_words if generations.is_building(self, born) else self.words
        self._new_words.add(table)
        self.db.many(
            _INSERT_WORDS.format(table),
            [(key, *texts, "")[:4] for key, texts in zip(keys, words, strict=True)],
        )
        return keys

    @property
    def other_words(self) -> str:
        """The full-text table that does not answer."""
        return WORDS[1 - self.meta.number("words")]

    def _by_table(self, keys: Sequence[int]) -> dict[str, list[int]]:
        """Group chunk keys by full-text table; keys decide, since every rebuild uses higher
        ones."""
        below, first = self.meta.number("words_from"), self.meta.number("building_from")
        tables: dict[str, list[int]] = {}
        for key in keys:
            is_elsewhere = key < below or 0 < first <= key
            tables.setdefault(self.other_words if is_elsewhere else self.words, []).append(key)
        return tables

    def _new_keys(self, count: int, counter: str) -> list[int]:
        first = self.meta.number(counter)
        end = first + count
        if counter == "next_key" and 0 < self.meta.number("building_from") < end:
            raise IndexStoreError(
                "A rebuild has been left unfinished for too long.", hint="Run `clawmark index`."
            )
        self.meta.set_number(counter, end)
        return list(range(first, end))

    def _forget_removed(self) -> None:
        """Remove deleted chunks from every space, together: finding one costs as much as all."""
        if not self._removed:
            return
        keys, self._removed = frozenset(self._removed), []
        for facts in self.meta.spaces.values():
            changed = facts._replace(revision=facts.revision + 1)
            vectors, uncovered = (
                self._vector_engine().remove(changed, keys)
                if facts.space.vectors + facts.uncovered
                else (0, 0)
            )
            if vectors or uncovered:
                self._count(changed, -vectors, -uncovered)

    def _count(self, facts: SpaceFacts, vectors: int, uncovered: int) -> None:
        space = facts.space._replace(vectors=facts.space.vectors + vectors)
        self.meta.set_space(
            space.id, facts._replace(space=space, uncovered=facts.uncovered + uncovered)
        )

    def _store_in_cache(
        self, identity: Identity, rows: Sequence[tuple[int, str, Vector | None]]
    ) -> dict[str, int]:
        vectors = {text: vector for _, text, vector in rows if vector is not None}
        if any(len(vector) != identity.dims * 4 for vector in vectors.values()):
            raise IndexStoreError(
                f"A vector of {identity.model} does not have {identity.dims} numbers.",
                hint="Run `clawmark doctor`.",
            )
        found, new = cache.store(self.db, identity, vectors, self.now())
        self.meta.set_number("cache_entries", self.meta.number("cache_entries") + new)
        return found

    def _space(self, number: int) -> SpaceFacts:
        self._forget_removed()
        return super()._space(number)

    def _change_engine(self, engine: str) -> None:
        """Drop all spaces of the old engine; the next sync refills them from the cache."""
        for number in list(self.meta.spaces):
            self.drop_space(number)
        self.meta.engine = engine
        self._engine = None
