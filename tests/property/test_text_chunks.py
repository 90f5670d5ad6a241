"""Properties of the chunks of any text."""

from __future__ import annotations

from hashlib import sha256

from hypothesis import example, given, settings
from hypothesis import strategies as st

from clawmark.model.documents import Chunk
from clawmark.text.chunking.chunks import chunk_text
from clawmark.text.chunking.tokens import quarter_tokens, well_formed

_STRUCTURE = [
    "# A",
    "## B",
    "###### deep",
    "#",
    "Title",
    "===",
    "---",
    "```",
    "```py",
    "~~~~",
    "- item",
    "  - nested",
    "1. one",
    "> quote",
    "    code",
    "...",
]
_TEXT = [
    "",
    "",
    " ",
    "\t",
    "\x0c",
    "\u2028",
    "\x1c",
    "\ud800",
    "| a | b |",
    "A sentence. Another one! A third? " * 5,
]
_LONG = ["word " * 30, "x" * 150, "記憶。" * 40, "e\u0301" * 60, "👩\u200d💻" * 40, "กขค" * 40]
_PIECES = st.sampled_from(_STRUCTURE + _TEXT + _LONG)
_MARKDOWN = st.lists(_PIECES, max_size=60).map("\n".join)
_ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=400) | _MARKDOWN
_TOKENS = st.integers(1, 120)
_OVERLAP = st.integers(0, 130)


def _is_piece(chunk: Chunk, lines: list[str]) -> bool:
    return chunk.start_line == chunk.end_line and chunk.text != lines[chunk.start_line - 1]


@settings(max_examples=400, deadline=None)
@given(_ANY_TEXT, _TOKENS, _OVERLAP)
@example("---\na: b\n---\n# T\n\ntext", 8, 2)
def test_markdown_chunks_are_exact_whole_lines_or_pieces_of_one_line(
    text: str, tokens: int, overlap: int
) -> None:
    lines = well_formed(text).split("\n")
    for chunk in chunk_text(text, "markdown", tokens, overlap):
        if _is_piece(chunk, lines):
            assert chunk.text in lines[chunk.start_line - 1]
            assert quarter_tokens(lines[chunk.start_line - 1]) >= max(32, tokens * 4)
        else:
            assert "\n".join(lines[chunk.start_line - 1 : chunk.end_line]) == chunk.text
        assert chunk.hash == sha256(chunk.text.encode()).hexdigest()
        assert chunk.text.strip()
        assert len(chunk.heading) <= 200


@settings(max_examples=400, deadline=None)
@given(_ANY_TEXT, _TOKENS, _OVERLAP)
def test_every_non_blank_line_is_in_a_markdown_chunk_in_full(
    text: str, tokens: int, overlap: int
) -> None:
    lines = well_formed(text).split("\n")
    covered: set[int] = set()
    pieces: dict[int, list[str]] = {}
    for chunk in chunk_text(text, "markdown", tokens, overlap):
        if _is_piece(chunk, lines):
            pieces.setdefault(chunk.start_line, []).append(chunk.text)
        else:
            covered.update(range(chunk.start_line, chunk.end_line + 1))
    for number, line in enumerate(lines, 1):
        if line.strip() and number not in covered:
            assert _is_covered(line, pieces[number])


def _is_covered(line: str, parts: list[str]) -> bool:
    """Whether the parts in order cover the line except white space."""
    end = 0
    for part in parts:
        at = _place(line, part, end)
        if at < 0 or line[end:at].strip():
            return False
        end = max(end, at + len(part))
    return not line[end:].strip()


def _place(line: str, part: str, end: int) -> int:
    """Return the last position of a part that starts before the first uncovered character."""
    first = end + len(line[end:]) - len(line[end:].lstrip())
    return line.rfind(part, 0, first + len(part))


@settings(max_examples=400, deadline=None)
@given(_ANY_TEXT, _TOKENS, _OVERLAP)
def test_no_markdown_chunk_is_more_than_a_twentieth_over_the_limit(
    text: str, tokens: int, overlap: int
) -> None:
    limit = max(32, tokens * 4)
    for chunk in chunk_text(text, "markdown", tokens, overlap):
        assert quarter_tokens(chunk.text) <= limit * 1.05


@settings(max_examples=200, deadline=None)
@given(_ANY_TEXT, st.sampled_from(["markdown", "lines"]), _TOKENS, _OVERLAP)
def test_chunks_are_in_order_and_the_same_every_time(
    text: str, mode: str, tokens: int, overlap: int
) -> None:
    chunks = chunk_text(text, mode, tokens, overlap)
    assert chunks == chunk_text(text, mode, tokens, overlap)
    spans = [(chunk.start_line, chunk.end_line) for chunk in chunks]
    assert spans == sorted(spans)
    assert all(1 <= start <= end <= text.count("\n") + 1 for start, end in spans)


@settings(max_examples=200, deadline=None)
@given(_ANY_TEXT, _TOKENS, _OVERLAP)
def test_line_chunks_hold_every_non_blank_line(text: str, tokens: int, overlap: int) -> None:
    covered: set[int] = set()
    for chunk in chunk_text(text, "lines", tokens, overlap):
        chunk.text.encode()
        covered.update(range(chunk.start_line, chunk.end_line + 1))
    lines = text.split("\n")
    assert all(number in covered for number, line in enumerate(lines, 1) if line.strip())
