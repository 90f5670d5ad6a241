"""Publishes a rebuild.

A visible file may be missing from the rebuild because it cannot be read at the moment, or because
another process indexed it in the meantime. Its chunks are in the index already and are copied as
they are; only its words are computed again. The last few files are copied in the transaction that
publishes, so that no other process can add one in between."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from clawmark.engine.sync.text import CHUNKS_AT_ONCE, words_of
from clawmark.engine.sync.transcripts import words_of as transcript_words
from clawmark.model.documents import Chunk
from clawmark.model.errors import IndexBusy
from clawmark.model.values import FileRow
from clawmark.store.base import ChunkWords, IndexStore, Snapshot, WriteTransaction

ATTEMPTS = 20
"""How often another process may add a large file before this gives up."""


def publish(store: IndexStore, building: int, lock_timeout: float) -> None:
    """Publish a rebuild; nothing happens if another process has published or abandoned it."""
    for _ in range(ATTEMPTS):
        while True:
            with store.transaction(timeout=lock_timeout) as transaction:
                missing = transaction.publish(building)
                if _copy(transaction, missing, building) == len(missing):
                    if missing:
                        transaction.publish(building)
                    return
            if missing[0].chunks > CHUNKS_AT_ONCE:
                break
        row = missing[0]
        with store.snapshot() as snapshot:
            chunks = stored_chunks(snapshot, row)
        store.put_large_file(
            row, chunks, partial(words_for, row), building=building, timeout=lock_timeout
        )
    raise IndexBusy(
        "Other processes kept changing the index while it was rebuilt.",
        hint="Run `clawmark index` again.",
    )


def _copy(transaction: WriteTransaction, missing: Sequence[FileRow], building: int) -> int:
    """Copy as many files as fit into one transaction, and return how many."""
    room = CHUNKS_AT_ONCE
    for copied, row in enumerate(missing):
        room -= row.chunks
        if room < 0:
            return copied
        chunks = stored_chunks(transaction, row)
        transaction.put_file(row, chunks, words_for(row, chunks), building=building)
    return len(missing)


def stored_chunks(snapshot: Snapshot, row: FileRow) -> list[Chunk]:
    """Return the chunks of a visible file as they are in the index."""
    return [
        Chunk(
            start_line=chunk.start_line,
            end_line=chunk.end_line,
            text=chunk.text,
            hash=chunk.hash,
            heading=chunk.heading,
            first_day=chunk.first_day,
            last_day=chunk.last_day,
        )
        for chunk in snapshot.chunks_of(row.path)
    ]


def words_for(row: FileRow, chunks: Sequence[Chunk]) -> list[ChunkWords]:
    """Return the words of chunks that were stored before."""
    return transcript_words(chunks) if row.source == "sessions" else words_of(row.path, chunks)
