"""Transcripts on the page: what was recalled into a session, and what was written from it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from web_scene import MAIN, have_sessions, open_scene

from clawmark import Memory
from clawmark.model.errors import WorkspaceError
from clawmark.web.pages.sessions import (
    LONGEST_MESSAGE,
    MOST_CHARS,
    ON_A_PAGE,
    cited,
    session_address,
    session_page,
    sessions_page,
)


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with open_scene(tmp_path / "agent", tmp_path / "state") as made:
        yield made


def write_transcript(memory: Memory, name: str, texts: list[str]) -> str:
    folder = Path(memory.places.conversations_dir)
    folder.mkdir(parents=True, exist_ok=True)
    lines = [
        {"type": "message", "message": {"role": "assistant" if n % 2 else "user", "content": text}}
        for n, text in enumerate(texts)
    ]
    (folder / name).write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return name


def test_the_list_has_the_first_words_and_the_key_of_each_session(memory: Memory) -> None:
    have_sessions(memory)
    page = sessions_page(memory)
    titles = {row.key: row.title for row in page.rows}
    assert titles[MAIN] == "What does Ann prefer, tea or coffee?"
    assert page.total == 2 and page.older == "" and not page.is_searched


def test_a_long_list_is_cut_into_pages(memory: Memory) -> None:
    for number in range(ON_A_PAGE + 1):
        write_transcript(memory, f"talk-{number:03}.jsonl", [f"question {number}"])
    first = sessions_page(memory)
    assert len(first.rows) == ON_A_PAGE and first.older == f"/sessions?start={ON_A_PAGE}"
    second = sessions_page(memory, ON_A_PAGE)
    assert (len(second.rows), second.older, second.newer) == (1, "", "/sessions?start=0")


def test_a_session_shows_what_it_took_and_what_was_written_from_it(memory: Memory) -> None:
    have_sessions(memory)
    (row,) = [row for row in sessions_page(memory).rows if row.key == MAIN]
    page = session_page(memory.session(row.path))
    assert [use.how for use in page.uses] == ["recalled unasked", "searched by the model"]
    assert page.uses[0].sources[0].text.startswith("MEMORY.md#L")
    assert page.uses[0].sources[0].address.startswith("/file/MEMORY.md#L")
    assert page.uses[1].query == "what does Ann prefer"
    (written,) = page.writes
    assert written.what == "written by a tool of the agent" and "keen rower" in written.texts[0]
    assert [use.how for use in page.messages[0].uses] == [
        "recalled unasked",
        "searched by the model",
    ]
    assert page.view_as == f"/as/{MAIN}" and "Not known" in page.not_known


def test_a_long_transcript_is_cut_into_pages_that_are_not_heavy(memory: Memory) -> None:
    name = write_transcript(memory, "long.jsonl", [f"{n} " + "x" * 5_000 for n in range(200)])
    report = memory.session(name)
    seen, start = list[int](), 0
    while True:
        page = session_page(report, start)
        assert sum(len(one.text) for one in page.messages) <= MOST_CHARS
        seen += [one.line for one in page.messages]
        if not page.next:
            break
        start = seen[-1] + 1
    assert seen == list(range(1, 201))


def test_a_huge_message_is_cut_and_can_be_shown_alone(memory: Memory) -> None:
    name = write_transcript(memory, "huge.jsonl", ["y" * 1_000_000, "short"])
    report = memory.session(name)
    first, second = session_page(report).messages
    assert len(first.text) == LONGEST_MESSAGE and first.cut == 1_000_000 - LONGEST_MESSAGE
    assert first.whole.endswith("whole=1") and second.cut == 0
    (alone,) = session_page(report, whole=1).messages
    assert len(alone.text) == 100_000 and alone.whole == ""


def test_a_session_that_is_not_there_is_one_sentence(memory: Memory) -> None:
    with pytest.raises(WorkspaceError, match="There is no transcript nowhere"):
        memory.session("nowhere")


def test_addresses_lead_to_files_and_sessions() -> None:
    assert cited("memory/a b.md#L3-L4").address == "/file/memory/a%20b.md#L3"
    assert cited("sessions/x.jsonl#L2").address == "/session/sessions/x.jsonl?start=2#L2"
    assert cited("plugin other").address == ""
    assert session_address("../codex/x.jsonl") == "/session?path=..%2Fcodex%2Fx.jsonl"
