"""Hostile HTTP requests against the real MCP server over the hostile workspace of the shared
folder.

No answer without the token, the right Host and no foreign Origin; no answer with a CORS header;
nothing stops the server."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

pytest.importorskip("mcp")

import hostile
from commands import new_place
from mcp_servers import GOOD_HEADERS, INITIALIZE, SURROGATES, HttpServer, Reply, http_server

pytestmark = hostile.needs_maker

PAGES = ("h-page-xss", "h-page-name-xss", "h-download-type")
"""Pages and downloads: they belong to the inspector, and this server has none."""
SLOW = ("h-body-slow", "h-idle")
"""Tried with short limits in test_mcp_limits.py, and two hundred at once in
tests/torture/mcp_crowd.py.
"""
NEEDS_ROUTE = ("h-method-", "h-body-", "h-host-good-")
"""What depends on a route: sent to the one there is."""
PING = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"}).encode()


class Bench(NamedTuple):
    """A server over the hostile workspace, and the cases."""

    server: HttpServer
    http: dict[str, dict[str, Any]]
    raw: dict[str, dict[str, Any]]
    stdio: dict[str, dict[str, Any]]
    canaries: tuple[str, ...]


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    folder = tmp_path_factory.mktemp("mcp-http")
    place = new_place(folder)
    place.state.mkdir(mode=0o700)
    (place.state / "clawmark.json").write_text(
        '{"memorySearch": {"provider": "none"}}', encoding="utf-8"
    )
    made = hostile.make(folder / "made")
    canaries = json.loads((made / "manifest.json").read_text(encoding="utf-8"))["canaries"]
    never = tuple(canaries[name] for name in ("outside", "other", "thinking"))
    env = place.environment({"CLAWMARK_WORKSPACE": str(made / "workspace")})
    with http_server(["--session", "main"], env) as server:
        yield Bench(
            server=server,
            http=hostile.cases(made, "http"),
            raw=hostile.cases(made, "http_raw"),
            stdio=hostile.cases(made, "mcp_stdio"),
            canaries=never,
        )
    hostile.remove(made)


def try_case(server: HttpServer, case: Mapping[str, Any]) -> Reply:
    given = case["input"]
    headers = [(name, value) for name, value in given["headers"]]
    path, body = given["path"], given.get("body")
    if "body_repeat" in given:
        letter, count = given["body_repeat"]
        body = letter * count
    if case["id"].startswith("h-host-good-"):
        # What a good Host is good for: the first request of a client.
        return server.request(
            "POST", "/mcp", [*headers, *GOOD_HEADERS[2:]], json.dumps(INITIALIZE).encode()
        )
    if case["id"].startswith(NEEDS_ROUTE):
        path = "/mcp"
        headers += [("Accept", "application/json, text/event-stream")]
    return server.request(given["method"], path, headers, None if body is None else body.encode())


def is_right(expect: str, reply: Reply) -> bool:
    """Whether an answer is what a case expects."""
    if expect == "4xx":
        return 400 <= reply.status < 500
    if expect == "4xx-or-close":
        return reply.status == 0 or 400 <= reply.status < 500
    if expect == "no-cors-headers":
        return 400 <= reply.status < 500
    if expect == "escaped":
        return b"<" not in reply.body
    return str(reply.status) in expect.split("-or-")


def flaws(bench: Bench, case: Mapping[str, Any], reply: Reply) -> list[str]:
    """What is wrong with an answer, whatever it was the answer to."""
    found = (
        []
        if is_right(case["expect"], reply)
        else [f"expected {case['expect']}, got {reply.status}"]
    )
    found += [f"CORS header {name}" for name in reply.headers if name.startswith("access-control-")]
    found += ["a canary" for canary in bench.canaries if canary.encode() in reply.body]
    if reply.headers.get("content-type", "").startswith("text/html"):
        found.append("a page")
    return found


def test_every_hostile_request_gets_the_expected_answer(bench: Bench) -> None:
    wrong: dict[str, object] = {}
    tried = [case for name, case in bench.http.items() if name not in (*PAGES, *SLOW)]
    for case in tried:
        reply = try_case(bench.server, case)
        if found := flaws(bench, case, reply):
            wrong[case["id"]] = (found, reply.status, reply.body[:200])
    assert wrong == {}
    assert len(tried) + len(PAGES) + len(SLOW) == len(bench.http) == 91


def test_raw_bytes_are_refused_and_the_next_client_is_answered(bench: Bench) -> None:
    assert len(bench.raw) == 17
    wrong: dict[str, object] = {}
    for name, case in bench.raw.items():
        reply = bench.server.send(base64.b64decode(case["input_b64"]), ends=True)
        if found := flaws(bench, case, reply):
            wrong[name] = (found, reply)
        following = bench.server.post(INITIALIZE)
        if following.status != 200:
            wrong[f"{name}, then a good client"] = following
    assert wrong == {}


def test_every_refusal_carries_the_security_headers(bench: Bench) -> None:
    for case in bench.http.values():
        if case["id"].startswith(
            ("h-no-token", "h-origin", "h-preflight", "h-simple-post", "h-path-00")
        ):
            headers = try_case(bench.server, case).headers
            assert headers["x-content-type-options"] == "nosniff"
            assert headers["cache-control"] == "no-store"
            assert "frame-ancestors 'none'" in headers["content-security-policy"]
            assert headers["content-type"] == "application/json"


def test_a_session_id_does_not_replace_the_token(bench: Bench) -> None:
    begun = bench.server.post(INITIALIZE)
    session = ("Mcp-Session-Id", begun.headers["mcp-session-id"])
    assert bench.server.post(PING, session).status == 200
    without = [header for header in GOOD_HEADERS if header[0] != "Authorization"]
    assert bench.server.request("POST", "/mcp", [*without, session], PING).status == 401
    assert bench.server.request("GET", "/mcp", [*without, session]).status == 401


def test_http_bodies_are_parsed_strictly(bench: Bench) -> None:
    for body in (
        b'{"jsonrpc":"2.0","id":1,"method":"ping","method":"ping"}',
        b'{"jsonrpc":"2.0","id":NaN,"method":"ping"}',
        b'{"jsonrpc":"2.0","id":1,"method":"ping"}\0',
        b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]',
        b'\xff{"jsonrpc":"2.0","id":1,"method":"ping"}',
    ):
        reply = bench.server.post(body)
        assert (reply.status, json.loads(reply.body)["error"]["code"] in (-32700, -32600)) == (
            400,
            True,
        )


@pytest.mark.parametrize("where", SURROGATES)
def test_a_lone_surrogate_is_answered_and_does_not_stop_the_server(
    bench: Bench, where: str
) -> None:
    """With a session, without one, and in a request of the newer protocol."""
    body = SURROGATES[where]
    session = ("Mcp-Session-Id", bench.server.post(INITIALIZE).headers["mcp-session-id"])
    replies = [
        bench.server.post(body, session),
        bench.server.post(body),
        bench.server.post(body, ("Mcp-Protocol-Version", "2026-07-28"), ("Mcp-Method", "ping")),
    ]
    for reply in replies:
        assert reply.status in (200, 202, 400, 404), reply
        assert "\\ud" not in reply.body.decode("utf-8").replace("\\\\ud", "")
        assert b"Internal" not in reply.body
    assert bench.server.post(PING, session).status == 200


def test_the_stdio_corpus_does_not_stop_the_http_server(bench: Bench) -> None:
    """Every line that is sent to the stdio server, as a body, with a session; each is answered, and
    so is the next.
    """
    session = ("Mcp-Session-Id", bench.server.post(INITIALIZE).headers["mcp-session-id"])
    wrong: dict[str, object] = {}
    for name, case in bench.stdio.items():
        if isinstance(case.get("input"), dict) or name == "m-many":
            continue
        for line in hostile.input_bytes(case).split(b"\n"):
            reply = bench.server.post(line, session)
            leaked = [canary for canary in bench.canaries if canary.encode() in reply.body]
            if leaked or reply.status not in (200, 202, 400, 413) or b"Internal" in reply.body:
                wrong[name] = (reply.status, leaked, reply.body[:200])
        if bench.server.post(PING, session).status != 200:
            wrong[f"{name}, then a ping"] = "not answered"
    assert wrong == {}


def test_the_size_limit_holds_for_a_body_without_a_length(bench: Bench) -> None:
    chunks = b"".join(b"10000\r\n" + b"x" * 65536 + b"\r\n" for _ in range(17))
    head = "\r\n".join(
        ["POST /mcp HTTP/1.1", *(f"{name}: {value}" for name, value in GOOD_HEADERS)]
    )
    text = head.replace("{PORT}", str(bench.server.port)).replace("{TOKEN}", bench.server.token)
    raw = (
        text.encode()
        + b"\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
        + chunks
        + b"0\r\n\r\n"
    )
    assert bench.server.send(raw).status == 413


def test_headers_over_the_limit_are_refused(bench: Bench) -> None:
    assert bench.server.post(PING, ("X-Long", "a" * 33_000)).status in (400, 431)
    assert bench.server.post(INITIALIZE, ("X-Long", "a" * 30_000)).status == 200


def test_pages_are_not_served(bench: Bench) -> None:
    """The cases about pages are not skipped in silence: this server answers them with 404 and no
    page.
    """
    for name in PAGES:
        reply = try_case(bench.server, bench.http[name])
        assert (reply.status, reply.headers["content-type"]) == (404, "application/json")


def test_the_token_is_readable_by_its_owner_only(bench: Bench, tmp_path: Path) -> None:
    place = new_place(tmp_path)
    with http_server([], place.environment()) as server:
        (file,) = place.state.glob("mcp-token*")
        assert file.stat().st_mode & 0o777 == 0o600
        assert place.state.stat().st_mode & 0o777 == 0o700
        assert len(server.token) >= 32
