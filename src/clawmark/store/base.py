"""The protocol of an index store: what `engine.sync` and `engine.search` need from a database.

A store holds files, their chunks, the words of each chunk, and vectors in one or more vector
spaces. `IndexStore.snapshot` opens a consistent view to read from; `IndexStore.transaction` opens
one to write with. A rebuild is a second set of files next to the one that answers: a store keeps it
invisible until it is published. How a store hides, cleans up and locks is its own business.

`clawmark.testing.index_store_contract` checks an implementation."""

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from clawmark.model.values import (
    ChunkRow,
    FileRow,
    FileSet,
    FileStat,
    Filters,
    Identity,
    KeywordCounts,
    KeywordQuery,
    Mark,
    Space,
    Vector,
)

if TYPE_CHECKING:
    from clawmark.model.documents import Chunk
    from clawmark.store.contents import DueChunk, IndexState

ChunkWords: TypeAlias = tuple[str, ...]
"""The words of one chunk for keyword search: what it states, its headings and dates, and optionally
what it only asks."""


class SearchSnapshot(Protocol):
    """A consistent view of the index, as far as a search reads it."""

    def within(self, filters: Filters) -> "SearchSnapshot":
        """Return the same snapshot restricted to chunks that pass the filters.

        The restriction applies to `search_keywords`, `nearest` and `count_chunks`."""

    def search_keywords(self, query: KeywordQuery, limit: int) -> list[tuple[int, float]]:
        """Return the matching chunk keys with their BM25 scores (0 and up), best first."""

    def score_keywords(
        self, queries: Sequence[KeywordQuery], keys: Sequence[int]
    ) -> list[dict[int, float]]:
        """Return, for each query, the BM25 scores of those of the given chunks that match it."""

    def count_keywords(self, queries: Sequence[KeywordQuery]) -> KeywordCounts:
        """Count the chunks that match each query. Filters do not apply: counts tell how rare a word
        is.
        """

    def nearest(
        self, space: int, query: Vector, limit: int, also: Sequence[int] = ()
    ) -> list[tuple[int, float]]:
        """Return the chunks nearest to a unit vector with their cosines, best first.

        The chunks in `also` follow if they have a vector and are not among the nearest."""

    def chunks(self, keys: Sequence[int]) -> dict[int, ChunkRow]:
        """Return the visible chunks among these keys."""

    def count_chunks(self, *, undated: bool = False) -> int:
        """Count the visible chunks that pass the filters, or only those of them without a date."""

    def files(
        self, paths: Sequence[str] | None = None, *, which: FileSet = "visible"
    ) -> dict[str, FileRow]:
        """Return files by path: all of them, or only those with the given paths."""

    def stats(self, paths: Collection[str] | None = None) -> dict[str, FileStat]:
        """Return what a scan of the disk is compared with, for visible files, by path."""

    def spaces(self) -> tuple[Space, ...]:
        """Return the vector spaces."""

    def count_due(self, space: int) -> int:
        """Count the chunks that have no entry in a vector space yet."""

    def facts(self, name: str) -> dict[str, Any]:
        """Return a JSON object stored with `WriteTransaction.set_facts`; empty if there is none.

        `identity`: what the index was made with; `last_sync`: its summary for `status`; `roots`:
        device and inode of the folders that held memory; `healed`: why a damaged index was replaced
        by this one; `noise_fact(space)`."""


class Snapshot(SearchSnapshot, Protocol):
    """A consistent view of the index; everything read from it is as of one moment."""

    @property
    def generation(self) -> int:
        """A number that grows whenever a rebuild is published."""

    @property
    def building(self) -> int:
        """The number of the rebuild that is running, or 0."""

    def chunks_of(self, path: str, lines: tuple[int, int] | None = None) -> list[ChunkRow]:
        """Return the chunks of a visible file, or those within some of its lines, in order."""

    def due_keys(self, space: int) -> list[int]:
        """Return the keys of the chunks that have no entry in a vector space yet, in key order.

        Chunks of a running rebuild are included, so that they have vectors when it is published."""

    def due_chunks(self, space: int, keys: Sequence[int]) -> "list[DueChunk]":
        """Return those of the given chunks that still exist, in key order."""

    def sample_vectors(self, space: int, most: int) -> list[Vector]:
        """Return the vectors of up to `most` chunks, spread evenly over a space."""


