"""Hostile requests on every REST route: each is refused in the form of every other error, none
stops the server, and none leaves a traceback in its log."""

from __future__ import annotations

import hashlib
import json
import re
import socket
from collections.abc import Iterator
from typing import Any

import pytest
from team_server import HANG_SECONDS, Reply, Team, TeamServer, team_server

from clawmark.serve.rest.routes import ROUTES, RestRoute

MAX_BODY = 64 << 10
SETTINGS = {"serve": {"maxBodyBytes": MAX_BODY, "requestSeconds": 2}}
BODIES: dict[str, dict[str, Any]] = {
    "search": {"query": "tea"},
    "appendEntry": {"text": "tea", "key": "k"},
    "publish": {
        "documents": [{"path": "a.md", "text": "tea", "hash": hashlib.sha256(b"tea").hexdigest()}]
    },
    "withdraw": {"paths": ["a.md"]},
}
WITH_BODY = [route for route in ROUTES if route.body is not None]
WITH_SPACE = [route for route in ROUTES if "{space}" in route.path]


def by_name(route: RestRoute) -> str:
    return route.name


every_route = pytest.mark.parametrize("route", ROUTES, ids=by_name)
every_body = pytest.mark.parametrize("route", WITH_BODY, ids=by_name)


@pytest.fixture(scope="module")
def server(team: Team, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TeamServer]:
    """A server with small limits; at the end it still answers, and its log has no traceback."""
    with team_server(tmp_path_factory.mktemp("hostile"), team.uri, SETTINGS) as running:
        yield running
        assert running.request("GET", "/health/ready").status == 200
        assert running.stop() == 0
        log = running.errors()
    assert "Traceback" not in log
    assert "A request failed" not in log
    assert "cmk_" not in log


@pytest.fixture(scope="module")
def ada(team: Team) -> str:
    return team.token("ada")


def address(route: RestRoute, space: str = "team", path: str = "team/ada/a.md") -> str:
    return route.path.replace("{space}", space).replace("{path}", path)


def good(server: TeamServer, route: RestRoute, token: str) -> Reply:
    return server.request(route.method, address(route), token, BODIES.get(route.name))


def refused(reply: Reply, *statuses: int) -> None:
    """Check that an answer is an error in the usual form, with one of some statuses."""
    assert reply.status in statuses, reply
    assert reply.error["message"].endswith(".")
    assert "\n" not in reply.error["message"]
    assert reply.headers["content-type"] == "application/json"
    assert reply.headers["x-content-type-options"] == "nosniff"
    assert not [name for name in reply.headers if name.startswith("access-control-")]


@every_route
def test_good_requests_are_answered(server: TeamServer, ada: str, route: RestRoute) -> None:
    assert good(server, route, ada).status in (200, 201, 204, 404)


@every_route
@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "BREW"])
def test_a_wrong_method_is_refused(
    server: TeamServer, ada: str, route: RestRoute, method: str
) -> None:
    if method == route.method:
        return
    reply = server.request(method, address(route), ada)
    refused(reply, 405)
    assert route.method in reply.headers["allow"]


@every_route
def test_missing_wrong_and_revoked_tokens_are_refused(
    team: Team, server: TeamServer, route: RestRoute
) -> None:
    revoked, number = team.numbered_token("ada")
    team.revoke(number)
    valid = team.token("ada")
    path, body = address(route), BODIES.get(route.name)
    for authorization in (
        "",
        "Bearer",
        "Bearer ",
        "Basic YWRhOmFkYQ==",
        "Bearer cmk_",
        f"Bearer {revoked}",
        f"Bearer {valid[:-1]}",
        f"Bearer {valid}x",
        f"Bearer {valid.upper()}",
        f"Token {valid}",
        "Bearer " + "x" * 5000,
        "Bearer cmk_" + "'; DROP TABLE clawmark.tokens; --".ljust(43, "x"),
        "Bearer cmk_\xe9" + "x" * 42,
    ):
        headers = {"Authorization": authorization} if authorization else {}
        reply = server.request(route.method, path, "", body, headers)
        refused(reply, 401)
        assert valid not in reply.body.decode()
    twice = (
        f"{route.method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
        f"Authorization: Bearer {valid}\r\nAuthorization: Bearer {valid}\r\n\r\n"
    )
    assert server.send(twice.encode()).startswith(b"HTTP/1.1 401 ")
    in_address = server.request(route.method, f"{path}?token={valid}", "", body)
    refused(in_address, 401)


@pytest.mark.parametrize("route", WITH_SPACE, ids=by_name)
@pytest.mark.parametrize(
    "space",
    ["secret", "absent", "..", "%2e%2e", "TEAM", "team%00", "te%0aam", "%F0%9F%92%A9", "a" * 300],
)
def test_other_spaces_are_refused(
    server: TeamServer, ada: str, route: RestRoute, space: str
) -> None:
    body = BODIES.get(route.name)
    refused(server.request(route.method, address(route, space), ada, body), 403, 404, 422)


