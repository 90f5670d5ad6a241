"""Real releases of OpenClaw, installed from npm, with Clawmark in their memory slot.

An agent turn runs in OpenClaw itself; the model is a scripted one on loopback, which calls
`memory_search` once. Private text must reach it in the main session and nowhere else.

Takes minutes and the network, so it runs only when asked for: `CLAWMARK_INTEROP=<folder for the
installations>`."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from chat import ChatServer, Seen, Turn, call, say

ROOT = Path(__file__).parents[2]
PLUGIN = ROOT / "integrations" / "openclaw"
WORK = os.environ.get("CLAWMARK_INTEROP", "")
HANG_SECONDS = 600
CANARIES = {
    "memory/2026-02-03.md": "heron-4711",
    "MEMORY.md": "osprey-4712",
    "USER.md": "bittern-4713",
}
"""A word that stands in one private file each."""
GROUP = "agent:main:telegram:group:-100200300"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not WORK, reason="CLAWMARK_INTEROP does not name a folder for the installations"
    ),
]


class OpenClaw(NamedTuple):
    """An installed release with a state folder of its own."""

    release: str
    node: str
    program: Path
    state: Path

    @property
    def is_older(self) -> bool:
        return self.release.startswith("2026.3")

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run one command; Clawmark is on the PATH."""
        folders = (os.path.dirname(self.node), os.path.dirname(sys.executable))
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("CLAWMARK_", "OPENCLAW_"))
        }
        env = {
            **kept,
            "HOME": str(self.state / "home"),
            "OPENCLAW_STATE_DIR": str(self.state),
            "OPENCLAW_CONFIG_PATH": str(self.config_path),
            "PATH": os.pathsep.join((*folders, os.environ["PATH"])),
            "NO_COLOR": "1",
        }
        return subprocess.run(
            [self.node, str(self.program), *words],
            capture_output=True,
            text=True,
            timeout=HANG_SECONDS,
            env=env,
            cwd=self.state,
            check=False,
        )

    @property
    def config_path(self) -> Path:
        return self.state / "openclaw.json"

    def config(self) -> dict[str, Any]:
        return dict(json.loads(self.config_path.read_text()))

    def turn(self, session_key: str, url: str, plugin: dict[str, Any]) -> str:
        """Run one agent turn with the model at `url`; what OpenClaw printed."""
        config = self.config()
        config["models"] = {"mode": "merge", "providers": {"loopback": _provider(url)}}
        config["agents"]["defaults"]["model"] = {"primary": "loopback/scripted"}
        config["hooks"] = {"internal": {"enabled": True}}
        config["plugins"]["entries"]["clawmark"]["config"] = plugin
        if not self.is_older:
            config["tools"] = {"toolSearch": False}  # the model sees the tools by their names
        self.config_path.write_text(json.dumps(config))
        if self.is_older:  # it has no flag for a session key, but finds a session by its id
            store = self.state / "agents" / "main" / "sessions" / "sessions.json"
            store.parent.mkdir(parents=True, exist_ok=True)
            session_id = uuid.uuid4().hex  # a new one has no history
            store.write_text(json.dumps({session_key: {"sessionId": session_id, "updatedAt": 1}}))
            session = ["--session-id", session_id]
        else:
            session = ["--session-key", session_key]
        asked = ["--message", "Where does the heron nest?"]
        ran = self.run("agent", "--local", "--json", *asked, *session)
        assert ran.returncode == 0, ran.stdout[-2000:] + ran.stderr[-2000:]
        return ran.stdout + ran.stderr


def _provider(url: str) -> dict[str, Any]:
    free = {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0}
    model = {
        "id": "scripted",
        "name": "scripted",
        "reasoning": False,
        "input": ["text"],
        "cost": free,
        "contextWindow": 128_000,
        "maxTokens": 4096,
    }
    return {"baseUrl": url, "apiKey": "not-a-key", "api": "openai-completions", "models": [model]}


