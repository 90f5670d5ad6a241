"""Sessions, view as and graph in a real browser."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from web_fixtures import WebSite, serve_web
from web_scene import GROUP, MAIN, SECRET, have_sessions, open_scene


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebSite]:
    folder = tmp_path_factory.mktemp("scene")
    workspace, state = folder / "agent", folder / "state"
    workspace.mkdir()
    with open_scene(workspace, state) as memory:
        have_sessions(memory)
        memory.sync()
    with serve_web(workspace, state) as made:
        yield made


def enter(site: WebSite, page: Any, path: str) -> None:
    page.goto(site.first_address)
    page.goto(site.address + path)


def test_new_user_sees_what_a_group_may_see(site: WebSite, browser_page: Any) -> None:
    page = browser_page
    page.goto(site.first_address)
    page.get_by_role("link", name="View as").click()
    page.get_by_role("link", name=GROUP).click()
    banner = page.get_by_role("note")
    assert "not private" in banner.inner_text() and GROUP in banner.inner_text()
    page.get_by_text("It may not search or read the memory.").wait_for()
    page.get_by_text("add “group” to memory.sharedSessions").wait_for()
    page.get_by_label("A message or a question").fill("What opens the safe of Aunt Ottilie?")
    page.get_by_label("A file to read").fill("MEMORY.md")
    page.get_by_role("button", name="Ask as this session").click()
    page.get_by_text("Nothing is recalled outside private sessions.").wait_for()
    answers = page.locator("pre").all_inner_texts()
    assert sum("Memory is unavailable in shared sessions." in one for one in answers) == 2
    html = page.content()
    for private in ("safe opens", "Ann prefers", "Wilhelmina"):
        assert private not in html
    assert "Answer in one sentence." in html, "the rules of the workspace are for every session"


def test_the_same_question_in_the_main_session_shows_the_memory(
    site: WebSite, browser_page: Any
) -> None:
    enter(site, browser_page, f"/as/{MAIN}?q=What+opens+the+safe+of+Aunt+Ottilie")
    browser_page.get_by_text("It may search and read the whole memory.").wait_for()
    assert SECRET in browser_page.content()


def test_a_session_shows_what_was_recalled_and_leads_to_the_line(
    site: WebSite, browser_page: Any
) -> None:
    enter(site, browser_page, "/sessions")
    browser_page.get_by_role("link", name="What does Ann prefer, tea or coffee?").click()
    browser_page.get_by_role("heading", name="Taken from the memory").wait_for()
    row = browser_page.locator("tbody tr").first
    assert "recalled unasked" in row.inner_text()
    address = row.get_by_role("link").first.get_attribute("href")
    assert address.startswith("/file/MEMORY.md#L")
    browser_page.get_by_text("Ann is a keen rower").wait_for()
    browser_page.get_by_text("Not known is what a host sent").wait_for()


def test_the_graph_leads_from_note_to_note(site: WebSite, browser_page: Any) -> None:
    enter(site, browser_page, "/graph")
    browser_page.locator("svg a").first.wait_for()
    browser_page.locator("svg").get_by_label("memory/crew.md").click()
    browser_page.get_by_role("heading", level=1, name="Crew list").wait_for()
    assert "at=memory%2Fcrew.md" in browser_page.url
    enter(site, browser_page, "/graph?at=memory/ferry.md")
    browser_page.get_by_role("heading", name="Links that lead to no note").wait_for()
    browser_page.get_by_text("memory/gone.md").wait_for()
    enter(site, browser_page, "/graph?at=memory/alone.md")
    browser_page.get_by_text("No link, wikilink or rare name connects this note").wait_for()


@pytest.mark.parametrize(
    "path", ["/sessions", "/as", f"/as/{GROUP}?q=safe", "/graph", "/graph?at=memory/ferry.md"]
)
def test_each_view_has_a_json_twin(site: WebSite, path: str) -> None:
    answer = site.get(f"{path}{'&' if '?' in path else '?'}format=json")
    assert answer.status == 200 and answer.headers["content-type"] == "application/json"
    assert answer.body.startswith("{")


def test_missing_things_are_pages_with_one_sentence(site: WebSite) -> None:
    for path, sentence in (
        ("/graph?at=memory/none.md", "memory/none.md is not a note of this memory."),
        ("/session/none", "There is no transcript none."),
        ("/session", "There is no transcript ."),
    ):
        answer = site.get(path)
        assert answer.status in (400, 404) and sentence in answer.body


@pytest.mark.parametrize("path", ["/sessions", "/as", f"/as/{MAIN}?q=tea", "/graph"])
def test_a_page_is_not_heavy(site: WebSite, path: str) -> None:
    total = len(site.get(path).body.encode())
    total += sum(len(site.get(f"/static/{name}").body) for name in ("style.css", "app.js"))
    assert total <= 150_000