@pytest.mark.parametrize(
    "path",
    [
        "../../etc/passwd",
        "team/../secret/2026-11-18.md",
        "team/%2e%2e/secret/2026-11-18.md",
        "team/..%2f..%2fetc%2fpasswd",
        "team//a.md",
        "team/ada/../../secret/x.md",
        "team/ada/%00.md",
        "team/ada/\\..\\a.md",
        "team/%ff%fe.md",
        "team",
        "%2fetc%2fpasswd",
        "team/0000-00-00.md",
        "team/9999-99-99.md",
        "team/" + "a" * 3000 + ".md",
    ],
)
def test_paths_outside_a_space_are_refused(server: TeamServer, ada: str, path: str) -> None:
    refused(server.request("GET", f"/v1/documents/{path}", ada), 403, 404, 422)


@every_body
@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "", "json"]
)
def test_a_wrong_content_type_is_refused(
    server: TeamServer, ada: str, route: RestRoute, kind: str
) -> None:
    body = json.dumps(BODIES[route.name]).encode()
    reply = server.request(route.method, address(route), ada, body, {"Content-Type": kind})
    refused(reply, 415)


@every_body
@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"nul",
        b"\xff\xfe{}",
        b'{"a": NaN}',
        b'{"a": Infinity}',
        b'{"text": "a", "text": "b"}',
        b'{"text": "\\ud800", "query": "\\ud800", "key": "k", "paths": ["\\udfff"]}',
        b"[" * 50_000,
        b"[" * 20_000 + b"]" * 20_000,
        b'{"a":' * 8_000 + b"1" + b"}" * 8_000,
        b"1" * 60_000,
        b"{}\0",
        b"\0",
        b"null",
        b"[]",
        b'"text"',
        b"1e999",
        b"{} {}",
    ],
    ids=range(19),
)
def test_bodies_that_are_not_the_right_json_are_refused(
    server: TeamServer, ada: str, route: RestRoute, body: bytes
) -> None:
    refused(server.request(route.method, address(route), ada, body), 400, 422)


def wrong_values(value: Any) -> Iterator[Any]:
    """Give values of other types, and values that are too long, for one that is right."""
    yield from (None, 7, 1.5, True, [], {}, [[]], {"a": 1}, -1, 10**30)
    if isinstance(value, str):
        yield from ("", "a\0b", "x" * 60_000)
    if isinstance(value, list):
        yield from ([None], [7], [""], ["a\0b"], [{}], ["x" * 2_000], ["a.md"] * 500)


@every_body
def test_wrong_types_and_unknown_fields_are_refused(
    server: TeamServer, ada: str, route: RestRoute
) -> None:
    right = BODIES[route.name]
    cases = [{**right, "unknown": 1}, {**right, "Query": "x"}, {}]
    for field, value in right.items():
        cases += [
            {**right, field: wrong}
            for wrong in wrong_values(value)
            if (field, wrong) != ("text", "a\0b")  # NULs of files and entries are replaced
        ]
        cases.append({name: known for name, known in right.items() if name != field})
    if route.name == "publish":
        document = right["documents"][0]
        for field, value in document.items():
            cases += [
                {"documents": [{**document, field: wrong}]}
                for wrong in wrong_values(value)
                if field != "text" or wrong not in ("", "a\0b", "x" * 60_000)
            ]
        cases += [
            {"documents": [{**document, "path": path}]}
            for path in ("../a.md", "/etc/passwd.md", "a/../b.md", "a", "a\\b.md", ".", "a//b.md")
        ]
    for body in cases:
        if route.name == "search" and body in ({"query": ""}, {"query": "x" * 60_000}):
            continue
        reply = server.request(route.method, address(route), ada, body)
        refused(reply, 413, 422)


@pytest.mark.parametrize(
    "query",
    ["from=0", "from=-1", "from=x", "lines=1.5", "maxChars=0", "unknown=1", "from=1&from=2",
     "lines=" + "9" * 400, "from=%00", "since=1"],
)  # fmt: skip
def test_wrong_query_parameters_are_refused(server: TeamServer, ada: str, query: str) -> None:
    refused(server.request("GET", f"/v1/documents/team/ada/a.md?{query}", ada), 422)


@every_route
def test_unknown_query_parameters_are_refused(
    server: TeamServer, ada: str, route: RestRoute
) -> None:
    body = BODIES.get(route.name)
    refused(server.request(route.method, f"{address(route)}?unknown=1", ada, body), 422)


