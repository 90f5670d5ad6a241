"""One whole day with `clawmark chat`, in real processes against a real socket, in the languages of
two services.

First run and ritual, something to remember, a search with its citation, a long talk that is flushed
and then compacted, `/new`, the end of the day; and the next morning another process that knows what
was decided yesterday. The model is a script, so what is tested is everything around it. Night falls
by the clock's setting: the user's zone on the second day is 24 hours ahead of the first day's, so
it is exactly one day later there."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from chat import ChatServer, Seen, Turn, call, say
from commands import CLAWMARK, Place, Ran
from typists import Typist

from clawmark.text.entry_times import without_times

KEY = "sk-test-4f9aXb21Qz77Lm03"
TODAY, TOMORROW = "Etc/GMT+12", "Etc/GMT-12"
WINDOW = 9_000
"""Tokens: small enough that a long talk is not too long for a test."""
# About 390 tokens: less than lies between the flush and the compaction, so that each has a turn of
# its own.
FILLER = (
    "The harbour office wants the numbers of the third quarter in the new form, by ship and by "
    "berth. " * 16
)
DECISION = "We chose PostgreSQL for billing because MySQL was slow."
SAVED = "- The harbour office wants the numbers by ship and by berth."
IDENTITY = (
    "# IDENTITY.md\n\n- **Name:** Pebble\n- **Creature:** a "
    "familiar\n- **Vibe:** calm\n- **Emoji:** 🪨\n"
)
USER = "# USER.md\n\n- **Name:** Ann\n- **What to call them:** Ann\n- **Timezone:** far away\n"


def model(seen: Seen) -> Turn:
    """What the model of this day says: looks at the last message, as a model would, and at what its
    tools answered.
    """
    said = seen.last_user
    turns: list[Turn]
    if "You name conversations" in seen.system:
        turns = [say("billing-and-harbour")]
    elif "Pre-compaction memory flush" in said:
        turns = [call("memory_append", text=SAVED), say("NO_REPLY")]
    elif "You summarise" in seen.system:
        turns = [
            say(
                "Ann and Pebble met, chose a database for billing, and went through the "
                "harbour's numbers."
            )
        ]
    elif "which database" in said or "decide yesterday" in said:
        turns = [
            call("memory_search", "Let me look.", query="database for billing"),
            _from_memory(seen),
        ]
    elif "remember" in said:
        turns = [call("memory_append", text=DECISION, origin="user"), say("I wrote it down.")]
    elif "You are Pebble" in said:
        turns = [
            call("file_write", path="IDENTITY.md", text=IDENTITY),
            call("file_write", path="USER.md", text=USER),
            call(
                "file_edit",
                path="SOUL.md",
                old="Warm, plain, and brief.",
                new="Calm, plain, and brief.",
            ),
            call("file_delete", path="BOOTSTRAP.md"),
            say("Pebble it is. Hello, Ann."),
        ]
    else:
        turns = [say("Understood. Next?")]
    return turns[min(seen.step, len(turns) - 1)]


def _from_memory(seen: Seen) -> Turn:
    """An answer that knows nothing but what the search has found."""
    results = json.loads(seen.results[-1])["results"] if seen.results else []
    found = [hit for hit in results if "PostgreSQL" in hit["snippet"]]
    return say(f"PostgreSQL. Source: {found[0]['citation']}" if found else "I do not know.")


def configure(place: Place, zone: str) -> str:
    """Set the clock; the day it is there now."""
    place.state.mkdir(exist_ok=True)
    defaults: dict[str, object] = {"userTimezone": zone, "contextTokens": WINDOW}
    (place.state / "clawmark.json").write_text(
        json.dumps({"agents": {"defaults": defaults}}), encoding="utf-8"
    )
    return datetime.now(ZoneInfo(zone)).date().isoformat()


def transcripts(place: Place) -> list[list[dict[str, Any]]]:
    files = sorted(
        place.state.glob("agents/*/sessions/*.jsonl"), key=lambda file: file.stat().st_mtime_ns
    )
    return [
        [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
        for file in files
    ]


def texts(lines: list[dict[str, Any]], role: str) -> list[str]:
    messages = [
        line["message"]
        for line in lines
        if line["type"] == "message" and line["message"]["role"] == role
    ]
    return ["".join(part.get("text", "") for part in message["content"]) for message in messages]


@pytest.mark.parametrize("api", ["openai", "anthropic"])
def test_one_whole_day(tmp_path: Path, api: str) -> None:
    place = Place(tmp_path)
    place.home.mkdir()
    today = configure(place, TODAY)
    log = f"memory/{today}.md"
    with ChatServer(model, key=KEY) as server:
        base_url = server.openai_url if api == "openai" else server.anthropic_url
        words = (*CLAWMARK, "chat", "--model", f"{api}:scripted", "--base-url", base_url)
        key: dict[str, str | None] = {f"{api.upper()}_API_KEY": KEY}

        with Typist(words, place.environment(key)) as ann:
            # --- first run and ritual
            ann.wait_for("first conversation")
            ann.type("hello")
            ann.wait_for("Understood.")
            assert (
                "the first conversation" in server.seen[0].system
                and "Follow it" in server.seen[0].system
            )
            assert {"memory_search", "memory_get", "memory_append", "file_write"} <= set(
                server.seen[0].tools
            )
            ann.type("You are Pebble, and I am Ann.")
            ann.wait_for("deleted BOOTSTRAP.md")
            ann.wait_for("Hello, Ann.")
            assert (place.workspace / "IDENTITY.md").read_text(encoding="utf-8") == IDENTITY
            assert "Calm, plain" in (place.workspace / "SOUL.md").read_text(encoding="utf-8")
            assert not (place.workspace / "BOOTSTRAP.md").exists()

            # --- remember, and search with a citation
            ann.type(f"Please remember: {DECISION}")
            ann.wait_for(f"remembered {log}#L3")
            assert (
                "**Name:** Pebble" in server.seen[-1].system
                and "BOOTSTRAP.md is there" not in server.seen[-1].system
            )
            ann.type("So which database was it?")
            ann.wait_for("PostgreSQL. Source: ")
            assert f"tokens · {log}#" in ann.wait_for(f"of {WINDOW:,} tokens · {log}#")

            # --- a long talk, flushed and then compacted
            turns = talk_until(ann, "compacted: ")
            [flushed] = [
                number for number, shown in enumerate(turns) if f"saved to {log}#" in shown
            ]
            assert flushed < len(turns) - 1, "the flush is a turn of its own before the compaction"
            held = (place.workspace / log).read_text(encoding="utf-8")
            assert without_times(held).count(SAVED) == 1
            told = server.seen[-1].messages[0].text
            assert (
                "Ann and Pebble met" in told
                and "## Session Startup" in told
                and "## Red Lines" in told
            )

            # --- a new conversation, and the end of the day
            ann.type("/new Let us speak of something else.")
            ann.wait_for(f"left a note: memory/{today}-billing-and-harbour.md")
            ann.wait_for("Understood.")
            assert [one.text for one in server.seen[-1].messages] == [
                "Let us speak of something else."
            ]
            ann.type("/quit")
            ann.wait_for(f"left a note: memory/{today}-billing-and-harbour-2.md")
            assert ann.end() == 0
        check_transcripts(place)

        morning = the_next_morning(place, server, words[len(CLAWMARK) :], key, today)
    everything = [file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()]
    assert (
        not any(KEY.encode() in data for data in everything)
        and KEY not in ann.screen + morning.out + morning.err
    )


def the_next_morning(
    place: Place,
    server: ChatServer,
    words: tuple[str, ...],
    key: dict[str, str | None],
    today: str,
) -> Ran:
    """Ask about yesterday's decision in a new process on the next day."""
    tomorrow = configure(place, TOMORROW)
    assert tomorrow > today
    morning = place.run(*words, stdin="What did we decide yesterday?\n", env=key)
    assert morning.code == 0, morning.err
    answer, citation = morning.out.strip().splitlines()[-1].split(" Source: ")
    assert answer == "PostgreSQL." and citation.startswith(f"memory/{today}")
    assert "PostgreSQL" in place.run("get", citation).out
    assert not (place.workspace / "BOOTSTRAP.md").exists()
    first = next(one for one in server.seen if one.last_user == "What did we decide yesterday?")
    assert len(first.messages) == 1 and f"today: {tomorrow}" in first.system
    return morning


