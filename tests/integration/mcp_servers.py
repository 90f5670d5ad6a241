"""Real MCP servers in processes of their own, spoken to in plain bytes: what a client of the SDK
would never send, too.
"""

from __future__ import annotations

import json
import os
import queue
import re
import socket
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from commands import CLAWMARK

HANG_SECONDS = 60
"""Nothing takes this long; a server that does is hanging."""

INITIALIZE: dict[str, Any] = {
    "jsonrpc": "2.0",
    "id": "init",
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}
INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}


def call(name: str, arguments: Mapping[str, object], number: int | str = 1) -> dict[str, Any]:
    """A request that calls a tool."""
    return {
        "jsonrpc": "2.0",
        "id": number,
        "method": "tools/call",
        "params": {"name": name, "arguments": arguments},
    }


def _request(method: str, params: str, number: str = "1") -> bytes:
    return f'{{"jsonrpc":"2.0","id":{number},"method":{method},"params":{params}}}'.encode()


SURROGATES = {
    "id": _request('"ping"', "{}", '"\\ud800"'),
    "id, low half": _request('"ping"', "{}", '"a\\udfff"'),
    "method": _request('"\\ud800"', "{}"),
    "params key": _request('"ping"', '{"\\ud800":1}'),
    "params value": _request('"tools/list"', '{"cursor":"\\ud800"}'),
    "meta": _request('"tools/list"', '{"_meta":{"progressToken":"\\ud800"}}'),
    "prompt name": _request('"prompts/get"', '{"name":"\\ud800"}'),
    "prompt argument": _request(
        '"prompts/get"', '{"name":"recall","arguments":{"question":"tea \\ud800"}}'
    ),
    "prompt argument name": _request(
        '"prompts/get"', '{"name":"recall","arguments":{"\\udc00":"tea"}}'
    ),
    "tool name": _request('"tools/call"', '{"name":"\\ud800","arguments":{}}'),
    "tool argument name": _request(
        '"tools/call"', '{"name":"memory_search","arguments":{"\\ud800":"tea"}}'
    ),
    "query": _request(
        '"tools/call"', '{"name":"memory_search","arguments":{"query":"tea \\uD83D"}}'
    ),
    "path": _request(
        '"tools/call"', '{"name":"memory_get","arguments":{"path":"memory/\\udcff.md"}}'
    ),
    "note": _request(
        '"tools/call"', '{"name":"memory_append","arguments":{"text":"Half an emoji: \\ud83d."}}'
    ),
    "resource": _request('"resources/read"', '{"uri":"memory://\\ud800"}'),
    "subscription": _request('"resources/subscribe"', '{"uri":"memory://\\ud800"}'),
    "initialize": _request(
        '"initialize"',
        '{"protocolVersion":"\\ud800","capabilities":{"\\udc00":{}},"clientInfo":{"name":"\\ud800","version":"1"}}',
    ),
    "log level": _request('"logging/setLevel"', '{"level":"\\ud800"}'),
    "result": b'{"jsonrpc":"2.0","id":"\\ud800","result":{"\\ud800":"\\udfff"}}',
    "notification": (
        b'{"jsonrpc":"2.0","method":"notifications/\\ud800","params":{"\\ud800":"\\ud800"}}'
    ),
    "cancelled": (
        b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"\\ud800"}}'
    ),
    "key": b'{"jsonrpc":"2.0","id":1,"method":"ping","\\ud800":1}',
    "halves in the wrong order": _request('"\\udc00\\ud800"', "{}"),
    "as bytes": b'{"jsonrpc":"2.0","id":"\xed\xa0\x80","method":"ping"}',
}
"""Messages with half of a surrogate pair somewhere, by where it is."""


