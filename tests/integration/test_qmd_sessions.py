"""QMD searches exported transcripts, by the rules of `memory.qmd.scope`."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest
from qmds import qmd_command

from clawmark import Memory

SECRET = "sk-test-51H8x9K2mN4pQ7rS0tV3wX6yZ"


class Place:
    """A workspace and its state folder, with transcripts."""

    def __init__(self, folder: Path) -> None:
        self.workspace, self.state = folder / "agent", folder / "state"
        self.transcripts = self.state / "agents" / "main" / "sessions"
        (self.workspace / "memory").mkdir(parents=True)
        self.transcripts.mkdir(parents=True)
        (self.workspace / "MEMORY.md").write_text("The heron nests.\n", encoding="utf-8")

    def open(self, **more: Any) -> Memory:
        settings = {f"memory.qmd.{name.replace('_', '.')}": value for name, value in more.items()}
        overrides: dict[str, object] = {
            "memory.backend": "qmd",
            "memory.qmd.command": qmd_command(),
            "memory.qmd.limits.timeoutMs": 30_000,
            "memory.qmd.sessions.enabled": True,
            "memorySearch.provider": "none",
        }
        return Memory.open(
            self.workspace,
            state_dir=self.state,
            overrides=overrides | settings,
            background=False,
        )

    def say(self, name: str, *texts: str, day: str = "2026-02-24") -> Path:
        file = self.transcripts / name
        with file.open("a", encoding="utf-8") as stream:
            for number, text in enumerate(texts):
                role = "assistant" if number % 2 else "user"
                message = {"role": role, "content": [{"type": "text", "text": text}]}
                time_of = f"{day}T10:{number % 60:02}:00.000Z"
                record = {"type": "message", "timestamp": time_of, "message": message}
                stream.write(json.dumps(record) + "\n")
        return file

    def exported(self, memory: Memory) -> list[Path]:
        return sorted((self.state / "qmd" / memory.places.agent_id / "sessions").glob("*.md"))


def ask(memory: Memory, session_key: str) -> dict[str, Any]:
    """Call the search tool of a session."""
    return memory.tools(session_key)[0].call({"query": "heron"})


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_a_hit_in_a_transcript_is_cited_by_the_lines_of_the_transcript(place: Place) -> None:
    (place.transcripts / "a.jsonl").write_text('{"type":"session","id":"a"}\n', encoding="utf-8")
    texts = [f"small talk {number}" for number in range(20)]
    texts[12] = "The ferry\nleaves at noon from the east pier."
    place.say("a.jsonl", *texts)
    with place.open() as memory:
        (hit,) = memory.search("when does the ferry leave?").hits
        assert (hit.path, hit.source, hit.date) == ("sessions/a.jsonl", "sessions", "2026-02-24")
        assert hit.start_line <= 14 <= hit.end_line
        cited = memory.read("sessions/a.jsonl", start=14, lines=1)
        assert "leaves at noon" in cited.text and "leaves at noon" in hit.snippet
        assert memory.search("ferry", source="memory").hits == ()
        assert len(memory.search("ferry", since="2026-02-24", source="sessions").hits) == 1
        assert memory.search("ferry", since="2026-02-25").hits == ()


def test_a_transcript_that_grows_is_exported_again(place: Place) -> None:
    place.say("a.jsonl", "hello")
    with place.open() as memory:
        assert memory.search("ferry").hits == ()
        place.say("a.jsonl", "The ferry leaves at noon.")
        assert [hit.start_line for hit in memory.search("ferry").hits] == [1]
        assert [hit.end_line for hit in memory.search("ferry").hits] == [2]


def test_secrets_are_masked_in_the_export_and_in_qmds_index(place: Place) -> None:
    place.say("a.jsonl", f"The ferry key is {SECRET}, keep it.")
    with place.open() as memory:
        (hit,) = memory.search("ferry").hits
        assert SECRET not in hit.snippet and "ferry key" in hit.snippet
        folder = place.state / "qmd"
        files = [file for file in folder.rglob("*") if file.is_file()]
        assert files and not any(SECRET.encode() in file.read_bytes() for file in files)
        assert not any(file.stat().st_mode & 0o077 for file in files)


def test_deleted_and_old_transcripts_leave_the_export_and_other_files_stay(place: Place) -> None:
    old = place.say("old.jsonl", "The old ferry.")
    month = time.time() - 40 * 86_400
    place.say("new.jsonl", "The new ferry.")
    gone = place.say("gone.jsonl", "The lost ferry.")
    with place.open() as memory:
        assert len(memory.search("ferry").hits) == 3
        foreign = place.exported(memory)[0].parent / "mine.md"
        foreign.write_text("The ferry of another program.\n", encoding="utf-8")
        gone.unlink()
        assert {hit.path for hit in memory.search("ferry").hits} == {
            "sessions/new.jsonl",
            "sessions/old.jsonl",
        }
        assert [file.name for file in place.exported(memory)] == [
            "mine.md",
            "new.jsonl.md",
            "old.jsonl.md",
        ]
    os.utime(old, (month, month))
    indexer_clock = time.time_ns() + 35 * 86_400 * 10**9
    with place.open(sessions_retentionDays=30) as memory:
        indexer = memory._backend.primary.indexer  # type: ignore[attr-defined]
        indexer._now_ns = lambda: indexer_clock  # the change time of a file cannot be set
        assert memory.search("ferry").hits == ()
        assert [file.name for file in place.exported(memory)] == ["mine.md"]


def test_the_folder_of_the_export_can_be_chosen(place: Place, tmp_path: Path) -> None:
    place.say("a.jsonl", "The ferry leaves.")
    with place.open(sessions_exportDir=str(tmp_path / "export")) as memory:
        assert len(memory.search("ferry").hits) == 1
    assert [file.name for file in (tmp_path / "export").iterdir()] == ["a.jsonl.md"]


def test_a_session_outside_of_the_scope_gets_an_empty_answer_with_the_reason(place: Place) -> None:
    room = "agent:main:discord:channel:9"
    scope = {"default": "deny", "rules": [{"action": "allow", "match": {"channel": "slack"}}]}
    with place.open(scope=scope) as memory:
        allowed = ask(memory, "agent:main:slack:direct:1")
        assert len(allowed["results"]) == 1
        denied = ask(memory, "agent:main:telegram:direct:1")
        assert denied["results"] == [] and denied["nothing"]["code"] == "not-allowed"
        assert "memory.qmd.scope" in denied["nothing"]["message"]
        assert memory.recall("where does the heron nest?", "agent:main:telegram:direct:1") == ""
        # Rooms also need `memory.sharedSessions`, as with every backend.
        assert ask(memory, room)["unavailable"] is True


def test_the_scope_holds_while_the_builtin_backend_answers(place: Place) -> None:
    with place.open(command="no-such-qmd", scope={"default": "deny"}) as memory:
        assert memory.search("heron").hits
        denied = ask(memory, "agent:main:main")
        assert denied["results"] == [] and denied["nothing"]["code"] == "not-allowed"


def test_a_message_recalls_what_qmd_finds(place: Place) -> None:
    with place.open() as memory:
        block = memory.recall("where does the heron nest?", "agent:main:main")
        assert "The heron nests." in block


def test_transcripts_are_exported_only_if_that_is_enabled(place: Place) -> None:
    place.say("a.jsonl", "The ferry leaves.")
    for enabled in (False, True):
        with place.open(sessions_enabled=enabled) as memory:
            assert len(memory.search("ferry").hits) == enabled
            assert len(place.exported(memory)) == enabled
