"""`initialize` on stdio is answered before the MCP SDK is loaded, and the session is the SDK's from
then on.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("mcp")

from commands import CLAWMARK, Place, new_place
from mcp_servers import INITIALIZE, INITIALIZED, StdioServer, call, stdio_server

HOLD = """\
import json, os, sys
from importlib.abc import MetaPathFinder

class Hold(MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name in ("mcp", "mcp_types") and sys._getframe(2).f_code.co_name != "find_spec":
            with open(os.environ["HOLD_MODULES"], "w") as file:
                json.dump(sorted(sys.modules), file)
            with open(os.environ["HOLD_FIFO"]) as fifo:
                fifo.read()
            sys.meta_path.remove(self)

sys.meta_path.insert(0, Hold())
"""
"""A finder that stops the import of the SDK until the test opens the FIFO, and writes down what was
loaded by then.
"""


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return new_place(tmp_path)


@pytest.fixture
def held(place: Place, tmp_path: Path) -> Iterator[StdioServer]:
    """A server whose import of the SDK waits for `release`."""
    (tmp_path / "held").mkdir()
    (tmp_path / "held" / "sitecustomize.py").write_text(HOLD, encoding="utf-8")
    os.mkfifo(tmp_path / "fifo")
    env = {"PYTHONPATH": str(tmp_path / "held"), "HOLD_FIFO": str(tmp_path / "fifo")}
    with stdio_server(
        [], place.environment({**env, "HOLD_MODULES": str(tmp_path / "modules.json")})
    ) as server:
        yield server


def release(tmp_path: Path) -> list[str]:
    """Let the import go on; the modules that were loaded when it began."""
    with (tmp_path / "fifo").open("w"):
        pass
    return list(json.loads((tmp_path / "modules.json").read_text(encoding="utf-8")))


def test_initialize_is_answered_before_the_sdk_is_imported(
    held: StdioServer, tmp_path: Path
) -> None:
    answer = held.ask(INITIALIZE)
    assert answer["result"]["protocolVersion"] == "2025-06-18"
    modules = release(tmp_path)
    loaded = {name.partition(".")[0] for name in modules}
    assert loaded.isdisjoint(
        {"pydantic", "pydantic_core", "anyio", "starlette", "httpx", "numpy", "jsonschema"}
    )
    assert len(modules) < 420  # with the modules of Python itself
    held.send(INITIALIZED)
    assert "result" in held.ask(call("memory_search", {"query": "PostgreSQL"}))


@pytest.mark.parametrize(
    "words", [[], ["--session", "agent:main:channel:x"]], ids=["main", "shared"]
)
@pytest.mark.parametrize("version", ["2024-11-05", "2025-11-25", "2026-07-28"])
def test_the_early_answer_equals_the_answer_of_the_sdk(
    place: Place, words: list[str], version: str
) -> None:
    asked = {**INITIALIZE, "params": {**INITIALIZE["params"], "protocolVersion": version}}
    with (
        stdio_server(words, place.environment()) as early,
        stdio_server(words, place.environment()) as late,
    ):
        late.ask({"jsonrpc": "2.0", "id": 0, "method": "ping"})  # from here on the SDK answers
        assert early.ask(asked) == late.ask(asked)
        for server in (early, late):
            server.send(INITIALIZED)
        tools = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
        assert early.ask(tools) == late.ask(tools)


def test_messages_sent_right_behind_initialize_are_answered_in_order(place: Place) -> None:
    lines = [INITIALIZE, INITIALIZED, *(call("memory_status", {}, number) for number in range(3))]
    with stdio_server([], place.environment()) as server:
        server.send(
            b"".join(json.dumps(line).encode() + b"\n" for line in lines)
            + b'{"jsonrpc":"2.0","id":3,"me'
        )
        server.send(b'thod":"ping"}\n')
        first, *others = server.until_quiet(5)
        assert first["id"] == INITIALIZE["id"]
        assert sorted(answer["id"] for answer in others) == [0, 1, 2, 3]
        assert all("result" in answer for answer in others)
        assert server.close() == 0, server.errors()


def test_a_reused_request_id_is_answered(place: Place) -> None:
    with stdio_server([], place.environment()) as server:
        server.initialize()
        assert "result" in server.ask({"jsonrpc": "2.0", "id": INITIALIZE["id"], "method": "ping"})
        assert server.until_quiet() == []


@pytest.mark.parametrize("sent", [b"", b"\n", b'{"jsonrpc":"2.0","id":1,"method":"initialize"'])
def test_the_server_ends_when_its_input_ends_before_the_first_message(
    place: Place, sent: bytes
) -> None:
    with stdio_server([], place.environment()) as server:
        server.send(sent)
        assert server.close() == 0, server.errors()
        assert "Traceback" not in server.errors()


@pytest.mark.parametrize(
    "params",
    [
        {"protocolVersion": "2025-06-18", "capabilities": {}},
        {"protocolVersion": 1, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
        {
            "protocolVersion": "2025-06-18",
            "capabilities": {"roots": 1},
            "clientInfo": {"name": "t", "version": "1"},
        },
        {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t"}},
    ],
    ids=["no client", "version is a number", "capability is a number", "client without a version"],
)
def test_an_invalid_initialize_request_is_refused_by_the_sdk(
    place: Place, params: dict[str, object]
) -> None:
    with stdio_server([], place.environment()) as server:
        assert server.ask({**INITIALIZE, "params": params})["error"]["code"] == -32602
        assert "result" in server.initialize()


def test_the_server_ends_when_its_input_cannot_be_read(place: Place) -> None:
    with place.workspace.joinpath("MEMORY.md").open("ab") as write_only:
        ran = subprocess.run(
            [*CLAWMARK, "mcp"],
            stdin=write_only,
            capture_output=True,
            env=place.environment(),
            timeout=60,
            check=False,
        )
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, b"", b"")
