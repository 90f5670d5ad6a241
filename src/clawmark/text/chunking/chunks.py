"""Cut a document with the configured chunker; chunks are valid Unicode and never blank."""

from __future__ import annotations

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
