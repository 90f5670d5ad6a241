"""A conversation with the agent, without a terminal: what the model is told, and what becomes of a
long or failing one.
"""

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
from clawmark.chat.compact import Compacted
from clawmark.chat.talk import Event, Reminded, Stage, Talk, open_talk
from clawmark.model.errors import ClawmarkError
from clawmark.testing.embedders import HashingEmbedder
from clawmark.workspace.bootstrap import ensure_workspace

KEY = "agent:main:main"


class Clock:
    """A time that stands still until it is told to move."""

    now = datetime(2026, 11, 15, 12, 0, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


class Setting(NamedTuple):
    """A talk, the server behind it, and what happened."""

    talk: Talk
    server: ChatServer
    clock: Clock
    events: list[Event]

    def say(self, message: str) -> str:
        return self.talk.say(message, self.stage).text

    @property
    def stage(self) -> Stage:
        return Stage(lambda piece: None, lambda call, result: None, self.events.append)

    def transcript(self) -> list[dict[str, Any]]:
        return [
            json.loads(line)
            for line in Path(self.talk.conversation.transcript)
            .read_text(encoding="utf-8")
            .splitlines()
        ]

    def asked(self) -> list[Seen]:
        """The requests of the conversation itself."""
        return [seen for seen in self.server.seen if "## This Conversation" in seen.system]


def understanding(seen: Seen) -> Turn:
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
        ChatServer(understanding) as server,
        Memory.open(
            tmp_path / "workspace",
            state_dir=tmp_path / "state",
            embedder=HashingEmbedder(dims=64),
            overrides=overrides,
            clock=clock,
            background=False,
        ) as memory,
        open_talk(memory, f"scripted@{server.openai_url}", KEY, os.environ) as talk,
    ):
        talk.start()
        yield Setting(talk=talk, server=server, clock=clock, events=[])


def test_a_file_changed_a_moment_ago_is_in_the_next_prompt(setting: Setting) -> None:
    setting.say("hello")
    (Path(setting.talk.memory.places.workspace) / "USER.md").write_text(
        "# Ann\n\nLikes tea.\n", encoding="utf-8"
    )
    setting.say("and now?")
    before, after = setting.asked()
    assert "Likes tea." not in before.system and "Likes tea." in after.system


def test_the_conversation_is_told_whole(setting: Setting) -> None:
    for message in ("one", "two", "three"):
        setting.say(message)
    assert [one.text for one in setting.asked()[-1].messages] == [
        "one",
        "Yes.",
        "two",
        "Yes.",
        "three",
    ]


def test_a_full_context_is_compacted_before_the_message_is_sent(setting: Setting) -> None:
    for number in range(5):
        setting.say(f"{number} " + "words and words " * 40)
    setting.server.script(lambda seen: understanding(seen)._replace(input_tokens=7_000))
    setting.say("This fills it up.")
    setting.server.script(understanding)
    setting.say("And this finds no room.")
    [compacted] = [event for event in setting.events if isinstance(event, Compacted)]
    assert compacted.problem is None and compacted.left_out + compacted.kept == 6
    told = [one.text for one in setting.asked()[-1].messages]
    assert (
        "A summary." in told[0]
        and "## Red Lines" in told[0]
        and told[-1] == "And this finds no room."
    )
    [line] = [line for line in setting.transcript() if line["type"] == "compaction"]
    kept = [exchange.line for exchange in setting.talk.history.exchanges]
    assert (
        line["summary"] == "A summary."
        and line["tokensBefore"] > 7_000
        and line["firstKeptEntryId"] == kept[0]
    )


def test_a_second_compaction_knows_of_the_first(setting: Setting) -> None:
    for _ in range(2):
        setting.server.script(lambda seen: understanding(seen)._replace(input_tokens=7_000))
        setting.say("Full.")
        setting.server.script(understanding)
        setting.say("More.")
    summarised = [seen for seen in setting.server.seen if "You summarise" in seen.system]
    assert len(summarised) == 2 and "| A summary." in summarised[1].last_user


def test_a_context_that_is_too_long_for_the_service_is_compacted_and_tried_again(
    setting: Setting,
) -> None:
    setting.say("one")
    refusals = iter([fault("too-long")])

    def answer(seen: Seen) -> Turn:
        return (
            next(refusals, understanding(seen))
            if "## This Conversation" in seen.system
            else understanding(seen)
        )

    setting.server.script(answer)
    assert setting.say("two") == "Yes."
    assert [type(event) for event in setting.events] == [Flushed, Compacted]
    assert "one" not in [one.text for one in setting.asked()[-1].messages]


