"""`clawmark flush` as people run it: with a model, without one, by session and by transcript, and
upkeep of MEMORY.md.
"""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from chat import ChatServer, call, fault, say
from commands import CLAWMARK, HANG_SECONDS, Place, new_place, says_one_clear_thing

from clawmark import Memory
from clawmark.text.entry_times import without_times

KEY = "sk-test-4f9aXb21Qz77Lm03"


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return new_place(tmp_path)


@pytest.fixture
def server() -> Iterator[ChatServer]:
    with ChatServer(key=KEY) as made:
        yield made


def line(role: str, text: str) -> str:
    message = {"role": role, "content": [{"type": "text", "text": text}]}
    return json.dumps({"type": "message", "timestamp": "2026-11-15T11:00:00Z", "message": message})


def talk(place: Place) -> None:
    """A session with two messages, as a host would have left it."""
    with Memory.open(place.workspace, state_dir=place.state, provider="none") as memory:
        conversation = memory.conversation()
        conversation.start()
        conversation.on_user("Let us take PostgreSQL for billing.")
        conversation.on_usage(150_000, reply="PostgreSQL for billing it is.")


def env(server: ChatServer | None = None) -> dict[str, str | None]:
    none: dict[str, str | None] = dict.fromkeys(("OPENAI_API_KEY", "ANTHROPIC_API_KEY"))
    return {**none, "CLAWMARK_MODEL_API_KEY": KEY} if server else none


def model(server: ChatServer) -> tuple[str, str]:
    return "--model", f"scripted@{server.openai_url}"


def logs(place: Place) -> list[str]:
    return sorted(
        file.name for file in (place.workspace / "memory").iterdir() if file.name != "2026-11-15.md"
    )


def test_without_a_model_it_says_so_and_how_to_go_on(place: Place) -> None:
    talk(place)
    ran = place.run("flush", env=env())
    assert (ran.code, ran.out) == (2, "")
    assert (
        says_one_clear_thing(ran)
        and "No model is configured" in ran.err
        and "--no-model" in ran.err
    )


def test_curation_without_a_model_offers_only_what_goes_with_it(place: Place) -> None:
    ran = place.run("flush", "--curate", "--dry-run", env=env())
    assert (ran.code, ran.out) == (2, "")
    assert says_one_clear_thing(ran) and "--model" in ran.err and "--no-model" not in ran.err


def test_a_session_is_flushed_by_hand(place: Place, server: ChatServer) -> None:
    talk(place)
    server.script(
        [call("memory_append", text="- Billing uses PostgreSQL since today."), say("NO_REPLY")]
    )
    ran = place.run("flush", *model(server), env=env(server))
    assert ran.code == 0 and "Wrote memory/" in ran.out
    [log] = logs(place) or ["2026-11-15.md"]
    held = (place.workspace / "memory" / log).read_text(encoding="utf-8")
    assert "- Billing uses PostgreSQL since today." in without_times(held)
    assert re.search(r"^- [0-2][0-9]:[0-5][0-9] Billing uses", held, re.MULTILINE)
    again = place.run("flush", *model(server), "--json", env=env(server))
    assert again.json() == {"flushed": False, "because": "nothing-new"}
    assert KEY not in ran.out + ran.err + again.out + again.err


def test_a_model_in_the_configuration_is_used(place: Place, server: ChatServer) -> None:
    talk(place)
    config = {"agents": {"defaults": {"model": f"scripted@{server.openai_url}"}}}
    (place.state / "clawmark.json").write_text(json.dumps(config), encoding="utf-8")
    server.script([say("NO_REPLY")])
    ran = place.run("flush", "--json", env=env(server))
    assert ran.json()["written"] == [] and ran.json()["flushed"] is True


def test_a_failing_model_is_one_clear_error_without_the_key(
    place: Place, server: ChatServer
) -> None:
    talk(place)
    server.script(lambda seen: fault("key"))
    ran = place.run("flush", *model(server), env=env(server))
    assert ran.code == 3 and says_one_clear_thing(ran) and KEY not in ran.err


def test_a_dry_run_shows_the_numbers_and_sends_no_request(place: Place) -> None:
    talk(place)
    ran = place.run("flush", "--dry-run", "--json", env=env())
    body = ran.json()
    assert (body["flush"], body["because"], body["tokens"], body["threshold"]) == (
        False,
        "below-threshold",
        150_000,
        176_000,
    )
    assert (
        "150,000 of 200,000; flushed at 176,000" in place.run("flush", "--dry-run", env=env()).out
    )
    assert (
        "no such session"
        in place.run("flush", "--dry-run", "--session", "agent:main:other", env=env()).out
    )


def test_a_dry_run_knows_what_the_session_may_do_and_the_model_that_is_named(place: Place) -> None:
    assert (
        "a heartbeat is not a conversation"
        in place.run("flush", "--dry-run", "--session", "agent:main:heartbeat").out
    )
    named = place.run("flush", "--dry-run", "--json", "--model", "openai:gpt-4", env=env()).json()
    assert (named["contextWindow"], named["threshold"]) == (8_192, 5_734)


def test_a_dry_run_shows_what_is_configured(place: Place) -> None:
    flushing = {"memoryFlush": {"forceFlushTranscriptBytes": 0}}
    place.state.mkdir(exist_ok=True)
    settings = {"agents": {"defaults": {"compaction": flushing, "contextTokens": 16_000}}}
    (place.state / "clawmark.json").write_text(json.dumps(settings), encoding="utf-8")
    said = place.run("flush", "--dry-run", "--model", "openai:gpt-4").out
    assert "its length does not count" in said and "0 of 16,000" in said, (
        "the configured window wins over the model's name"
    )