def search_once() -> Callable[[Seen], Turn]:
    """Return the script of the model: one search, then an answer."""
    searches: list[Seen] = []

    def answer(seen: Seen) -> Turn:
        if searches or "memory_search" not in seen.tools:
            return say("That is all I know.")
        searches.append(seen)
        return call("memory_search", query="where does the heron nest", minScore=0)

    return answer


def search_result(server: ChatServer) -> dict[str, Any]:
    """What the model was answered to its search."""
    messages = [message for message in server.seen[-1].messages if message.role == "tool"]
    return dict(json.loads(messages[-1].text))


@pytest.fixture(scope="module", params=["2026.3.24", "2026.9.6"])
def openclaw(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[OpenClaw]:
    """A release with the plugin installed by its own command."""
    sys.path.insert(0, str(ROOT / "bench"))
    try:
        interop = import_module("interop_openclaw")
    finally:
        sys.path.remove(str(ROOT / "bench"))
    if reason := interop.why_not():
        pytest.skip(reason)
    installed = interop.install(Path(WORK))
    state = tmp_path_factory.mktemp("openclaw")
    one = OpenClaw(
        release=request.param,
        node=installed.node,
        program=installed.packages[request.param] / "openclaw.mjs",
        state=state,
    )
    workspace = state / "workspace"
    for name, word in CANARIES.items():
        file = workspace / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"# Notes\n\n- The heron nests at {word}.\n")
    (state / "home").mkdir()
    one.config_path.write_text(json.dumps({"agents": {"defaults": {"workspace": str(workspace)}}}))
    consent = [] if one.is_older else ["--force", "--accept-capabilities"]
    ran = one.run("plugins", "install", str(PLUGIN), *consent)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    yield one
    shutil.rmtree(state, ignore_errors=True)


def test_plugin_is_loaded_and_owns_the_memory_slot(openclaw: OpenClaw) -> None:
    assert openclaw.config()["plugins"]["slots"]["memory"] == "clawmark"
    runtime = [] if openclaw.is_older else ["--runtime"]
    ran = openclaw.run("plugins", "inspect", "clawmark", "--json", *runtime)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    said = ran.stdout or ran.stderr
    report = json.loads(said[said.index("{") :])
    assert report["plugin"]["status"] == "loaded"
    assert report["plugin"]["kind"] == "memory"
    tools = {name for tool in report["tools"] for name in tool["names"]}
    assert tools == {"memory_search", "memory_get"}
    assert [one for one in report["diagnostics"] if one["level"] == "error"] == []


def test_main_session_gets_private_hits(openclaw: OpenClaw) -> None:
    with ChatServer(search_once()) as server:
        said = openclaw.turn("agent:main:main", server.openai_url, {})
        assert "tool name conflict" not in said
        answer = search_result(server)
        found = json.dumps(answer["results"])
        assert CANARIES["memory/2026-02-03.md"] in found and CANARIES["MEMORY.md"] in found
        assert answer["mode"] == "hybrid"
        assert "## Memory Recall" in server.seen[0].system
        assert CANARIES["MEMORY.md"] in server.seen[0].system


def test_group_session_gets_nothing_private(openclaw: OpenClaw) -> None:
    with ChatServer(search_once()) as server:
        openclaw.turn(GROUP, server.openai_url, {})
        answer = search_result(server)
        assert answer["error"] == "Memory is unavailable in shared sessions."
        for request in server.requests:
            for word in CANARIES.values():
                assert word.encode() not in request.body


def test_turn_goes_on_without_clawmark(openclaw: OpenClaw) -> None:
    with ChatServer(search_once()) as server:
        missing = {"command": str(openclaw.state / "no-such-clawmark")}
        said = openclaw.turn("agent:main:main", server.openai_url, missing)
        answer = search_result(server)
        assert answer["disabled"] is True and answer["results"] == []
        assert answer["error"].startswith("Clawmark is not installed")
        assert "pip install" in answer["action"]
        assert "That is all I know." in said