class WriteTransaction(Snapshot, Protocol):
    """A snapshot that can be changed; it sees its own changes.

    Methods that take `building` write into that rebuild. If another process has published it in the
    meantime, they change the visible files instead."""

    def put_file(
        self,
        row: FileRow,
        chunks: "Sequence[Chunk]",
        words: Sequence[ChunkWords],
        *,
        building: int = 0,
    ) -> list[int]:
        """Replace a file and return the keys of its chunks."""

    def extend_file(
        self,
        row: FileRow,
        first_line: int,
        chunks: "Sequence[Chunk]",
        words: Sequence[ChunkWords],
        *,
        was: str,
        building: int = 0,
    ) -> bool:
        """Replace the chunks of a file from a line on.

        Return False and change nothing if the progress stored with the file is not `was`."""

    def touch_file(self, row: FileRow) -> None:
        """Store the new stat of a file whose content has not changed."""

    def delete_file(self, path: str) -> None:
        """Delete a file, also from a running rebuild."""

    def add_space(self, identity: Identity) -> Space:
        """Return the vector space of an embedder, creating it if necessary."""

    def put_vectors(self, space: int, rows: Sequence[tuple[int, str, Vector | None]]) -> None:
        """Store vectors as (chunk key, hash of its text, vector).

        Without a vector, the chunk counts as not covered by the model. Rows whose chunk has changed
        or already has an entry are ignored; the cache keeps their vectors."""

    def set_ready(self, space: int) -> None:
        """Record that a space has covered every chunk once and may answer."""

    def drop_space(self, space: int) -> None:
        """Delete a vector space and its noise; the cache keeps its vectors."""

    def cache_vectors(self, identity: Identity, vectors: Mapping[str, Vector]) -> None:
        """Store vectors by the hash of their text, for chunks that get them later."""

    def set_facts(self, name: str, facts: dict[str, Any]) -> None:
        """Store a JSON object under a name; an empty one is removed. See `Snapshot.facts`."""

    def publish(self, building: int) -> list[FileRow]:
        """Make a rebuild visible in place of the files before it, with its identity.

        If visible files are missing from the rebuild, they are returned and nothing happens. Nor
        does anything if another process has published or abandoned the rebuild."""


class IndexStore(Protocol):
    """A database that holds the index of one agent. Creating the object opens nothing.

    Methods with a `timeout` raise `IndexBusy` if another process keeps the write lock longer; 0
    means not to wait. Long work is done in short transactions."""

    @property
    def lock_waits(self) -> int:
        """How often a write had to wait for another one."""

    def snapshot(self) -> AbstractContextManager[Snapshot]:
        """Open a snapshot; it ends with the block. Reading never waits for a writer."""

    def transaction(self, *, timeout: float = 10.0) -> AbstractContextManager[WriteTransaction]:
        """Open a transaction: committed at the end of the block, rolled back if it raises."""

    def put_large_file(
        self,
        row: FileRow,
        chunks: "Sequence[Chunk]",
        words: "Callable[[Sequence[Chunk]], Sequence[ChunkWords]]",
        *,
        building: int = 0,
        timeout: float = 10.0,
        at_once: int = 300,
    ) -> None:
        """Replace a file in several transactions of `at_once` chunks; it becomes visible with the
        last.
        """

    def begin_rebuild(
        self,
        identity: dict[str, Any],
        *,
        timeout: float = 10.0,
        cancelled: Callable[[], bool] | None = None,
    ) -> int:
        """Start a rebuild, or continue one with the same identity, and return its number.

        Return 0 if `cancelled` returned true while an older rebuild was being cleaned up."""

    def tidy(
        self,
        *,
        timeout: float = 10.0,
        cancelled: Callable[[], bool] | None = None,
        force: bool = False,
    ) -> None:
        """Remove deleted and replaced rows where there is enough of them, or all with `force`."""

    def check(self, *, timeout: float = 10.0) -> None:
        """Raise `IndexDamaged` if the index was changed from outside and is not intact."""

    def recover_vectors(self, *, timeout: float = 10.0) -> int:
        """Copy vectors from a damaged index that this one replaced; return how many."""

    def trim_cache(self, *, timeout: float = 10.0) -> int:
        """Delete the least recently used unneeded vectors above the limit; return how many."""

    def record_sync(self, facts: dict[str, object]) -> AbstractContextManager[Callable[..., None]]:
        """Let other processes see a running sync; call the yielded function to update its facts."""

    def mark(self) -> Mark:
        """Return which index this is now, for `was_replaced`."""

    def was_replaced(self, mark: Mark | None) -> bool:
        """Return whether the index was deleted or replaced since the mark (None: since opening)."""

    def close(self) -> None:
        """Close all connections; using the store again opens new ones."""


class InspectedSnapshot(Snapshot, Protocol):
    """A snapshot that `status`, `doctor` and `verify` can examine."""

    def state(self) -> "IndexState":
        """Count what the index holds."""

    def database_facts(self) -> dict[str, Any]:
        """Return what the database says about itself, for `status`."""

    def integrity_problems(self) -> list[str]:
        """Return what is wrong with the stored rows."""

    def cached(self, identity: Identity, hashes: Sequence[str]) -> dict[str, Vector]:
        """Return the cached vectors of some texts, by the SHA-256 hex of the text."""

    def cached_dims(self, provider: str, model: str, provider_key: str) -> int:
        """Return the dimensions of some cached vector of an embedder; 0 if there is none."""

    def cached_hashes(self) -> dict[Identity, list[str]]:
        """Return the hashes of all texts in the cache by embedder, least recently used first."""


class ManagedStore(IndexStore, Protocol):
    """An index store that `status`, `doctor`, `verify` and `forget` can maintain."""

    path: str
    """Where the index is, for messages; an address without user and password."""

    def snapshot(self, *, thorough: bool = False) -> AbstractContextManager[InspectedSnapshot]:
        """Open a snapshot; with `thorough`, everything that is read is verified."""

    def exists(self) -> bool:
        """Return whether there may be an index, without opening it."""

    def check_vectors(self) -> None:
        """Load the vector engine and score two known vectors; raise an error if that fails."""

    def set_aside(self, kind: str) -> str:
        """Make room for a new index and return the name of the old one; empty if it has none."""

    def erase_deleted(self, *, timeout: float = 10.0) -> int:
        """Erase every trace of deleted text; return how many cached vectors were removed."""