def talk_until(ann: Typist, text: str) -> list[str]:
    """Talk until something is shown; what was shown for each message."""
    turns: list[str] = []
    while not turns or text not in turns[-1]:
        assert len(turns) < 60, "the talk never filled the context"
        ann.type(FILLER)
        turns.append(ann.wait_for(f"of {WINDOW:,} tokens"))
    return turns


def check_transcripts(place: Place) -> None:
    """Two conversations, the first of them compacted once; the flush, the summary and the names are
    in neither.
    """
    long, short = transcripts(place)
    assert long[0]["type"] == "session" and long[0]["version"] == 3
    [compaction] = [line for line in long if line["type"] == "compaction"]
    ids = [line["id"] for line in long]
    assert compaction["firstKeptEntryId"] in ids and compaction["tokensBefore"] > WINDOW // 2
    parents = [line["parentId"] for line in long[1:]]
    assert parents == [None, *ids[1:-1]]
    said = "\n".join(texts(long, "user") + texts(long, "assistant"))
    assert "Pre-compaction" not in said and "NO_REPLY" not in said and "You summarise" not in said
    parts = [
        part for line in long if line["type"] == "message" for part in line["message"]["content"]
    ]
    called = [part["name"] for part in parts if part["type"] == "toolCall"]
    assert called.count("file_delete") == 1 and called.count("memory_append") == 1
    assert len(texts(long, "toolResult")) == len(called)
    assert texts(short, "user") == ["Let us speak of something else."]
    sessions = json.loads(
        next(place.state.glob("agents/*/sessions/sessions.json")).read_text(encoding="utf-8")
    )
    assert (
        sessions["agent:main:main"]["ended"] is True
        and sessions["agent:main:main"]["compactionCount"] == 0
    )
