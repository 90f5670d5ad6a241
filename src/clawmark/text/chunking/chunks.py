"""Cut a document with the configured chunker, and compute the ids of chunks.

Chunks are valid Unicode, never blank, and in order."""

from __future__ import annotations

from hashlib import sha256

from clawmark.model.documents import Chunk
from clawmark.text.chunking.lines import chunk_lines
from clawmark.text.chunking.lines_v5 import CURATED_FILES, chunk_entries
from clawmark.text.chunking.markdown import chunk_markdown
from clawmark.text.chunking.tokens import well_formed


def chunk_text(text: str, mode: str, tokens: int, overlap: int, path: str = "") -> list[Chunk]:
    """Cut a text with the chunker of a mode; blank chunks are dropped.

    `markdown` cuts by structure, `lines` as OpenClaw 2026.3 does, `lines-v5` as OpenClaw 2026.9
    does. The last one cuts the curated files entry by entry and therefore needs the `path`."""
    overlap = min(overlap, tokens - 1)  # otherwise cutting would not advance
    try:
        return _chunks(text, mode, tokens, overlap, path)
    except UnicodeEncodeError:  # text with a lone surrogate cannot be hashed
        return _chunks(well_formed(text), mode, tokens, overlap, path)


def _chunks(text: str, mode: str, tokens: int, overlap: int, path: str) -> list[Chunk]:
    if mode == "lines":
        return [chunk for chunk in chunk_lines(text, tokens, overlap) if chunk.text.strip()]
    if mode == "lines-v5":
        return chunk_entries(text, tokens, overlap, per_entry=path in CURATED_FILES)
    return chunk_markdown(text, tokens, overlap)


def chunk_id(
    source: str, path: str, start_line: int, end_line: int, chunk_hash: str, model: str
) -> str:
    """Return the stable id of a chunk, the same as in an OpenClaw index."""
    name = f"{source}:{path}:{start_line}:{end_line}:{chunk_hash}:{model}"
    return sha256(well_formed(name).encode()).hexdigest()


def split_utf8(text: str, limit: int) -> list[str]:
    """Cut a text into pieces of at most `limit` UTF-8 bytes, never inside a character."""
    data = well_formed(text).encode()
    pieces: list[str] = []
    start = 0
    while start < len(data):
        stop = min(start + max(1, limit), len(data))
        while stop < len(data) and data[stop] & 0xC0 == 0x80 and stop > start:
            stop -= 1
        if stop == start:  # a single character above the limit
            stop += 1
            while stop < len(data) and data[stop] & 0xC0 == 0x80:
                stop += 1
        pieces.append(data[start:stop].decode())
        start = stop
    return pieces
