"""Who is let in: pure checks of a request."""

from __future__ import annotations

from typing import Any

import pytest

from clawmark.net.server.requests import Rejection, host_headers
from clawmark.web.security import Access, Entry, FirstTokens, check_request, has_form_token
from clawmark.web.server import has_screen

ACCESS = Access(
    hosts=host_headers("127.0.0.1", 8000), key=b"k" * 32, port=8000, first=FirstTokens()
)
COOKIE = f"{ACCESS.cookie_name}={ACCESS.cookie}".encode()


def scope(
    method: str = "GET", path: str = "/search", query: str = "", **headers: str
) -> dict[str, Any]:
    given = {"host": "127.0.0.1:8000", **headers}
    return {
        "method": method,
        "path": path,
        "query_string": query.encode(),
        "headers": [(name.replace("_", "-").encode(), v.encode()) for name, v in given.items()],
    }


def status(one: dict[str, Any]) -> int:
    found = check_request(one, ACCESS)
    return found.status if isinstance(found, Rejection) else 200


def test_cookie_lets_in_and_nothing_else_does() -> None:
    assert status(scope(cookie=COOKIE.decode())) == 200
    assert status(scope()) == 401
    assert status(scope(cookie=f"{ACCESS.cookie_name}=x")) == 401
    assert status(scope(cookie=f"other=1; {COOKIE.decode()}")) == 200


def test_cookie_of_another_port_does_not_let_in() -> None:
    other = ACCESS._replace(port=8001)
    assert status(scope(cookie=f"{ACCESS.cookie_name}={other.cookie}")) == 401


def test_single_use_token_is_used_up() -> None:
    token = ACCESS.first.make_single_use()
    assert check_request(scope(path="/", query=f"token={token}"), ACCESS) == Entry("/")
    assert status(scope(path="/", query=f"token={token}")) == 401


def test_printed_token_keeps_the_rest_of_the_address() -> None:
    query = f"q=a+b&token={ACCESS.first.printed}&since=7d"
    assert check_request(scope(query=query), ACCESS) == Entry("/search?q=a+b&since=7d")


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1", "127.0.0.1:9000", ""])
def test_other_host_names_are_refused(host: str) -> None:
    assert status(scope(host=host, cookie=COOKIE.decode())) == 403


def test_form_needs_our_origin_and_its_token() -> None:
    form = {"cookie": COOKIE.decode(), "content_type": "application/x-www-form-urlencoded"}
    assert status(scope("POST", **form)) == 403
    assert status(scope("POST", origin="null", **form)) == 403
    assert status(scope("POST", origin="http://127.0.0.1:8000", **form)) == 200
    body = f"a=b&form_token={ACCESS.form_token}".encode()
    assert has_form_token([], body, ACCESS)
    assert not has_form_token([], b"form_token=" + ACCESS.cookie.encode(), ACCESS)
    assert not has_form_token([], b"", ACCESS)


def test_other_methods_and_large_headers_are_refused() -> None:
    assert status(scope("DELETE", cookie=COOKIE.decode())) == 405
    assert status(scope(cookie=COOKIE.decode(), x="y" * 40_000)) == 431


def test_browser_is_opened_only_where_it_has_a_screen() -> None:
    assert not has_screen("linux", {"TERM": "xterm", "DISPLAY": ""})
    assert has_screen("linux", {"DISPLAY": ":0"}) and has_screen("linux", {"WAYLAND_DISPLAY": "w"})
    assert has_screen("darwin", {}) and has_screen("win32", {})
