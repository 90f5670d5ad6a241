"""I-36: a crowd of hostile clients around the MCP server over HTTP, while a good client goes on
asking.

Idle clients connect and say nothing, slow ones send a byte a second of a body they never finish,
one sends 64 MB without a line end, one asks for much and reads none of it. Whoever is let go comes
back. Every question of the good client, each on a connection of its own, must be answered, within a
second in the whole run, and the server must not grow by 50 MB."""

from __future__ import annotations

import asyncio
import json
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from frame import Outcome

BACK_AFTER_SECONDS = 1.0
PATIENCE_SECONDS = 30.0
MOST_GROWTH = 50 * 2**20
LONG_LINE = 64 * 2**20


class Target(NamedTuple):
    """The server under attack."""

    pid: int
    port: int
    token: str

    def head(self, length: int, *more: str) -> bytes:
        lines = (
            "POST /mcp HTTP/1.1",
            f"Host: 127.0.0.1:{self.port}",
            f"Authorization: Bearer {self.token}",
            "Content-Type: application/json",
            "Accept: application/json, text/event-stream",
            f"Content-Length: {length}",
            *more,
        )
        return "\r\n".join([*lines, "", ""]).encode()

    def resident(self) -> int:
        return int(Path(f"/proc/{self.pid}/statm").read_text().split()[1]) * os.sysconf(
            "SC_PAGE_SIZE"
        )

    def descriptors(self) -> int:
        return len(os.listdir(f"/proc/{self.pid}/fd"))


