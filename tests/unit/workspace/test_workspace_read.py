"""Bytes as text with the file's own line numbers, and bounded excerpts of it."""

from __future__ import annotations

import hashlib
import os
import unicodedata
from pathlib import Path

import pytest

from clawmark.model.documents import Excerpt
from clawmark.model.errors import PathDenied, WorkspaceError
from clawmark.model.values import Citation, parse_citation
from clawmark.workspace import Workspace
from clawmark.workspace.read import decode, excerpt


@pytest.fixture
def ws(tmp_path: Path) -> Path:
    (tmp_path / "ws" / "memory").mkdir(parents=True)
    return tmp_path / "ws"


def lines_of(
    data: bytes, start: int = 1, lines: int | None = None, max_lines: int = 120, chars: int = 12_000
) -> Excerpt:
    return excerpt(data, "memory/x.md", start, lines, max_lines, chars)


# --- decoding ---


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"", ""),
        (b"a\nb\n", "a\nb\n"),
        (b"a\r\nb\r\n", "a\nb\n"),
        (b"a\rb\n", "a\rb\n"),
        (b"a\r\r\nb\r", "a\r\nb"),
        (b"\xef\xbb\xbf# A\n", "# A\n"),
        (b"\xef\xbb\xbf\xef\xbb\xbf# A\n", "# A\n"),
        (b"a\xef\xbb\xbfb", "a\ufeffb"),
        (b"a\x00b", "a\ufffdb"),
        (b"caf\xe9\n", "caf\ufffd\n"),
        (b"cut \xe2\x82", "cut \ufffd"),
        (b"\xed\xa0\xbd", "\ufffd\ufffd\ufffd"),
        ("é\u2028x\x0b\x0c\x85y\n".encode(), "é\u2028x\x0b\x0c\x85y\n"),
        (b"\xff\xfe" + "wide é\r\n".encode("utf-16-le"), "wide é\n"),
        (b"\xfe\xff" + "wide é\n".encode("utf-16-be"), "wide é\n"),
        (b"\xff\xfe\0\0" + "wide 🌸\n".encode("utf-32-le"), "wide 🌸\n"),
        (b"\0\0\xfe\xff" + "wide 🌸\n".encode("utf-32-be"), "wide 🌸\n"),
        (b"\xff\xfe" + b"\x00\xd8a\x00", "\ufffda"),
    ],
)
def test_bytes_become_lines(data: bytes, text: str) -> None:
    assert decode(data, "x.md") == text


@pytest.mark.parametrize(
    "data",
    [
        b"\x89PNG\r\n\x1a\n123",
        b"SQLite format 3\0",
        b"PK\x03\x04",
        b"\0" * 4096,
        bytes(range(256)) * 8,
    ],
)
def test_binary_data_is_refused(data: bytes) -> None:
    with pytest.raises(WorkspaceError, match=r"x\.md looks binary\."):
        decode(data, "x.md")


def test_a_long_text_in_another_encoding_says_so() -> None:
    with pytest.raises(WorkspaceError, match=r"x\.md is not UTF-8 text\.") as caught:
        decode(("запись " * 500).encode("cp1251"), "x.md")
    assert caught.value.hint == "Save it as UTF-8 to have it indexed."


@pytest.mark.parametrize(
    "data",
    [
        bytes(range(256)),
        b"before\0after \0\0\0\n",
        b"line \xff\xfe\xfd\n" * 500,
        ("# Déjà vu, très français\n" * 500).encode("latin-1"),
        b"\x1b[31mred\x1b[0m\n" * 500,
        "记忆 🌸\n".encode() * 5000,
    ],
)
def test_text_with_odd_bytes_is_still_text(data: bytes) -> None:
    assert decode(data, "x.md")


# --- documents ---


def test_a_document_has_text_hash_and_state_of_one_descriptor(ws: Path) -> None:
    data = b"\xef\xbb\xbf# A\r\ntext\r\n"
    (ws / "memory" / "a.md").write_bytes(data)
    workspace = Workspace(str(ws))
    state = workspace.scan().files[0]
    document = workspace.read_document(state)
    assert document.text == "# A\ntext\n"
    assert document.hash == hashlib.sha256(data).hexdigest()
    assert document.state == state


def test_a_document_that_changed_since_the_scan_has_its_newer_state(ws: Path) -> None:
    (ws / "memory" / "a.md").write_text("old\n")
    workspace = Workspace(str(ws))
    state = workspace.scan().files[0]
    (ws / "memory" / "a.md").write_text("new and longer\n")
    document = workspace.read_document(state)
    assert document.text == "new and longer\n"
    assert document.state.size == 15


def test_a_document_that_is_gone_is_an_error_with_its_name(ws: Path) -> None:
    (ws / "memory" / "a.md").write_text("x\n")
    workspace = Workspace(str(ws))
    state = workspace.scan().files[0]
    (ws / "memory" / "a.md").unlink()
    with pytest.raises(WorkspaceError, match=r"memory/a\.md is gone\."):
        workspace.read_document(state)


