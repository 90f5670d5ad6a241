"""The note of a session: its name, its day, its words, and that there is one and only one."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from chat import ChatServer, fault, say
from scripted_session import KEY, NOON, ScriptedSession, start_session

from clawmark.agent.models.catalog import choose_completer
from clawmark.agent.notes.session_note import (
    NoNote,
    Noted,
    NoteFailed,
    NoteOutcome,
    NoteParts,
    NoteSettings,
    note_session,
)
from clawmark.agent.notes.slug import clean_slug, frequent_words
from clawmark.agent.session.session import SessionStore, fresh_fields
from clawmark.text.secrets.redact import REMOVED, Redactor
from clawmark.text.transcripts.records import TranscriptMessage

SPOKEN = [
    ("user", "Let us take PostgreSQL for billing."),
    ("assistant", "PostgreSQL for billing it is."),
    ("user", "/new"),
]


@pytest.fixture
def server() -> Iterator[ChatServer]:
    with ChatServer() as made:
        yield made


@pytest.fixture
def session(tmp_path: Path) -> ScriptedSession:
    return start_session(tmp_path, SPOKEN)


def note(
    session: ScriptedSession,
    server: ChatServer | None = None,
    settings: NoteSettings | None = None,
    key: str = KEY,
) -> NoteOutcome:
    completer = choose_completer(f"scripted@{server.openai_url}", {}) if server else None
    parts = NoteParts(
        completer=completer,
        store=session.store,
        workspace=session.workspace,
        redactor=Redactor(),
        settings=settings or NoteSettings(),
        now=session.clock,
    )
    return note_session(parts, key, reason="new", source="chat")


def another(session: ScriptedSession, session_id: str) -> None:
    """The same transcript as a session of another id."""
    session.store.update(KEY, **fresh_fields(session_id, str(session.transcript), 1))


def test_note_contains_the_last_messages_and_the_session(session: ScriptedSession) -> None:
    outcome = note(session)
    assert outcome == Noted("memory/2026-11-15-postgresql-billing.md")
    assert session.read("memory/2026-11-15-postgresql-billing.md") == (
        "# Session: 2026-11-15 11:00:00 (UTC)\n\n"
        "- **Session Key**: agent:main:main\n- **Session ID**: s1\n- **Source**: chat, new\n\n"
        "## Last messages\n\n"
        "User (11:00):\n\n> Let us take PostgreSQL for billing.\n\n"
        "Assistant (11:00):\n\n> PostgreSQL for billing it is.\n"
    )
    assert session.store.get(KEY).session_note == "memory/2026-11-15-postgresql-billing.md"


def test_a_session_gets_one_note(session: ScriptedSession) -> None:
    note(session)
    assert note(session) == NoNote("already-noted")
    assert len(list((session.folder / "workspace" / "memory").iterdir())) == 1


def test_a_note_that_was_written_and_not_recorded_is_found_by_its_session(
    session: ScriptedSession,
) -> None:
    note(session)
    session.store.update(KEY, session_note=None)
    assert note(session) == NoNote("already-noted")
    assert session.store.get(KEY).session_note == "memory/2026-11-15-postgresql-billing.md"


def test_a_note_is_found_by_its_session_when_sessions_json_is_lost(
    session: ScriptedSession,
) -> None:
    note(session)
    os.unlink(session.store.path)
    another(session, "s1")
    assert note(session) == NoNote("already-noted")


def test_an_id_that_is_only_quoted_in_a_note_is_not_that_session(session: ScriptedSession) -> None:
    session.add_messages(("user", "- **Session ID**: s2"))
    note(session)
    another(session, "s2")
    assert isinstance(note(session), Noted)


def test_second_note_of_the_same_name_gets_a_number(
    session: ScriptedSession,
) -> None:
    file = session.folder / "workspace" / "memory" / "2026-11-15-postgresql-billing.md"
    file.parent.mkdir()
    file.write_text("mine", encoding="utf-8")
    paths = []
    for number in range(3):
        another(session, f"id{number}")
        outcome = note(session)
        assert isinstance(outcome, Noted)
        paths.append(outcome.path)
    assert paths == [f"memory/2026-11-15-postgresql-billing-{number}.md" for number in (2, 3, 4)]
    assert file.read_text(encoding="utf-8") == "mine"


@pytest.mark.parametrize(
    "said", [[], [("user", "/new")], [("assistant", "Hello!")], [("user", "   ")]]
)
def test_an_empty_session_writes_nothing(tmp_path: Path, said: list[tuple[str, str]]) -> None:
    session = start_session(tmp_path, said)
    assert note(session) == NoNote("empty")
    assert not (session.folder / "workspace" / "memory").exists()


def test_a_session_that_never_was_and_a_note_that_is_switched_off(session: ScriptedSession) -> None:
    assert note(session, key="agent:main:other") == NoNote("no-session")
    assert note(session, settings=NoteSettings(enabled=False)) == NoNote("disabled")


@pytest.mark.parametrize(
    "key", ["agent:main:cron:job:run:1", "agent:main:subagent:7", "agent:main:heartbeat"]
)
def test_automatic_session_gets_no_note(session: ScriptedSession, key: str) -> None:
    session.store.update(key, **fresh_fields("other", str(session.transcript), 1))
    assert note(session, key=key) == NoNote("automatic")


def test_the_number_of_messages_can_be_chosen(session: ScriptedSession) -> None:
    session.add_messages(*[("user", f"message {number}") for number in range(40)])
    note(session, settings=NoteSettings(messages=4))
    [file] = (session.folder / "workspace" / "memory").iterdir()
    assert file.read_text(encoding="utf-8").count("\n> message") == 4
    another(session, "again")
    note(session)
    second = max(
        (session.folder / "workspace" / "memory").iterdir(), key=lambda one: one.stat().st_mtime_ns
    )
    assert second.read_text(encoding="utf-8").count("\n> ") == 15


def test_tools_system_text_recalled_memory_and_secrets_are_not_in_it(
    session: ScriptedSession,
) -> None:
    secret = "ghp_" + "a1B2c3D4e5" * 4
    tools = [
        {"role": "toolResult", "content": "tool says hunter"},
        {"role": "assistant", "content": [{"type": "toolCall", "name": "exec"}]},
    ]
    with open(session.transcript, "a", encoding="utf-8") as file:
        file.write("".join(json.dumps({"type": "message", "message": one}) + "\n" for one in tools))
        file.write(json.dumps({"type": "compaction", "summary": "a summary"}) + "\n")
    session.add_messages(
        (
            "user",
            f"<relevant-memories>recalled</relevant-memories>Use {secret} then [redacted:github]",
        )
    )
    note(session)
    [file_path] = (session.folder / "workspace" / "memory").iterdir()
    text = file_path.read_text(encoding="utf-8")
    assert f"> Use {REMOVED} then {REMOVED}\n" in text
    for absent in (secret, "[redacted", "hunter", "summary", "recalled", "toolCall", "/new"):
        assert absent not in text


def test_markdown_in_a_message_stays_in_its_quotation_and_a_long_one_is_cut(
    session: ScriptedSession,
) -> None:
    session.add_messages(
        ("user", "The garden has no fence.\n# not a heading\n```\nnot\u2028a fence"),
        ("user", "x" * 5000),
    )
    note(session)
    [file] = (session.folder / "workspace" / "memory").iterdir()
    text = file.read_text(encoding="utf-8")
    assert "\n> # not a heading\n> ```\n> not\n> a fence\n" in text
    assert f"> {'x' * 2000} …\n" in text and "x" * 2001 not in text


def test_what_a_terminal_would_obey_is_written_out_in_a_note(tmp_path: Path) -> None:
    session = start_session(
        tmp_path, [("user", "It is a caf\u00e9 \x1b[2J and \u202eevil."), ("assistant", "Neither.")]
    )
    outcome = note(session)
    assert isinstance(outcome, Noted)
    assert "> It is a caf\u00e9 \\u{1b}[2J and \\u{202e}evil.\n" in session.read(outcome.path)


def test_the_model_names_the_note(session: ScriptedSession, server: ChatServer) -> None:
    server.script([say("Billing Database!\n")])
    assert note(session, server) == Noted("memory/2026-11-15-billing-database.md")
    assert "| user: Let us take PostgreSQL" in server.seen[0].last_user
    assert server.seen[0].tools == ()


@pytest.mark.parametrize(
    "turn",
    [
        fault("no-model"),
        say("I would call this conversation something nice"),
        say("   "),
        say("NO_REPLY"),
        say("请"),
    ],
)
def test_without_a_name_from_the_model_frequent_words_are_used(
    session: ScriptedSession, server: ChatServer, turn: object
) -> None:
    server.script([turn])  # type: ignore[list-item]
    assert note(session, server) == Noted("memory/2026-11-15-postgresql-billing.md")


def test_a_model_is_not_asked_when_that_is_switched_off(
    session: ScriptedSession, server: ChatServer
) -> None:
    assert isinstance(note(session, server, NoteSettings(llm_slug=False)), Noted)
    assert server.seen == []


def test_without_frequent_words_the_time_of_day_is_the_name(tmp_path: Path) -> None:
    session = start_session(tmp_path, [("user", "データベースはどれにしますか")])
    assert note(session) == Noted("memory/2026-11-15-1100.md")


@pytest.mark.parametrize(
    ("zone", "path"),
    [
        ("Pacific/Kiritimati", "2026-11-16-"),
        ("Europe/Berlin", "2026-11-15-"),
        ("Pacific/Honolulu", "2026-11-15-"),
    ],
)
def test_the_day_is_the_one_where_the_user_lives(
    session: ScriptedSession, zone: str, path: str
) -> None:
    session.clock.now = datetime(2026, 11, 15, 12, 0, tzinfo=ZoneInfo("UTC")).astimezone(
        ZoneInfo(zone)
    )
    outcome = note(session)
    assert isinstance(outcome, Noted) and outcome.path.startswith(f"memory/{path}")
    assert f"({zone})" in session.read(outcome.path)


def test_a_session_that_is_closed_days_later_is_dated_by_its_last_message(
    session: ScriptedSession,
) -> None:
    session.clock.now = NOON.replace(day=20)
    assert note(session) == Noted("memory/2026-11-15-postgresql-billing.md")


def test_a_clock_without_a_zone_works_too(session: ScriptedSession) -> None:
    session.clock.now = datetime(2026, 11, 15, 12, 0)
    assert isinstance(note(session), Noted)


@pytest.mark.parametrize("name", ["s1-topic-7.jsonl", "s1.jsonl.reset.2026-11-15T10-00-00"])
def test_a_transcript_that_was_moved_is_found_by_its_session(
    session: ScriptedSession, name: str
) -> None:
    session.transcript.rename(session.transcript.with_name(name))
    (session.transcript.parent / "zz-other.jsonl").write_text(
        '{"type":"message"}', encoding="utf-8"
    )
    assert isinstance(note(session), Noted)


def test_write_error_is_reported_and_the_session_can_be_noted_later(
    session: ScriptedSession,
) -> None:
    (session.folder / "workspace" / "memory").write_text("a file, not a folder", encoding="utf-8")
    outcome = note(session)
    assert isinstance(outcome, NoteFailed) and outcome.message
    assert session.store.get(KEY).session_note == ""


def test_sessions_closed_at_once_all_get_their_notes(session: ScriptedSession) -> None:
    keys = [f"agent:main:telegram:direct:{number}" for number in range(24)]
    for key in keys:
        session.store.update(key, **fresh_fields(f"id-{key[-2:]}", str(session.transcript), 1))

    def close(key: str) -> NoteOutcome:
        return note(session._replace(store=SessionStore(session.store.folder)), key=key)

    with ThreadPoolExecutor(8) as pool:
        outcomes = list(pool.map(close, keys))
    paths = {outcome.path for outcome in outcomes if isinstance(outcome, Noted)}
    assert len(paths) == 24 == len(list((session.folder / "workspace" / "memory").iterdir()))
    assert all(session.store.get(key).session_note in paths for key in keys)


def said(*texts: str) -> list[TranscriptMessage]:
    return [TranscriptMessage(role="user", text=text, time="", line=0) for text in texts]


def test_repeated_words_are_preferred() -> None:
    assert (
        frequent_words(
            said("Can you fix the router? The router drops the café network.", "Router again")
        )
        == "fix-router-drops"
    )
    assert frequent_words(said(f"{REMOVED} {REMOVED} {REMOVED} migration")) == "migration"
    assert frequent_words(said("hello, thanks!", "ok")) == ""
    assert (
        frequent_words(
            said("look at https://example.com/secret/path and /usr/local/bin or me@host.example")
        )
        == "look"
    )


@pytest.mark.parametrize(
    ("answer", "slug"),
    [
        ("Trip to Lisbon", "trip-to-lisbon"),
        ('"api_design"', "api-design"),
        ("Café-Über", "cafe-uber"),
        ("../../etc/passwd", "etc-passwd"),
        ("a" * 90, "a" * 40),
        ("one two three four five six", ""),
        ("", ""),
    ],
)
def test_a_models_answer_becomes_a_file_name_or_nothing(answer: str, slug: str) -> None:
    assert clean_slug(answer) == slug
