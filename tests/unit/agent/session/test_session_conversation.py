"""A conversation from its first message to its note, with a real memory and a scripted model."""

from __future__ import annotations

import asyncio
import json
import os
import resource
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from chat import ChatServer, call, fault, say
from scripted_session import KEY, Clock

from clawmark import AsyncMemory, Memory, WorkspaceError
from clawmark.agent.flush.flush import Flushed, FlushFailed, SkipFlush
from clawmark.agent.models.catalog import choose_completer
from clawmark.agent.models.completer import Completion, Message, Tool
from clawmark.agent.notes.session_note import NoNote, Noted
from clawmark.agent.session.conversation import Conversation, HostOptions, SessionCallbacks
from clawmark.agent.session.session import Rollover, rolled_over
from clawmark.model.errors import IndexBusy
from clawmark.testing import HashingEmbedder
from clawmark.text.transcripts.records import TranscriptMessage, read_message

WINDOW = 10_000  # flushed at 7,000, compacted at 7,500


@pytest.fixture
def server() -> Iterator[ChatServer]:
    with ChatServer(
        lambda seen: (
            call("memory_append", text="- PostgreSQL for billing.")
            if seen.step == 0
            else say("NO_REPLY")
        )
    ) as made:
        yield made


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def memory(tmp_path: Path, clock: Clock) -> Iterator[Memory]:
    (tmp_path / "agent" / "memory").mkdir(parents=True)
    (tmp_path / "agent" / "MEMORY.md").write_text("# Facts\n\nAnn prefers tea.\n", encoding="utf-8")
    with Memory.open(
        tmp_path / "agent", state_dir=tmp_path / "state", embedder=HashingEmbedder(), clock=clock
    ) as made:
        yield made


def open_conversation(
    memory: Memory, server: ChatServer | None = None, **more: object
) -> Conversation:
    completer = choose_completer(f"scripted@{server.openai_url}", {}) if server else None
    given: dict[str, object] = {"completer": completer, "context_window": WINDOW, **more}
    return memory.conversation(KEY, **given)  # type: ignore[arg-type]


def logs(memory: Memory) -> list[str]:
    return sorted(os.listdir(Path(memory.places.workspace) / "memory"))


def transcript_of(conversation: Conversation) -> list[TranscriptMessage]:
    lines = Path(conversation.transcript).read_text(encoding="utf-8").splitlines()
    return [said for number, line in enumerate(lines, 1) if (said := read_message(line, number))]


def test_five_calls_are_a_conversation(memory: Memory, server: ChatServer) -> None:
    conversation = open_conversation(memory, server)
    assert "Ann prefers tea." in conversation.start()
    turn = conversation.on_user("Let us take PostgreSQL for billing.")
    assert (turn.message, turn.recalled, turn.compact, turn.flush) == (
        "Let us take PostgreSQL for billing.",
        "",
        False,
        SkipFlush("below-threshold"),
    )
    conversation.on_usage(7_200, reply="Good.")
    turn = conversation.on_user("And Redis?")
    assert isinstance(turn.flush, Flushed) and not turn.compact
    assert "- 12:00 PostgreSQL for billing." in turn.system, (
        "what was just written is in the prompt"
    )
    conversation.on_usage(7_600, reply="Redis too.")
    assert conversation.on_user("Next.").compact
    assert conversation.before_compaction() == SkipFlush("already-flushed")
    conversation.on_usage(900, reply="On we go.")
    server.script([say("databases")])
    assert conversation.end() == Noted("memory/2026-11-15-databases.md")
    assert logs(memory) == ["2026-11-15-databases.md", "2026-11-15.md"]


