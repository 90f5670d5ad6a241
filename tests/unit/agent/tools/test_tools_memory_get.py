"""memory_get: the payload a model gets for a path, lines, or neither."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from clawmark.agent.tools import Tool, make_tools, render
from clawmark.model.documents import Excerpt
from clawmark.model.errors import PathDenied, WorkspaceError
from clawmark.model.values import Filters, Found

EXCERPT = Excerpt(
    "MEMORY.md", "one\ntwo", start=1, lines=2, total_lines=2, truncated=False, next_start=None
)


class Reader:
    """Remembers what it was asked and answers what it was told to."""

    def __init__(self, answer: Excerpt | Exception = EXCERPT) -> None:
        self.answer = answer
        self.asked: list[tuple[str, int, int | None]] = []

    def search(self, query: str, limit: int, threshold: float, filters: Filters) -> Found:
        raise AssertionError("memory_get searches nothing")

    def read(self, path: str, start: int, lines: int | None) -> Excerpt:
        self.asked.append((path, start, lines))
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    def tool(self, session_key: str | None = None) -> Tool:
        tools = make_tools(
            self.search,
            self.read,
            citations="auto",
            session_key=session_key,
            max_results=6,
            min_score=0.35,
        )
        return tools[1]

    def call(self, given: object, session_key: str | None = None) -> Any:
        payload = self.tool(session_key).call(given)
        assert render(payload)
        return payload


def test_a_read_has_the_published_keys() -> None:
    payload = Reader().call({"path": "MEMORY.md"})
    assert payload == {
        "status": "ok",
        "text": "one\ntwo",
        "path": "MEMORY.md",
        "from": 1,
        "lines": 2,
    }


@pytest.mark.parametrize(
    ("given", "asked"),
    [
        ({"path": "MEMORY.md"}, ("MEMORY.md", 1, None)),
        ({"path": "MEMORY.md", "from": 3}, ("MEMORY.md", 3, None)),
        ({"path": "MEMORY.md", "lines": 3}, ("MEMORY.md", 1, 3)),
        ({"path": "MEMORY.md", "from": "2", "lines": "4"}, ("MEMORY.md", 2, 4)),
        ({"path": "MEMORY.md", "from": 1.5, "lines": 2.9}, ("MEMORY.md", 1, 2)),
        ({"path": "MEMORY.md", "from": 0, "lines": 0}, ("MEMORY.md", 1, None)),
        ({"path": "MEMORY.md", "from": None, "lines": None}, ("MEMORY.md", 1, None)),
        ({"path": "MEMORY.md", "from": 10**400, "lines": 2**64}, ("MEMORY.md", 10**9, 10**9)),
        ('{"path": "MEMORY.md", "__proto__": {"x": 1}}', ("MEMORY.md", 1, None)),
        ({"path": " MEMORY.md "}, (" MEMORY.md ", 1, None)),
    ],
)
def test_lines_are_read_leniently_and_a_path_is_taken_as_it_is(
    given: object, asked: tuple[str, int, int | None]
) -> None:
    reader = Reader()
    reader.call(given)
    assert reader.asked == [asked]


@pytest.mark.parametrize(
    ("given", "asked"),
    [
        ({"path": "memory/a.md#L12-L28"}, ("memory/a.md", 12, 17)),
        ({"path": "memory/a.md#L12"}, ("memory/a.md", 12, 1)),
        ({"path": "memory/a.md#L12-L28", "from": 20}, ("memory/a.md", 20, None)),
        ({"path": "memory/a.md#L12-L28", "lines": 40}, ("memory/a.md", 12, 40)),
        ({"path": "memory/a.md#L0-L0"}, ("memory/a.md", 1, 1)),
        ({"path": "memory/a.md#L9-L3"}, ("memory/a.md", 9, 1)),
        ({"path": "memory/a.md#intro"}, ("memory/a.md#intro", 1, None)),
        ({"path": "memory/a#L1-L2.md"}, ("memory/a#L1-L2.md", 1, None)),
    ],
)
def test_a_citation_works_as_a_path(given: object, asked: tuple[str, int, int | None]) -> None:
    reader = Reader()
    reader.call(given)
    assert reader.asked == [asked]


def test_a_file_that_is_not_there_is_an_empty_text_and_no_error() -> None:
    absent = Excerpt(
        path="memory/2031-01-01.md",
        text="",
        start=1,
        lines=0,
        total_lines=0,
        truncated=False,
        next_start=None,
    )
    payload = Reader(absent).call({"path": "memory/2031-01-01.md"})
    assert payload == {"status": "not_found", "text": "", "path": "memory/2031-01-01.md"}


def test_truncated_excerpt_says_how_to_continue() -> None:
    cut = Excerpt(
        "MEMORY.md", "a\nb", start=1, lines=120, total_lines=400, truncated=True, next_start=121
    )
    payload = Reader(cut).call({"path": "MEMORY.md"})
    assert payload["truncated"] is True
    assert payload["nextFrom"] == 121
    text, notice = payload["text"].rsplit("\n\n", 1)
    assert text == "a\nb"
    assert notice == "[Lines 1 to 120 of 400. To read on, call memory_get with from=121.]"


def test_the_last_line_when_it_is_too_long_is_cut_and_there_is_nothing_to_read_on() -> None:
    cut = Excerpt(
        "MEMORY.md", "a" * 12_000, start=7, lines=1, total_lines=7, truncated=True, next_start=None
    )
    payload = Reader(cut).call({"path": "MEMORY.md", "from": 7})
    assert payload["truncated"] is True
    assert "nextFrom" not in payload
    assert "Line 7 is too long" in payload["text"]
    assert "from=" not in payload["text"]


def test_a_line_that_is_too_long_is_cut_even_when_it_alone_was_asked_for() -> None:
    cut = Excerpt(
        "MEMORY.md", "a" * 12_000, start=7, lines=1, total_lines=9, truncated=True, next_start=8
    )
    payload = Reader(cut).call({"path": "MEMORY.md", "from": 7, "lines": 1})
    assert payload["truncated"] is True
    assert payload["nextFrom"] == 8
    assert "Line 7 is too long" in payload["text"]


def test_the_lines_that_were_asked_for_come_without_a_notice() -> None:
    some = Excerpt(
        "MEMORY.md", "b\nc", start=2, lines=2, total_lines=9, truncated=False, next_start=4
    )
    payload = Reader(some).call({"path": "MEMORY.md", "from": 2, "lines": 2})
    assert payload == {"status": "ok", "text": "b\nc", "path": "MEMORY.md", "from": 2, "lines": 2}


def test_start_after_the_end_reports_the_last_line() -> None:
    behind = Excerpt(
        "MEMORY.md", "", start=900, lines=0, total_lines=2, truncated=False, next_start=None
    )
    payload = Reader(behind).call({"path": "MEMORY.md", "from": 900})
    ends = "The file ends at line 2."
    assert payload == {
        "status": "ok",
        "text": "",
        "path": "MEMORY.md",
        "from": 900,
        "lines": 0,
        "note": ends,
    }


def test_a_denied_path_is_a_precise_error_and_memory_is_not_called_off() -> None:
    denied = PathDenied(
        "../keys.txt is outside the workspace.",
        path="../keys.txt",
        rule="outside",
        hint="Add it to extraPaths.",
    )
    assert Reader(denied).call({"path": "../keys.txt"}) == {
        "status": "error",
        "code": "MEMORY_PATH_NOT_ALLOWED",
        "path": "../keys.txt",
        "text": "",
        "error": "../keys.txt is outside the workspace.",
        "action": "Add it to extraPaths.",
    }


def test_a_refusal_is_one_line_however_the_path_looks() -> None:
    path = "memory/\n../" + "x" * 100_000
    payload = Reader(PathDenied(f"{path} is not memory.", path=path, rule="name")).call(
        {"path": path}
    )
    assert "\n" not in payload["error"]
    assert len(render(payload)) < 2000


@pytest.mark.parametrize(
    "given",
    [
        None,
        {},
        "[]",
        {"path": 5},
        {"path": " \n"},
        {"path": "MEMORY.md", "from": -1},
        {"path": "a", "lines": True},
    ],
)
def test_a_wrong_argument_reads_nothing(given: object) -> None:
    reader = Reader()
    payload = reader.call(given)
    assert set(payload) == {"status", "code", "path", "text", "error", "action"}
    assert (payload["status"], payload["code"], payload["text"]) == (
        "error",
        "INVALID_ARGUMENT",
        "",
    )
    assert reader.asked == []


def test_an_unreadable_file_does_not_affect_other_files() -> None:
    payload = Reader(WorkspaceError("memory/a.md could not be read.")).call({"path": "memory/a.md"})
    assert payload["error"] == "memory/a.md could not be read."
    assert (payload["status"], payload["code"]) == ("error", "MEMORY_READ_FAILED")
    assert "disabled" not in payload


def test_unexpected_error_becomes_an_answer(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR, "clawmark.agent.tools"):
        payload = Reader(ZeroDivisionError()).call({"path": "MEMORY.md"})
    assert payload["error"] == "memory_get stopped at an unexpected ZeroDivisionError."
    assert "disabled" not in payload
    assert len(caplog.records) == 1


def test_the_schema_asks_for_a_path_and_allows_what_it_does_not_know() -> None:
    parameters: Any = Reader().tool().parameters
    assert list(parameters["properties"]) == ["path", "from", "lines", "corpus"]
    assert parameters["required"] == ["path"]
    assert parameters["additionalProperties"] is True


def test_a_shared_session_gets_the_same_answer_for_every_path_and_nothing_is_read() -> None:
    reader = Reader()
    for path in ("MEMORY.md", "memory/2026-02-24.md", "../outside.md"):
        payload = reader.call({"path": path}, "agent:main:discord:channel:7")
        assert payload.pop("path") == path
        assert payload.pop("text") == ""
        assert payload.pop("unavailable") is True
        assert payload["error"] == "Memory is unavailable in shared sessions."
        assert "disabled" not in payload
    assert reader.asked == []


def test_wiki_is_reported_as_missing() -> None:
    reader = Reader()
    payload = reader.call({"path": "MEMORY.md", "corpus": "wiki"})
    assert (payload["status"], payload["text"], reader.asked) == ("not_found", "", [])
    assert reader.call({"path": "MEMORY.md", "corpus": "all"})["status"] == "ok"
