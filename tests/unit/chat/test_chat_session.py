"""Conversations without a terminal: what is sent to the model, compaction and failures."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from chat import ChatServer, Seen, Turn, call, fault, say

from clawmark import Memory
from clawmark.agent.flush.flush import Flushed
from clawmark.agent.notes.session_note import Noted
from clawmark.agent.session.conversation import HostOptions
from clawmark.chat.chat import Chat, ChatCallbacks, Event, Recalled, open_chat
from clawmark.chat.compact import Compacted
from clawmark.model.errors import ClawmarkError
from clawmark.testing.embedders import HashingEmbedder
from clawmark.workspace.bootstrap import ensure_workspace

KEY = "agent:main:main"


class Clock:
    """A clock that only moves when the test sets it."""

    now = datetime(2026, 11, 15, 12, 0, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


class Setting(NamedTuple):
    """A chat, its server and its events."""

    chat: Chat
    server: ChatServer
    clock: Clock
    events: list[Event]

    def say(self, message: str) -> str:
        return self.chat.say(message, self.callbacks).text

    @property
    def callbacks(self) -> ChatCallbacks:
        return ChatCallbacks(lambda piece: None, lambda call, result: None, self.events.append)

    def transcript(self) -> list[dict[str, Any]]:
        return [
            json.loads(line)
            for line in Path(self.chat.conversation.transcript)
            .read_text(encoding="utf-8")
            .splitlines()
        ]

    def asked(self) -> list[Seen]:
        """The requests of the conversation itself."""
        return [seen for seen in self.server.seen if "## This Conversation" in seen.system]


def answer_all(seen: Seen) -> Turn:
    return (
        say("A summary.")
        if "You summarise" in seen.system
        else say("NO_REPLY" if "flush" in seen.last_user else "Yes.")
    )


@pytest.fixture
def setting(tmp_path: Path) -> Iterator[Setting]:
    ensure_workspace(str(tmp_path / "workspace"))
    clock = Clock()
    overrides = {"agents.defaults.contextTokens": 8_000}
    with (
        ChatServer(answer_all) as server,
        Memory.open(
            tmp_path / "workspace",
            state_dir=tmp_path / "state",
            embedder=HashingEmbedder(dims=64),
            overrides=overrides,
            clock=clock,
            background=False,
        ) as memory,
        open_chat(memory, f"scripted@{server.openai_url}", KEY, os.environ) as chat,
    ):
        chat.start()
        yield Setting(chat=chat, server=server, clock=clock, events=[])


def test_changed_file_is_in_the_next_prompt(setting: Setting) -> None:
    setting.say("hello")
    (Path(setting.chat.memory.places.workspace) / "USER.md").write_text(
        "# Ann\n\nLikes tea.\n", encoding="utf-8"
    )
    setting.say("and now?")
    before, after = setting.asked()
    assert "Likes tea." not in before.system and "Likes tea." in after.system


def test_whole_conversation_is_sent(setting: Setting) -> None:
    for message in ("one", "two", "three"):
        setting.say(message)
    assert [one.text for one in setting.asked()[-1].messages] == [
        "one",
        "Yes.",
        "two",
        "Yes.",
        "three",
    ]


def test_full_context_is_compacted_before_the_message_is_sent(setting: Setting) -> None:
    for number in range(5):
        setting.say(f"{number} " + "words and words " * 40)
    setting.server.script(lambda seen: answer_all(seen)._replace(input_tokens=7_000))
    setting.say("This fills it up.")
    setting.server.script(answer_all)
    setting.say("And this finds no room.")
    [compacted] = [event for event in setting.events if isinstance(event, Compacted)]
    assert compacted.problem is None and compacted.summarised + compacted.kept == 6
    sent = [one.text for one in setting.asked()[-1].messages]
    assert (
        "A summary." in sent[0]
        and "## Red Lines" in sent[0]
        and sent[-1] == "And this finds no room."
    )
    [line] = [line for line in setting.transcript() if line["type"] == "compaction"]
    kept = [exchange.line for exchange in setting.chat.history.exchanges]
    assert (
        line["summary"] == "A summary."
        and line["tokensBefore"] > 7_000
        and line["firstKeptEntryId"] == kept[0]
    )


def test_second_compaction_includes_the_first_summary(setting: Setting) -> None:
    for _ in range(2):
        setting.server.script(lambda seen: answer_all(seen)._replace(input_tokens=7_000))
        setting.say("Full.")
        setting.server.script(answer_all)
        setting.say("More.")
    summarised = [seen for seen in setting.server.seen if "You summarise" in seen.system]
    assert len(summarised) == 2 and "| A summary." in summarised[1].last_user


def test_context_refused_by_the_service_is_compacted_and_sent_again(
    setting: Setting,
) -> None:
    setting.say("one")
    refusals = iter([fault("too-long")])

    def answer(seen: Seen) -> Turn:
        return (
            next(refusals, answer_all(seen))
            if "## This Conversation" in seen.system
            else answer_all(seen)
        )

    setting.server.script(answer)
    assert setting.say("two") == "Yes."
    assert [type(event) for event in setting.events] == [Flushed, Compacted]
    assert "one" not in [one.text for one in setting.asked()[-1].messages]


def test_conversation_continues_without_a_summary(setting: Setting) -> None:
    setting.server.script(lambda seen: say("Yes.", input_tokens=7_000))
    setting.say("Full.")
    setting.server.script(
        lambda seen: fault("key") if "You summarise" in seen.system else answer_all(seen)
    )
    assert setting.say("More.") == "Yes."
    [compacted] = [event for event in setting.events if isinstance(event, Compacted)]
    assert compacted.problem is not None
    assert setting.chat.conversation.transcript in setting.asked()[-1].messages[0].text


def test_missing_token_count_is_estimated_with_the_prompt(setting: Setting) -> None:
    setting.server.script(answer_all)
    setting.say("hello")
    counted = setting.chat.tokens
    answer = setting.chat.say("hello", setting.callbacks)
    assert answer.tokens > 0
    assert 0.5 < setting.chat._counted(answer._replace(tokens=0)) / counted < 2


def test_new_conversation_starts_empty_and_writes_a_note_of_the_old_one(
    setting: Setting,
) -> None:
    setting.say("We chose PostgreSQL for billing.")
    assert setting.say("/new What now?") == "Yes."
    assert [type(event) for event in setting.events] == [Noted]
    assert [one.text for one in setting.asked()[-1].messages] == ["What now?"]


def test_conversation_ends_at_four_in_the_morning(setting: Setting) -> None:
    setting.say("Ann moves to Lisbon in March. Good night.")
    setting.clock.now += timedelta(hours=18)
    setting.say("Good morning.")
    assert [type(event) for event in setting.events] == [Noted]
    assert [one.text for one in setting.asked()[-1].messages] == ["Good morning."]


def test_tool_calls_before_a_failure_are_in_the_next_request(setting: Setting) -> None:
    script = iter(
        [
            call("file_write", path="notes.md", text="# Notes\n"),
            fault("key"),
            say("I wrote notes.md."),
        ]
    )
    setting.server.script(lambda seen: next(script))
    assert setting.chat.say("Write it down.", setting.callbacks).problem is not None
    assert setting.say("Did you?") == "I wrote notes.md."
    assert [one.role for one in setting.asked()[-1].messages] == [
        "user",
        "assistant",
        "tool",
        "user",
    ]


def test_session_can_be_open_once_at_a_time(setting: Setting) -> None:
    with (
        pytest.raises(ClawmarkError, match="Another"),
        open_chat(setting.chat.memory, f"scripted@{setting.server.openai_url}", KEY, os.environ),
    ):
        raise AssertionError("two held it")


def test_group_session_gets_nothing_private(
    setting: Setting,
) -> None:
    memory, key = setting.chat.memory, "agent:main:direct:ann"
    memory.conversation(key, host_options=HostOptions(chat_type="group")).start()
    with open_chat(memory, f"scripted@{setting.server.openai_url}", key, os.environ) as chat:
        assert chat.start() is False
        chat.say("hello", setting.callbacks)
        assert "USER.md: your person" not in chat.prompt().text + setting.server.seen[-1].system
        assert set(setting.server.seen[-1].tools) == {"memory_search", "memory_get"}


def test_recalled_passages_are_sent_with_one_message(setting: Setting) -> None:
    memory = setting.chat.memory
    memory.append("Ann prefers green tea.")
    model, key = f"scripted@{setting.server.openai_url}", "agent:main:direct:ann"
    with open_chat(memory, model, key, os.environ, recall=True) as chat:
        chat.start()
        chat.say("What does Ann prefer, green tea?", setting.callbacks)
        chat.say("zzz qqq", setting.callbacks)
        first, second = setting.asked()[-2:]
        assert (
            first.last_user.startswith("[recalled memory ")
            and "| | - 12:00 Ann prefers green tea." in first.last_user
        )
        assert first.last_user.endswith("What does Ann prefer, green tea?")
        assert second.messages[0].text == "What does Ann prefer, green tea?", "it is sent once"
        assert "recalled memory" not in Path(chat.conversation.transcript).read_text(
            encoding="utf-8"
        )
    assert setting.events[0] == Recalled(("memory/2026-11-15.md#L1-L3",))
