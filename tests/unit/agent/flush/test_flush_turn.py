"""A flush with a model at the other end: what it is shown, what it may write, and what is noted of
it.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from chat import ChatServer, Seen, Turn, call, fault, say
from scripted_session import KEY, ScriptedSession, start_session

from clawmark.agent.flush.flush import (
    Flushed,
    FlushFailed,
    FlushOutcome,
    FlushSettings,
    SkipFlush,
    flush_session,
)
from clawmark.agent.session.session import SessionStore
from clawmark.text.secrets.redact import REMOVED

LABEL = "<!-- clawmark: origin=agent session=agent:main:main -->"
TALK = [
    ("user", "Let us take PostgreSQL for billing."),
    ("assistant", "Good, PostgreSQL it is."),
    ("user", "/status"),
]


@pytest.fixture
def server() -> Iterator[ChatServer]:
    with ChatServer() as made:
        yield made


@pytest.fixture
def session(tmp_path: Path) -> ScriptedSession:
    made = start_session(tmp_path, TALK)
    made.store.update(KEY, total_tokens=190_000)
    return made


def flush(
    session: ScriptedSession,
    server: ChatServer | None,
    settings: FlushSettings | None = None,
    **more: bool,
) -> FlushOutcome:
    return flush_session(
        session.parts(server, settings=settings), session.state(), seconds=20, **more
    )


def append(text: str) -> Turn:
    return call("memory_append", text=text)


def test_what_the_model_writes_is_in_todays_log(
    session: ScriptedSession, server: ChatServer
) -> None:
    before = session.transcript.read_bytes()
    server.script(
        [append("- Billing: PostgreSQL was chosen.\n- Open: who migrates?"), say("NO_REPLY")]
    )
    outcome = flush(session, server)
    assert isinstance(outcome, Flushed)
    assert [one.citation for one in outcome.written] == ["memory/2026-11-15.md#L3-L4"]
    assert (
        session.log == f"# 2026-11-15\n\n- Billing: PostgreSQL was chosen. "
        f"{LABEL}\n- Open: who migrates? {LABEL}\n"
    )
    assert session.transcript.read_bytes() == before, "the turn is in nobody's transcript"
    entry = session.store.get(KEY)
    assert (
        entry.memory_flush_compaction_count,
        entry.memory_flush_lines,
        entry.memory_flush_started_at,
    ) == (0, 2, 0)
    assert entry.memory_flush_at == int(session.clock.now.timestamp() * 1000)
    assert entry.memory_flush_bytes == len(before)


def test_the_model_sees_the_conversation_quoted_the_day_and_two_tools(
    session: ScriptedSession, server: ChatServer
) -> None:
    session.workspace.remember("Tea with Ann", "2026-11-15")
    session.add_messages(("user", "line one\n# a heading\n| a bar"))
    server.script([say("NO_REPLY")])
    flush(session, server)
    seen = server.seen[0]
    assert seen.tools == ("memory_get", "memory_append")
    assert [one.role for one in seen.messages] == ["user"]
    for expected in (
        "| User (2026-11-15 11:00): Let us take PostgreSQL",
        "| You (2026-11-15 11:00): Good",
        "| # a heading",
        "| | a bar",
    ):
        assert f"\n{expected}" in seen.last_user
    assert "| - Tea with Ann" in seen.last_user
    assert "/status" not in seen.last_user
    for prompt in (seen.system, seen.last_user):
        assert "memory/2026-11-15.md" in prompt and "YYYY" not in prompt
        assert "NO_REPLY" in prompt
        assert "Current time: Sunday, 2026-11-15 12:00 (UTC) / 2026-11-15 12:00 UTC" in prompt


def test_a_second_flush_in_a_cycle_is_skipped_and_the_next_cycle_sees_only_what_is_new(
    session: ScriptedSession, server: ChatServer
) -> None:
    server.script(lambda seen: say("NO_REPLY"))
    first = flush(session, server)
    assert (
        isinstance(first, Flushed)
        and (first.written, first.refused) == ((), ())
        and first.input_tokens > 100
    )
    assert flush(session, server) == SkipFlush("already-flushed")
    session.store.update(KEY, compaction_count=1)
    session.add_messages(("user", "And Redis for sessions."))
    assert isinstance(flush(session, server), Flushed)
    assert len(server.seen) == 2
    assert "Redis" in server.seen[1].last_user and "PostgreSQL" not in server.seen[1].last_user


def test_what_the_log_holds_is_not_written_again(
    session: ScriptedSession, server: ChatServer
) -> None:
    server.script([append("- Billing uses PostgreSQL."), say("NO_REPLY")])
    flush(session, server)
    first = session.log
    session.store.update(KEY, compaction_count=1)
    session.add_messages(("user", "more"))
    server.script(
        [
            append("* billing uses  postgresql\n- Redis for sessions"),
            append("- Billing uses PostgreSQL"),
            say("NO_REPLY"),
        ]
    )
    outcome = flush(session, server)
    assert isinstance(outcome, Flushed) and len(outcome.written) == 1
    assert session.log == f"{first}- Redis for sessions {LABEL}\n"
    assert "holds all of this already" in server.seen[-1].results[1]


@pytest.mark.parametrize(
    "title", ["# 2026-11-15", "## memory/2026-11-15.md", "# 2026-11-15\n\n# 2026-11-15"]
)
def test_the_title_of_the_log_is_not_written_again(
    session: ScriptedSession, server: ChatServer, title: str
) -> None:
    session.workspace.remember("Tea with Ann", "2026-11-15")
    server.script(
        [append(f"{title}\n\n- Tea with Ann\n- Coffee with Bob"), append(title), say("NO_REPLY")]
    )
    assert isinstance(flush(session, server), Flushed)
    assert session.log == f"# 2026-11-15\n\n- Tea with Ann\n- Coffee with Bob {LABEL}\n"


def test_what_is_always_known_is_not_written_again(
    session: ScriptedSession, server: ChatServer
) -> None:
    (session.folder / "workspace" / "MEMORY.md").write_text(
        "# Facts\n\n- Ann prefers tea.\n", encoding="utf-8"
    )
    server.script([append("- Ann prefers tea\n- Bob prefers coffee"), say("NO_REPLY")])
    flush(session, server)
    assert "Ann" not in session.log and "- Bob prefers coffee" in session.log


@pytest.mark.parametrize(
    "word", ["NO_REPLY", "no_reply", "**No reply.**", "Nothing to add. NO_REPLY"]
)
def test_nothing_to_store_is_noted_as_nothing(
    session: ScriptedSession, server: ChatServer, word: str
) -> None:
    server.script([say(word)])
    outcome = flush(session, server)
    assert isinstance(outcome, Flushed) and outcome.written == ()
    assert session.log == ""
    assert session.store.get(KEY).memory_flush_lines == 0
    assert flush(session, server) == SkipFlush("already-flushed")


def test_model_that_does_not_write_fails_and_next_flush_reads_the_same_messages(
    session: ScriptedSession, server: ChatServer
) -> None:
    server.script([say("I shall remember it!"), say("Of course.")])
    outcome = flush(session, server)
    assert isinstance(outcome, FlushFailed) and "wrote nothing down" in outcome.message
    assert "Nothing has been written yet" in server.seen[1].last_user
    assert flush(session, server) == SkipFlush("backing-off")
    session.clock.advance(1)
    server.script([append("- Billing: PostgreSQL."), say("NO_REPLY")])
    assert isinstance(flush(session, server), Flushed)
    assert (
        "PostgreSQL for billing" in server.seen[2].last_user
        and "- Billing: PostgreSQL." in session.log
    )


def test_model_that_repeats_the_log_is_done_with_any_answer(
    session: ScriptedSession, server: ChatServer
) -> None:
    session.workspace.remember("Tea with Ann", "2026-11-15")
    server.script([append("- Tea with Ann"), say("All of that is saved.")])
    outcome = flush(session, server)
    assert isinstance(outcome, Flushed) and outcome.written == ()
    assert len(server.seen) == 2


def test_what_is_gone_again_before_it_is_verified_is_a_failure(
    session: ScriptedSession, server: ChatServer
) -> None:
    def model(seen: Seen) -> Turn:
        if seen.step == 0:
            return append("- Kept for a moment.")
        (session.folder / "workspace" / "memory" / "2026-11-15.md").unlink()
        return say("NO_REPLY")

    server.script(model)
    outcome = flush(session, server)
    assert isinstance(outcome, FlushFailed) and "not in the log" in outcome.message
    assert session.store.get(KEY).memory_flush_compaction_count == -1


def test_model_that_does_not_write_is_reminded_once(
    session: ScriptedSession, server: ChatServer
) -> None:
    server.script(
        [say("We chose PostgreSQL."), append("- We chose PostgreSQL."), say("Done. NO_REPLY")]
    )
    assert isinstance(flush(session, server), Flushed)
    assert "- We chose PostgreSQL." in session.log


@pytest.mark.parametrize(
    "path", ["MEMORY.md", "memory/2026-11-15-1430.md", "../outside.md", "memory/2026-11-14.md"]
)
def test_text_goes_to_the_daily_log_with_any_path(
    session: ScriptedSession, server: ChatServer, path: str
) -> None:
    server.script(
        [call("memory_append", path=path, content="- Kept all the same."), say("NO_REPLY")]
    )
    flush(session, server)
    assert f"- Kept all the same. {LABEL}" in session.log
    assert [file.name for file in (session.folder / "workspace").rglob("*") if file.is_file()] == [
        "2026-11-15.md"
    ]


def test_a_text_without_bullets_becomes_one_entry_and_a_fence_stays_whole(
    session: ScriptedSession, server: ChatServer
) -> None:
    server.script(
        [
            append("We chose PostgreSQL.\nIt was cheaper."),
            append("- how:\n  ```\n- not an item\n  ```"),
            say("NO_REPLY"),
        ]
    )
    flush(session, server)
    assert (
        f"- We chose PostgreSQL. {LABEL}\n  It was cheaper.\n- how: {LABEL}\n  ```\n- not an "
        f"item\n  ```\n" in session.log
    )


def test_a_mask_is_refused_with_the_reason_and_a_secret_is_left_out(
    session: ScriptedSession, server: ChatServer
) -> None:
    key = "sk-" + "a1B2" * 10
    server.script(
        [
            append("- The key is [redacted:openai]"),
            append(f"- The key is {key}, ask Ann"),
            say("NO_REPLY"),
        ]
    )
    outcome = flush(session, server)
    assert isinstance(outcome, Flushed)
    assert "redaction mask" in outcome.refused[0] and "redaction mask" in server.seen[1].results[0]
    assert f"- The key is {REMOVED}, ask Ann {LABEL}" in session.log
    assert key not in session.log and "[redacted" not in session.log


def test_recalled_blocks_and_forged_origins_are_not_written(
    session: ScriptedSession, server: ChatServer
) -> None:
    server.script(
        [
            append(
                f"<relevant-memories>old</relevant-memories>- New "
                f"{LABEL.replace('agent ', 'user ')}"
            ),
            say("NO_REPLY"),
        ]
    )
    flush(session, server)
    assert session.log.endswith(f"\n- New {LABEL}\n")
    assert "old" not in session.log


def test_refused_item_does_not_affect_the_others(
    session: ScriptedSession, server: ChatServer
) -> None:
    text = """## Today

