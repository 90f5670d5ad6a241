"""How an MCP server begins, what a cancelled call does, and when the server ends."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("mcp")

from commands import CLAWMARK, Place, new_place
from mcp_servers import HANG_SECONDS, call, http_server, stdio_server

PARENT = """\
import os, subprocess, sys
server = subprocess.Popen(sys.argv[1:], stdin=0, stdout=1)
os.write(2, f"pid {server.pid}\\n".encode())
server.wait()
"""


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return new_place(tmp_path)


def has_ended(pid: int) -> bool:
    """Wait until a process that is not our child ends."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    with os.fdopen(descriptor, "rb", closefd=True) as handle:
        return bool(select.select([handle], [], [], HANG_SECONDS)[0])


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="needs Linux")
def test_the_server_ends_with_its_parent_while_its_input_stays_open(place: Place) -> None:
    read, write = os.pipe()
    words = [sys.executable, "-c", PARENT, *CLAWMARK, "mcp"]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        words, stdin=read, stdout=pipe, stderr=pipe, env=place.environment()
    ) as parent:
        os.close(read)
        assert parent.stderr is not None
        assert parent.stdout is not None
        pid = int(parent.stderr.readline().split()[1])
        os.write(write, b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n')
        assert b'"id":1' in parent.stdout.readline()
        parent.kill()
        assert has_ended(pid)
        os.close(write)


@pytest.mark.skipif(sys.platform != "linux", reason="needs Linux")
def test_the_server_survives_the_end_of_the_thread_that_started_it(place: Place) -> None:
    """Hosts start servers from worker threads that end; the system then says that the parent is
    gone, and it is not.
    """
    import threading

    begun = list[subprocess.Popen[bytes]]()
    pipe = subprocess.PIPE
    words = [*CLAWMARK, "mcp"]

    def start() -> None:
        server = subprocess.Popen(words, stdin=pipe, stdout=pipe, env=place.environment())
        begun.append(server)
        ping(server, 1)  # it has asked to be told by now

    thread = threading.Thread(target=start)
    thread.start()
    thread.join(HANG_SECONDS)
    with begun[0] as server:
        ping(server, 2)
        assert server.stdin is not None
        server.stdin.close()
        assert server.wait(HANG_SECONDS) == 0


def ping(server: subprocess.Popen[bytes], number: int) -> None:
    assert server.stdin is not None
    assert server.stdout is not None
    server.stdin.write(b'{"jsonrpc":"2.0","id":%d,"method":"ping"}\n' % number)
    server.stdin.flush()
    assert b'"id":%d' % number in server.stdout.readline()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_the_server_cleanly(place: Place, number: signal.Signals) -> None:
    with stdio_server([], place.environment()) as server:
        server.initialize()
        server.process.send_signal(number)
        assert server.process.wait(HANG_SECONDS) == 128 + number
        assert server.errors() == ""


def test_a_signal_ends_the_http_server_with_clients_connected(place: Place) -> None:
    with http_server([], place.environment()) as server, server.connect(), server.connect():
        server.process.terminate()
        assert server.process.wait(HANG_SECONDS) == 128 + signal.SIGTERM


def write_many(place: Place) -> None:
    """More than is indexed within the time a search has."""
    line = "- " + " ".join(f"word{number}" for number in range(200)) + "\n"
    for number in range(3000):
        place.write(f"memory/n{number:04}.md", f"# Note {number}\n\n" + line * 12)


def test_the_first_answer_does_not_wait_for_the_first_index(place: Place) -> None:
    write_many(place)
    with stdio_server([], place.environment()) as server:
        server.initialize()
        first = server.ask(call("memory_search", {"query": "word7"}, 1))["result"][
            "structuredContent"
        ]
        assert first["dueFiles"] > 0
        status = server.ask(call("memory_status", {}, 2))["result"]["structuredContent"]
        assert status["dueFiles"] > 0
        assert server.close() == 0  # nor does the end
        assert server.errors() == ""


def test_a_cancelled_call_is_not_answered_and_the_next_one_is(place: Place) -> None:
    write_many(place)
    with stdio_server([], place.environment()) as server:
        server.initialize()
        server.send(call("memory_search", {"query": "first"}, "cancelled"))
        server.send(
            {
                "jsonrpc": "2.0",
                "method": "notifications/cancelled",
                "params": {"requestId": "cancelled"},
            }
        )
        for number in range(6):  # more than there are workers, so that the first would long be done
            server.send(call("memory_search", {"query": "second"}, number))
        answers = server.until_quiet(6)
        assert sorted(answer["id"] for answer in answers) == list(range(6))


def test_without_the_extra_the_error_says_what_to_install(place: Place) -> None:
    hide = (
        "import sys; sys.modules['mcp'] = None; from "
        "clawmark.cli import main; sys.exit(main(['mcp']))"
    )
    ran = subprocess.run(
        [sys.executable, "-c", hide], env=place.environment(), capture_output=True, check=False
    )
    assert ran.returncode == 3
    assert ran.stdout == b""
    said = ran.stderr.decode().splitlines()
    assert len(said) == 2
    assert "pip install 'clawmark[mcp]'" in said[1]


@pytest.mark.parametrize(
    "words",
    [
        ["--port", "1"],
        ["--host", "127.0.0.1"],
        ["--allow-remote"],
        ["--http", "--port", "65536"],
        ["--http", "--host", "0.0.0.0"],
        ["--http", "--host", "example.org"],
    ],
)
def test_invalid_options_are_refused(place: Place, words: list[str]) -> None:
    ran = place.run("mcp", *words)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("clawmark: ")


def test_a_server_does_not_start_with_a_token_that_others_can_read(place: Place) -> None:
    place.state.mkdir(mode=0o700)
    token = place.state / "mcp-token"
    token.write_text("x" * 43 + "\n", encoding="ascii")
    token.chmod(0o644)
    ran = place.run("mcp", "--http", "--port", "0")
    assert ran.code == 2
    assert "other users may have read it" in ran.err
    assert "x" * 43 not in ran.err
