"""Transcript lines of a conversation, and reading it back."""

from __future__ import annotations

import json
from pathlib import Path

from clawmark.agent.models.completer import Message, ToolCall
from clawmark.chat.history import (
    NO_RESULT,
    Exchange,
    History,
    called_line,
    read_history,
    result_line,
)
from clawmark.text.transcripts.records import read_message

ASKED = Message(
    "assistant", "Let me look.", (ToolCall("c1", "memory_search", '{"query": "database"}'),)
)
FOUND = Message("tool", '{"results": []}', call_id="c1")


def user(line: str, text: str) -> dict[str, object]:
    return {
        "type": "message",
        "id": line,
        "message": {"role": "user", "content": [{"type": "text", "text": text}]},
    }


def assistant(line: str, text: str) -> dict[str, object]:
    return {
        "type": "message",
        "id": line,
        "message": {"role": "assistant", "content": [{"type": "text", "text": text}]},
    }


def write(path: Path, *records: object) -> str:
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return str(path)


def test_conversation_is_restored_from_its_transcript(tmp_path: Path) -> None:
    calls = {"type": "message", "id": "b", **called_line(ASKED)}
    result = {"type": "message", "id": "c", **result_line(FOUND, "memory_search")}
    path = write(
        tmp_path / "t.jsonl",
        {"type": "session"},
        user("a", "Which one?"),
        calls,
        result,
        assistant("d", "None."),
    )
    messages = (Message("user", "Which one?"), ASKED, FOUND, Message("assistant", "None."))
    assert read_history(path) == History("", (Exchange("a", messages),))


def test_tool_lines_have_openclaws_format() -> None:
    [text, call] = called_line(ASKED)["message"]["content"]  # type: ignore[index]
    assert text == {"type": "text", "text": "Let me look."}
    assert call == {
        "type": "toolCall",
        "id": "c1",
        "name": "memory_search",
        "arguments": {"query": "database"},
    }
    result = result_line(FOUND, "memory_search")["message"]
    assert result["role"] == "toolResult" and result["toolCallId"] == "c1"  # type: ignore[index]
    assert result["toolName"] == "memory_search" and result["isError"] is False  # type: ignore[index]
    failed = result_line(FOUND._replace(text='{"error": "no", "action": "wait"}'), "memory_search")[
        "message"
    ]
    assert failed["isError"] is True  # type: ignore[index]


def test_tool_lines_are_not_read_as_messages_of_people() -> None:
    said = read_message(json.dumps({"type": "message", **called_line(ASKED)}), 1)
    assert said is not None and said.text == "Let me look."
    assert (
        read_message(json.dumps({"type": "message", **result_line(FOUND, "memory_search")}), 2)
        is None
    )


def test_interrupted_call_gets_a_result(tmp_path: Path) -> None:
    path = write(
        tmp_path / "t.jsonl",
        user("a", "Which one?"),
        {"type": "message", "id": "b", **called_line(ASKED)},
    )
    [exchange] = read_history(path).exchanges
    assert exchange.messages[-1] == Message("tool", NO_RESULT, call_id="c1")


def test_result_without_a_call_is_dropped(tmp_path: Path) -> None:
    path = write(
        tmp_path / "t.jsonl",
        user("a", "Hi"),
        {"type": "message", **result_line(FOUND, "x")},
        assistant("b", "Hi."),
    )
    assert [one.role for one in read_history(path).messages] == ["user", "assistant"]


def test_only_kept_exchanges_are_restored_after_a_compaction(tmp_path: Path) -> None:
    compaction = {
        "type": "compaction",
        "id": "x",
        "summary": "They met.",
        "firstKeptEntryId": "c",
        "tokensBefore": 9,
    }
    path = write(
        tmp_path / "t.jsonl",
        user("a", "one"),
        assistant("b", "1"),
        user("c", "two"),
        compaction,
        user("d", "three"),
    )
    history = read_history(path)
    assert history.summary == "They met." and [one.line for one in history.exchanges] == ["c", "d"]


def test_damaged_or_missing_transcript_is_an_empty_history(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes(
        b'{"type": "message", "id": "a", "mess\n[1, 2]\n\xff\xfe\nnull\n{"type": "message", '
        b'"message": 3}\n'
    )
    assert read_history(str(path)) == read_history(str(tmp_path / "absent.jsonl")) == History()
