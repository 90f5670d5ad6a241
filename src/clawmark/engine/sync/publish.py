"""The end of a rebuild: what it could not read itself is taken over as it is, and then all of it
answers at once.

A file may be missing in the rebuild because it cannot be read for the moment, or because another
process indexed it while the rebuild went on. Its passages are in the index already, cut as they
were; its words are written once more. The last few are taken over in the very transaction that
flips, so that nobody can get in between."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from clawmark.engine.sync.text import CHUNKS_AT_ONCE, store_large, words_of
from clawmark.engine.sync.transcripts import words_of as spoken_words
from clawmark.model.documents import Chunk
from clawmark.model.errors import IndexBusy
from clawmark.model.values import FileRow
from clawmark.store.sqlite.store import Index, Reader

if TYPE_CHECKING:
    from clawmark.store.sqlite.writer import Writer

ATTEMPTS = 20
"""How often a large file may come in between."""


def publish(index: Index, building: int, identity: dict[str, object], lock_timeout: float) -> None:
    """Flip to the generation that was built; nothing happens when another process did so, or
    abandoned it.
    """
    for _ in range(ATTEMPTS):
        while True:
            with index.writing(timeout=lock_timeout) as writer:
                left = writer.unbuilt(building)
                is_last = _take_over(writer, left, building)
                if is_last:
                    if writer.publish(building) == building:
                        writer.set_identity(identity)
                    return
            if left[0].chunks > CHUNKS_AT_ONCE:
                break
        with index.reading() as reader:
            chunks = _chunks(reader, left[0])
        store_large(left[0], chunks, partial(_words, left[0]), index, building, lock_timeout)
    raise IndexBusy(
        "Other processes kept changing the index while it was rebuilt.",
        hint="Run `clawmark index` again.",
    )


def _take_over(writer: Writer, left: Sequence[FileRow], building: int) -> bool:
    """As many files as one transaction can; whether these were all."""
    room = CHUNKS_AT_ONCE
    for row in left:
        room -= row.chunks
        if room < 0:
            return False
        chunks = _chunks(writer, row)
        writer.put_file(row, chunks, _words(row, chunks), building=building)
    return True


def _chunks(reader: Reader, row: FileRow) -> list[Chunk]:
    found = reader.chunks_of(row.path)
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
        for chunk in found
    ]


def _words(row: FileRow, chunks: Sequence[Chunk]) -> list[tuple[str, str, str]]:
    if row.source == "sessions":
        return spoken_words(chunks)
    return words_of(row.path, chunks)