@every_route
def test_large_bodies_and_headers_are_refused(
    server: TeamServer, ada: str, route: RestRoute
) -> None:
    large = b'{"query": "' + b"x" * MAX_BODY + b'"}'
    reply = server.request(route.method, address(route), ada, large)
    if reply.status:  # a server may close the connection while the client still sends
        refused(reply, 413)
    chunks = b"".join(b"4000\r\n" + b"x" * 0x4000 + b"\r\n" for _ in range(5)) + b"0\r\n\r\n"
    head = (
        f"{route.method} {address(route)} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
        f"Authorization: Bearer {ada}\r\nContent-Type: application/json\r\n"
    )
    answer = server.send(head.encode() + b"Transfer-Encoding: chunked\r\n\r\n" + chunks)
    assert answer == b"" or answer.startswith(b"HTTP/1.1 413 "), answer[:200]
    headers = {f"X-Header-{number}": "y" * 1000 for number in range(40)}
    refused(server.request(route.method, address(route), ada, None, headers), 431)
    lies = head.encode() + b"Content-Length: 99999999999\r\n\r\n"
    assert server.send(lies).startswith(b"HTTP/1.1 413 ")
    assert good(server, route, ada).status in (200, 201, 204, 404)


@every_route
def test_a_slow_body_is_refused(server: TeamServer, ada: str, route: RestRoute) -> None:
    head = (
        f"{route.method} {address(route)} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        f"Authorization: Bearer {ada}\r\nContent-Length: 100\r\n\r\n{{"
    )
    answer = server.send(head.encode())
    assert answer.startswith(b"HTTP/1.1 408 "), answer[:200]
    assert json.loads(answer.partition(b"\r\n\r\n")[2])["error"]["type"] == "BodyTooSlow"


@every_route
def test_half_closed_and_dropped_connections_do_no_harm(
    server: TeamServer, ada: str, route: RestRoute
) -> None:
    head = (
        f"{route.method} {address(route)} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        f"Authorization: Bearer {ada}\r\nContent-Length: 10\r\n\r\n{{"
    ).encode()
    for part in (b"", head[:3], head[:40], head):
        answer = server.send(part, half_close=True)
        assert answer == b"" or re.match(rb"HTTP/1.1 4\d\d ", answer)
        with socket.create_connection(("127.0.0.1", server.port), timeout=HANG_SECONDS) as dropped:
            dropped.sendall(part)
    assert good(server, route, ada).status in (200, 201, 204, 404)


@every_route
def test_pipelined_requests_are_answered_in_order(
    server: TeamServer, ada: str, route: RestRoute
) -> None:
    body = json.dumps(BODIES.get(route.name, "")).encode() if route.body else b""
    one = (
        f"{route.method} {address(route)} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {ada}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
    ).encode()
    wrong = one.replace(ada.encode(), b"cmk_" + b"x" * 43)
    last = one + b"Connection: close\r\n\r\n" + body
    answer = server.send(one + b"\r\n" + body + wrong + b"\r\n" + body + last)
    statuses = re.findall(rb"HTTP/1\.1 (\d\d\d) ", answer)
    assert len(statuses) == 3, answer[:500]
    assert statuses[1] == b"401"
    assert b"401" not in (statuses[0], statuses[2])


@pytest.mark.parametrize(
    "raw",
    [
        b"\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET /v1/spaces HTTP/1.1\r\n\r\n",
        b"GET /v1/spaces HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        b"GET /v1/spaces HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
        b"POST /v1/search HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n"
        b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"GET /v1/spaces HTTP/1.1\r\nHost: x\r\nX: \0\r\n\r\n",
        b"GET /v1/\xff\xfe HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\0" * 100 + b"\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"A" * 200_000,
    ],
    ids=range(12),
)
def test_bytes_that_are_not_http_are_refused(server: TeamServer, raw: bytes) -> None:
    try:
        answer = server.send(raw, half_close=True)
    except OSError:
        answer = b""
    assert answer == b"" or re.match(rb"HTTP/1\.1 4\d\d ", answer), answer[:200]
    assert server.request("GET", "/health/live").status == 200


@pytest.mark.parametrize(
    "path", ["/v1", "/v1/", "/v2/spaces", "/v1/spaces/", "/admin", "/.env", "/static/../app.py",
             "/static/%2e%2e/app.py", "/docs", "//evil.example", "/v1/spaces/team"],
)  # fmt: skip
def test_unknown_addresses_are_refused(server: TeamServer, ada: str, path: str) -> None:
    reply = server.request("GET", path, ada)
    assert reply.status in (404, 405, 307), reply
    if reply.status == 404:
        refused(reply, 404)


def test_another_origin_gets_no_permission(server: TeamServer, ada: str) -> None:
    headers = {"Origin": "https://evil.example", "Access-Control-Request-Method": "POST"}
    reply = server.request("OPTIONS", "/v1/search", "", None, headers)
    refused(reply, 405)
    reply = server.request("POST", "/v1/search", ada, {"query": "tea"}, headers)
    assert not [name for name in reply.headers if name.startswith("access-control-")]