def test_a_document_that_became_a_link_is_refused(ws: Path, tmp_path: Path) -> None:
    (tmp_path / "secret.md").write_text("canary\n")
    (ws / "memory" / "a.md").write_text("x\n")
    workspace = Workspace(str(ws))
    state = workspace.scan().files[0]
    (ws / "memory" / "a.md").unlink()
    (ws / "memory" / "a.md").symlink_to(tmp_path / "secret.md")
    with pytest.raises(PathDenied):
        workspace.read_document(state)


# --- excerpts ---


def test_a_short_file_is_returned_whole() -> None:
    assert lines_of(b"a\nb\n") == Excerpt(
        path="memory/x.md",
        text="a\nb",
        start=1,
        lines=2,
        total_lines=2,
        truncated=False,
        next_start=None,
    )
    assert lines_of(b"a\nb") == Excerpt(
        path="memory/x.md",
        text="a\nb",
        start=1,
        lines=2,
        total_lines=2,
        truncated=False,
        next_start=None,
    )


def test_an_empty_file_has_no_lines() -> None:
    assert lines_of(b"") == Excerpt(
        path="memory/x.md",
        text="",
        start=1,
        lines=0,
        total_lines=0,
        truncated=False,
        next_start=None,
    )
    assert lines_of(b"\n") == Excerpt(
        path="memory/x.md",
        text="",
        start=1,
        lines=1,
        total_lines=1,
        truncated=False,
        next_start=None,
    )


def test_an_excerpt_names_the_next_line() -> None:
    data = b"".join(b"line %d\n" % n for n in range(1, 11))
    assert lines_of(data, 3, 2) == Excerpt(
        path="memory/x.md",
        text="line 3\nline 4",
        start=3,
        lines=2,
        total_lines=10,
        truncated=False,
        next_start=5,
    )
    assert lines_of(data, 9, 5).next_start is None
    assert lines_of(data, 10, 1) == Excerpt(
        path="memory/x.md",
        text="line 10",
        start=10,
        lines=1,
        total_lines=10,
        truncated=False,
        next_start=None,
    )


def test_a_start_beyond_the_end_is_empty() -> None:
    for start in (3, 4, 10**30):
        assert lines_of(b"a\nb\n", start) == Excerpt(
            path="memory/x.md",
            text="",
            start=start,
            lines=0,
            total_lines=2,
            truncated=False,
            next_start=None,
        )


def test_a_start_or_a_count_below_one_means_the_default() -> None:
    assert lines_of(b"a\nb\n", -5, 0).text == "a\nb"


def test_the_default_is_bounded_by_lines() -> None:
    found = lines_of(b"x\n" * 1000)
    assert (found.lines, found.total_lines, found.truncated, found.next_start) == (
        120,
        1000,
        True,
        121,
    )


def test_an_explicit_count_may_exceed_the_default() -> None:
    assert lines_of(b"x\n" * 1000, 1, 400).lines == 400


def test_an_excerpt_is_bounded_by_characters() -> None:
    found = lines_of(b"four\n" * 1000, 1, 1000, chars=50)
    assert found.text == "\n".join(["four"] * 10)
    assert (found.lines, found.truncated, found.next_start) == (10, True, 11)


def test_characters_are_counted_and_not_bytes() -> None:
    data = ("记" * 10 + "\n").encode() * 4
    assert lines_of(data, chars=43).lines == 4
    assert lines_of(data, chars=42).lines == 3


def test_a_line_that_is_too_long_is_cut_at_a_character() -> None:
    found = lines_of("🌸".encode() * 100 + b"\nnext\n", chars=10)
    assert found == Excerpt(
        path="memory/x.md",
        text="🌸" * 10,
        start=1,
        lines=1,
        total_lines=2,
        truncated=True,
        next_start=2,
    )
    last = lines_of("🌸".encode() * 100, chars=10)
    assert (last.text, last.truncated, last.next_start) == ("🌸" * 10, True, None)


def test_a_too_long_line_after_a_short_one_waits_for_its_own_excerpt() -> None:
    found = lines_of(b"short\n" + b"x" * 100 + b"\n", chars=20)
    assert (found.text, found.next_start) == ("short", 2)


def test_the_piece_after_a_final_line_end_is_given_when_it_is_asked_for() -> None:
    """Chunks made line by line count it, and what they cite must come back to the byte."""
    assert lines_of(b"a\nb\n", 1, 3).text == "a\nb\n"
    assert lines_of(b"a\nb\n", 1, 2).text == "a\nb"


