"""A third-party memory plugin behind the command line, the coding agents' hooks and MCP."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from commands import Place
from distributions import ACME, install
from mcp_servers import call, stdio_server

from clawmark.agent.prompt.recall import parse_block

MAIN = "agent:main:main"


@pytest.fixture
def place(tmp_path: Path) -> Place:
    made = Place(tmp_path)
    made.home.mkdir()
    made.state.mkdir()
    made.write("MEMORY.md", "# Facts\n\nTea is served on this ship at four.\n")
    install(tmp_path / "site", "acme_memory", ACME, acme="acme_memory:make")
    put_slot(made, "acme")
    return made


def put_slot(place: Place, name: str) -> None:
    tree = {"plugins": {"slots": {"memory": name}}}
    (place.state / "clawmark.json").write_text(json.dumps(tree), encoding="utf-8")


def environment(place: Place) -> dict[str, str | None]:
    return {"PYTHONPATH": str(place.folder / "site")}


def hook(place: Place, event: str, **fields: str) -> dict[str, Any]:
    ran = place.run(
        "hook",
        "claude-code",
        event,
        stdin=json.dumps({"session_id": "s1", **fields}),
        env=environment(place),
    )
    assert (ran.code, ran.err) == (0, ""), ran
    answer: dict[str, Any] = ran.json()
    return answer


def calls(place: Place) -> list[list[Any]]:
    text = (place.state / "acme.jsonl").read_text(encoding="utf-8")
    return [one for one in map(json.loads, text.splitlines()) if one != ["close"]]


def line(role: str, text: str, number: int) -> str:
    message = {"role": role, "content": [{"type": "text", "text": text}]}
    time = f"2026-03-04T10:{number:02}:00.000Z"
    record = {"type": role, "timestamp": time, "uuid": f"u{number}", "message": message}
    return json.dumps({**record, "sessionId": "s1"})


def test_the_events_of_a_coding_agent_call_the_hooks_of_the_plugin(place: Place) -> None:
    talk = [
        ("user", "Hello."),
        ("assistant", "Hi."),
        ("user", "Which tea?"),
        ("assistant", "Green."),
    ]
    file = place.folder / "s1.jsonl"
    lines = [line(role, text, number) for number, (role, text) in enumerate(talk)]
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")

    context = hook(place, "SessionStart")["hookSpecificOutput"]["additionalContext"]
    assert "Call acme_recall first." in context and "memory_search" not in context
    recalled = hook(place, "UserPromptSubmit", prompt="Which tea?")["hookSpecificOutput"]
    assert parse_block(recalled["additionalContext"])[0].text == "Acme remembers Which tea?"
    assert hook(place, "Stop", transcript_path=str(file)) == {}
    assert hook(place, "PreCompact", transcript_path=str(file)) == {}
    assert hook(place, "SessionEnd", transcript_path=str(file)) == {}
    assert calls(place) == [
        ["session_start", MAIN],
        ["before_agent_start", MAIN, "Which tea?"],
        ["agent_end", MAIN, True, [["user", "Which tea?"], ["assistant", "Green."]]],
        ["before_compaction", MAIN],
        ["session_end", MAIN],
    ]


def test_what_a_plugin_prints_does_not_reach_the_answer_of_a_hook(place: Place) -> None:
    noise = """
import os
import sys
print("imported")
_make = make
def make(context):
    print("made")
    sys.__stdout__.write("raw")
    os.write(1, b"descriptor")
    os.system("echo process")
    return _make(context)
"""
    install(place.folder / "noisy", "acme_memory", ACME + noise, acme="acme_memory:make")
    given = json.dumps({"session_id": "s1", "prompt": "Which tea?"})
    env = {"PYTHONPATH": str(place.folder / "noisy")}
    ran = place.run("hook", "claude-code", "UserPromptSubmit", stdin=given, env=env)
    assert ran.json()["hookSpecificOutput"]["hookEventName"] == "UserPromptSubmit"
    assert all(word in ran.err for word in ("imported", "made", "raw", "descriptor", "process"))


def test_the_end_of_a_turn_is_registered_only_for_plugins_that_may_need_it(place: Place) -> None:
    env = environment(place)
    assert "hook claude-code Stop" in place.run("install", "claude-code", "--dry-run", env=env).out
    put_slot(place, "memory-core")
    ran = place.run("install", "claude-code", "--dry-run", env=env)
    assert "hook claude-code SessionEnd" in ran.out and " Stop" not in ran.out


def test_mcp_serves_the_tools_of_the_plugin(place: Place) -> None:
    pytest.importorskip("mcp")
    env = place.environment(environment(place))
    with stdio_server([], env) as server:
        instructions = server.initialize()["result"]["instructions"]
        tools = server.ask({"jsonrpc": "2.0", "id": 5, "method": "tools/list"})
        answer = server.ask(call("acme_recall", {}))
    assert "Call acme_recall first." in instructions and "memory_search" not in instructions
    names = [tool["name"] for tool in tools["result"]["tools"]]
    assert names == ["acme_recall", "memory_status"]
    assert answer["result"]["structuredContent"]["answer"] == "acme knows"


def test_plugins_lists_what_is_installed_and_why_not(place: Place) -> None:
    ran = place.run("plugins", "--json", env=environment(place))
    listed = {one["name"]: one for one in ran.json()["plugins"]}
    assert listed["acme"] == {
        "name": "acme",
        "owner": "acme_memory 1.2",
        "state": "active",
        "reason": "",
    }
    assert listed["memory-core"]["reason"] == 'plugins.slots.memory is "acme"'
    table = place.run("plugins", env=environment(place)).out
    assert table.splitlines()[0].split() == ["NAME", "STATE", "PACKAGE", "WHY"]


@pytest.mark.parametrize(
    "words", [["search", "tea"], ["get", "MEMORY.md"], ["plugins"], ["prompt"]]
)
def test_a_missing_plugin_is_reported_once_and_everything_works(
    place: Place, words: list[str]
) -> None:
    put_slot(place, "acmee")
    said = (
        'No installed package offers a memory plugin called "acmee". memory-core is used instead.'
    )
    ran = place.run(*words)
    assert ran.code == 0 and ran.err.count(said) == 1
    ran = place.run(*words, "--json")
    assert ran.code == 0
    assert [said in warning for warning in ran.json()["warnings"]] == [True]


def test_a_missing_plugin_is_in_status_and_doctor(place: Place) -> None:
    put_slot(place, "acmee")
    status, doctor = place.run("status"), place.run("doctor")
    assert status.code == 0 and doctor.code == 1
    for ran in (status, doctor):
        assert '"acmee"' in ran.out and ran.err == ""


COLD = """
import sys
from clawmark.cli import main
code = main(["search", "tea"])
known = [name for name in sys.modules if name.startswith(("clawmark.agent", "importlib.metadata"))]
print(code, known, file=sys.stderr)
"""


def test_a_search_with_the_default_plugin_imports_no_plugin_code(place: Place) -> None:
    tree = {"plugins": {"slots": {"memory": "memory-core"}, "entries": {"telegram": {}}}}
    (place.state / "clawmark.json").write_text(json.dumps(tree), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", COLD],
        env=place.environment(environment(place)),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr.splitlines()[-1] == "0 []"
