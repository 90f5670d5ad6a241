"""Lines of files of any size, and transcripts as text with the line numbers of the file."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from clawmark.model.values import FileState
from clawmark.workspace.transcripts import json_lines as jsonlines
from clawmark.workspace.transcripts.files import OpenTranscript
from clawmark.workspace.transcripts.json_lines import Line, count_lines, find_line, read_lines
from clawmark.workspace.transcripts.messages import read_excerpt, read_messages


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[OpenTranscript]:
    lines = [json.dumps({"type": "session", "version": 3})]
    for number in range(2, 12):
        role = ("toolResult", "user", "assistant")[number % 3]
        record = {
            "type": "message",
            "timestamp": f"2026-02-24T10:{number:02}:00Z",
            "message": {"role": role, "content": f"say {number}"},
        }
        lines.append(json.dumps(record))
    yield from open_text(tmp_path, "\n".join(lines) + "\n")


def open_text(folder: Path, text: str) -> Iterator[OpenTranscript]:
    file = folder / "x.jsonl"
    file.write_bytes(text.encode())
    fd = os.open(file, os.O_RDONLY)
    info = os.fstat(fd)
    yield OpenTranscript(
        fd,
        FileState(
            path="sessions/x.jsonl",
            source="sessions",
            size=info.st_size,
            mtime_ns=info.st_ctime_ns,
            inode=info.st_ino,
            device=info.st_dev,
        ),
    )
    os.close(fd)


def whole(fd: int, size: int) -> list[Line]:
    return list(read_lines(fd, 0, 1, size))


@pytest.mark.parametrize("block", [1, 2, 3, 7, 64])
@pytest.mark.parametrize(
    "text",
    ["", "a", "a\n", "\n", "\n\n\n", "one\ntwo\r\nthree", "a\n\nlonger than a block of bytes\nb\n"],
)
def test_lines_are_those_of_the_file_for_every_block_size(
    text: str, block: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jsonlines, "BLOCK", block)
    for fd, state in open_text(tmp_path, text):
        data = text.encode()
        lines = whole(fd, state.size)
        assert (
            b"".join((line.data or b"") + (b"\n" if line.is_whole else b"") for line in lines)
            == data
        )
        assert [line.number for line in lines] == list(range(1, len(lines) + 1))
        assert all(
            data[line.start : line.end].rstrip(b"\n") == (line.data or b"").rstrip(b"\n")
            for line in lines
        )
        assert count_lines(fd, 0, state.size) == text.count("\n")
        assert [find_line(fd, line.number, state.size) for line in lines] == [
            line.start for line in lines
        ]
        assert find_line(fd, len(lines) + 1, state.size) is None


def test_a_line_beyond_the_limit_is_passed_over_and_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jsonlines, "BLOCK", 8)
    monkeypatch.setattr(jsonlines, "LONGEST_LINE", 20)
    for fd, state in open_text(tmp_path, "a\n" + "x" * 21 + "\n" + "y" * 20 + "\nb\n" + "z" * 100):
        assert [line.data for line in whole(fd, state.size)] == [b"a", None, b"y" * 20, b"b", None]


def test_a_file_is_read_up_to_the_size_it_had(tmp_path: Path) -> None:
    for fd, state in open_text(tmp_path, "one\ntwo\n"):
        with (tmp_path / "x.jsonl").open("a", encoding="utf-8") as file:
            file.write("three\n")
        assert [line.data for line in whole(fd, state.size)] == [b"one", b"two"]


def test_an_excerpt_has_the_lines_of_the_file(opened: OpenTranscript) -> None:
    excerpt = read_excerpt(opened, str, 4, 3, 120, 12_000)
    assert excerpt.text == "User (2026-02-24 10:04Z): say 4\nAssistant (2026-02-24 10:05Z): say 5"
    assert (excerpt.start, excerpt.lines, excerpt.total_lines) == (4, 3, 11)
    assert (excerpt.truncated, excerpt.next_start) == (False, 7)


def test_page_without_a_line_count_is_bounded_and_has_a_next_line(
    opened: OpenTranscript,
) -> None:
    seen, start = list[str](), 1
    while True:
        excerpt = read_excerpt(opened, str, start, None, 3, 12_000)
        seen += excerpt.text.split("\n")
        if excerpt.next_start is None:
            break
        assert excerpt.truncated and excerpt.next_start == start + excerpt.lines
        start = excerpt.next_start
    assert [line[-1] for line in seen] == ["2", "4", "5", "7", "8", "0", "1"]
    everything = read_excerpt(opened, str, 1, None, 120, 12_000)
    assert (everything.lines, everything.truncated, everything.next_start) == (11, False, None)


def test_characters_bound_a_page_and_a_long_message_is_cut(opened: OpenTranscript) -> None:
    short = read_excerpt(opened, str, 4, 8, 120, 80)
    assert (short.text, short.lines, short.truncated, short.next_start) == (
        "User (2026-02-24 10:04Z): say 4\nAssistant (2026-02-24 10:05Z): say 5", 3, True, 7
    )  # fmt: skip
    cut = read_excerpt(opened, str, 4, 1, 120, 10)
    assert (cut.text, cut.truncated, cut.next_start) == ("User (2026", True, 5)


def test_beyond_the_end_there_is_nothing(opened: OpenTranscript) -> None:
    assert read_excerpt(opened, str, 99, 5, 120, 12_000)[1:8] == (
        "",
        99,
        0,
        11,
        False,
        None,
        False,
    )


def test_what_is_read_is_masked(opened: OpenTranscript) -> None:
    masked = read_excerpt(opened, lambda text: text.replace("4", "*"), 4, 1, 120, 12_000)
    assert masked.text == "User (2026-02-24 10:04Z): say *"
    assert [said.line for said in read_messages(opened, str)] == [2, 4, 5, 7, 8, 10, 11]
