"""memory-lancedb behind `clawmark chat` and MCP, in processes of their own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from chat import ChatServer, call, rules, say
from commands import Place, new_place
from mcp_servers import call as mcp_call
from mcp_servers import stdio_server

pytest.importorskip("lancedb")

KEY = "sk-test-4f9aXb21Qz77Lm03"
STATED = "I prefer dark roast coffee from Ethiopia."


@pytest.fixture
def place(tmp_path: Path) -> Place:
    made = new_place(tmp_path)
    made.state.mkdir()
    entry = {"config": {"autoCapture": True}}
    plugins = {"slots": {"memory": "memory-lancedb"}, "entries": {"memory-lancedb": entry}}
    tree = {"plugins": plugins, "memorySearch": {"provider": "static"}}
    (made.state / "clawmark.json").write_text(json.dumps(tree), encoding="utf-8")
    return made


def captured(place: Place) -> str:
    folder = place.workspace / "memory" / "captured"
    return "".join(file.read_text(encoding="utf-8") for file in sorted(folder.glob("*.md")))


def test_a_chat_captures_a_statement_and_recalls_it_for_the_next_message(place: Place) -> None:
    with ChatServer(key=KEY) as server:
        server.script(
            rules(
                {
                    "remember the pier": [
                        call("memory_store", text="The heron nests by the old pier."),
                        say("Kept."),
                    ]
                },
                [say("Understood.")],
            )
        )
        words = ["chat", "--model", f"scripted@{server.openai_url}"]
        said = f"{STATED}\nWhich coffee do I prefer?\nPlease remember the pier.\n"
        ran = place.run(*words, stdin=said, env={"CLAWMARK_MODEL_API_KEY": KEY})
        (asked,) = [one for one in server.seen if "Which coffee do I prefer?" in one.last_user]
    assert ran.code == 0 and "Traceback" not in ran.err, ran
    assert captured(place).count(STATED) == 1
    assert captured(place).count("The heron nests by the old pier.") == 1
    assert "[recalled memory" in asked.last_user and STATED in asked.last_user
    assert {"memory_recall", "memory_store", "memory_forget"} <= set(asked.tools)
    assert "memory_search" not in asked.tools and "memory_search" not in asked.system


def test_what_is_stored_over_mcp_is_recalled_and_forgotten_there(place: Place) -> None:
    pytest.importorskip("mcp")
    with stdio_server([], place.environment()) as server:
        server.initialize()

        def answer(tool: str, **arguments: object) -> dict[str, object]:
            found = server.ask(mcp_call(tool, arguments))["result"]["structuredContent"]
            assert isinstance(found, dict)
            return found

        stored = answer("memory_store", text=STATED)
        recalled = answer("memory_recall", query="Which coffee?")
        forgotten = answer("memory_forget", memoryId=stored["id"])
        left = answer("memory_recall", query="Which coffee?")
    assert (stored["action"], recalled["count"]) == ("created", 1)
    assert (forgotten["action"], left["count"]) == ("deleted", 0)
    assert STATED not in captured(place)