def test_excerpts_of_wide_text_and_of_carriage_returns_count_the_same_lines() -> None:
    text = "one\r\ntwo\r\nthré\r\n"
    for data in (
        text.encode(),
        b"\xef\xbb\xbf" + text.encode(),
        b"\xff\xfe" + text.encode("utf-16-le"),
    ):
        assert lines_of(data, 2, 2).text == "two\nthré"


def test_line_separators_of_unicode_do_not_end_a_line() -> None:
    assert lines_of("a\u2028b\x0bc\x85d\ne\n".encode(), 2).text == "e"


# --- citations and names ---


@pytest.mark.parametrize(
    ("text", "citation"),
    [
        ("memory/x.md", Citation("memory/x.md", 1, None)),
        ("memory/x.md#L3", Citation("memory/x.md", 3, 1)),
        ("memory/x.md#L3-L9", Citation("memory/x.md", 3, 7)),
        ("memory/x.md#L3-9", Citation("memory/x.md", 3, 7)),
        ("memory/x.md#L9-L3", Citation("memory/x.md", 9, 1)),
        ("memory/x.md#L0-L2", Citation("memory/x.md", 1, 2)),
        ("memory/a#L1-L2.md", Citation("memory/a#L1-L2.md", 1, None)),
        ("memory/a#L1-L2.md#L4", Citation("memory/a#L1-L2.md", 4, 1)),
        ("memory/x.md#L١٢", Citation("memory/x.md#L١٢", 1, None)),
        ("memory/x.md#L" + "9" * 5000, Citation("memory/x.md#L" + "9" * 5000, 1, None)),
        ("#L3", Citation("#L3", 1, None)),
    ],
)
def test_a_citation_is_a_path_and_its_lines(text: str, citation: Citation) -> None:
    assert parse_citation(text) == citation


def test_a_citation_reads_its_lines_unless_others_are_asked_for(ws: Path) -> None:
    (ws / "memory" / "x.md").write_text("".join(f"line {n}\n" for n in range(1, 20)))
    workspace = Workspace(str(ws))
    assert workspace.read_lines("memory/x.md#L3-L4").text == "line 3\nline 4"
    assert workspace.read_lines("memory/x.md#L3-L4", 5, 1).text == "line 5"
    assert workspace.read_lines("memory/x.md#L3-L4", lines=1).text == "line 3"
    assert workspace.read_lines("memory/x.md#L3-L4").path == "memory/x.md"


def test_an_absent_log_is_an_empty_excerpt(ws: Path) -> None:
    found = Workspace(str(ws)).read_lines("memory/2031-01-01.md")
    assert found == Excerpt(
        path="memory/2031-01-01.md",
        text="",
        start=1,
        lines=0,
        total_lines=0,
        truncated=False,
        next_start=None,
        missing=True,
    )


@pytest.mark.parametrize(
    "path", ["memory/*.md", "memory/[a-z].md", "memory/a?.md", "memory/\n../x.md", "memory/a\\b.md"]
)
def test_a_pattern_that_names_no_file_is_refused(ws: Path, path: str) -> None:
    with pytest.raises(PathDenied) as caught:
        Workspace(str(ws)).read_lines(path)
    assert caught.value.rule == "bad-name"


@pytest.mark.parametrize(
    "name",
    ["a*b", "a[b]", "a?b", "line\nbreak", "..\\x", "a\\b", "~", "$HOME", "a#L1", "🚀 x", "-rf"],
)
def test_a_listed_name_is_read_by_exactly_that_name(ws: Path, name: str) -> None:
    (ws / "memory" / f"{name}.md").write_text("here\n")
    workspace = Workspace(str(ws))
    path = workspace.scan().files[0].path
    assert workspace.read_lines(path).text == "here"


def test_another_normal_form_of_a_name_finds_the_file(ws: Path) -> None:
    composed = unicodedata.normalize("NFC", "memory/café/résumé.md")
    decomposed = unicodedata.normalize("NFD", composed)
    (ws / decomposed).parent.mkdir()
    (ws / decomposed).write_text("nfd\n")
    workspace = Workspace(str(ws))
    assert workspace.read_lines(composed) == Excerpt(
        path=decomposed,
        text="nfd",
        start=1,
        lines=1,
        total_lines=1,
        truncated=False,
        next_start=None,
    )


def test_twins_in_two_normal_forms_are_never_mixed_up(ws: Path) -> None:
    composed = unicodedata.normalize("NFC", "memory/café.md")
    decomposed = unicodedata.normalize("NFD", composed)
    (ws / composed).write_text("nfc\n")
    (ws / decomposed).write_text("nfd\n")
    workspace = Workspace(str(ws))
    assert workspace.read_lines(composed).text == "nfc"
    assert workspace.read_lines(decomposed).text == "nfd"


def test_a_fifo_never_blocks_a_reader(ws: Path) -> None:
    os.mkfifo(ws / "memory" / "pipe.md")
    with pytest.raises(PathDenied):
        Workspace(str(ws)).read_lines("memory/pipe.md")
