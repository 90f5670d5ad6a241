"""Changes to the index, all inside the one transaction that `Index.writing` holds open.

Text that is replaced or deleted is gone with the transaction: rows are deleted, not marked. Only a rebuild keeps the
rows it replaces, because they answer until it is published; `generations` has that part. Chunk keys are never used
twice, so that nothing remembered under a key can come to mean another text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from clawmark.documents import Chunk
from clawmark.errors import IndexStoreError
from clawmark.index import cache, generations
from clawmark.index.db import Database, as_list
from clawmark.index.meta import IDENTITY_KEY, Meta, SpaceFacts
from clawmark.index.reader import Reader
from clawmark.index.state import IndexState
from clawmark.index.vectors import Entry
from clawmark.types import FileRow, Identity, Space, Vector

_INSERT_FILE = (
    "INSERT INTO files (path, source, hash, size, mtime_ns, inode, device, seen_ns, chunks, born) "
    "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
_INSERT_CHUNK = (
    "INSERT INTO chunks (key, file, start_line, end_line, hash, born, heading, text) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
)
_INSERT_WORDS = "INSERT INTO chunks_fts (rowid, text, context) VALUES (?, ?, ?)"


class Writer(Reader):
    """A snapshot that can be changed, made by `Index.writing`; it sees its own changes."""

    def __init__(self, db: Database, engine: str, cache_entries: int, clock: Callable[[], int]) -> None:
        # What this transaction loads into memory may be rolled back, so it is not shared with readers.
        super().__init__(db, {})
        self._cache_limit = cache_entries
        self._clock = clock
        self._removed: list[int] = []
        if self._meta.engine != engine:
            self._change_engine(engine)

    # --- text ----------------------------------------------------------------------------------------------------

    def put_file(
        self, row: FileRow, chunks: Sequence[Chunk], words: Sequence[tuple[str, str]], *, building: bool = False
    ) -> list[int]:
        """Replace a file's rows and return its chunk keys; `words` gives each chunk's full-text columns.

        With `building` the rows belong to the generation a rebuild is making, and the old ones answer until it is
        published. When another process has published it meanwhile, this is an ordinary change.
        """
        building = building and self._meta.number("building") > 0
        if building:
            born = generations.replace_later(self, row.path)
        else:
            born = self._generation
            self.remove_files("path = ?", (row.path,))
        self._db.rows(_INSERT_FILE, (*row[:8], len(chunks), born))
        file = self._db.last_key()
        keys = self._new_keys(len(chunks), "building_next" if building else "next_key")
        self._db.many(
            _INSERT_CHUNK,
            [
                (
                    key,
                    file,
                    chunk.start_line,
                    chunk.end_line,
                    bytes.fromhex(chunk.hash),
                    born,
                    chunk.heading,
                    chunk.text,
                )
                for key, chunk in zip(keys, chunks, strict=True)
            ],
        )
        self._db.many(_INSERT_WORDS, [(key, *texts) for key, texts in zip(keys, words, strict=True)])
        return keys

    def touch_file(self, row: FileRow) -> None:
        """Note a new stat of a file whose bytes are the same."""
        self._db.rows(
            "UPDATE files SET size = ?, mtime_ns = ?, inode = ?, device = ?, seen_ns = ? WHERE path = ? AND hash = ?",
            (*row[3:8], row.path, row.hash),
        )

    def drop_file(self, path: str) -> None:
        """Forget a file, in every generation."""
        self.remove_files("path = ?", (path,))

    # --- vectors -------------------------------------------------------------------------------------------------

    def space(self, identity: Identity) -> Space:
        """The space for vectors of this identity, made when there is none."""
        for facts in self._meta.spaces.values():
            if facts.space.identity == identity:
                return facts.space
        number = self._meta.number("next_space")
        self._meta.set_number("next_space", number + 1)
        space = Space(number, identity, ready=False, vectors=0)
        self._meta.set_space(number, SpaceFacts(space, uncovered=0, revision=1))
        return space

    def put_vectors(self, space: int, rows: Sequence[tuple[int, str, Vector | None]]) -> None:
        """Store vectors of chunks (key, hash of the text, vector); without a vector the chunk is noted as not covered.

        A chunk that changed or got its vector while this one was computed is passed over; the cache keeps the vector.
        """
        facts = self._space(space)
        cached = self._store_in_cache(facts.space.identity, rows)
        keys = frozenset(key for key, _, _ in rows)
        known = dict(
            self._db.rows("SELECT key, hash FROM chunks WHERE key IN (SELECT value FROM json_each(?))", (as_list(keys),))
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
        """Note that the space has covered every chunk once, so it may answer."""
        facts = self._space(space)
        self._meta.set_space(space, facts._replace(space=facts.space._replace(ready=True)))

    def drop_space(self, space: int) -> None:
        """Forget a space; its vectors stay in the cache as long as there is room."""
        self._vector_engine().drop(self._space(space))
        self._meta.set_space(space, None)

    def put_cached(self, identity: Identity, vectors: Mapping[str, Vector]) -> None:
        """Keep vectors for texts (by hash) whose chunks get them later."""
        self._store_in_cache(identity, [(0, text, vector) for text, vector in vectors.items()])

    def cached(self, identity: Identity, hashes: Sequence[str]) -> dict[str, Vector]:
        """The cached vectors of some texts, which count as used now."""
        found = cache.find(self._db, identity, hashes)
        cache.touch(self._db, [row for row, _ in found.values()], self._clock())
        return {text: vector for text, (_, vector) in found.items()}

    def evict(self) -> int:
        """Shrink the cache to its limit and say how many vectors went; those in use stay, even beyond the limit."""
        entries = self._meta.number("cache_entries")
        if entries <= max(self._cache_limit, self._meta.number("cache_in_use")):
            return 0
        self._forget_removed()
        engine = self._vector_engine()
        used = frozenset(row for facts in self._meta.spaces.values() for row in engine.held(facts).values())
        gone = cache.evict(self._db, entries - self._cache_limit, used)
        self._meta.set_number("cache_entries", entries - gone)
        self._meta.set_number("cache_in_use", entries - gone)
        return gone

    # --- facts ---------------------------------------------------------------------------------------------------

    def state(self) -> IndexState:
        """What the index is and holds, with the changes of this transaction."""
        self._forget_removed()
        return super().state()

    def set_identity(self, identity: dict[str, Any]) -> None:
        """Remember what the index was made with."""
        self._meta.set_facts(IDENTITY_KEY, identity)

    def set_last_sync(self, facts: dict[str, Any]) -> None:
        """Remember a summary of the last sync for `status`."""
        self._meta.set_facts("last_sync", facts)

    # --- generations ---------------------------------------------------------------------------------------------

    def begin_rebuild(self, identity: dict[str, Any] | None = None) -> int:
        """Start the next generation, or go on with one that was made for the same identity; returns its number."""
        return generations.begin(self, identity or {})

    def publish(self) -> int:
        """Let the generation that was built answer from the end of this transaction on; the number that answers then."""
        return generations.publish(self)

    def sweep(self, limit: int = 500) -> int:
        """Delete some of what a published rebuild replaced, then the words of deleted text; 0 when all is clean.

        Call it in a transaction of its own until it returns 0: each call takes some 25 ms at most.
        """
        return generations.sweep(self, limit)

    def abandon(self) -> None:
        """Undo a rebuild that was not published."""
        generations.abandon(self)

    # --- inside: for this module, `generations` and `store` ------------------------------------------------------

    @property
    def db(self) -> Database:
        """The connection, for `generations`."""
        return self._db

    @property
    def meta(self) -> Meta:
        """The meta table, for `generations`."""
        return self._meta

    def remove_files(self, where: str, bindings: Sequence[Any]) -> None:
        """Delete files with their chunks, words and vectors."""
        for (file,) in self._db.rows(f"DELETE FROM files WHERE {where} RETURNING key", bindings):
            self.remove_chunks("file = ?", (file,))

    def remove_chunks(self, where: str, bindings: Sequence[Any]) -> int:
        """Delete chunks with their words and vectors; how many there were."""
        gone = self._db.rows(f"DELETE FROM chunks WHERE {where} RETURNING key", bindings)
        if gone:
            self._db.many("DELETE FROM chunks_fts WHERE rowid = ?", gone)
            self._meta.set_number("dead_words", self._meta.number("dead_words") + len(gone))
            self._removed.extend(key for (key,) in gone)
        return len(gone)

    def finish(self) -> None:
        """Write down what was kept in memory until the end of the transaction."""
        self._forget_removed()
        self._meta.save(self._db)

    def _new_keys(self, count: int, counter: str) -> list[int]:
        first = self._meta.number(counter)
        end = first + count
        if counter == "next_key" and 0 < self._meta.number("building_from") < end:
            raise IndexStoreError("A rebuild has been left unfinished for too long.", hint="Run `clawmark index`.")
        self._meta.set_number(counter, end)
        return list(range(first, end))

    def _forget_removed(self) -> None:
        """Take deleted chunks out of every space; gathered, because finding one costs as much as finding all."""
        if not self._removed:
            return
        keys, self._removed = frozenset(self._removed), []
        for facts in self._meta.spaces.values():
            changed = facts._replace(revision=facts.revision + 1)
            vectors, uncovered = (
                self._vector_engine().remove(changed, keys) if facts.space.vectors + facts.uncovered else (0, 0)
            )
            if vectors or uncovered:
                self._count(changed, -vectors, -uncovered)

    def _count(self, facts: SpaceFacts, vectors: int, uncovered: int) -> None:
        space = facts.space._replace(vectors=facts.space.vectors + vectors)
        self._meta.set_space(space.id, facts._replace(space=space, uncovered=facts.uncovered + uncovered))

    def _store_in_cache(self, identity: Identity, rows: Sequence[tuple[int, str, Vector | None]]) -> dict[str, int]:
        vectors = {text: vector for _, text, vector in rows if vector is not None}
        if any(len(vector) != identity.dims * 4 for vector in vectors.values()):
            raise IndexStoreError(
                f"A vector of {identity.model} does not have {identity.dims} numbers.", hint="Run `clawmark doctor`."
            )
        found, new = cache.store(self._db, identity, vectors, self._clock())
        self._meta.set_number("cache_entries", self._meta.number("cache_entries") + new)
        return found

    def _space(self, number: int) -> SpaceFacts:
        self._forget_removed()
        return super()._space(number)

    def _change_engine(self, engine: str) -> None:
        """Start the spaces afresh in another engine; their vectors come back from the cache with the next sync."""
        for number, facts in list(self._meta.spaces.items()):
            self._vector_engine().drop(facts)
            empty = facts.space._replace(ready=False, vectors=0)
            self._meta.set_space(number, SpaceFacts(empty, uncovered=0, revision=facts.revision + 1))
        self._meta.engine = engine
        self._engine = None
