"""The end of a transcript, read backwards: the right messages, no commands, no secrets, whatever
its size.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from clawmark.agent.session import transcript_reader as module
from clawmark.agent.session.transcript_reader import (
    is_command,
    recent_messages,
    transcript_size,
)
from clawmark.text.secrets.redact import REMOVED, Redactor

PLAIN = Redactor()


def line(role: str, text: str) -> str:
    return json.dumps(
        {
            "type": "message",
            "timestamp": "2026-11-15T10:00:00Z",
            "message": {"role": role, "content": text},
        }
    )


def write(path: Path, *lines: str) -> str:
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(path)


def texts(path: str, **more: int) -> list[str]:
    return [one.text for one in recent_messages(path, PLAIN, **more)]


def test_messages_come_oldest_first_and_the_last_ones_are_kept(tmp_path: Path) -> None:
    path = write(tmp_path / "t.jsonl", *[line("user", f"message {number}") for number in range(20)])
    assert texts(path, most_messages=3) == ["message 17", "message 18", "message 19"]
    assert texts(path, most_chars=15) == ["… ge 18", "message 19"]


@pytest.mark.parametrize("block", [1, 7, 64, 1 << 20])
def test_the_size_of_a_block_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int
) -> None:
    monkeypatch.setattr(module, "_BLOCK", block)
    path = write(
        tmp_path / "t.jsonl",
        *[line("user", f"tag {number} " + "é" * number) for number in range(30)],
    )
    assert texts(path) == [f"tag {number} {'é' * number}".strip() for number in range(30)]


def test_only_messages_since_an_offset_are_read(tmp_path: Path) -> None:
    path = write(tmp_path / "t.jsonl", line("user", "before"))
    since = transcript_size(path)
    with open(path, "a", encoding="utf-8") as file:
        file.write(line("assistant", "after") + "\n")
    assert texts(path, since=since) == ["after"]
    assert texts(path, since=since + 10_000) == ["before", "after"]
    assert texts(path, since=transcript_size(path)) == []


def test_a_line_of_which_only_half_was_there_is_read_later(tmp_path: Path) -> None:
    whole = line("user", "before") + "\n" + line("user", "written slowly") + "\n"
    path = tmp_path / "t.jsonl"
    path.write_text(whole[:-20], encoding="utf-8")
    since = transcript_size(str(path))
    assert texts(str(path)) == ["before"]
    path.write_text(whole, encoding="utf-8")
    assert texts(str(path), since=since) == ["written slowly"]


def test_no_more_is_read_than_the_limit_and_an_endless_line_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "t.jsonl", line("user", "early"), "x" * 5000, line("user", "late"))
    assert texts(path) == ["early", "late"]
    monkeypatch.setattr(module, "MOST_READ", 1000)
    assert texts(path) == ["late"]


def test_missing_transcript_has_no_messages(tmp_path: Path) -> None:
    assert texts("") == texts(str(tmp_path / "absent")) == texts(str(tmp_path)) == []
    assert transcript_size(str(tmp_path / "absent")) == transcript_size("") == 0


def test_a_link_and_a_pipe_are_not_transcripts(tmp_path: Path) -> None:
    real = write(tmp_path / "real.jsonl", line("user", "elsewhere"))
    (tmp_path / "link.jsonl").symlink_to(real)
    os.mkfifo(tmp_path / "pipe.jsonl")
    assert texts(str(tmp_path / "link.jsonl")) == texts(str(tmp_path / "pipe.jsonl")) == []


@pytest.mark.parametrize(
    "text", ["/new", "/reset now please", "/model gpt-4o", "/anything", "/memory billing"]
)
def test_commands_are_skipped(tmp_path: Path, text: str) -> None:
    assert is_command(text)
    assert texts(write(tmp_path / "t.jsonl", line("user", text), line("assistant", text))) == [text]


@pytest.mark.parametrize(
    "text",
    [
        "/etc/hosts is broken",
        "/tmp is full again",
        "//",
        "/ is the root",
        "new /reset",
        "/Users/ann",
    ],
)
def test_path_is_not_a_command(text: str) -> None:
    assert not is_command(text)


def test_secrets_and_masks_become_words(tmp_path: Path) -> None:
    key = "sk-" + "a1B2" * 10
    path = write(
        tmp_path / "t.jsonl",
        line("user", f"my key is {key} ok"),
        line("user", "it was [redacted:openai]"),
    )
    assert texts(path) == [f"my key is {REMOVED} ok", f"it was {REMOVED}"]
    assert (
        Redactor(["hunter2hunter2"]).remove("tell hunter2hunter2 to nobody")
        == f"tell {REMOVED} to nobody"
    )


def test_a_secret_is_not_cut_in_half(tmp_path: Path) -> None:
    key = "sk-" + "a1B2" * 10
    path = write(tmp_path / "t.jsonl", line("user", "the key " + key))
    assert key[-10:] not in texts(path, most_chars=20)[0]
