"""Text that is not valid Unicode at every door except MCP: the command line, batches, hooks and the
library.

The MCP doors are tested in test_mcp_hostile_stdio.py and test_mcp_hostile_http.py.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from commands import Place, new_place

from clawmark import ClawmarkError, Memory
from clawmark.testing import HashingEmbedder

BYTES = b"tea \xff\xed\xa0\x80".decode("utf-8", "surrogateescape")
"""What Python makes of an argument whose bytes are not UTF-8."""
HIGH, LOW = "\ud800", "\udfff"

COMMANDS: dict[tuple[str, ...], int] = {
    ("search", BYTES): 0,
    ("search", "--json", BYTES): 0,
    ("search", "--explain", "--json", BYTES): 0,
    ("search", "tea", "--agent", BYTES): 2,
    ("search", "tea", "--config", BYTES): 2,
    ("search", "--batch", BYTES): 2,
    ("search", "tea", "--max-results", BYTES): 2,
    ("get", BYTES): 4,
    ("get", "--json", BYTES): 4,
    ("get", f"MEMORY.md#L{BYTES}"): 4,
    ("prompt", "--session", BYTES): 0,
    ("prompt", "--session", BYTES, "--json"): 0,
    ("sessions", "show", BYTES): 3,
    ("import", "markdown", BYTES): 2,
    ("config", "get", BYTES): 2,
    ("install", BYTES): 2,
    ("mcp", "--session", BYTES): 0,
    ("mcp", "--http", "--host", BYTES): 2,
    (BYTES,): 2,
}


@pytest.fixture
def place(tmp_path: Path) -> Place:
    made = new_place(tmp_path)
    made.state.mkdir(mode=0o700)
    (made.state / "clawmark.json").write_text(
        '{"memorySearch": {"provider": "none"}}', encoding="utf-8"
    )
    return made


@pytest.mark.parametrize(("words", "code"), COMMANDS.items(), ids=map(ascii, COMMANDS))
def test_an_argument_that_is_not_utf8_gets_an_answer_or_one_clear_sentence(
    place: Place, words: tuple[str, ...], code: int
) -> None:
    ran = place.run(*words)
    assert (ran.code, "Traceback" in ran.err) == (code, False), ran
    if "--json" in words:
        json.loads(ran.out)


def test_a_note_that_is_not_utf8_is_refused_and_nothing_is_written(place: Place) -> None:
    before = sorted(place.workspace.rglob("*"))
    ran = place.run("remember", BYTES)
    assert ran.code != 0
    assert "Traceback" not in ran.err and ran.err.startswith("clawmark: ")
    assert sorted(place.workspace.rglob("*")) == before


def test_lines_of_a_batch_with_half_a_surrogate_pair_do_not_stop_it(place: Place) -> None:
    lines = [
        b'{"id": "\\ud800", "query": "PostgreSQL"}',
        b'{"id": 2, "query": "\\ud800"}',
        b'{"id": 3, "query": "PostgreSQL \\udfff"}',
        b'{"id": "\\ud800"}',
        b'{"\\ud800": "\\ud800", "query": "PostgreSQL"}',
        b"PostgreSQL \xff\xed\xa0\x80",
        b'{"id": 7, "query": "PostgreSQL"}',
    ]
    ran = place.run("search", "--batch", "-", stdin=b"\n".join(lines))
    assert (ran.code, ran.err) == (0, "")
    answers = [json.loads(line) for line in ran.out.splitlines()]
    assert [answer["id"] for answer in answers] == ["\ud800", 2, 3, "\ud800", 5, 6, 7]
    assert [bool(answer.get("results")) for answer in answers] == [
        True,
        False,
        True,
        False,
        True,
        True,
        True,
    ]


@pytest.mark.parametrize("event", ["SessionStart", "UserPromptSubmit", "PreCompact", "SessionEnd"])
@pytest.mark.parametrize("host", ["claude-code", "codex"])
def test_a_hook_answers_an_event_with_half_a_surrogate_pair(
    place: Place, host: str, event: str
) -> None:
    fields = ("session_id", "prompt", "source", "transcript_path", "cwd", "hook_event_name", HIGH)
    ran = place.run("hook", host, event, stdin=json.dumps(dict.fromkeys(fields, f"tea {HIGH}")))
    assert (ran.code, "Traceback" in ran.err) == (0, False), ran
    json.loads(ran.out)


LIBRARY: dict[str, Callable[[Memory], object]] = {
    "search": lambda memory: memory.search(f"tea {HIGH}").hits,
    "search for nothing else": lambda memory: memory.search(HIGH + LOW).hits,
    "read": lambda memory: memory.read(f"memory/{LOW}.md"),
    "append": lambda memory: memory.append(f"tea {HIGH}"),
    "append to": lambda memory: memory.append("tea", to=HIGH),
    "replace": lambda memory: memory.replace("MEMORY.md", HIGH, HIGH),
    "prompt": lambda memory: memory.prompt(HIGH),
    "recall": lambda memory: memory.recall(f"tea {HIGH}"),
    "tools": lambda memory: [
        tool.call({"query": HIGH, "path": HIGH, "text": HIGH}) for tool in memory.tools(HIGH)
    ],
    "tools of the owner": lambda memory: [
        tool.call({name: f"tea {HIGH}", LOW: LOW})
        for tool in memory.tools("main", append=True)
        for name in ("query", "path", "text")
    ],
    "transcript": lambda memory: memory.transcript(HIGH),
}


@pytest.mark.parametrize("verb", LIBRARY)
def test_a_verb_of_the_library_takes_half_a_surrogate_pair_or_raises_its_own_error(
    place: Place, verb: str
) -> None:
    with Memory.open(place.workspace, state_dir=place.state, embedder=HashingEmbedder()) as memory:
        try:
            LIBRARY[verb](memory)
        except ClawmarkError as error:
            assert error.message
        (hit, *_) = memory.search("PostgreSQL").hits
        assert hit.path == "MEMORY.md"
