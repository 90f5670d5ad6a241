"""Which requests are accepted, judged by their method, path and headers."""

from __future__ import annotations

import pytest

from clawmark.mcp.http.access_control import MAX_BODY, MAX_HEAD, Rules, check_request
from clawmark.net.server.requests import Rejection

RULES = Rules(frozenset({b"127.0.0.1:8377", b"localhost:8377"}), b"secret", frozenset({"/mcp"}))
HOST = (b"host", b"127.0.0.1:8377")
TOKEN = (b"authorization", b"Bearer secret")
JSON = (b"content-type", b"application/json; charset=utf-8")


def status(method: str, *headers: tuple[bytes, bytes], path: str = "/mcp") -> int:
    rejection = check_request(method, path, headers, RULES)
    return 200 if rejection is None else rejection.status


@pytest.mark.parametrize("host", [b"127.0.0.1:8377", b"localhost:8377", b"LocalHost:8377"])
def test_a_request_with_the_right_host_and_token_is_accepted(host: bytes) -> None:
    assert status("POST", (b"host", host), TOKEN, JSON) == 200
    assert status("GET", (b"host", host), TOKEN) == 200
    assert status("DELETE", (b"host", host), TOKEN) == 200


def test_only_the_origin_of_the_server_itself_is_accepted() -> None:
    assert status("GET", HOST, TOKEN, (b"origin", b"http://127.0.0.1:8377")) == 200
    for origin in (
        b"",
        b"null",
        b"https://127.0.0.1:8377",
        b"http://127.0.0.1",
        b"http://evil.example",
    ):
        assert status("GET", HOST, TOKEN, (b"origin", origin)) == 403
    assert status("GET", HOST, TOKEN, *[(b"origin", b"http://127.0.0.1:8377")] * 2) == 403


@pytest.mark.parametrize(
    "hosts", [[], [b""], [b"127.0.0.1"], [b"evil.example:8377"], [b"127.0.0.1:8377"] * 2]
)
def test_a_foreign_host_is_rejected_even_with_the_token(hosts: list[bytes]) -> None:
    assert status("GET", *((b"host", host) for host in hosts), TOKEN) == 403


@pytest.mark.parametrize(
    "given",
    [
        [],
        [b"Bearer"],
        [b"Bearer x"],
        [b"Basic secret"],
        [b"secret"],
        [b"Bearer secret"] * 2,
        [b"Bearer secret,x"],
    ],
)
def test_every_path_requires_the_token(given: list[bytes]) -> None:
    headers = [HOST, *((b"authorization", value) for value in given)]
    assert status("GET", *headers) == 401
    assert status("GET", *headers, path="/nowhere") == 401


def test_host_and_origin_are_checked_first() -> None:
    assert status("OPTIONS", HOST, (b"origin", b"https://evil.example")) == 403
    assert status("OPTIONS", HOST) == 405
    assert status("POST", HOST, (b"content-type", b"text/plain")) == 415
    assert status("POST", HOST, JSON) == 401
    assert status("POST", HOST, TOKEN, JSON, path="/api/search") == 404


def test_an_announced_size_over_the_limit_is_rejected() -> None:
    assert status("POST", HOST, TOKEN, JSON, (b"content-length", str(MAX_BODY).encode())) == 200
    assert status("POST", HOST, TOKEN, JSON, (b"content-length", str(MAX_BODY + 1).encode())) == 413
    assert status("GET", HOST, TOKEN, (b"x", b"a" * MAX_HEAD)) == 431


def test_a_rejection_does_not_echo_the_request() -> None:
    rejection = check_request("GET", "/<script>", [HOST, TOKEN], RULES)
    assert rejection == Rejection(404, "There is no such path.")