Attack = Callable[[Target, asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def run(work: Path, full: bool, seed: int) -> Outcome:
    try:
        import mcp  # noqa: F401
    except ImportError:
        return Outcome(0, 0, {}, skipped="the extra mcp is not installed")
    if not sys.platform.startswith("linux"):
        return Outcome(0, 0, {}, skipped="needs /proc")
    idle, slow, seconds = (500, 200, 300.0) if full else (30, 10, 3.0)
    workspace, state = work / "workspace", work / "state"
    workspace.joinpath("memory").mkdir(parents=True)
    (workspace / "MEMORY.md").write_text("We chose PostgreSQL for billing.\n", encoding="utf-8")
    (workspace / "memory" / "long.md").write_text("Much about tea.\n" * 40_000, encoding="utf-8")
    state.mkdir(mode=0o700)
    # The crowd is what is tried here; a model would only take the processor from both.
    (state / "clawmark.json").write_text('{"memorySearch": {"provider": "none"}}', encoding="utf-8")
    clawmark = [
        sys.executable,
        "-m",
        "clawmark",
        "--workspace",
        str(workspace),
        "--state-dir",
        str(state),
    ]
    subprocess.run([*clawmark, "index"], check=True, capture_output=True)
    command = [*clawmark, "mcp", "--http", "--port", "0", "--session", "main"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            found = re.search(
                r":(\d+)/mcp; the token is in (.+)$", process.stderr.readline().strip()
            )
            assert found, "the server did not start"
            target = Target(
                process.pid, int(found[1]), Path(found[2]).read_text(encoding="ascii").strip()
            )
            return besiege(target, idle, slow, seconds, full)
        finally:
            process.terminate()


def besiege(target: Target, idle: int, slow: int, seconds: float, full: bool) -> Outcome:
    """Let the crowd in, ask and ask, and count.

    The crowd has a process of its own: only the server is waited for.
    """
    session = begin(target)
    ask(target, session)  # warm: what is loaded once is no growth
    before, most, crowded = target.resident(), 0, 0
    times, complaints = list[float](), list[str]()
    words = [sys.executable, __file__, str(target.pid), str(target.port), str(idle), str(slow)]
    crowd = subprocess.Popen(words, env={**os.environ, "MCP_TOKEN": target.token})
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        began = time.monotonic()
        try:
            ask(target, session)
        except (OSError, AssertionError) as error:
            complaints.append(
                f"after {began - ends + seconds:.1f} s: {type(error).__name__} {str(error)[:200]}"
            )
        times.append(time.monotonic() - began)
        most, crowded = max(most, target.resident() - before), max(crowded, target.descriptors())
        time.sleep(0.05)
    if crowd.poll() is not None or crowded < slow // 4:
        complaints.append("there was no crowd")
    crowd.kill()
    crowd.wait()
    late = [spent for spent in times if spent > 1.0]
    if full and late:
        complaints.append(f"{len(late)} of {len(times)} answers took more than a second")
    if most > MOST_GROWTH:
        complaints.append(f"the server grew by {most / 2**20:.0f} MB")
    facts: dict[str, object] = {
        "idle": idle,
        "slow": slow,
        "seconds": seconds,
        "questions": len(times),
        "slowest_ms": round(1000 * max(times)),
        "p99_ms": round(1000 * sorted(times)[int(0.99 * (len(times) - 1))]),
        "growth_mb": round(most / 2**20, 1),
        "most_descriptors": crowded,
        "load": round(os.getloadavg()[0], 1),
        "nice": os.getpriority(os.PRIO_PROCESS, 0),
    }
    return Outcome(len(times) - len(complaints), len(complaints), facts, tuple(complaints))


# --- the good client ------------------------------------------------------------------------------


def begin(target: Target) -> str:
    hello = {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "good", "version": "1"},
    }
    answer = post(target, {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello})
    found = re.search(rb"mcp-session-id: (\w+)", answer)
    assert found, answer[:300]
    return found[1].decode()


def ask(target: Target, session: str) -> None:
    """A question that must find its answer."""
    params = {"name": "memory_search", "arguments": {"query": "PostgreSQL"}}
    request = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    answer = post(target, request, f"Mcp-Session-Id: {session}")
    assert b"200 OK" in answer, answer[:300]
    assert b"We chose PostgreSQL" in answer, answer[:300]


def post(target: Target, message: object, *more: str) -> bytes:
    body = json.dumps(message).encode()
    with socket.create_connection(
        ("127.0.0.1", target.port), timeout=PATIENCE_SECONDS
    ) as connection:
        connection.sendall(target.head(len(body), "Connection: close", *more) + body)
        with connection.makefile("rb") as answer:
            return answer.read()


# --- the crowd ------------------------------------------------------------------------------------


def run_crowd(target: Target, idle: int, slow: int) -> None:
    """All attackers, until the process is ended."""
    attacks: list[Attack] = [*[say_nothing] * idle, *[trickle] * slow, send_long_line, read_nothing]

    async def attack() -> None:
        await asyncio.gather(*(come_back(target, one) for one in attacks))

    asyncio.run(attack())


async def come_back(target: Target, attack: Attack) -> None:
    """Attack, and again after having been let go."""
    while True:
        with suppress(OSError):
            reader, writer = await asyncio.open_connection("127.0.0.1", target.port)
            try:
                await attack(target, reader, writer)
            finally:
                writer.transport.abort()
        await asyncio.sleep(BACK_AFTER_SECONDS)


async def say_nothing(_: Target, reader: asyncio.StreamReader, __: asyncio.StreamWriter) -> None:
    await reader.read(1)


async def trickle(target: Target, _: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(target.head(1000))
    while not writer.is_closing():
        writer.write(b"{")
        await writer.drain()
        await asyncio.sleep(1.0)


async def send_long_line(_: Target, __: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"GET /")
    for _sent in range(0, LONG_LINE, 2**20):
        writer.write(b"A" * 2**20)
        await writer.drain()


async def read_nothing(
    target: Target, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    session = await asyncio.to_thread(begin, target)
    params = {"uri": "memory://memory/long.md"}
    body = json.dumps(
        {"jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": params}
    ).encode()
    writer.transport.pause_reading()  # type: ignore[attr-defined]
    writer.write((target.head(len(body), f"Mcp-Session-Id: {session}") + body) * 20)
    while not writer.is_closing():
        await asyncio.sleep(BACK_AFTER_SECONDS)


if __name__ == "__main__":
    run_crowd(
        Target(int(sys.argv[1]), int(sys.argv[2]), os.environ["MCP_TOKEN"]),
        int(sys.argv[3]),
        int(sys.argv[4]),
    )
