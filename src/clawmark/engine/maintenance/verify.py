"""Derive every row of the index from its file again and compare.

Files are hashed and chunked, some words of each chunk are looked up in the full-text index, and
vectors are recomputed: all of an instant embedder, a sample of a slow one. Nothing is repaired."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from clawmark.embed.base import Embedder
from clawmark.embed.passage import embeddable
from clawmark.engine.parts import IndexParts
from clawmark.engine.sync.text import chunks_of, read_document
from clawmark.engine.sync.transcripts import derive
from clawmark.model.documents import Chunk
from clawmark.model.errors import EmbeddingError, NotText, WorkspaceError
from clawmark.model.reports import VerifyReport
from clawmark.model.values import ChunkRow, FileRow, FileState, KeywordQuery, is_media
from clawmark.store.base import InspectedSnapshot, Snapshot
from clawmark.text.keywords.query import query_terms
from clawmark.text.transcripts.dialogue import without_note_header
from clawmark.text.untrusted.origin_labels import without_comments

WORDS_PER_CHUNK = 4
SLOW_SAMPLE = 16
SAME_DIRECTION = 0.9999
"""Two runs of one model may differ in the last bits, but not by more than this cosine."""


def verify(parts: IndexParts) -> VerifyReport:
    """Return a report without problems when the index matches the files."""
    scan = parts.workspace.scan()
    on_disk = {state.path: state for state in scan.files}
    problems: list[str] = []
    chunks = vectors = 0
    with parts.store.snapshot(thorough=True) as reader:
        problems.extend(reader.integrity_problems())
        indexed = reader.files()
        for path, row in indexed.items():
            found = reader.chunks_of(path)
            chunks += len(found)
            problems.extend(_check_file(parts, on_disk.get(path), row, found, reader))
        problems.extend(f"{path} is not indexed." for path in on_disk if path not in indexed)
        for embedder in parts.embedders:
            counted, wrong = _check_vectors(reader, embedder, indexed)
            vectors += counted
            problems.extend(wrong)
    return VerifyReport(
        files=len(indexed), chunks=chunks, vectors=vectors, problems=tuple(problems)
    )


def _check_file(
    parts: IndexParts,
    state: FileState | None,
    row: FileRow,
    found: Sequence[ChunkRow],
    reader: Snapshot,
) -> Iterator[str]:
    if state is None:
        yield f"{row.path} is indexed, but the file does not exist."
        return
    try:
        expected = (
            _transcript_chunks(parts, row)
            if row.source == "sessions"
            else _chunks(parts, state, row)
        )
    except NotText:
        if found:
            yield f"{row.path} is not text, but {len(found)} chunks of it are indexed."
        return
    except FileNotFoundError:
        yield f"{row.path} is indexed, but the file does not exist."
        return
    except WorkspaceError as error:
        yield f"{row.path} cannot be read: {error.message}"
        return
    if expected is None:
        yield f"{row.path} has changed since it was indexed."
        return
    have = sorted(map(_compared, found))
    want = sorted(map(_compared, expected))
    if have != want:
        yield (
            f"{row.path}: {len(have)} chunks are indexed, {len(want)} "
            f"were derived, and they are not the same."
        )
        return
    for chunk in found:
        terms = query_terms(without_note_header(without_comments(chunk.text)))[:WORDS_PER_CHUNK]
        queries = [KeywordQuery((term.phrase,)) for term in terms]
        if not all(reader.score_keywords(queries, [chunk.key])):
            yield (
                f"{row.path}#L{chunk.start_line}-L{chunk.end_line} is "
                f"missing words in the full-text index."
            )


def _compared(chunk: Chunk | ChunkRow) -> tuple[object, ...]:
    """Return what an indexed chunk and a derived one must have in common."""
    return chunk.start_line, chunk.end_line, chunk.hash, chunk.text, chunk.first_day, chunk.last_day


def _chunks(parts: IndexParts, state: FileState, row: FileRow) -> list[Chunk] | None:
    """Return the chunks of a memory file; None when it has changed since it was indexed."""
    document = read_document(state, parts.workspace, parts.sync.media)
    return chunks_of(document, parts.sync.chunker) if document.hash == row.hash else None


def _transcript_chunks(parts: IndexParts, row: FileRow) -> list[Chunk] | None:
    """Return the chunks of a transcript; None when it is not indexed to its end."""
    sessions = parts.workspace.sessions
    if sessions is None:
        return None
    with sessions.open(row.path) as opened:
        return (
            list(derive(opened, sessions, parts.sync.chunker))
            if opened.state.size == row.size
            else None
        )


def _check_vectors(
    reader: InspectedSnapshot, embedder: Embedder, indexed: dict[str, FileRow]
) -> tuple[int, list[str]]:
    """Recompute vectors, and return how many were compared and what is wrong."""
    space = next(
        (space for space in reader.state().spaces if space.identity == embedder.identity), None
    )
    if space is None:
        return 0, []
    rows = [
        chunk
        for path in indexed
        for chunk in reader.chunks_of(path)
        if embeddable(embedder, chunk.text) is not None
        and not (embedder.traits.media and chunk.source == "memory" and is_media(path))
    ]
    if not embedder.traits.instant and len(rows) > SLOW_SAMPLE:
        step = len(rows) / SLOW_SAMPLE
        rows = [rows[int(number * step)] for number in range(SLOW_SAMPLE)]
    stored = reader.cached(embedder.identity, [row.hash for row in rows])
    checked = [row for row in rows if row.hash in stored]
    try:
        fresh = embedder.embed_texts([without_comments(row.text) for row in checked])
    except EmbeddingError as error:
        return 0, [f"{embedder.traits.label} could not be called: {error.message}"]
    wrong = [
        f"{row.path}#L{row.start_line}-L{row.end_line} has a vector that {embedder.traits.label} "
        f"does not give."
        for row, vector in zip(checked, fresh, strict=True)
        if _cosine(stored[row.hash], vector) < SAME_DIRECTION
    ]
    return len(checked), wrong


def _cosine(one: bytes, other: bytes) -> float:
    a, b = memoryview(one).cast("f"), memoryview(other).cast("f")
    return sum(x * y for x, y in zip(a, b, strict=True)) / (math.hypot(*a) * math.hypot(*b) or 1.0)