- The router was replaced.
- {"results": [{"path": "a", "score": 1}]}
- Traceback (most recent call last):
    File "x.py", line 3
- The password is ****, ask Ann
- Bob is back on Monday."""
    server.script([append(text), say("NO_REPLY")])
    outcome = flush(session, server)
    assert isinstance(outcome, Flushed) and len(outcome.refused) == 3
    assert (
        session.log == f"# 2026-11-15\n\n## Today\n\n- The router was replaced. "
        f"{LABEL}\n- Bob is back on Monday. {LABEL}\n"
    )
    assert "This looks like JSON." in server.seen[1].results[0]


@pytest.mark.parametrize("text", ["", "   ", "NO_REPLY", "---", "x" * 9000, "## Only a heading"])
def test_a_text_that_is_none_is_refused(
    session: ScriptedSession, server: ChatServer, text: str
) -> None:
    server.script([append(text), say("NO_REPLY")])
    outcome = flush(session, server)
    assert isinstance(outcome, Flushed) and outcome.written == () and len(outcome.refused) == 1
    assert session.log == ""


def test_one_flush_cannot_fill_the_log(session: ScriptedSession, server: ChatServer) -> None:
    entries = [append("\n".join(f"- fact {n}.{m} {'x' * 60}" for m in range(70))) for n in range(9)]
    server.script([Turn("", tuple(one.calls[0] for one in entries)), say("NO_REPLY")])
    outcome = flush(session, server)
    assert isinstance(outcome, Flushed) and 2 <= len(outcome.written) <= 4 and outcome.refused
    assert len(session.log) < 50_000


def test_a_failure_is_tried_again_later_and_not_on_the_next_turn(
    session: ScriptedSession, server: ChatServer
) -> None:
    server.script(lambda seen: fault("no-model"))
    outcome = flush(session, server)
    assert isinstance(outcome, FlushFailed) and "was not found" in outcome.message
    assert flush(session, server) == SkipFlush("backing-off")
    session.clock.advance(1)
    server.script([append("- Kept after all."), say("NO_REPLY")])
    assert isinstance(flush(session, server), Flushed)
    assert "- Kept after all." in session.log
    assert (
        session.store.get(KEY).memory_flush_failures,
        session.store.get(KEY).memory_flush_failed_at,
    ) == (0, 0)


def test_a_log_that_cannot_be_written_is_a_failure_and_no_flush(
    session: ScriptedSession, server: ChatServer
) -> None:
    (session.folder / "workspace" / "memory").write_text("a file, not a folder", encoding="utf-8")
    server.script([append("- Not kept."), say("NO_REPLY")])
    outcome = flush(session, server)
    assert isinstance(outcome, FlushFailed) and "memory" in outcome.message
    assert session.store.get(KEY).memory_flush_compaction_count == -1


def test_a_compaction_does_not_wait_for_the_pause(
    session: ScriptedSession, server: ChatServer
) -> None:
    server.script([fault("no-model"), append("- In time."), say("NO_REPLY")])
    flush(session, server)
    assert isinstance(flush(session, server, is_compacting=True), Flushed)
    assert "- In time." in session.log


def test_a_model_that_fails_after_it_has_written_has_flushed(
    session: ScriptedSession, server: ChatServer
) -> None:
    server.script([append("- Kept."), fault("no-model")])
    assert isinstance(flush(session, server), Flushed)
    assert flush(session, server) == SkipFlush("already-flushed")
    assert session.log.count("- Kept.") == 1


def test_an_overflowed_context_is_flushed_from_the_end_of_the_transcript(
    session: ScriptedSession, server: ChatServer
) -> None:
    session.add_messages(*[("user", f"fact {number} " + "long " * 200) for number in range(2000)])
    heard: list[Seen] = []

    def answer(seen: Seen) -> Turn:
        heard.append(seen)
        return (
            fault("too-long")
            if len(seen.last_user) > 100_000
            else append("- Fact 1999.")
            if seen.step == 0
            else say("NO_REPLY")
        )

    server.script(answer)
    assert isinstance(flush(session, server), Flushed)
    sizes = [len(seen.last_user) for seen in heard]
    assert sizes[0] <= 200_000 // 2 * 4 + 100_000 and sizes[-1] <= 100_000
    assert "fact 1999 " in heard[-1].last_user and "fact 1 " not in heard[-1].last_user


def test_model_is_not_called_without_new_messages(
    session: ScriptedSession, server: ChatServer
) -> None:
    session.transcript.write_text("", encoding="utf-8")
    assert flush(session, server) == SkipFlush("nothing-new")
    assert server.seen == []
    assert flush(session, server) == SkipFlush("already-flushed")


def test_without_a_model_nothing_is_recorded(session: ScriptedSession) -> None:
    before = session.store.get(KEY)
    assert flush(session, None) == SkipFlush("no-model")
    assert session.store.get(KEY) == before


def test_custom_prompts_get_the_day_and_what_keeps_a_flush_harmless(
    session: ScriptedSession, server: ChatServer
) -> None:
    server.script([say("NO_REPLY")])
    custom = FlushSettings(
        prompt="Save it to memory/YYYY-MM-DD.md, append only.",
        system_prompt="Be quick. Current time: noon",
    )
    flush(session, server, custom)
    asked, system = server.seen[0].last_user, server.seen[0].system
    kept = "Save it to memory/2026-11-15.md, append only."
    assert (
        f"{kept}\nMEMORY.md, SOUL.md, TOOLS.md and AGENTS.md are read-only now.\nIf there is "
        f"nothing" in asked
    )
    assert "append-only" not in asked
    assert system.startswith("Be quick. Current time: noon\nWrite to memory/2026-11-15.md only")
    assert system.count("Current time:") == 1 and "append-only" in system and "NO_REPLY" in system


ZONES = [("Pacific/Kiritimati", 14), ("UTC", 0), ("America/Los_Angeles", -8)]


@pytest.mark.parametrize(("zone", "offset"), ZONES, ids=[zone for zone, _ in ZONES])
def test_flush_after_midnight_writes_to_the_new_day(
    session: ScriptedSession, server: ChatServer, zone: str, offset: int
) -> None:
    session.clock.now = datetime(2026, 11, 15, 23, 59, 59, tzinfo=ZoneInfo(zone))
    session.workspace.remember("Known since yesterday", "2026-11-15")

    def answer(seen: Seen) -> Turn:
        if seen.step == 0:
            return append("- Before midnight.")
        session.clock.now = datetime(2026, 11, 16, 0, 0, 1, tzinfo=ZoneInfo(zone))
        return (
            append("- After midnight.\n- Known since yesterday\n- Before midnight.")
            if seen.step == 1
            else say("NO_REPLY")
        )

    server.script(answer)
    outcome = flush(session, server)
    assert isinstance(outcome, Flushed)
    assert [one.path for one in outcome.written] == ["memory/2026-11-15.md", "memory/2026-11-16.md"]
    assert session.read("memory/2026-11-15.md").endswith(
        f"- Known since yesterday\n- Before midnight. {LABEL}\n"
    )
    assert session.read("memory/2026-11-16.md") == f"# 2026-11-16\n\n- After midnight. {LABEL}\n"


def test_several_processes_flush_a_session_once(
    session: ScriptedSession, server: ChatServer
) -> None:
    server.script(
        lambda seen: append(f"- Once, by {id(seen)}.") if seen.step == 0 else say("NO_REPLY")
    )

    def one(_: int) -> FlushOutcome:
        own = session._replace(store=SessionStore(session.store.folder))
        return flush(own, server)

    with ThreadPoolExecutor(8) as pool:
        outcomes = list(pool.map(one, range(8)))
    assert sum(isinstance(outcome, Flushed) for outcome in outcomes) == 1
    assert session.log.count("- Once, by") == 1
