"""Search, remember, watch and MCP work without the calls that macOS or Windows lacks.

The commands run in real processes from which those calls have been removed."""

from __future__ import annotations

import json
import select
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from commands import HANG_SECONDS, Place, new_place

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="hides calls that Linux has")

HIDDEN = str(Path(__file__).with_name("other_platform.py"))
LONG = 60.0
"""A test that has to wait this long has failed."""


@pytest.fixture(params=["darwin", "win32"])
def platform(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    made = new_place(tmp_path)
    made.state.mkdir(exist_ok=True)
    config = '{ memorySearch: { provider: "none", sync: { watchDebounceMs: 20 } } }'
    (made.state / "clawmark.json").write_text(config)
    return made


@contextmanager
def started(place: Place, platform: str, *words: str) -> Iterator[subprocess.Popen[bytes]]:
    """A command in a process without the calls that the platform lacks."""
    with subprocess.Popen(
        [sys.executable, HIDDEN, platform, *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=place.environment(),
        cwd=place.folder,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def output_of(place: Place, platform: str, *words: str) -> str:
    with started(place, platform, *words) as process:
        out, err = process.communicate(timeout=HANG_SECONDS)
        assert process.returncode == 0, err.decode()
        return out.decode()


def next_line(process: subprocess.Popen[bytes]) -> Any:
    assert process.stdout is not None
    ready, _, _ = select.select([process.stdout], [], [], LONG)
    assert ready, "no output"
    line = process.stdout.readline()
    assert line, process.stderr.read().decode() if process.stderr else ""
    return json.loads(line)


def test_what_is_remembered_is_found(place: Place, platform: str) -> None:
    output_of(place, platform, "remember", "The osprey fishes at noon.")
    found = json.loads(output_of(place, platform, "search", "osprey", "--json"))
    assert [hit["path"].startswith("memory/") for hit in found["results"]] == [True]
    assert "osprey" in found["results"][0]["snippet"]
    assert json.loads(output_of(place, platform, "status", "--json"))["files"] == 3


def test_processes_that_remember_at_once_lose_nothing(place: Place, platform: str) -> None:
    words = [f"wren{number}" for number in range(4)]
    with ExitStack() as stack:
        for process in [
            stack.enter_context(started(place, platform, "remember", f"The {word} sings."))
            for word in words
        ]:
            _, err = process.communicate(timeout=HANG_SECONDS)
            assert process.returncode == 0, err.decode()
    logs = "".join(file.read_text() for file in (place.workspace / "memory").glob("*.md"))
    assert [logs.count(word) for word in words] == [1] * 4


def test_a_link_out_of_the_workspace_is_not_read(place: Place, platform: str) -> None:
    outside = place.folder / "outside"
    outside.mkdir()
    (outside / "secret.md").write_text("The bittern is hidden.")
    (place.workspace / "memory" / "link").symlink_to(outside)
    (place.workspace / "memory" / "link.md").symlink_to(outside / "secret.md")
    found = json.loads(output_of(place, platform, "search", "bittern", "--json"))
    assert found["results"] == []
    with started(place, platform, "get", "memory/link/secret.md") as process:
        out, err = process.communicate(timeout=HANG_SECONDS)
    assert process.returncode == 4 and out == b"" and b"link" in err


def test_watch_indexes_what_changes(place: Place, platform: str) -> None:
    with started(place, platform, "watch", "--json") as process:
        first = next_line(process)
        assert (first["event"], first["pollsBecause"]) == ("started", "")
        while next_line(process)["event"] != "done":
            pass
        place.write("memory/birds/new.md", "The osprey is new.")
        while (event := next_line(process))["event"] != "done" or not event["report"]["added"]:
            pass


def test_an_mcp_host_searches_and_appends(place: Place, platform: str) -> None:
    with started(place, platform, "mcp") as process:

        def send(message: dict[str, Any]) -> None:
            assert process.stdin is not None
            process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
            process.stdin.flush()

        def call(number: int, name: str, **arguments: object) -> str:
            params = {"name": name, "arguments": arguments}
            send({"id": number, "method": "tools/call", "params": params})
            while (answer := next_line(process)).get("id") != number:
                pass
            return json.dumps(answer["result"])

        hello = {"name": "host", "version": "1"}
        params = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": hello}
        send({"id": 0, "method": "initialize", "params": params})
        assert next_line(process)["result"]["serverInfo"]["name"] == "clawmark"
        send({"method": "notifications/initialized"})
        assert 'isError": true' not in call(1, "memory_append", text="The dipper dives.")
        assert "dipper" in call(2, "memory_search", query="dipper")
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(LONG) == 0
