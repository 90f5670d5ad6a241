"""`clawmark web` as a real server: who is let in, what is refused, how it ends."""

from __future__ import annotations

import json
import signal
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlencode, urlsplit

import pytest
from web_fixtures import HANG_SECONDS, WebSite, serve_web

FORM = "application/x-www-form-urlencoded"


def test_first_address_sets_a_strict_cookie_and_leads_to_an_address_without_token(
    web_site: WebSite,
) -> None:
    parts = urlsplit(web_site.first_address)
    answer = web_site.request("GET", f"{parts.path}?{parts.query}")
    assert (answer.status, answer.headers["location"]) == (303, "/")
    assert "HttpOnly" in answer.headers["set-cookie"]
    assert "SameSite=Strict" in answer.headers["set-cookie"]
    assert parts.query.partition("=")[2] not in answer.headers["set-cookie"]


def test_token_does_not_lead_to_another_host(web_site: WebSite) -> None:
    query = urlsplit(web_site.first_address).query
    answer = web_site.request("GET", f"//evil.example/?{query}")
    assert answer.headers["location"] == "/evil.example/"


@pytest.mark.parametrize("path", ["/", "/search", "/health", "/events", "/search?token=wrong"])
def test_without_a_cookie_nothing_of_the_memory_is_shown(web_site: WebSite, path: str) -> None:
    answer = web_site.request("GET", path)
    assert answer.status == 401
    assert "clawmark web" in answer.body
    assert str(web_site.workspace) not in answer.body


def test_foreign_host_header_is_refused_even_with_the_cookie(web_site: WebSite) -> None:
    headers = {"cookie": web_site.cookie(), "host": "evil.example"}
    assert web_site.request("GET", "/search", headers).status == 403


def test_request_of_another_site_is_refused(web_site: WebSite) -> None:
    headers = {"cookie": web_site.cookie(), "origin": "http://evil.example"}
    assert web_site.request("GET", "/search", headers).status == 403


def test_form_without_its_token_is_refused(web_site: WebSite) -> None:
    headers = {"cookie": web_site.cookie(), "origin": web_site.address, "content-type": FORM}
    answer = web_site.request("POST", "/search", headers, urlencode({"form_token": "wrong"}))
    assert (answer.status, "out of date" in answer.body) == (403, True)


def test_form_without_an_origin_is_refused(web_site: WebSite) -> None:
    headers = {"cookie": web_site.cookie(), "content-type": FORM}
    assert web_site.request("POST", "/search", headers, "a=b").status == 403


def test_form_with_its_token_reaches_the_page(web_site: WebSite) -> None:
    assert web_site.post("/search", {"q": "x"}).status == 405  # the search page takes no form


@pytest.mark.parametrize(
    "broken",
    ["foo bar; {}", "a[b]=1; {}", '{{"json":1}}; {}', 'x="open; {}', "expires=x; {}", "{}; a b"],
)
def test_broken_cookie_of_another_server_does_not_lock_a_browser_out(
    web_site: WebSite, broken: str
) -> None:
    headers = {"cookie": broken.format(web_site.cookie())}
    assert web_site.request("GET", "/search", headers).status == 200


def test_address_that_is_too_long_is_refused_with_a_reason(web_site: WebSite) -> None:
    answer = web_site.get("/search?q=" + "a" * 40_000)
    assert (answer.status, "larger than" in answer.body) == (431, True)


def test_refused_request_has_the_same_json_as_other_errors(web_site: WebSite) -> None:
    refused = web_site.request("GET", "/search?format=json", {})
    missing = web_site.get("/nowhere?format=json")
    assert (refused.status, missing.status) == (401, 404)
    assert set(json.loads(refused.body)) == set(json.loads(missing.body))


def test_transcript_that_does_not_exist_is_not_found(web_site: WebSite) -> None:
    assert web_site.get("/session/none").status == 404


def test_every_answer_has_the_strict_policy(web_site: WebSite) -> None:
    cookie = {"cookie": web_site.cookie()}
    for path in ("/search", "/nowhere", "/static/style.css"):
        headers = web_site.request("GET", path, cookie).headers
        assert headers["content-security-policy"].startswith(
            "default-src 'none'; script-src 'self'"
        )
        assert headers["x-content-type-options"] == "nosniff"
        assert "access-control-allow-origin" not in headers


def test_unknown_page_says_so_and_where_to_go(web_site: WebSite) -> None:
    answer = web_site.get("/nowhere")
    assert (answer.status, "There is no such page." in answer.body) == (404, True)


def test_page_has_a_json_twin(web_site: WebSite) -> None:
    answer = web_site.get("/search?" + urlencode({"q": "PostgreSQL", "format": "json"}))
    hits = json.loads(answer.body)["hits"]
    assert "PostgreSQL" in json.dumps(hits[0]["lines"])


def test_server_ends_with_the_code_of_its_signal(tmp_path: Path) -> None:
    (tmp_path / "workspace").mkdir()
    with serve_web(tmp_path / "workspace", tmp_path / "state") as site:
        site.process.send_signal(signal.SIGINT)
        assert site.process.wait(HANG_SECONDS) == 130


def test_server_ends_quietly_while_pages_are_open(tmp_path: Path) -> None:
    (tmp_path / "workspace").mkdir()
    with (
        open(tmp_path / "stderr", "wb") as stderr,
        serve_web(tmp_path / "workspace", tmp_path / "state", stderr=stderr.fileno()) as site,
    ):
        page = HTTPConnection(site.host, timeout=HANG_SECONDS)
        page.request("GET", "/events", headers={"Cookie": site.cookie()})
        assert page.getresponse().readline() == b": open\n"
        site.process.send_signal(signal.SIGINT)
        assert site.process.wait(HANG_SECONDS) == 130
        page.close()
    said = (tmp_path / "stderr").read_text(encoding="utf-8")
    assert said.splitlines() == [
        "clawmark: the page is open until you stop this command with Ctrl-C."
    ]


def test_form_that_forgets_nothing_gets_one_sentence(web_site: WebSite) -> None:
    answer = web_site.post("/forget", {})
    assert (answer.status, "does not say what to forget" in answer.body) == (400, True)
    assert web_site.get("/forgotten?entries=" + "9" * 5_000 + "&files=1").status == 200


def test_cookie_is_still_valid_after_a_restart_on_the_same_port(tmp_path: Path) -> None:
    (tmp_path / "workspace").mkdir()
    with serve_web(tmp_path / "workspace", tmp_path / "state") as site:
        cookie, port = site.cookie(), str(urlsplit(site.first_address).port)
    with serve_web(tmp_path / "workspace", tmp_path / "state", "--port", port) as again:
        assert again.request("GET", "/search", {"cookie": cookie}).status == 200
