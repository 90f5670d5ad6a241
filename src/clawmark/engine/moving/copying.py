"""Copies files, vectors, cached vectors and facts from one store to another.

Each step compares both stores first and copies what is missing or different, in short transactions.
So a copy that was killed is continued, and a copy of a copy does nothing. Words are computed again
from the text; vectors are never: those of a text are taken from the cache of the source."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

from clawmark.engine.sync.publish import stored_chunks, words_for
from clawmark.engine.sync.text import CHUNKS_AT_ONCE
from clawmark.model.documents import Chunk
from clawmark.model.values import FileRow, Identity, Space, noise_fact
from clawmark.store.base import InspectedSnapshot, ManagedStore

VECTORS_AT_ONCE = 500
FACTS = ("identity", "roots", "last_sync", "journal")
"""The facts that are about the memory; others are about the store."""

Show = Callable[[str, int, int], None]
"""Called with what is being done, how much of it, and of how much."""


class FileChanges(NamedTuple):
    """Which files to copy, which have another stat only, and which to delete from the target."""

    copy: tuple[FileRow, ...]
    touch: tuple[FileRow, ...]
    delete: tuple[str, ...]


def compare_rows(source: ManagedStore, target: ManagedStore) -> FileChanges:
    """Return which files differ, by their rows alone."""
    with source.snapshot() as snapshot:
        wanted = snapshot.files()
    with target.snapshot() as snapshot:
        known = snapshot.files()
    changed = [row for path, row in wanted.items() if known.get(path) != row]
    touch = {
        row.path: row for row in changed if row.path in known and _same_text(row, known[row.path])
    }
    return FileChanges(
        copy=tuple(row for row in changed if row.path not in touch),
        touch=tuple(touch.values()),
        delete=tuple(path for path in known if path not in wanted),
    )


def _same_text(row: FileRow, other: FileRow) -> bool:
    return (row.hash, row.source, row.chunks, row.progress) == (
        other.hash,
        other.source,
        other.chunks,
        other.progress,
    )


def copy_files(
    source: ManagedStore, target: ManagedStore, changes: FileChanges, show: Show
) -> None:
    """Copy files with their chunks and words, whole files at a time."""
    for start in range(0, len(changes.delete), CHUNKS_AT_ONCE):
        with target.transaction() as transaction:
            for path in changes.delete[start : start + CHUNKS_AT_ONCE]:
                transaction.delete_file(path)
    for start in range(0, len(changes.touch), CHUNKS_AT_ONCE):
        with target.transaction() as transaction:
            for row in changes.touch[start : start + CHUNKS_AT_ONCE]:
                transaction.touch_file(row)
    done = 0
    for portion in _portions(changes.copy):
        with source.snapshot() as snapshot:
            # A file may have changed since it was listed; row and chunks belong together.
            rows = list(snapshot.files([row.path for row in portion]).values())
            files = [(row, stored_chunks(snapshot, row)) for row in rows]
        _put(target, files)
        done += len(portion)
        show("files", done, len(changes.copy))


def _put(target: ManagedStore, files: Sequence[tuple[FileRow, list[Chunk]]]) -> None:
    if len(files) == 1 and len(files[0][1]) > CHUNKS_AT_ONCE:
        row, chunks = files[0]
        with target.transaction() as transaction:
            # Storing a large file is skipped if one with the same hash is there.
            transaction.delete_file(row.path)
        target.put_large_file(row, chunks, partial(words_for, row))
        return
    words = [words_for(row, chunks) for row, chunks in files]
    with target.transaction() as transaction:
        for (row, chunks), columns in zip(files, words, strict=True):
            transaction.put_file(row, chunks, columns)


def _portions(rows: Sequence[FileRow]) -> Iterator[list[FileRow]]:
    """Group files that fit into one transaction; a file too large for one is alone."""
    portion: list[FileRow] = []
    chunks = 0
    for row in rows:
        if portion and chunks + row.chunks > CHUNKS_AT_ONCE:
            yield portion
            portion, chunks = [], 0
        portion.append(row)
        chunks += row.chunks
    if portion:
        yield portion


def copy_vectors(source: ManagedStore, target: ManagedStore, show: Show) -> int:
    """Give the chunks of the target the vectors they have in the source; return how many."""
    with source.snapshot() as snapshot:
        spaces = snapshot.spaces()
    _drop_other_spaces(target, spaces)
    return sum(_copy_space(source, target, space, show) for space in spaces)


def _drop_other_spaces(target: ManagedStore, spaces: Sequence[Space]) -> None:
    wanted = {space.identity for space in spaces}
    with target.transaction() as transaction:
        for space in transaction.spaces():
            if space.identity not in wanted:
                transaction.drop_space(space.id)


def _copy_space(source: ManagedStore, target: ManagedStore, space: Space, show: Show) -> int:
    with target.transaction() as transaction:
        number = transaction.add_space(space.identity).id
    with target.snapshot() as snapshot:
        keys = snapshot.due_keys(number)
    due = due_hashes(source, space.id)
    copied = 0
    for start in range(0, len(keys), VECTORS_AT_ONCE):
        with target.snapshot() as reader:
            rows = reader.due_chunks(number, keys[start : start + VECTORS_AT_ONCE])
        with source.snapshot() as snapshot:
            known = snapshot.cached(space.identity, [row.hash for row in rows])
        # Without a vector in the source, a chunk is due there as well, or its model does not cover
        # it.
        found = [(row.key, row.hash, known.get(row.hash)) for row in rows]
        with target.transaction() as transaction:
            transaction.put_vectors(
                number, [one for one in found if one[2] is not None or one[1] not in due]
            )
        copied += len(rows)
        show("vectors", copied, len(keys))
    with source.snapshot() as snapshot:
        noise = shared_noise(snapshot, space.id)
    with target.transaction() as transaction:
        if space.ready:
            transaction.set_ready(number)
        transaction.set_facts(noise_fact(number), noise)
    return copied


def due_hashes(store: ManagedStore, space: int) -> set[str]:
    """Return the hashes of the chunks that have no entry in a vector space yet."""
    with store.snapshot() as snapshot:
        keys = snapshot.due_keys(space)
        return {row.hash for row in snapshot.due_chunks(space, keys)}


def shared_noise(snapshot: InspectedSnapshot, space: int) -> dict[str, Any]:
    """Return what was measured of a space; of images and audio files it is measured again, because
    it names chunks by their keys."""
    return {
        name: value for name, value in snapshot.facts(noise_fact(space)).items() if name != "media"
    }


def copy_cache(source: ManagedStore, target: ManagedStore, show: Show) -> int:
    """Copy the cached vectors that the target does not have; return how many."""
    with source.snapshot() as snapshot:
        wanted = snapshot.cached_hashes()
    with target.snapshot() as snapshot:
        known = {identity: set(texts) for identity, texts in snapshot.cached_hashes().items()}
    missing = {
        identity: [text for text in texts if text not in known.get(identity, ())]
        for identity, texts in wanted.items()
    }
    total = sum(map(len, missing.values()))
    done = 0
    for identity, texts in missing.items():
        for start in range(0, len(texts), VECTORS_AT_ONCE):
            done += _copy_cached(source, target, identity, texts[start : start + VECTORS_AT_ONCE])
            show("cache", done, total)
    return done


def _copy_cached(
    source: ManagedStore, target: ManagedStore, identity: Identity, texts: Sequence[str]
) -> int:
    with source.snapshot() as snapshot:
        found = snapshot.cached(identity, texts)
    with target.transaction() as transaction:
        # In this order, so that the vectors that were used last are evicted last.
        transaction.cache_vectors(identity, {text: found[text] for text in texts if text in found})
    return len(texts)


def copy_facts(source: ManagedStore, target: ManagedStore) -> None:
    """Copy what is known about the memory as a whole."""
    with source.snapshot() as snapshot:
        facts = {name: snapshot.facts(name) for name in FACTS}
    with target.transaction() as transaction:
        for name, value in facts.items():
            if transaction.facts(name) != value:
                transaction.set_facts(name, value)
