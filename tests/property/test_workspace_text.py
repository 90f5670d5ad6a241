"""Lines of a document are the lines of the file, and excerpts add up to the document."""

from __future__ import annotations

import hashlib
import tempfile
from pathlib import Path

from hypothesis import example, given, settings
from hypothesis import strategies as st

from clawmark.workspace import Workspace
from clawmark.workspace.read import BINARY_SIGNATURES, WIDE_MARKS, decode, excerpt

LINE_ENDS = (
    "\n",
    "\r\n",
    "\r",
    "\x0b",
    "\x0c",
    "\x85",
    "\u2028",
    "\n\n",
    " ",
    "🌸",
    "é",
    "\ufeff",
    "\0",
)
raw = st.lists(
    st.one_of(st.sampled_from(LINE_ENDS).map(str.encode), st.binary(max_size=8)), max_size=30
).map(b"".join)
NOT_UTF8 = (*BINARY_SIGNATURES, *(mark for mark, _ in WIDE_MARKS))
plain = raw.filter(lambda data: not data.startswith(NOT_UTF8))


@given(data=plain)
def test_line_numbers_are_those_of_the_bytes(data: bytes) -> None:
    lines = decode(data, "x.md").split("\n")
    assert len(lines) == data.count(b"\n") + 1
    for line, source in zip(lines, data.split(b"\n"), strict=True):
        if source.isascii() and b"\0" not in source:
            assert line == source.decode().removesuffix("\r")


@given(data=plain)
def test_text_is_always_valid_and_without_nul(data: bytes) -> None:
    text = decode(data, "x.md")
    assert "\0" not in text
    assert text.encode().decode() == text


@given(data=plain, max_lines=st.integers(1, 5), max_chars=st.integers(20, 60))
@settings(max_examples=300)
def test_following_next_start_reads_the_whole_document(
    data: bytes, max_lines: int, max_chars: int
) -> None:
    lines = decode(data, "x.md").split("\n")
    if lines[-1] == "" and not data.endswith(b"\r"):
        lines.pop()
    start: int | None = 1
    seen: list[str] = []
    while start is not None:
        part = excerpt(data, "x.md", start, None, max_lines, max_chars)
        assert part.total_lines == len(lines)
        assert len(part.text) <= max_chars
        assert part.lines <= max_lines
        expected = lines[start - 1 : start - 1 + part.lines]
        assert part.text == "\n".join(expected)[:max_chars]
        seen += expected
        start = part.next_start
    assert seen == lines


@given(data=plain, start=st.integers(1, 12), count=st.integers(1, 12))
@example(data=b"a\nb\n", start=1, count=3)
def test_a_window_is_exactly_the_lines_of_the_document(data: bytes, start: int, count: int) -> None:
    pieces = decode(data, "x.md").split("\n") if data else []
    window = pieces[start - 1 : start - 1 + count]
    assert excerpt(data, "x.md", start, count, 120, 10_000).text == "\n".join(window)


entries = st.text(
    st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=30
).filter(str.strip)


@given(
    texts=st.lists(entries, min_size=1, max_size=5),
    before=st.sampled_from((b"", b"# Day\n", b"torn")),
)
@settings(max_examples=60, deadline=None)
def test_every_append_is_cited_by_its_exact_lines(texts: list[str], before: bytes) -> None:
    with tempfile.TemporaryDirectory() as top:
        (Path(top) / "MEMORY.md").write_bytes(before)
        workspace = Workspace(top)
        for text in texts:
            written = workspace.append("MEMORY.md", text)
            cited = workspace.read_lines(
                "MEMORY.md", written.start_line, written.end_line - written.start_line + 1
            )
            assert cited.text == decode(text.encode(), "x").removesuffix("\n").removeprefix(
                "\ufeff"
            )
        whole = (Path(top) / "MEMORY.md").read_bytes()
        assert whole.startswith(before)
        assert (
            hashlib.sha256(whole).hexdigest()
            == workspace.read_document(workspace.scan().files[0]).hash
        )
