"""I-18 for the MCP servers: one that nobody asks anything does nothing, also with a client that
listens for changes.

Three servers: over stdio with a client that has introduced itself, over HTTP without a client, over
HTTP with an open stream of the older protocol (whose pings, one in 15 seconds, are the SDK's).
Counted are the times a thread of theirs was given the processor, and the bytes they wrote."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from frame import Outcome

MOST_A_SECOND = 0.5
"""Turns of the processor; a poll ten times a second would be ten."""
SHORT_LOOKS = 4
"""A busy machine can delay the end of the first index into a short look: then look again."""
QUIET_WITHIN_SECONDS = 30.0
HELLO = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "idle", "version": "1"},
}
INITIALIZE = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": HELLO}


class Used(NamedTuple):
    """What a process has used so far."""

    turns: int
    written: int


def used_by(pid: int) -> Used:
    turns = 0
    for task in Path(f"/proc/{pid}/task").iterdir():
        turns += sum(map(int, re.findall(r"ctxt_switches:\s+(\d+)", (task / "status").read_text())))
    (written,) = re.findall(
        r"^write_bytes: (\d+)", Path(f"/proc/{pid}/io").read_text(), re.MULTILINE
    )
    return Used(turns, int(written))


def run(work: Path, full: bool, seed: int) -> Outcome:
    try:
        import mcp  # noqa: F401
    except ImportError:
        return Outcome(0, 0, {}, skipped="the extra mcp is not installed")
    if not sys.platform.startswith("linux"):
        return Outcome(0, 0, {}, skipped="needs /proc")
    seconds = 600.0 if full else 3.0
    passed, complaints, facts = 0, list[str](), {"seconds": seconds}
    with (
        stdio_server(work / "stdio") as first,
        http_server(work / "http") as second,
        http_server(work / "stream") as third,
        listening(third),
    ):
        pids = {"stdio": first, "http": second.pid, "http with a stream": third.pid}
        for pid in pids.values():
            wait_until_quiet(pid)
        for _ in range(1 if full else SHORT_LOOKS):
            used = used_within(seconds, pids)
            if not any(is_busy(use, seconds) for use in used.values()):
                break
    for name, use in used.items():
        facts[f"{name}: turns"], facts[f"{name}: bytes written"] = use
        if is_busy(use, seconds):
            complaints.append(
                f"{name}: {use.turns} turns and {use.written} bytes written in {seconds:.0f} s"
            )
        else:
            passed += 1
    return Outcome(passed, len(complaints), dict(facts), tuple(complaints))


def used_within(seconds: float, pids: dict[str, int]) -> dict[str, Used]:
    before = {name: used_by(pid) for name, pid in pids.items()}
    time.sleep(seconds)
    after = {name: used_by(pid) for name, pid in pids.items()}
    return {
        name: Used(after[name].turns - start.turns, after[name].written - start.written)
        for name, start in before.items()
    }


def is_busy(use: Used, seconds: float) -> bool:
    return use.turns > MOST_A_SECOND * seconds + 1 or use.written > 0


def wait_until_quiet(pid: int) -> None:
    """The first index, and the look after it, are no idleness yet."""
    ends, seen = time.monotonic() + QUIET_WITHIN_SECONDS, used_by(pid)
    while time.monotonic() < ends:
        time.sleep(2.5)
        now = used_by(pid)
        if now.turns - seen.turns <= 1:
            return
        seen = now


def _command(work: Path, *words: str) -> list[str]:
    (work / "workspace").mkdir(parents=True)
    (work / "workspace" / "MEMORY.md").write_text(
        "We chose PostgreSQL for billing.\n", encoding="utf-8"
    )
    (work / "state").mkdir(mode=0o700)
    (work / "state" / "clawmark.json").write_text(
        '{"memorySearch": {"provider": "none"}}', encoding="utf-8"
    )
    places = ["--workspace", str(work / "workspace"), "--state-dir", str(work / "state")]
    return [sys.executable, "-m", "clawmark", *places, "mcp", *words]


@contextmanager
def stdio_server(work: Path) -> Iterator[int]:
    pipe = subprocess.PIPE
    with subprocess.Popen(_command(work), stdin=pipe, stdout=pipe) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(INITIALIZE).encode() + b"\n")
        process.stdin.flush()
        process.stdout.readline()
        yield process.pid


class Http(NamedTuple):
    """A running server and how to reach it."""

    pid: int
    port: int
    token: str

    def connect(self, method: str, *more: str, body: bytes = b"") -> socket.socket:
        lines = (
            f"{method} /mcp HTTP/1.1",
            f"Host: 127.0.0.1:{self.port}",
            f"Authorization: Bearer {self.token}",
            "Accept: application/json, text/event-stream",
            *more,
        )
        connection = socket.create_connection(
            ("127.0.0.1", self.port), timeout=QUIET_WITHIN_SECONDS
        )
        connection.sendall("\r\n".join([*lines, "", ""]).encode() + body)
        return connection


@contextmanager
def http_server(work: Path) -> Iterator[Http]:
    with subprocess.Popen(
        _command(work, "--http", "--port", "0"), stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stderr is not None
            found = re.search(
                r":(\d+)/mcp; the token is in (.+)$", process.stderr.readline().strip()
            )
            assert found, "the server did not start"
            yield Http(
                process.pid, int(found[1]), Path(found[2]).read_text(encoding="ascii").strip()
            )
        finally:
            process.terminate()


@contextmanager
def listening(server: Http) -> Iterator[None]:
    """A session of the older protocol with its stream open."""
    body = json.dumps(INITIALIZE).encode()
    more = ("Content-Type: application/json", f"Content-Length: {len(body)}", "Connection: close")
    with server.connect("POST", *more, body=body) as begun:
        found = re.search(rb"mcp-session-id: (\w+)", begun.recv(65536))
    assert found
    with server.connect("GET", f"Mcp-Session-Id: {found[1].decode()}") as stream:
        assert b"200 OK" in stream.recv(65536)
        yield
