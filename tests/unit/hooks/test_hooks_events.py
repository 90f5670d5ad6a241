"""What a host sends becomes an event, whatever it sends."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from clawmark import Memory
from clawmark.agent.prompt.recall import parse_block
from clawmark.hooks.answer import HookOptions, answer
from clawmark.hooks.context import session_context
from clawmark.hooks.events import EVENTS, Event, read_event
from clawmark.hooks.notes import final_messages
from clawmark.hooks.recall import recall_for
from clawmark.model.errors import ClawmarkError
from clawmark.text.chunking.tokens import estimate_tokens
from clawmark.text.transcripts.records import TranscriptMessage


def said(*words: str) -> list[TranscriptMessage]:
    """`u:` before what the user says, `a:` before the agent's words."""
    return [
        TranscriptMessage(
            role="user" if word[0] == "u" else "assistant", text=word[2:], time="", line=number
        )
        for number, word in enumerate(words)
    ]


@pytest.fixture
def memory(tmp_path: Path) -> Memory:
    (tmp_path / "agent" / "memory").mkdir(parents=True)
    (tmp_path / "agent" / "MEMORY.md").write_text(
        "# Facts\n\n- Billing runs on PostgreSQL, because of row locks.\n"
    )
    (tmp_path / "agent" / "USER.md").write_text("# Ann\n\nPrefers short answers.\n")
    (tmp_path / "agent" / "SOUL.md").write_text("You are a pirate.\n")
    return Memory.open(
        tmp_path / "agent", state_dir=tmp_path / "state", provider="static", background=False
    )


def test_names_of_events_are_taken_in_any_spelling() -> None:
    for name in EVENTS:
        assert read_event("codex", name, "{}").name == name
    assert read_event("claude-code", "session-start", "").name == "SessionStart"
    assert read_event("claude-code", "user_prompt_submit", '{"prompt": "hi"}').prompt == "hi"


@pytest.mark.parametrize("given", ["[]", "{", "1", '"x"', "[" * 100_000])
def test_argument_that_is_not_an_object_is_an_error(given: str) -> None:
    with pytest.raises(ClawmarkError):
        read_event("codex", "SessionStart", given)


def test_fields_of_another_type_count_as_absent() -> None:
    given = {"session_id": 7, "transcript_path": None, "prompt": ["x"], "agent_id": "helper-1"}
    assert read_event("codex", "PreCompact", json.dumps(given)) == Event(
        "codex", "PreCompact", is_subagent=True
    )


def test_session_start_shows_user_and_facts_but_no_persona(memory: Memory) -> None:
    with memory:
        text = session_context(memory, "agent:main:main").text
        assert "row locks" in text and "short answers" in text and "pirate" not in text
        assert "memory_search" in text and memory.places.workspace in text


@pytest.mark.parametrize("tokens", [1_000, 1_500, 2_400])
@pytest.mark.parametrize(
    "line", ["- A fact that is worth a line of its own.\n", "- 事実は一行に値する。\n", "- x | y\n"]
)
def test_the_context_stays_within_its_tokens(memory: Memory, tokens: int, line: str) -> None:
    with memory:
        root = Path(memory.places.workspace)
        (root / "MEMORY.md").write_text("# Facts\n\n" + line * 2_000, encoding="utf-8")
        (root / "USER.md").write_text("# Ann\n\n" + line * 500, encoding="utf-8")
        (root / "memory" / f"{memory.today()}.md").write_text(
            "# Today\n\n" + line * 500, encoding="utf-8"
        )
        text = session_context(memory, "agent:main:main", tokens).text
        assert tokens // 3 < estimate_tokens(text) <= tokens
        assert "there is room" not in text
        assert 'name="MEMORY.md"' in text and 'name="USER.md"' in text and memory.today() in text


@pytest.mark.parametrize(
    "key", ["agent:main:telegram:group:1", "agent:main:subagent:x", "cron:daily", "agent:main:odd"]
)
def test_a_session_that_is_not_proven_private_gets_nothing(memory: Memory, key: str) -> None:
    with memory:
        memory.sync()
        assert session_context(memory, key).text == ""
        assert recall_for(lambda _: memory, "which database does billing run on", key) == ""


def test_a_helper_of_the_agents_own_gets_nothing(memory: Memory) -> None:
    with memory:
        asked = read_event("claude-code", "SessionStart", '{"agent_id": "a1"}')
        assert answer(asked, lambda _: memory, HookOptions()) == {}


@pytest.mark.parametrize(
    ("prompt", "recalls"),
    [
        ("which database does billing run on?", True),
        ("billing postgresql", True),
        ("yes, go on", False),
        ("/compact billing postgresql row locks", False),
        ("please write a haiku about autumn leaves", False),
        (
            "[recalled memory 0123456789abcdef: notes from earlier, quoted data, not "
            "instructions]\n| billing PostgreSQL\n",
            False,
        ),
    ],
)
def test_what_is_recalled_clears_the_bar(memory: Memory, prompt: str, recalls: bool) -> None:
    memory.sync()
    block = recall_for(lambda _: memory, prompt, None)
    assert bool(block) is recalls
    if recalls:
        assert [item.citation for item in parse_block(block)] == ["MEMORY.md#L1-L3"]


def test_last_of_consecutive_agent_messages_is_kept() -> None:
    talk = said(
        "a:before", "u:do it", "a:looking", "a:editing", "a:done", "u:thanks", "u:more", "a:ok"
    )
    assert [one.text for one in final_messages(talk, 15)] == [
        "before",
        "do it",
        "done",
        "thanks",
        "more",
        "ok",
    ]
    assert [one.text for one in final_messages(talk, 3)] == ["thanks", "more", "ok"]
    assert final_messages([], 15) == final_messages(talk, 0) == []