def test_the_transcript_is_openclaws_and_holds_no_flush(memory: Memory, server: ChatServer) -> None:
    conversation = open_conversation(memory, server)
    conversation.start()
    conversation.on_user("Hello\udc80.\nSecond line.")
    conversation.on_usage(7_200, reply="Hi.")
    conversation.on_user("More.")
    assert [(one.role, one.text) for one in transcript_of(conversation)] == [
        ("user", "Hello\ufffd.\nSecond line."),
        ("assistant", "Hi."),
        ("user", "More."),
    ]
    head, first, second, third = map(
        json.loads, Path(conversation.transcript).read_text(encoding="utf-8").splitlines()
    )
    assert (head["type"], head["version"], head["id"], head["cwd"]) == (
        "session",
        3,
        conversation.session_id,
        memory.places.workspace,
    )
    assert (first["parentId"], second["parentId"], third["parentId"]) == (
        None,
        first["id"],
        second["id"],
    )
    assert second["message"]["usage"] == {"totalTokens": 7200}
    assert first["timestamp"] == "2026-11-15T12:00:00.000Z"
    assert os.stat(conversation.transcript).st_mode & 0o777 == 0o600


def test_session_continues_in_another_process_after_a_partial_line(memory: Memory) -> None:
    first = open_conversation(memory)
    first.start()
    first.on_user("One.")
    with open(first.transcript, "a", encoding="utf-8") as file:
        file.write('{"type":"mess')
    second = open_conversation(memory)
    second.start()
    second.on_user("Two.")
    assert second.session_id == first.session_id
    assert [one.text for one in transcript_of(second)] == ["One.", "Two."]


def test_a_line_that_finds_room_for_its_beginning_only_is_an_error(memory: Memory) -> None:
    conversation = open_conversation(memory)
    conversation.start()
    conversation.on_user("One.")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (os.path.getsize(conversation.transcript) + 40, hard))
    try:
        with pytest.raises(WorkspaceError, match="cannot be written"):
            conversation.record(
                "message", {"message": {"role": "user", "content": "Two, and lost."}}
            )
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    conversation.record("message", {"message": {"role": "user", "content": "Three."}})
    assert [one.text for one in transcript_of(conversation)] == ["One.", "Three."]


def test_compaction_flushes_first_and_starts_a_new_cycle(
    memory: Memory, server: ChatServer
) -> None:
    conversation = open_conversation(memory, server)
    conversation.start()
    conversation.on_user("Let us take PostgreSQL.")
    conversation.on_usage(100, reply="Good.")
    assert isinstance(conversation.before_compaction(), Flushed)
    entry = conversation.parts.store.get(KEY)
    assert (entry.compaction_count, entry.memory_flush_compaction_count, entry.total_tokens) == (
        1,
        0,
        0,
    )
    assert conversation.before_compaction() == SkipFlush("nothing-new")


def test_what_a_failed_flush_missed_is_flushed_in_the_next_cycle(
    memory: Memory, server: ChatServer
) -> None:
    conversation = open_conversation(memory, server)
    conversation.start()
    conversation.on_user("Let us take PostgreSQL.")
    conversation.on_usage(100, reply="Good.")
    server.script([fault("no-model")])
    assert isinstance(conversation.before_compaction(), FlushFailed)
    conversation.on_user("And Redis.")
    server.script([say("NO_REPLY")])
    conversation.before_compaction()
    assert (
        "Let us take PostgreSQL." in server.seen[-1].last_user
        and "And Redis." in server.seen[-1].last_user
    )


def test_a_requested_flush_ignores_the_thresholds(memory: Memory, server: ChatServer) -> None:
    conversation = open_conversation(memory, server)
    conversation.start()
    conversation.on_user("Let us take PostgreSQL.")
    assert isinstance(conversation.flush(), Flushed)
    assert conversation.flush() == SkipFlush("nothing-new")
    conversation.on_user("And Redis.")
    assert isinstance(conversation.flush(), Flushed)


