"""Who is let in, decided from what stands before the body of a request."""

from __future__ import annotations

import pytest

from clawmark.mcp.http.access_control import LARGEST_BODY, LARGEST_HEAD, Refused, Rules, judge

RULES = Rules(frozenset({b"127.0.0.1:8377", b"localhost:8377"}), b"secret", frozenset({"/mcp"}))
HOST = (b"host", b"127.0.0.1:8377")
TOKEN = (b"authorization", b"Bearer secret")
JSON = (b"content-type", b"application/json; charset=utf-8")


def status(method: str, *headers: tuple[bytes, bytes], path: str = "/mcp") -> int:
    refused = judge(method, path, headers, RULES)
    return 200 if refused is None else refused.status


@pytest.mark.parametrize("host", [b"127.0.0.1:8377", b"localhost:8377", b"LocalHost:8377"])
def test_a_request_with_the_right_host_and_token_is_let_in(host: bytes) -> None:
    assert status("POST", (b"host", host), TOKEN, JSON) == 200
    assert status("GET", (b"host", host), TOKEN) == 200
    assert status("DELETE", (b"host", host), TOKEN) == 200


def test_a_page_of_the_server_itself_is_let_in_and_no_other() -> None:
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
def test_a_host_that_is_not_ours_is_refused_whatever_else_is_right(hosts: list[bytes]) -> None:
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
def test_no_route_answers_without_the_token(given: list[bytes]) -> None:
    headers = [HOST, *((b"authorization", value) for value in given)]
    assert status("GET", *headers) == 401
    assert status("GET", *headers, path="/nowhere") == 401


def test_host_and_origin_come_before_everything_else() -> None:
    assert status("OPTIONS", HOST, (b"origin", b"https://evil.example")) == 403
    assert status("OPTIONS", HOST) == 405
    assert status("POST", HOST, (b"content-type", b"text/plain")) == 415
    assert status("POST", HOST, JSON) == 401
    assert status("POST", HOST, TOKEN, JSON, path="/api/search") == 404


def test_sizes_are_refused_when_they_are_announced() -> None:
    assert status("POST", HOST, TOKEN, JSON, (b"content-length", str(LARGEST_BODY).encode())) == 200
    assert (
        status("POST", HOST, TOKEN, JSON, (b"content-length", str(LARGEST_BODY + 1).encode()))
        == 413
    )
    assert status("GET", HOST, TOKEN, (b"x", b"a" * LARGEST_HEAD)) == 431


def test_a_refusal_does_not_repeat_what_was_sent() -> None:
    refused = judge("GET", "/<script>", [HOST, TOKEN], RULES)
    assert refused == Refused(404, "There is nothing here.")
