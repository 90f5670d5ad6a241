"""The web page of `clawmark serve`: sign in, search, recent entries, spaces and documents."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import urlencode

import pytest
from team_server import Reply, Team, TeamServer

MARKUP = "<script>alert(1)</script> <img src=x onerror=alert(1)>"
PLAN = f"# Plan\n\nThe ferry leaves at nine. {MARKUP}\n\n[other](../other.md) [[ferry]]\n"


class Browser(NamedTuple):
    """A browser that is signed in."""

    server: TeamServer
    cookie: str

    def get(self, path: str, **headers: str) -> Reply:
        return self.server.request("GET", path, headers={"Cookie": self.cookie, **headers})


def post(
    server: TeamServer,
    path: str,
    fields: Mapping[str, str],
    headers: Mapping[str, str] | None = None,
) -> Reply:
    """Send a form as a browser would."""
    sent = {
        "Content-Type": "application/x-www-form-urlencoded",
        "Origin": f"http://127.0.0.1:{server.port}",
        **(headers or {}),
    }
    return server.request("POST", path, "", urlencode(fields).encode(), sent)


def sign_in(server: TeamServer, token: str) -> Browser:
    reply = post(server, "/sign-in", {"token": token, "next": "/recent"})
    assert (reply.status, reply.headers["location"]) == (303, "/recent"), reply
    cookie = reply.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=lax" in cookie
    return Browser(server, cookie.partition(";")[0])


@pytest.fixture(scope="module")
def browser(team: Team, server: TeamServer) -> Browser:
    ada = team.token("ada")
    entry = {"text": f"The heron nests by the mill. {MARKUP}", "key": "heron"}
    assert server.request("POST", "/v1/spaces/team/entries", ada, entry).status == 201
    plan = {
        "path": "memory/team/plan.md",
        "text": PLAN,
        "hash": hashlib.sha256(PLAN.encode()).hexdigest(),
    }
    published = server.request("POST", "/v1/spaces/team/publish", ada, {"documents": [plan]})
    assert published.status == 204
    return sign_in(server, ada)


def test_without_a_cookie_every_page_leads_to_the_sign_in_page(server: TeamServer) -> None:
    for path in (
        "/",
        "/search?q=tea",
        "/recent",
        "/spaces",
        "/space/team",
        "/file/spaces/team/a.md",
    ):
        reply = server.request("GET", path)
        assert reply.status == 303, path
        assert reply.headers["location"].startswith("/sign-in"), path
    assert server.request("GET", "/search?q=x&format=json").error["type"] == "TokenMissing"
    page = server.request("GET", "/sign-in?next=//evil.example/")
    assert page.status == 200
    assert b"evil.example" not in page.body


def test_a_wrong_token_or_a_foreign_form_does_not_sign_in(team: Team, server: TeamServer) -> None:
    wrong = post(server, "/sign-in", {"token": "cmk_" + "x" * 43})
    assert wrong.status == 401
    assert "set-cookie" not in wrong.headers
    assert b"not valid" in wrong.body
    token = team.token("ada")
    for headers in ({"Origin": "https://evil.example"}, {"Origin": "null"}):
        refused = post(server, "/sign-in", {"token": token}, headers)
        assert (refused.status, "set-cookie" in refused.headers) == (403, False)
    foreign = server.request("GET", "/sign-in", headers={"Host": "evil.example"})
    assert foreign.status == 403


def test_pages_show_who_wrote_what(browser: Browser) -> None:
    recent = browser.get("/recent")
    assert recent.status == 200
    text = recent.body.decode()
    assert "The heron nests by the mill." in text
    assert ">ada</span>" in text
    space = browser.get("/space/team").body.decode()
    assert "memory/team/plan.md" in space
    assert re.search(r"/file/spaces/team/20\d\d-\d\d-\d\d\.md", space)
    spaces = browser.get("/spaces").body.decode()
    assert "read and write" in spaces
    assert "secret" not in spaces


def test_a_search_shows_hits_of_all_spaces_with_their_authors(browser: Browser) -> None:
    page = browser.get("/search?q=ferry+heron").body.decode()
    assert "<mark>ferry</mark>" in page
    assert ", by ada" in page
    part = browser.get("/search?q=ferry&part=results").body.decode()
    assert "<mark>ferry</mark>" in part
    assert "<html" not in part
    twin = browser.get("/search?q=ferry&format=json").json()
    assert twin["hits"][0]["author"] == "ada"
    nothing = browser.get("/search?q=zzzxqj").body.decode()
    assert 'class="nothing"' in nothing
    wrong = browser.get("/search?q=tea&since=someday")
    assert wrong.status == 422
    assert b"since must be a day" in wrong.body


def test_a_document_has_line_anchors_rendered_and_raw(browser: Browser) -> None:
    path = "/file/spaces/team/ada/memory/team/plan.md"
    rendered = browser.get(path).body.decode()
    assert 'id="L3"' in rendered
    assert "published by ada" in rendered
    raw = browser.get(f"{path}?view=raw").body.decode()
    assert '<code id="L1"># Plan</code>' in raw
    missing = browser.get("/file/spaces/team/ada/absent.md")
    assert missing.status == 404
    assert browser.get("/file/spaces/secret/2026-11-18.md").status == 403
    assert browser.get("/file/../../etc/passwd").status in (403, 404, 422)
    assert browser.get("/space/secret").status == 403


def test_markup_of_notes_is_shown_as_text(browser: Browser) -> None:
    for path in (
        "/recent",
        "/space/team",
        "/search?q=heron+ferry",
        "/file/spaces/team/ada/memory/team/plan.md",
        "/file/spaces/team/ada/memory/team/plan.md?view=raw",
        "/search?" + urlencode({"q": MARKUP, "space": MARKUP, "path": MARKUP, "since": "7d"}),
    ):
        reply = browser.get(path)
        assert b"<script>alert" not in reply.body, path
        assert b"<img" not in reply.body, path
        policy = reply.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy


def test_links_of_a_page_lead_to_pages(browser: Browser) -> None:
    seen, waiting = set[str](), ["/search?q=heron", "/recent", "/spaces", "/space/team"]
    while waiting and len(seen) < 60:
        path = waiting.pop()
        if path in seen:
            continue
        seen.add(path)
        reply = browser.get(path)
        linked_missing = path.endswith("/other.md")  # a link of the text itself
        is_wikilink = path.startswith("/note/")
        assert reply.status == (404 if linked_missing else 303 if is_wikilink else 200), path
        if "text/html" in reply.headers.get("content-type", ""):
            found = re.findall(r'(?:href|src)="(/[^"#]*)', reply.body.decode())
            waiting += [link.replace("&amp;", "&") for link in found]
    assert len(seen) > 10


def test_signing_out_needs_the_form_of_the_page(browser: Browser, server: TeamServer) -> None:
    page = browser.get("/spaces").body.decode()
    found = re.search(r'name="form_token" value="(\w+)"', page)
    assert found
    cookie = {"Cookie": browser.cookie}
    assert post(server, "/sign-out", {"form_token": "0" * 64}, cookie).status == 403
    assert post(server, "/sign-out", {"form_token": "\u00e9"}, cookie).status == 403
    done = post(server, "/sign-out", {"form_token": found[1]}, cookie)
    assert (done.status, done.headers["location"]) == (303, "/sign-in")
    assert "Max-Age=0" in done.headers["set-cookie"]


def test_a_revoked_token_signs_the_browser_out(team: Team, server: TeamServer) -> None:
    token, number = team.numbered_token("ada")
    browser = sign_in(server, token)
    assert browser.get("/spaces").status == 200
    team.revoke(number)
    reply = browser.get("/spaces")
    assert (reply.status, reply.headers["location"]) == (303, "/sign-in?next=%2Fspaces&problem=1")
