"""Changes to the index, all inside the one transaction that `Index.writing` holds open.

No transaction takes long, whatever comes in: text that is replaced or deleted is gone with the
transaction, except where that would be hundreds of chunks; those are marked, never seen again, and
swept afterwards. `staging` has the files too large for one transaction, `generations` the rebuild,
`sweeping` the cleaning up. Chunk keys are never used twice, so that nothing remembered under a key
can come to mean another text."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from clawmark.model.documents import Chunk
from clawmark.model.errors import IndexBusy, IndexStoreError
from clawmark.model.values import FileRow, Identity, Space, Vector
from clawmark.store.sqlite import cache, generations
from clawmark.store.sqlite.db import Database, as_list
from clawmark.store.sqlite.meta import IDENTITY_KEY, Meta, SpaceFacts
from clawmark.store.sqlite.reader import Reader
from clawmark.store.sqlite.schema import DEAD, STAGED, WORDS
from clawmark.store.sqlite.state import IndexState
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
"""How many chunks one transaction deletes: some 25 ms. What goes beyond is marked and swept."""


class Writer(Reader):
    """A snapshot that can be changed, made by `Index.writing`; it sees its own changes."""

    def __init__(self, db: Database, engine: str, clock: Callable[[], int]) -> None:
        # What this transaction loads into memory may be rolled back, so it is not shared with
        # readers.
        super().__init__(db, {})
        self.now = clock
        self._room = DELETED_AT_ONCE
        self._new_words: set[str] = set()
        self._many_dead: bool | None = None
        self._swept = False
        self._removed: list[int] = []
        if self._meta.engine != engine:
            self._change_engine(engine)

    # --- text ----------------------------------------------------------------------------------------------------

    def put_file(
        self,
        row: FileRow,
        chunks: Sequence[Chunk],
        words: Sequence[tuple[str, ...]],
        *,
        building: int = 0,
    ) -> list[int]:
        """Replace a file's rows and return its chunk keys; `words` gives each chunk's full-text
        columns: text, context, and what it only asks where there is something.

        With the number of a rebuild the rows belong to the generation it is making, and the old
        ones answer until it is published. When another process has published it meanwhile, this is
        an ordinary change."""
        born = self._born(building)
        self._make_way(row.path, born)
        self._meta.add_source(row.source)
        self._db.rows(_INSERT_FILE, (*row[:8], len(chunks), row.progress, born, None))
        return self._insert_chunks(self._db.last_key(), born, chunks, words)

    def extend_file(
        self,
        row: FileRow,
        first_line: int,
        chunks: Sequence[Chunk],
        words: Sequence[tuple[str, ...]],
        *,
        was: str,
        building: int = 0,
    ) -> bool:
        """Put chunks in the place of those that begin at a line or later, in a file that grows.

        False, and nothing is changed, when the file's row does not say `was` of its progress any
        more."""
        born = self._born(building)
        of_path = f"SELECT key FROM files WHERE path = ? AND progress = ? AND {self._at_hand(born)}"
        found = self._db.rows(of_path, (row.path, was))
        if not found:
            return False
        file = found[0][0]
        doomed = self._db.rows(
            "SELECT key FROM chunks WHERE file = ? AND start_line >= ?", (file, first_line)
        )
        self.remove_chunks([key for (key,) in doomed])
        self._db.rows(
            "UPDATE files SET hash = ?, size = ?, mtime_ns = ?, inode = ?, device = ?, seen_ns = "
            "?, "
            "chunks = chunks - ? + ?, progress = ? WHERE key = ?",
            (*row[2:8], len(doomed), len(chunks), row.progress, file),
        )
        self._insert_chunks(file, born, chunks, words)
        return True

    def stage_file(self, row: FileRow, *, building: int = 0) -> int:
        """Begin a file that is too large for one transaction, and return its key; `row.chunks` says
        how many will come.

        Call it under `Index.staging`: what is staged of the same file already is replaced.
        """
        self.retire("path = ? AND died = ?", (row.path, STAGED))
        self._meta.add_source(row.source)
        self._db.rows(_INSERT_FILE, (*row, self._born(building), STAGED))
        file = self._db.last_key()
        staging.note(self, file)
        return file

    def add_chunks(
        self, file: int, chunks: Sequence[Chunk], words: Sequence[tuple[str, ...]]
    ) -> list[int]:
        """Store more chunks of a staged file, where nobody sees them yet."""
        _, born = staging.origin(self, file)
        staging.note(self, file)
        return self._insert_chunks(file, born, chunks, words)

    def finish_file(self, file: int) -> None:
        """Let a staged file take the place of the one that answered until now."""
        path, born = staging.origin(self, file)
        self._make_way(path, self._born(born), keep=file)
        self._db.rows("UPDATE files SET died = NULL WHERE key = ?", (file,))
        staging.forget(self, file)

    def touch_file(self, row: FileRow) -> None:
        """Note a new stat of a file whose bytes are the same."""
        self._db.rows(
            "UPDATE files SET size = ?, mtime_ns = ?, inode = ?, device = ?, seen_ns = ? WHERE "
            "path = ? AND hash = ?",
            (*row[3:8], row.path, row.hash),
        )

    def drop_file(self, path: str) -> None:
        """Forget a file, in every generation."""
        self.retire("path = ? AND died IS NOT ?", (path, DEAD))

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
        """Store vectors of chunks (key, hash of the text, vector); without a vector the chunk is
        noted as not covered.

        A chunk that changed or got its vector while this one was computed is passed over; the cache
        keeps the vector. So is a key of an index that was deleted since: in the one that took its
        place it means another text."""
        facts = self._space(space)
        cached = self._store_in_cache(facts.space.identity, rows)
        keys = frozenset(key for key, _, _ in rows)
        known = dict(
            self._db.rows(
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
        """Note that the space has covered every chunk once, so it may answer."""
        facts = self._space(space)
        self._meta.set_space(space, facts._replace(space=facts.space._replace(ready=True)))

    def set_noise(self, space: int, facts: dict[str, Any]) -> None:
        """Store what was measured about chance in a space."""
        self._meta.set_facts(f"noise_{space}", facts)

    def drop_space(self, space: int) -> None:
        """Forget a space, for `sweep` to delete; its vectors stay in the cache as long as there is
        room.
        """
        self._space(space)
        self._meta.set_facts(
            "retired", self._meta.facts("retired") | {str(space): self._meta.engine}
        )
        self._meta.set_space(space, None)
        self.set_noise(space, {})

    def put_cached(self, identity: Identity, vectors: Mapping[str, Vector]) -> None:
        """Keep vectors for texts (by hash) whose chunks get them later."""
        self._store_in_cache(identity, [(0, text, vector) for text, vector in vectors.items()])

    def cached(self, identity: Identity, hashes: Sequence[str]) -> dict[str, Vector]:
        """The cached vectors of some texts, which count as used now."""
        found = cache.find(self._db, identity, hashes)
        cache.touch(self._db, [row for row, _ in found.values()], self.now())
        return {text: vector for text, (_, vector) in found.items()}

    def forget_cached(self, rows: Sequence[int]) -> int:
        """Delete those of some rows of the cache that no chunk uses now, and say how many there
        were.
        """
        self._forget_removed()
        unused = set(rows)
        for space in self._meta.spaces:
            unused -= packed.rows_in_use(self._db, space, frozenset(unused))
        gone = cache.delete(self._db, sorted(unused))
        entries = self._meta.number("cache_entries") - gone
        self._meta.set_number("cache_entries", entries)
        self._meta.set_number("cache_in_use", entries)
        return gone

    # --- facts ---------------------------------------------------------------------------------------------------

    def state(self) -> IndexState:
        """What the index is and holds, with the changes of this transaction."""
        self._forget_removed()
        return super().state()

    def set_identity(self, identity: dict[str, Any]) -> None:
        """Remember what the index was made with."""
        self._meta.set_facts(IDENTITY_KEY, identity)
        # Once more by itself, for searches: they look at it each time, and JSON would cost a cold
        # one a millisecond.
        self._meta.set_text("chunker", str(identity.get("chunker", "")))

    def set_roots(self, roots: dict[str, list[int]]) -> None:
        """Store which folders held memory: device and inode by path."""
        self._meta.set_facts("roots", roots)

    def set_last_sync(self, facts: dict[str, Any]) -> None:
        """Remember a summary of the last sync for `status`."""
        self._meta.set_facts("last_sync", facts)

    def set_healed(self, facts: dict[str, Any]) -> None:
        """Remember that this index took the place of a damaged one."""
        self._meta.set_facts("healed", facts)

    # --- generations ---------------------------------------------------------------------------------------------

    def begin_rebuild(self, identity: dict[str, Any] | None = None) -> int:
        """Start the next generation, or go on with one that was made for the same identity, and
        return its number.

        0 when something has to be swept first: sweep in transactions of their own and ask again.
        """
        return generations.begin(self, identity or {})

    def unbuilt(self, building: int) -> list[FileRow]:
        """The files that answer now and are missing in a rebuild; empty when it is not running any
        more.
        """
        return generations.unbuilt(self, building)

    def publish(self, building: int) -> int:
        """Let the generation that was built answer from the end of this transaction on; the number
        that answers then.

        Nothing may be unbuilt: what is not there would not be found.
        """
        return generations.publish(self, building)

    def sweep(self, limit: int | None = None) -> int:
        """Delete some of what was replaced or dropped, then the words of deleted text; 0 when all
        is clean.

        Call it in a transaction of its own until it returns 0: each call takes some 25 ms at most.
        """
        self._swept = True
        return sweeping.sweep(self, limit)

    def abandon(self) -> None:
        """Give up a rebuild that was not published; `sweep` undoes it."""
        generations.abandon(self)

    # --- inside: for this module, `generations`, `staging` and `store` -------------------------------------------

    @property
    def db(self) -> Database:
        """The connection, for `generations`."""
        return self._db

    @property
    def index_id(self) -> str:
        """Names this index, for its seal."""
        return self._meta.index_id

    @property
    def holds_two(self) -> bool:
        """Whether two generations are in the file: one answers, the other is being made or swept."""
        is_after_rebuild = self._swept and self._meta.number("generation") > 1
        return is_after_rebuild or any(
            map(self._meta.has, ("building", "unswept", "abandoned", "emptying"))
        )

    @property
    def meta(self) -> Meta:
        """The meta table, for `generations`."""
        return self._meta

    def retire(self, where: str, bindings: Sequence[Any]) -> None:
        """Delete files with their chunks, words and vectors; large ones are marked for `sweep`
        instead.
        """
        for file, chunks, died in self._db.rows(
            f"SELECT key, chunks, died FROM files WHERE {where}", bindings
        ):
            if chunks <= self._room and not self._has_many_dead():
                self._room -= chunks
                self.remove_chunks(
                    [
                        key
                        for (key,) in self._db.rows(
                            "SELECT key FROM chunks WHERE file = ?", (file,)
                        )
                    ]
                )
                self._db.rows("DELETE FROM files WHERE key = ?", (file,))
            else:
                self._db.rows("UPDATE files SET died = ? WHERE key = ?", (DEAD, file))
                self._meta.set_number("unswept", 1)
                self._meta.set_number("masked", 1)
            if died == STAGED:
                staging.forget(self, file)

    def remove_chunks(self, keys: Sequence[int]) -> None:
        """Delete chunks with their words and vectors."""
        if keys:
            self._db.many("DELETE FROM chunks WHERE key = ?", [(key,) for key in keys])
            for table, dead in self._by_table(keys).items():
                # A table that neither answers nor is being filled is emptied as a whole.
                if table == self.words or generations.is_building(
                    self, self._meta.number("building")
                ):
                    sweeping.delete_words(self, table, dead)
            self._removed.extend(keys)

    def forget_building(self) -> None:
        """No rebuild is running any more."""
        generations.forget_building(self)

    def _has_many_dead(self) -> bool:
        if self._many_dead is None:
            self._many_dead = sweeping.has_many_dead(self)
        return self._many_dead

    def drop_some(self, space: int, engine: str) -> bool:
        """Delete a part of a dropped space that an engine holds; whether there was anything."""
        return open_engine(engine, self._db, self._meta.index_id, {}).drop_some(space)

    def finish(self) -> None:
        """Write down what was kept in memory until the end of the transaction."""
        self._forget_removed()
        for table in self._new_words:
            sweeping.note_new_words(self, table)
        self._meta.save(self._db)

    def _born(self, building: int) -> int:
        """The generation a file written now belongs to."""
        if generations.is_building(self, building):
            return building
        if building > self._generation:
            raise IndexBusy(
                "Another process is rebuilding the index with other settings.",
                hint="Let it finish, then run `clawmark index`.",
            )
        return self._generation

    def _at_hand(self, born: int) -> str:
        """The version of a file that a change belongs to: the one a rebuild has made, or the one
        that answers.
        """
        now = self._generation
        return (
            f"born = {born} AND died IS NULL"
            if born > now
            else f"born <= {now} AND (died IS NULL OR died > {now})"
        )

    def _make_way(self, path: str, born: int, keep: int = 0) -> None:
        """Retire what a new version of a file replaces; in a rebuild, let the old version die when
        it is published.
        """
        if born <= self._generation:
            self.retire("path = ? AND key <> ? AND died IS NOT ?", (path, keep, DEAD))
            return
        self.retire(
            "path = ? AND key <> ? AND ((born = ? AND died IS NULL) OR died = ?)",
            (path, keep, born, STAGED),
        )
        self._db.rows(
            "UPDATE files SET died = ? WHERE path = ? AND died IS NULL AND born < ?",
            (born, path, born),
        )

    def _insert_chunks(
        self, file: int, born: int, chunks: Sequence[Chunk], words: Sequence[tuple[str, ...]]
    ) -> list[int]:
        keys = self._new_keys(
            len(chunks), "building_next" if generations.is_building(self, born) else "next_key"
        )
        self._db.many(
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
        self._db.many(
            _INSERT_WORDS.format(table),
            [(key, *texts, "")[:4] for key, texts in zip(keys, words, strict=True)],
        )
        return keys

    @property
    def other_words(self) -> str:
        """The full-text table that does not answer."""
        return WORDS[1 - self._meta.number("words")]

    def _by_table(self, keys: Sequence[int]) -> dict[str, list[int]]:
        """In which full-text table the words of some chunks are; keys tell, since every rebuild
        takes higher ones.
        """
        below, first = self._meta.number("words_from"), self._meta.number("building_from")
        tables: dict[str, list[int]] = {}
        for key in keys:
            is_elsewhere = key < below or 0 < first <= key
            tables.setdefault(self.other_words if is_elsewhere else self.words, []).append(key)
        return tables

    def _new_keys(self, count: int, counter: str) -> list[int]:
        first = self._meta.number(counter)
        end = first + count
        if counter == "next_key" and 0 < self._meta.number("building_from") < end:
            raise IndexStoreError(
                "A rebuild has been left unfinished for too long.", hint="Run `clawmark index`."
            )
        self._meta.set_number(counter, end)
        return list(range(first, end))

    def _forget_removed(self) -> None:
        """Take deleted chunks out of every space; gathered, because finding one costs as much as
        finding all.
        """
        if not self._removed:
            return
        keys, self._removed = frozenset(self._removed), []
        for facts in self._meta.spaces.values():
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
        self._meta.set_space(
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
        found, new = cache.store(self._db, identity, vectors, self.now())
        self._meta.set_number("cache_entries", self._meta.number("cache_entries") + new)
        return found

    def _space(self, number: int) -> SpaceFacts:
        self._forget_removed()
        return super()._space(number)

    def _change_engine(self, engine: str) -> None:
        """Start the spaces afresh in another engine; their vectors come back from the cache with
        the next sync.
        """
        for number in list(self._meta.spaces):
            self.drop_space(number)
        self._meta.engine = engine
        self._engine = None