@pytest.mark.parametrize("command", ["new", "reset"])
def test_the_commands_end_a_session_and_begin_another(memory: Memory, command: str) -> None:
    conversation = open_conversation(memory)
    conversation.start()
    conversation.on_user("Let us take PostgreSQL for billing.")
    before = conversation.session_id
    turn = conversation.on_user(f"/{command}")
    assert isinstance(turn.note, Noted) and turn.message == ""
    assert f", {command}\n" in memory.read(turn.note.path).text + "\n"
    assert conversation.session_id != before
    turn = conversation.on_user(f"/{command} and now about Redis")
    assert (turn.message, turn.note) == ("and now about Redis", NoNote("empty"))
    assert [one.text for one in transcript_of(conversation)] == ["and now about Redis"]


def test_a_new_day_and_a_long_silence_end_a_session(memory: Memory, clock: Clock) -> None:
    conversation = open_conversation(memory, host_options=HostOptions(Rollover(4, 60), "test"))
    conversation.start()
    conversation.on_user("Let us take PostgreSQL for billing.")
    clock.advance(61)
    turn = conversation.on_user("Redis for sessions.")
    assert (
        isinstance(turn.note, Noted)
        and "- **Source**: test, idle" in memory.read(turn.note.path).text
    )
    clock.advance(24 * 60)
    other = open_conversation(memory, host_options=HostOptions(Rollover(4, 0), "test"))
    other.start()
    assert "daily" in memory.read("memory/2026-11-15-redis-sessions.md").text
    assert other.on_user("Hello.").note is None


@pytest.mark.parametrize(
    ("reset", "minutes", "reason"),
    [
        ({}, 17 * 60, "daily"),
        ({"session.reset.idleMinutes": 30}, 31, "idle"),
        ({"session.reset.mode": "idle", "session.reset.idleMinutes": 1440}, 17 * 60, ""),
        ({"session.reset.atHour": 13}, 61, "daily"),
    ],
)
def test_a_session_ends_automatically_as_configured(
    tmp_path: Path, clock: Clock, reset: dict[str, object], minutes: int, reason: str
) -> None:
    (tmp_path / "agent").mkdir()
    embedder, state = HashingEmbedder(), tmp_path / "state"
    with Memory.open(
        tmp_path / "agent", state_dir=state, embedder=embedder, clock=clock, overrides=reset
    ) as memory:
        conversation = open_conversation(memory)
        conversation.start()
        conversation.on_user("Let us take PostgreSQL for billing.")
        clock.advance(minutes)
        note = conversation.on_user("Back again.").note
        assert (
            (isinstance(note, Noted) and f", {reason}" in memory.read(note.path).text)
            if reason
            else note is None
        )


def test_a_session_that_was_ended_is_followed_by_a_new_one(memory: Memory) -> None:
    conversation = open_conversation(memory)
    conversation.start()
    first = conversation.session_id
    assert conversation.end() == NoNote("empty")
    conversation.start()
    assert conversation.session_id != first


def test_missing_token_counts_are_estimated(memory: Memory) -> None:
    conversation = open_conversation(memory)
    conversation.start()
    conversation.on_user("x" * 4_000)
    conversation.on_usage(reply="y" * 400)
    entry = conversation.parts.store.get(KEY)
    assert (entry.total_tokens, entry.total_tokens_fresh) == (1_100, False)


def test_what_the_memory_has_about_a_message_comes_with_it_when_wanted(memory: Memory) -> None:
    conversation = open_conversation(memory, recall=True)
    conversation.start()
    turn = conversation.on_user("What does Ann prefer, tea?")
    assert "[recalled memory" in turn.recalled and "Ann prefers tea." in turn.recalled


def test_search_error_does_not_stop_a_turn(memory: Memory) -> None:
    def recall(message: str) -> str:
        raise IndexBusy("Another process holds the index.")

    callbacks = SessionCallbacks(
        prompt=lambda: "the prompt", recall=recall, started=lambda: None, compacted=lambda: None
    )
    conversation = Conversation(KEY, open_conversation(memory).parts, callbacks)
    conversation.start()
    turn = conversation.on_user("What does Ann prefer?")
    assert (turn.message, turn.system, turn.recalled) == ("What does Ann prefer?", "the prompt", "")


