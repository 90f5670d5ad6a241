"""Compaction: which exchanges stay, the summary request, and the message that replaces them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from chat import ChatServer, fault, say

from clawmark.agent.models.catalog import choose_completer
from clawmark.agent.models.completer import Completer, Message, ToolCall
from clawmark.chat.compact import opening, sections_of, split, summarise
from clawmark.chat.history import Exchange
from clawmark.model.errors import CompletionError
from clawmark.workspace.bootstrap import template

NOW = datetime(2026, 11, 15, 14, 32, tzinfo=UTC)


def exchange(line: str, words: int = 10) -> Exchange:
    return Exchange(line, (Message("user", f"{line} " * words), Message("assistant", "Yes.")))


@pytest.fixture
def server() -> Iterator[ChatServer]:
    with ChatServer() as made:
        yield made


def model(server: ChatServer) -> Completer:
    return choose_completer(f"scripted@{server.openai_url}", {})


def test_last_exchanges_that_fit_are_kept() -> None:
    exchanges = [exchange(name) for name in ("one", "two", "three", "four")]
    older, kept = split(exchanges, exchanges[-1].tokens + exchanges[-2].tokens)
    assert [one.line for one in older] == ["one", "two"] and [one.line for one in kept] == [
        "three",
        "four",
    ]


def test_at_least_one_exchange_is_summarised() -> None:
    exchanges = [exchange("one"), exchange("two")]
    assert [len(part) for part in split(exchanges, 1_000_000)] == [1, 1]
    assert [len(part) for part in split(exchanges, 0)] == [2, 0]
    assert [len(part) for part in split(exchanges[:1], 1_000_000)] == [1, 0]


def test_summary_is_made_from_messages_and_the_previous_summary(
    server: ChatServer,
) -> None:
    server.script([say("They chose PostgreSQL.")])
    called = Message("assistant", "", (ToolCall("1", "memory_search", '{"query": "db"}'),))
    exchanges = [
        Exchange(
            "a",
            (Message("user", "Which database?"), called, Message("tool", "x" * 5000, call_id="1")),
        )
    ]
    assert (
        summarise(model(server), "They met on Monday.", exchanges, 32_000)
        == "They chose PostgreSQL."
    )
    [seen] = server.seen
    assert "They met on Monday." in seen.last_user and "| User: Which database?" in seen.last_user
    assert "memory_search" in seen.last_user and len(seen.last_user) < 1500


def test_summary_request_over_the_context_window_is_shortened(server: ChatServer) -> None:
    server.script([fault("too-long"), fault("too-long"), say("Short.")])
    assert summarise(model(server), "", [exchange("talk", 8000)], 32_000) == "Short."
    lengths = [len(seen.last_user) for seen in server.seen]
    assert lengths[0] > lengths[1] > lengths[2] and "left out" in server.seen[2].last_user


def test_empty_summary_is_an_error(server: ChatServer) -> None:
    server.script([say("")])
    with pytest.raises(CompletionError, match="no summary"):
        summarise(model(server), "", [exchange("talk")], 32_000)


def test_opening_has_the_summary_and_the_rules() -> None:
    text = opening("They chose PostgreSQL.\n# Not a heading", template("AGENTS.md"), NOW)
    assert "| They chose PostgreSQL.\n| # Not a heading" in text
    assert "## Session Startup" in text and "## Red Lines" in text and "## Memory" not in text
    assert "memory/2026-11-15.md" in text and "Current time: Sunday, 2026-11-15 14:32" in text


def test_sections_are_found_by_either_name_and_not_in_code() -> None:
    code = "# A\n```\n## Red Lines\nfake\n```\n"
    text = (
        code + "## Every Session\nwake up\n### More\nstretch\n## Other\nx\n### red lines\nno fire\n"
    )
    assert (
        sections_of(text, "2026-11-15")
        == "## Every Session\nwake up\n### More\nstretch\n\n### red lines\nno fire"
    )
    assert sections_of("", "2026-11-15") == ""
    assert len(sections_of("## Safety\n" + "careful " * 2000, "2026-11-15")) <= 3002