class StdioServer:
    """`clawmark mcp` with a thread that reads its output line by line."""

    def __init__(self, words: Sequence[str], env: Mapping[str, str], *, reads: bool = True) -> None:
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(
            [*CLAWMARK, "mcp", *words], stdin=pipe, stdout=pipe, stderr=pipe, env=dict(env)
        )
        self.lines: queue.Queue[bytes | None] = queue.Queue()
        self._errors: list[bytes] = []
        self._count = 0
        self._threads = [threading.Thread(target=self._read_errors, daemon=True)]
        if reads:
            self._threads.append(threading.Thread(target=self._read_lines, daemon=True))
        for thread in self._threads:
            thread.start()

    def send(self, data: bytes | Mapping[str, object]) -> None:
        """One line, or the bytes as they are."""
        assert self.process.stdin is not None
        raw = data if isinstance(data, bytes) else json.dumps(data).encode() + b"\n"
        self.process.stdin.write(raw)
        self.process.stdin.flush()

    def line(self) -> bytes | None:
        """The next line of the output; None at its end."""
        return self.lines.get(timeout=HANG_SECONDS)

    def answer(self) -> dict[str, Any]:
        """The next message, which every line of the output must be."""
        line = self.line()
        assert line is not None, self.errors()
        message = json.loads(line)
        assert message["jsonrpc"] == "2.0"
        return dict(message)

    def ask(self, message: Mapping[str, object]) -> dict[str, Any]:
        """Send a request and wait for its answer; others before it are dropped."""
        self.send(message)
        while (answer := self.answer()).get("id") != message["id"] or "method" in answer:
            continue
        return answer

    def initialize(self) -> dict[str, Any]:
        answer = self.ask(INITIALIZE)
        self.send(INITIALIZED)
        return answer

    def until_quiet(self, wanted: int = 0) -> list[dict[str, Any]]:
        """All answers up to that of a last ping, and at least `wanted` of them."""
        self._count += 1
        mark = f"quiet-{self._count}"
        self.send({"jsonrpc": "2.0", "id": mark, "method": "ping"})
        seen, is_quiet = list[dict[str, Any]](), False
        while not is_quiet or len(seen) < wanted:
            answer = self.answer()
            if answer.get("id") == mark:
                is_quiet = True
            else:
                seen.append(answer)
        return seen

    def close(self) -> int:
        """End the input and wait for the end of the process; its exit code."""
        assert self.process.stdin is not None
        if not self.process.stdin.closed:
            with suppress(BrokenPipeError):
                self.process.stdin.close()
        code = self.process.wait(HANG_SECONDS)
        for thread in self._threads:
            thread.join(HANG_SECONDS)
        for stream in (self.process.stdout, self.process.stderr):
            if stream is not None:
                stream.close()
        return code

    def errors(self) -> str:
        return b"".join(self._errors).decode("utf-8", "replace")

    def memory(self) -> int:
        """Resident bytes now."""
        return resident_bytes(self.process.pid)

    def _read_lines(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.put(line)
        self.lines.put(None)

    def _read_errors(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self._errors.append(line)


@contextmanager
def stdio_server(
    words: Sequence[str], env: Mapping[str, str], *, reads: bool = True
) -> Iterator[StdioServer]:
    """A server that is gone afterwards, whatever happened."""
    server = StdioServer(words, env, reads=reads)
    try:
        yield server
    finally:
        if server.process.poll() is None:
            server.process.kill()
        server.close()


def resident_bytes(pid: int) -> int:
    """What a process holds in memory."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


class Reply(NamedTuple):
    """An HTTP answer; status 0 when the connection was closed without one."""

    status: int
    headers: dict[str, str]
    body: bytes


class HttpServer(NamedTuple):
    """A running `clawmark mcp --http`, and what a client needs to know of it."""

    process: subprocess.Popen[bytes]
    port: int
    token: str

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/mcp"

    def connect(self, seconds: float = HANG_SECONDS) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=seconds)

    def send(self, raw: bytes, *, ends: bool = False) -> Reply:
        """Send bytes on a connection of their own and read one answer; with `ends` say that no more
        will come.
        """
        with self.connect() as connection:
            try:
                connection.sendall(raw)
                if ends:
                    connection.shutdown(socket.SHUT_WR)
            except OSError:
                pass  # refused before everything was sent; there may be an answer all the same
            return read_reply(connection)

    def request(
        self, method: str, path: str, headers: Sequence[tuple[str, str]], body: bytes | None = None
    ) -> Reply:
        """Send a request exactly as given; {PORT} and {TOKEN} are filled in."""
        lines = [
            f"{method} {path} HTTP/1.1",
            *(f"{name}: {value}" for name, value in headers),
            "Connection: close",
        ]
        if body is not None:
            lines.append(f"Content-Length: {len(body)}")
        text = (
            "\r\n".join([*lines, "", ""])
            .replace("{PORT}", str(self.port))
            .replace("{TOKEN}", self.token)
        )
        return self.send(text.encode("utf-8") + (body or b""))

    def post(
        self, message: Mapping[str, object] | bytes, *more: tuple[str, str], path: str = "/mcp"
    ) -> Reply:
        """A request of a good client."""
        body = message if isinstance(message, bytes) else json.dumps(message).encode()
        return self.request("POST", path, [*GOOD_HEADERS, *more], body)


GOOD_HEADERS = (
    ("Host", "127.0.0.1:{PORT}"),
    ("Authorization", "Bearer {TOKEN}"),
    ("Content-Type", "application/json"),
    ("Accept", "application/json, text/event-stream"),
)


def read_reply(connection: socket.socket) -> Reply:
    """One answer up to the end of its body, or of the connection."""
    data = b""
    try:
        while b"\r\n\r\n" not in data and (more := connection.recv(65536)):
            data += more
        head, _, body = data.partition(b"\r\n\r\n")
        lines = head.decode("latin-1").split("\r\n")
        headers = {
            name.lower(): value.strip()
            for name, _, value in (line.partition(":") for line in lines[1:])
        }
        while not _is_whole(headers, body) and (more := connection.recv(65536)):
            body += more
    except ConnectionError:
        return Reply(0, {}, b"")
    return Reply(int(lines[0].split()[1]) if head else 0, headers, body)


def _is_whole(headers: Mapping[str, str], body: bytes) -> bool:
    return "content-length" in headers and len(body) >= int(headers["content-length"])


@contextmanager
def http_server(words: Sequence[str], env: Mapping[str, str]) -> Iterator[HttpServer]:
    """A server on a free port."""
    process = subprocess.Popen(
        [*CLAWMARK, "mcp", "--http", "--port", "0", *words], stderr=subprocess.PIPE, env=dict(env)
    )
    try:
        assert process.stderr is not None
        said = process.stderr.readline().decode()
        found = re.search(r"http://[^:]+:(\d+)/mcp; the token is in (.+)$", said.strip())
        assert found, said + process.stderr.read().decode()
        drain = threading.Thread(target=process.stderr.read, daemon=True)
        drain.start()
        yield HttpServer(process, int(found[1]), Path(found[2]).read_text(encoding="ascii").strip())
    finally:
        process.terminate()
        process.wait(HANG_SECONDS)
        assert process.stderr is not None
        process.stderr.close()
