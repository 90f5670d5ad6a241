"""What happened in all processes, and when sessions were flushed, as `status` and `sessions` show
it.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from commands import Place
from embeddings import EmbeddingServer

from clawmark import Memory
from clawmark.agent.flush.flush import Flushed, FlushFailed
from clawmark.agent.models.completer import Completion, ToolCall
from clawmark.model.errors import CompletionError
from clawmark.testing.completers import ScriptedCompleter

KEY = "agent:main:main"


@pytest.fixture
def place(tmp_path: Path) -> Place:
    made = Place(tmp_path)
    made.home.mkdir()
    made.state.mkdir()
    made.write("MEMORY.md", "The heron nests by the long pier.\n")
    return made


def configure(place: Place, tree: object) -> None:
    (place.state / "clawmark.json").write_text(json.dumps(tree), encoding="utf-8")


def events(place: Place) -> dict[str, dict[str, object]]:
    found = place.run("status", "--json").json()["events"]
    assert isinstance(found, dict)
    return found


def test_a_search_that_meets_no_trouble_leaves_no_counts(place: Place) -> None:
    configure(place, {"memorySearch": {"provider": "none"}})
    assert place.run("search", "heron").code == 0
    assert not (place.state / "counts").exists()
    assert events(place) == {}


def test_denied_paths_of_several_processes_are_counted_together(place: Place) -> None:
    configure(place, {"memorySearch": {"provider": "none"}})
    for path in ("../secret.md", "/etc/passwd"):
        assert place.run("get", path).code == 4
    denied = events(place)["denied"]
    assert denied["count"] == 2
    day = datetime.now(UTC).date().isoformat()
    assert str(denied["last"])[:4] == day[:4]
    page = place.run("status").out
    assert f"2 paths (last {str(denied['last'])[:10]} " in page and " UTC) denied" in page


def test_a_damaged_file_loses_counts_and_no_answer(place: Place) -> None:
    configure(place, {"memorySearch": {"provider": "none"}})
    place.run("get", "../secret.md")
    (counts,) = (place.state / "counts").glob("*.json")
    counts.write_bytes(counts.read_bytes()[:-3])
    assert events(place) == {}
    assert place.run("get", "../secret.md").code == 4
    assert events(place)["denied"]["count"] == 1


def test_answers_without_the_provider_are_counted(place: Place) -> None:
    with EmbeddingServer(dims=1536) as server:
        remote = {"baseUrl": server.url, "apiKey": "not-a-real-key"}
        configure(place, {"memorySearch": {"provider": "openai", "remote": remote}})
        assert place.run("index").code == 0
        assert "fallbacks" not in events(place)
        server.spoil(401)
        ran = place.run("search", "where does the heron nest?", "--json")
        assert ran.json()["results"] and ran.json()["degraded"]
    assert events(place)["fallbacks"]["count"] == 1
    assert "1 answer (last " in place.run("status").out


def conversation_with(memory: Memory, completer: ScriptedCompleter) -> object:
    conversation = memory.conversation(KEY, completer=completer, context_window=100_000)
    conversation.start()
    conversation.on_user("We will paint the boat house green in March.")
    return conversation.before_compaction()


def test_the_time_of_a_flush_is_in_sessions_and_status(place: Place) -> None:
    configure(place, {"memorySearch": {"provider": "none", "sources": ["memory", "sessions"]}})
    entry = json.dumps({"text": "The boat house is painted green in March."})
    write = ToolCall("1", "memory_append", entry)
    script = ScriptedCompleter([Completion("", calls=(write,)), Completion("NO_REPLY")])
    with Memory.open(place.workspace, state_dir=place.state, background=False) as memory:
        assert isinstance(conversation_with(memory, script), Flushed)
    with Memory.open(place.workspace, state_dir=place.state, background=False) as memory:
        (session,), status = memory.sessions(), memory.status()
    assert session.flush is not None and session.flush == status.flush
    assert (session.flush.failures, session.flush.next_attempt) == (0, "")
    shown = session.flush.last[:16].replace("T", " ")
    assert shown in place.run("sessions").out.splitlines()[1]
    assert f"{shown} UTC" in place.run("status").out
    body = place.run("sessions", "--json").json()["sessions"][0]
    assert body["flush"]["last"] == session.flush.last


def test_a_failed_flush_says_when_it_is_tried_again(place: Place) -> None:
    configure(place, {"memorySearch": {"provider": "none", "sources": ["memory", "sessions"]}})
    error = CompletionError("The model is away.", provider="x")
    with Memory.open(place.workspace, state_dir=place.state, background=False) as memory:
        outcome = conversation_with(memory, ScriptedCompleter([error]))
        assert isinstance(outcome, FlushFailed)
        status = memory.status()
    assert status.flush is not None and status.flush.failures == 1
    assert status.flush.failed < status.flush.next_attempt
    assert "1 attempt failed since" in place.run("status").out
    assert "1 failure, again after " in place.run("sessions").out