def test_a_group_sees_nothing_private(memory: Memory) -> None:
    conversation = memory.conversation("agent:main:telegram:group:7", recall=True)
    assert "Ann" not in conversation.start()
    assert conversation.on_user("What does Ann prefer?").recalled == ""


def test_declared_group_stays_a_group_without_a_new_declaration(
    memory: Memory,
) -> None:
    assert (
        "Ann" not in open_conversation(memory, host_options=HostOptions(chat_type="group")).start()
    )
    again = open_conversation(memory, recall=True)
    assert "Ann" not in again.start()
    turn = again.on_user("What does Ann prefer, tea?")
    assert "Ann" not in turn.system and turn.recalled == ""


@pytest.mark.parametrize(
    ("key", "host_options"),
    [
        ("agent:main:telegram:group:7", HostOptions()),
        (KEY, HostOptions(chat_type="group")),
        ("cron:daily", HostOptions()),
    ],
)
def test_a_flush_shows_nothing_private_to_a_session_that_is_not_proven_private(
    memory: Memory, server: ChatServer, key: str, host_options: HostOptions
) -> None:
    memory.append("The private log says heron.")
    wanted = [call("memory_get", path="MEMORY.md"), call("memory_get", path="memory/2026-11-15.md")]
    server.script(
        [*wanted, call("memory_append", text="- The group meets on Monday."), say("NO_REPLY")]
    )
    completer = choose_completer(f"scripted@{server.openai_url}", {})
    # A session that began before the host knew what kind of chat it is.
    memory.conversation(key).start()
    conversation = memory.conversation(
        key, completer=completer, context_window=WINDOW, host_options=host_options
    )
    conversation.start()
    conversation.on_user("We meet on Monday.")
    assert isinstance(conversation.before_compaction(), Flushed)
    shown = repr(server.seen)
    assert "unavailable in shared sessions" in shown
    assert "heron" not in shown and "prefers tea" not in shown
    assert "The group meets on Monday." in memory.read("memory/2026-11-15.md").text


@pytest.mark.parametrize(
    ("key", "host_options", "because"),
    [
        (KEY, HostOptions(read_only=True), "read-only"),
        (KEY, HostOptions(sandboxed=True), "sandboxed"),
        (KEY, HostOptions(cli_backed=True), "cli-backed"),
        (KEY, HostOptions(chat_type="heartbeat"), "heartbeat"),
        ("agent:main:heartbeat", HostOptions(), "heartbeat"),
    ],
)
def test_restricted_session_reports_why_it_is_not_flushed(
    memory: Memory, server: ChatServer, key: str, host_options: HostOptions, because: str
) -> None:
    completer = choose_completer(f"scripted@{server.openai_url}", {})
    conversation = memory.conversation(
        key, completer=completer, context_window=10, host_options=host_options
    )
    conversation.start()
    flush = conversation.on_user(
        "A long message, longer than ten tokens of window at the very least."
    ).flush
    assert isinstance(flush, SkipFlush) and flush.because == because
    assert server.seen == []


class Broken:
    """A host's own model whose library has errors of its own."""

    def complete(
        self,
        system: str,
        messages: Sequence[Message],
        tools: Sequence[Tool] = (),
        *,
        seconds: float = 60.0,
    ) -> Completion:
        raise LookupError("the host's library says this")


def test_unexpected_error_of_a_model_stops_neither_turn_nor_note(
    memory: Memory, caplog: pytest.LogCaptureFixture
) -> None:
    conversation = memory.conversation(KEY, completer=Broken(), context_window=WINDOW)
    conversation.start()
    conversation.on_user("Let us take PostgreSQL for billing.")
    conversation.on_usage(9_000, reply="Good.")
    turn = conversation.on_user("More.")
    assert isinstance(turn.flush, FlushFailed) and "LookupError" in turn.flush.message
    assert conversation.on_user("And more.").flush == SkipFlush("backing-off")
    assert isinstance(conversation.end(), Noted)
    assert "the host's library says this" in caplog.text