def test_a_transcript_of_another_host_is_flushed(
    place: Place, server: ChatServer, tmp_path: Path
) -> None:
    claude = {
        "type": "user",
        "message": {"role": "user", "content": "We chose Redis for sessions."},
        "timestamp": "2026-11-15T09:00:00Z",
    }
    (tmp_path / "claude.jsonl").write_text(json.dumps(claude) + "\n", encoding="utf-8")
    server.script([call("memory_append", text="- Redis for sessions."), say("NO_REPLY")])
    ran = place.run(
        "flush", "--transcript", str(tmp_path / "claude.jsonl"), *model(server), env=env(server)
    )
    assert ran.code == 0 and "Wrote memory/" in ran.out
    assert "We chose Redis for sessions." in server.seen[0].last_user


def test_without_a_model_the_last_messages_can_be_kept_as_they_are(
    place: Place, tmp_path: Path
) -> None:
    talk(place)
    ran = place.run("flush", "--no-model", "--json", env=env())
    [path] = ran.json()["written"]
    text = (place.workspace / path).read_text(encoding="utf-8")
    assert (
        path.endswith("-postgresql-billing.md")
        and "> Let us take PostgreSQL for billing.\n" in text
    )
    assert (
        place.run("flush", "--no-model", env=env()).out
        == "Nothing to do: it has its note already.\n"
    )
    (tmp_path / "t.jsonl").write_text(line("user", "Redis for sessions.") + "\n", encoding="utf-8")
    ran = place.run("flush", "--no-model", "--transcript", str(tmp_path / "t.jsonl"), env=env())
    assert ran.out.startswith("Wrote memory/2026-11-15-redis-sessions.md")
    assert "- **Session ID**: t\n" in (
        place.workspace / "memory/2026-11-15-redis-sessions.md"
    ).read_text(encoding="utf-8")


def test_a_proposal_is_shown_and_the_one_that_was_shown_is_written(
    place: Place, server: ChatServer
) -> None:
    page = place.workspace / "MEMORY.md"
    before = page.read_text(encoding="utf-8")
    server.script(
        [
            call(
                "propose_change", new="- Ann works at the harbour.", because="memory/2026-11-15.md"
            ),
            say("done"),
        ]
    )
    shown = place.run("flush", "--curate", "--dry-run", *model(server), env=env(server))
    assert "+- Ann works at the harbour." in shown.out and "Nothing is written." in shown.out
    assert page.read_text(encoding="utf-8") == before
    written = place.run("flush", "--curate", "--apply", env=env())
    assert "+- Ann works at the harbour." in written.out and "Written to MEMORY.md." in written.out
    assert page.read_text(encoding="utf-8") == before + "- Ann works at the harbour.\n"


def test_a_proposal_for_a_page_that_changed_since_is_not_written(
    place: Place, server: ChatServer
) -> None:
    server.script([call("propose_change", new="- New."), say("done")])
    place.run("flush", "--curate", *model(server), env=env(server))
    place.write("MEMORY.md", "# Edited meanwhile\n")
    ran = place.run("flush", "--curate", "--apply", env=env())
    assert (
        ran.code == 4
        and "no longer applies to MEMORY.md" in ran.err
        and "clawmark review edit p1 --hunk 1" in ran.err
    )
    assert (place.workspace / "MEMORY.md").read_text(encoding="utf-8") == "# Edited meanwhile\n"


def test_a_proposal_that_was_not_shown_is_not_accepted(place: Place, server: ChatServer) -> None:
    before = (place.workspace / "MEMORY.md").read_text(encoding="utf-8")
    server.script([call("propose_change", new="- Unseen."), say("done")])
    ran = place.run("flush", "--curate", "--apply", "--json", *model(server), env=env(server))
    assert ran.json()["applied"] is False and "+- Unseen." in ran.json()["diff"]
    assert (place.workspace / "MEMORY.md").read_text(encoding="utf-8") == before


@pytest.mark.parametrize(("answer", "is_written"), [("y", True), ("n", False)])
def test_a_person_at_a_terminal_is_asked(
    place: Place, server: ChatServer, answer: str, is_written: bool
) -> None:
    server.script([call("propose_change", new="- Seen."), say("done")])
    ours, theirs = pty.openpty()
    command = [*CLAWMARK, "flush", "--curate", "--apply", *model(server)]
    with subprocess.Popen(
        command, stdin=theirs, stdout=theirs, stderr=theirs, env=place.environment(env(server))
    ) as running:
        os.close(theirs)
        os.write(ours, f"{answer}\n".encode())
        heard = b""
        try:
            while piece := os.read(ours, 65536):
                heard += piece
        except OSError:
            pass  # the other side of a terminal is gone
        running.wait(HANG_SECONDS)
    os.close(ours)
    assert b"Write this into MEMORY.md?" in heard
    assert ("- Seen." in (place.workspace / "MEMORY.md").read_text(encoding="utf-8")) is is_written


def test_nothing_to_change_is_said(place: Place, server: ChatServer) -> None:
    server.script([say("done")])
    ran = place.run("flush", "--curate", "--days", "2", *model(server), env=env(server))
    assert ran.out == "MEMORY.md needs no change after 2 days of logs.\n"


@pytest.mark.parametrize(
    "words",
    [
        ("--apply",),
        ("--curate", "--apply", "--dry-run"),
        ("--no-model", "--model", "openai:x"),
        ("--transcript", "absent.jsonl"),
        ("--model", "nonsense"),
        ("--days", "0"),
        ("--session", ""),
    ],
)
def test_words_that_do_not_fit_together_are_a_usage_error(
    place: Place, words: tuple[str, ...]
) -> None:
    ran = place.run("flush", *words, env=env())
    assert ran.code == 2 and says_one_clear_thing(ran)
