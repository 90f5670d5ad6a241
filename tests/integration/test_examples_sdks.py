"""The examples for agent SDKs run as they are, with the real packages, against a scripted model."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from chat import ChatServer, Turn, call, say
from commands import HANG_SECONDS, Place, new_place

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """A place whose memory embeds by itself: the model's key is in the environment, and `auto`
    would take it too.
    """
    made = new_place(tmp_path)
    made.state.mkdir()
    (made.state / "clawmark.json").write_text(
        '{"memorySearch": {"provider": "static"}}', encoding="utf-8"
    )
    return made


def run(place: Place, example: str, script: list[Turn], *words: str) -> tuple[str, ChatServer]:
    """Run an example to its end; what it printed, and the server with what it saw."""
    with ChatServer(script) as server:
        more = {
            "ANTHROPIC_API_KEY": "key",
            "ANTHROPIC_BASE_URL": server.anthropic_url,
            "OPENAI_API_KEY": "key",
            "OPENAI_BASE_URL": server.openai_url,
            # The packages warn about themselves; what we do wrong is seen in our own tests.
            "PYTHONWARNINGS": "default",
        }
        ran = subprocess.run(
            [sys.executable, str(EXAMPLES / example), str(place.workspace), *words],
            capture_output=True,
            encoding="utf-8",
            timeout=HANG_SECONDS,
            env=place.environment(more),
            check=False,
        )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout, server


def kept(place: Place) -> str:
    return "".join(
        file.read_text(encoding="utf-8") for file in (place.workspace / "memory").rglob("*.md")
    )


def test_claude_looks_at_its_memories_and_adds_one(place: Place) -> None:
    pytest.importorskip("anthropic")
    script = [
        call("memory", command="view", path="/memories"),
        call(
            "memory",
            command="create",
            path="/memories/people/carla.txt",
            file_text="Carla is the dentist.\n",
        ),
        call("memory", command="view", path="/memories/../MEMORY.md"),
        say("Noted."),
    ]
    printed, server = run(place, "anthropic_memory.py", script, "Carla is my dentist.")
    assert printed == "Noted.\n"
    looked, made, refused = server.seen[-1].results
    assert looked.startswith("Here're the files and directories") and "\t/memories" in looked
    assert made == "File created successfully at: /memories/people/carla.txt"
    assert refused == "Path /memories/../MEMORY.md would escape /memories directory"
    assert (place.workspace / "memory/people/carla.txt.md").read_text(
        encoding="utf-8"
    ) == "Carla is the dentist.\n"
    assert "memory/people/carla.txt.md" in place.run("search", "dentist").out


def test_an_openai_agent_searches_notes_and_goes_on_where_it_was(place: Place) -> None:
    pytest.importorskip("agents")
    script = [
        call("memory_search", query="which database for billing"),
        call("memory_append", text="The user asked about the billing database again."),
        say("PostgreSQL."),
    ]
    printed, server = run(place, "openai_agents_memory.py", script, "Which database did we pick?")
    assert printed == "PostgreSQL.\n"
    assert server.seen[0].tools == ("memory_search", "memory_get", "memory_append", "memory_forget")
    found, noted = server.seen[-1].results
    assert "We chose PostgreSQL" in found and '"written": true' in noted
    assert "asked about the billing database again" in kept(place)

    printed, server = run(
        place, "openai_agents_memory.py", [say("Because MySQL was slow.")], "Why?"
    )
    assert [one.text for one in server.seen[0].messages if one.role == "user"] == [
        "Which database did we pick?",
        "Why?",
    ]
    assert "example.jsonl" in place.run("sessions").out


def test_a_pydantic_agent_searches_and_notes(place: Place) -> None:
    pytest.importorskip("pydantic_ai")
    script = [
        call("memory_search", query="which database for billing"),
        call("memory_append", text="The user asked about the billing database again."),
        say("PostgreSQL."),
    ]
    printed, server = run(place, "pydantic_ai_memory.py", script, "Which database did we pick?")
    assert printed == "PostgreSQL.\n"
    assert server.seen[0].tools == ("memory_search", "memory_get", "memory_append", "memory_forget")
    assert "memory_search" in server.seen[0].system, "the recall policy is among the instructions"
    found, noted = server.seen[-1].results
    assert "We chose PostgreSQL" in found and '"written":true' in noted.replace(" ", "")
    assert "asked about the billing database again" in kept(place)


@pytest.mark.parametrize("api", ["openai", "anthropic"])
def test_a_plain_program_sends_the_schemas_and_answers_the_calls(place: Place, api: str) -> None:
    pytest.importorskip(api)
    script = [
        call("memory_search", query="which database for billing"),
        call("memory_append", text="The user asked about the billing database again."),
        call("memory_erase", path="MEMORY.md"),
        say("PostgreSQL."),
    ]
    printed, server = run(place, "plain_tools.py", script, api, "Which database did we pick?")
    assert printed == "PostgreSQL.\n"
    assert server.seen[0].api == api
    assert server.seen[0].tools == ("memory_search", "memory_get", "memory_append", "memory_forget")
    found, noted, unknown = server.seen[-1].results
    assert "We chose PostgreSQL" in found and '"written": true' in noted
    assert "There is no tool 'memory_erase'." in unknown
    assert "asked about the billing database again" in kept(place)


def test_a_langgraph_graph_keeps_and_finds_what_the_user_said(place: Place) -> None:
    pytest.importorskip("langgraph")
    pytest.importorskip("openai")
    printed, _ = run(
        place, "langgraph_memory.py", [say("Noted.")], "I take jasmine tea, never coffee."
    )
    assert printed == "Noted.\n"
    assert "I take jasmine tea" in kept(place)
    printed, server = run(
        place, "langgraph_memory.py", [say("Jasmine tea.")], "What tea do I like?"
    )
    assert printed == "Jasmine tea.\n"
    assert "- I take jasmine tea, never coffee." in server.seen[0].system
    assert "memory/langgraph/users/example/" in place.run("search", "jasmine tea").out


def test_a_llama_index_memory_recalls_and_leaves_a_transcript(place: Place) -> None:
    pytest.importorskip("llama_index.core")
    pytest.importorskip("openai")
    script = [say("PostgreSQL. " * 20), say("Because MySQL was slow. " * 20), say("Yes.")]
    questions = ("Which database did we pick for billing?", "Why?", "Are you sure?")
    printed, server = run(place, "llama_index_memory.py", script, *questions)
    assert printed.splitlines()[-1] == "Yes."
    asked = server.seen[0]
    assert "We chose PostgreSQL for billing" in asked.system + "".join(
        one.text for one in asked.messages
    )
    assert (
        "Which database did we pick for billing?"
        in place.run("sessions", "show", "example.jsonl").out
    )
