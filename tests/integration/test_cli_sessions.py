"""`clawmark sessions`, and transcripts through the other verbs, as a person uses them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from commands import Place, new_place, says_one_clear_thing


@pytest.fixture
def place(tmp_path: Path) -> Place:
    made = new_place(tmp_path)
    folder = made.state / "agents" / "main" / "sessions"
    folder.mkdir(parents=True)
    lines = [{"type": "session", "version": 3, "id": "1"}]
    for number, text in enumerate(
        (
            "Where does the heron stand?",
            "In the reeds.\x1b[31m",
            "key: sk-FAKE86wh4wELSs3O9TEUPtwyiePWaljJ002A0b",
        )
    ):
        role = "assistant" if number % 2 else "user"
        message = {"role": role, "content": text}
        lines.append(
            {"type": "message", "timestamp": f"2026-02-24T10:0{number}:00Z", "message": message}
        )
    (folder / "talk-1.jsonl").write_text(
        "".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8"
    )
    settings = {"memorySearch": {"provider": "none", "sources": ["memory", "sessions"]}}
    (made.state / "clawmark.json").write_text(json.dumps(settings), encoding="utf-8")
    return made


def test_transcripts_are_listed_with_how_far_they_are_indexed(place: Place) -> None:
    before = place.run("sessions", "--json").json()
    assert before["isSource"] is True and before["folder"].endswith("agents/main/sessions")
    (listed,) = before["sessions"]
    assert listed == {
        "path": "sessions/talk-1.jsonl",
        "kind": "OpenClaw",
        "size": listed["size"],
        "messages": 3,
        "first": "2026-02-24T10:00:00Z",
        "last": "2026-02-24T10:02:00Z",
        "status": "due",
        "flush": None,
    }
    assert place.run("index").code == 0
    after = place.run("sessions")
    assert (
        "sessions/talk-1.jsonl" in after.out
        and "indexed" in after.out
        and "3 messages" in after.out
    )


def test_a_transcript_is_shown_without_secrets_and_control_characters(place: Place) -> None:
    shown = place.run("sessions", "show", "talk")
    assert shown.code == 0
    assert "User (2026-02-24 10:00Z): Where does the heron stand?" in shown.out
    assert "In the reeds.\\x1b[31m" in shown.out and "\x1b" not in shown.out
    assert "[redacted:" in shown.out and "sk-FAKE" not in shown.out
    document = place.run("sessions", "show", "talk-1", "--json").json()
    assert [(one["line"], one["speaker"]) for one in document["messages"]] == [
        (2, "user"),
        (3, "assistant"),
        (4, "user"),
    ]


def test_a_missing_transcript_and_wrong_arguments_are_errors(
    place: Place,
) -> None:
    assert (ran := place.run("sessions", "show", "nobody")).code == 3 and says_one_clear_thing(ran)
    for words in (("show",), ("show", "a", "b"), ("list",), ("talk-1",)):
        assert (ran := place.run("sessions", *words)).code == 2 and says_one_clear_thing(ran)


def test_a_search_cites_a_transcript_and_get_reads_it(place: Place) -> None:
    (hit, *_) = place.run("search", "heron reeds", "--json").json()["results"]
    assert (hit["source"], hit["date"], hit["citation"]) == (
        "sessions",
        "2026-02-24",
        "sessions/talk-1.jsonl#L2-L4",
    )
    got = place.run("get", hit["citation"])
    assert got.out.startswith("User (2026-02-24 10:00Z): Where does the heron stand?\nAssistant")
    assert place.run("search", "heron reeds", "--explain").code == 0
    assert place.run("verify").code == 0


def test_transcripts_are_listed_but_not_searched_without_the_source(place: Place) -> None:
    (place.state / "clawmark.json").write_text(
        '{"memorySearch": {"provider": "none"}}', encoding="utf-8"
    )
    listed = place.run("sessions")
    assert "not a source" in listed.out and "memorySearch.sources" in listed.err
    assert place.run("search", "heron reeds", "--json").json()["results"] == []
    assert (denied := place.run("get", "sessions/talk-1.jsonl")).code == 4 and says_one_clear_thing(
        denied
    )
    assert "User (" in place.run("sessions", "show", "talk").out


def test_transcripts_of_an_openclaw_installation_are_read_in_place(tmp_path: Path) -> None:
    place = new_place(tmp_path)
    folder = place.home / ".openclaw" / "agents" / "main" / "sessions"
    folder.mkdir(parents=True)
    message = {
        "type": "message",
        "timestamp": "2026-02-24T10:00:00Z",
        "message": {"role": "user", "content": "a heron"},
    }
    (folder / "x.jsonl").write_text(json.dumps(message) + "\n", encoding="utf-8")
    search = {
        "sources": ["memory", "sessions"],
        "experimental": {"sessionMemory": True},
        "provider": "none",
    }
    config = {"agents": {"defaults": {"memorySearch": search}}}
    (place.home / ".openclaw" / "openclaw.json").write_text(json.dumps(config), encoding="utf-8")
    before = sorted(path.name for path in folder.rglob("*"))
    found = place.run(
        "search", "heron", "--json", "--state-dir", str(place.home / ".openclaw")
    ).json()
    assert [hit["path"] for hit in found["results"]] == ["sessions/x.jsonl"]
    assert sorted(path.name for path in folder.rglob("*")) == before


@pytest.mark.parametrize("first", ["queue-operation", "a-line-of-a-later-release"])
def test_the_format_is_shown_even_if_the_first_line_is_not_a_message(
    place: Place, first: str
) -> None:
    message = {"role": "user", "content": "Where is the ferry?"}
    lines = [
        {
            "type": first,
            "operation": "enqueue",
            "timestamp": "2026-02-24T10:00:00Z",
            "sessionId": "s",
        },
        {"type": "user", "timestamp": "2026-02-24T10:00:01Z", "sessionId": "s", "message": message},
    ]
    file = place.state / "agents" / "main" / "sessions" / "queued.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    for _ in ("before it is indexed", "and after"):
        listed = place.run("sessions", "--json").json()["sessions"]
        assert [one["kind"] for one in listed if one["path"] == "sessions/queued.jsonl"] == [
            "Claude Code"
        ]
        assert place.run("index").code == 0
