"""What a person sees of a conversation: lines broken between words, one line for each thing that is
done.
"""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clawmark.agent.flush.flush import Flushed, FlushFailed
from clawmark.agent.models.completer import ToolCall
from clawmark.agent.notes.session_note import NoNote, Noted, NoteFailed
from clawmark.chat.chat import Event, Recalled
from clawmark.chat.compact import Compacted
from clawmark.cli.chat_screen import WordWrap, describe, describe_event
from clawmark.cli.layout import cells
from clawmark.model.documents import Written
from clawmark.model.errors import CompletionError

GONE = CompletionError("Gone.", provider="x")


def flow(width: int, *pieces: str) -> str:
    made = WordWrap(width)
    return "".join(map(made.feed, pieces)) + made.end()


def test_lines_are_wrapped_between_words_wherever_pieces_end() -> None:
    assert flow(10, "one two", " three four\nfi", "ve six") == "one two \nthree four\nfive six"


def test_word_longer_than_a_line_is_not_split() -> None:
    assert flow(5, "a ", "https://example.org/x", " b") == "a \nhttps://example.org/x\nb"


@given(st.lists(st.text(st.sampled_from("ab 漢\n"), max_size=8)), st.integers(4, 12))
def test_wrapping_loses_nothing_and_keeps_the_width(pieces: list[str], width: int) -> None:
    text = "".join(pieces)
    shown = flow(width, *pieces)
    assert shown.split() == text.split() and shown.count("\n") >= text.count("\n")
    if all(cells(word) <= width for word in text.split()):
        assert all(cells(line.rstrip()) <= width for line in shown.split("\n"))


@pytest.mark.parametrize(
    ("name", "arguments", "result", "said", "citations"),
    [
        (
            "memory_search",
            {"query": "db"},
            {"results": [{"citation": "MEMORY.md#L3"}, {"path": "memory/x.md"}]},
            'searched memory for "db": MEMORY.md#L3, memory/x.md',
            ["MEMORY.md#L3", "memory/x.md"],
        ),
        (
            "memory_search",
            {"query": "db"},
            {"results": []},
            'searched memory for "db": nothing found',
            [],
        ),
        (
            "memory_get",
            {},
            {"path": "MEMORY.md", "from": 3, "lines": 2, "text": "x"},
            "read MEMORY.md#L3-L4",
            ["MEMORY.md#L3-L4"],
        ),
        (
            "memory_append",
            {},
            {"written": True, "citation": "memory/x.md#L3"},
            "remembered memory/x.md#L3",
            [],
        ),
        (
            "memory_append",
            {},
            {"written": False, "error": "It is there."},
            "memory_append: It is there.",
            [],
        ),
        ("file_read", {}, {"path": "TOOLS.md", "text": ""}, "read TOOLS.md", []),
        (
            "file_write",
            {},
            {"written": True, "path": "USER.md", "lines": 1},
            "wrote USER.md (1 line)",
            [],
        ),
        ("file_delete", {}, {"deleted": True, "path": "BOOTSTRAP.md"}, "deleted BOOTSTRAP.md", []),
        ("something", {}, {}, "used something", []),
    ],
)
def test_tool_call_is_one_line(
    name: str, arguments: object, result: object, said: str, citations: list[str]
) -> None:
    assert describe(ToolCall("1", name, json.dumps(arguments)), json.dumps(result)) == (
        said,
        citations,
    )


@pytest.mark.parametrize(
    "result", ["", "nonsense", "[]", "{", '{"results": 3}', '{"results": [3, {}]}']
)
def test_invalid_result_is_accepted(result: str) -> None:
    for name in ("memory_search", "memory_get", "memory_append", "file_write"):
        assert describe(ToolCall("1", name, "[]"), result)[0]


@pytest.mark.parametrize(
    ("event", "said"),
    [
        (
            Flushed(
                written=(Written("memory/x.md", 3, 4),), refused=(), input_tokens=1, output_tokens=1
            ),
            "saved to memory/x.md#L3-L4",
        ),
        (Flushed(written=(), refused=(), input_tokens=1, output_tokens=1), "nothing new to save"),
        (FlushFailed("The disk is full.", ""), "nothing was saved: The disk is full."),
        (Compacted(3, 1), "compacted: 3 exchanges summarised, 1 kept"),
        (
            Compacted(1, 0, CompletionError("Gone.", provider="x")),
            "compacted: 1 exchange summarised, 0 kept; no summary: Gone.",
        ),
        (Recalled(("memory/x.md#L3", "MEMORY.md#L1")), "recalled memory/x.md#L3, MEMORY.md#L1"),
        (Noted("memory/x-y.md"), "left a note: memory/x-y.md"),
        (NoteFailed("The disk is full.", ""), "no note: The disk is full."),
        (NoNote("empty"), ""),
    ],
)
def test_event_is_one_line(event: Event, said: str) -> None:
    assert describe_event(event) == said