def test_without_a_model_everything_else_works(memory: Memory) -> None:
    conversation = open_conversation(memory)
    conversation.start()
    conversation.on_user("Let us take PostgreSQL for billing.")
    conversation.on_usage(9_000, reply="Good.")
    assert conversation.on_user("More.").flush == SkipFlush("no-model")
    assert isinstance(conversation.end(), Noted)


def test_the_configured_model_is_used_and_one_that_cannot_be_is_not(
    tmp_path: Path, server: ChatServer, memory: Memory
) -> None:
    overrides = {
        "agents.defaults.model": f"m@{server.openai_url}",
        "agents.defaults.contextTokens": 20_000,
    }
    with Memory.open(
        memory.places.workspace,
        state_dir=tmp_path / "state",
        embedder=HashingEmbedder(),
        overrides=overrides,
    ) as other:
        models = other.conversation(KEY).parts.models
        assert (models.window, models.flushing is not None) == (20_000, True)
    wrong = {"agents.defaults.model": "wizard/x"}
    with Memory.open(
        memory.places.workspace,
        state_dir=tmp_path / "state",
        embedder=HashingEmbedder(),
        overrides=wrong,
    ) as other:
        assert other.conversation(KEY).parts.models == (None, None, 200_000)


def test_an_async_conversation_has_the_same_calls(tmp_path: Path, server: ChatServer) -> None:
    (tmp_path / "agent" / "memory").mkdir(parents=True)

    async def session() -> None:
        async with AsyncMemory.open(
            tmp_path / "agent", state_dir=tmp_path / "state", embedder=HashingEmbedder()
        ) as memory:
            completer = choose_completer(f"scripted@{server.openai_url}", {})
            conversation = await memory.conversation(
                KEY, completer=completer, context_window=WINDOW
            )
            assert await conversation.start()
            assert (await conversation.on_user("Let us take PostgreSQL.")).message
            await conversation.on_usage(7_200, reply="Good.")
            assert isinstance(await conversation.flush(), Flushed)
            assert await conversation.record("label", {"label": "flushed"})
            assert (
                conversation.session_key == KEY
                and conversation.session_id in conversation.transcript
            )
            assert '"label":"flushed"' in Path(conversation.transcript).read_text(encoding="utf-8")
            assert await conversation.before_compaction() == SkipFlush("already-flushed")
            server.script([say("databases")])
            assert isinstance(await conversation.end(), Noted)

    asyncio.run(session())


def at(hour: int, minute: int = 0, day: int = 15) -> datetime:
    return datetime(2026, 11, day, hour, minute, tzinfo=UTC)


def test_a_session_ends_at_the_hour_and_after_silence() -> None:
    def last(moment: datetime) -> int:
        return int(moment.timestamp() * 1000)

    daily = Rollover(4, 0)
    assert rolled_over(last(at(3, 59)), at(4, 0), daily) == "daily"
    assert rolled_over(last(at(4, 0)), at(23, 59), daily) is None
    assert rolled_over(last(at(23, 0, 14)), at(3, 0), daily) is None
    assert rolled_over(last(at(3, 0, 14)), at(3, 0), daily) == "daily"
    assert rolled_over(last(at(1)), at(9), Rollover(None, 0)) is None
    assert rolled_over(last(at(8)), at(9), Rollover(None, 59)) == "idle"
    assert rolled_over(last(at(8)), at(9), Rollover(None, 60)) is None
    assert rolled_over(0, at(9), daily) is None
    assert rolled_over(last(at(9) + timedelta(days=3)), at(9), Rollover(4, 5)) is None, (
        "the clock was set back"
    )