def test_without_a_summary_the_conversation_goes_on(setting: Setting) -> None:
    setting.server.script(lambda seen: say("Yes.", input_tokens=7_000))
    setting.say("Full.")
    setting.server.script(
        lambda seen: fault("key") if "You summarise" in seen.system else understanding(seen)
    )
    assert setting.say("More.") == "Yes."
    [compacted] = [event for event in setting.events if isinstance(event, Compacted)]
    assert compacted.problem is not None
    assert setting.talk.conversation.transcript in setting.asked()[-1].messages[0].text


def test_tokens_that_nobody_counts_are_estimated_with_the_prompt(setting: Setting) -> None:
    setting.server.script(understanding)
    setting.say("hello")
    counted = setting.talk.tokens
    answer = setting.talk.say("hello", setting.stage)
    assert answer.tokens > 0
    assert 0.5 < setting.talk._counted(answer._replace(tokens=0)) / counted < 2


def test_a_new_conversation_knows_nothing_of_the_old_one_and_leaves_its_note(
    setting: Setting,
) -> None:
    setting.say("We chose PostgreSQL for billing.")
    assert setting.say("/new What now?") == "Yes."
    assert [type(event) for event in setting.events] == [Noted]
    assert [one.text for one in setting.asked()[-1].messages] == ["What now?"]


def test_at_four_in_the_morning_a_conversation_is_over(setting: Setting) -> None:
    setting.say("Ann moves to Lisbon in March. Good night.")
    setting.clock.now += timedelta(hours=18)
    setting.say("Good morning.")
    assert [type(event) for event in setting.events] == [Noted]
    assert [one.text for one in setting.asked()[-1].messages] == ["Good morning."]


def test_what_the_agent_did_before_a_failure_is_told_to_it_next_time(setting: Setting) -> None:
    script = iter(
        [
            call("file_write", path="notes.md", text="# Notes\n"),
            fault("key"),
            say("I wrote notes.md."),
        ]
    )
    setting.server.script(lambda seen: next(script))
    assert setting.talk.say("Write it down.", setting.stage).problem is not None
    assert setting.say("Did you?") == "I wrote notes.md."
    assert [one.role for one in setting.asked()[-1].messages] == [
        "user",
        "assistant",
        "tool",
        "user",
    ]


def test_one_session_is_held_by_one_at_a_time(setting: Setting) -> None:
    with (
        pytest.raises(ClawmarkError, match="Another"),
        open_talk(setting.talk.memory, f"scripted@{setting.server.openai_url}", KEY, os.environ),
    ):
        raise AssertionError("two held it")


def test_a_session_that_its_host_has_noted_as_a_group_gets_nothing_private(
    setting: Setting,
) -> None:
    memory, key = setting.talk.memory, "agent:main:direct:ann"
    memory.conversation(key, host_options=HostOptions(chat_type="group")).start()
    with open_talk(memory, f"scripted@{setting.server.openai_url}", key, os.environ) as talk:
        assert talk.start() is False
        talk.say("hello", setting.stage)
        assert "USER.md: your person" not in talk.prompt().text + setting.server.seen[-1].system
        assert set(setting.server.seen[-1].tools) == {"memory_search", "memory_get"}


def test_a_model_can_be_reminded_of_what_the_memory_has_about_a_message(setting: Setting) -> None:
    memory = setting.talk.memory
    memory.append("Ann prefers green tea.")
    model, key = f"scripted@{setting.server.openai_url}", "agent:main:direct:ann"
    with open_talk(memory, model, key, os.environ, recall=True) as talk:
        talk.start()
        talk.say("What does Ann prefer, green tea?", setting.stage)
        talk.say("zzz qqq", setting.stage)
        first, second = setting.asked()[-2:]
        assert (
            first.last_user.startswith("[recalled memory ")
            and "| | - Ann prefers green tea." in first.last_user
        )
        assert first.last_user.endswith("What does Ann prefer, green tea?")
        assert second.messages[0].text == "What does Ann prefer, green tea?", "it is told once"
        assert "recalled memory" not in Path(talk.conversation.transcript).read_text(
            encoding="utf-8"
        )
    assert setting.events[0] == Reminded(("memory/2026-11-15.md#L1-L3",))
