"""Reading in a real browser: nothing moves on its own, addresses lead to lines, a phone is wide
enough."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from web_fixtures import WebSite, serve_web
from web_scene import GROUP, MAIN, have_sessions, open_scene

PHONE = {"width": 390, "height": 844}
LONG = "memory/" + "anamewithoutanend" * 6 + ".md"
SKIPPED = "memory/" + "anamewithoutanend" * 8 + ".md"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebSite]:
    """Notes with sessions, versions, a very long name and a proposal."""
    folder = tmp_path_factory.mktemp("reading")
    (folder / "workspace").mkdir()
    with open_scene(folder / "workspace", folder / "state") as memory:
        have_sessions(memory)
        (folder / "workspace" / LONG).write_text("# Long\n\n- A harbour.\n", encoding="utf-8")
        (folder / "workspace" / SKIPPED).symlink_to("/etc/hostname")
        memory.append("Coal for the stove")
        memory.sync()
        memory.history.record()
    with serve_web(folder / "workspace", folder / "state") as served:
        yield served


@pytest.fixture
def reader(site: WebSite, browser_page: Any) -> Any:
    browser_page.goto(site.first_address)
    return browser_page


def top_of_main(page: Any) -> float:
    return float(page.evaluate("document.getElementById('main').getBoundingClientRect().top"))


def test_announced_change_moves_nothing(site: WebSite, reader: Any) -> None:
    with reader.expect_response(lambda answer: answer.url.endswith("/events")):
        reader.goto(f"{site.address}/timeline")
    before = top_of_main(reader)
    (site.workspace / "memory" / "new.md").write_text("- Tea.\n", encoding="utf-8")
    reader.get_by_text("1 file has changed:").wait_for()
    assert top_of_main(reader) == before


def test_announced_change_is_seen_far_down_the_page(site: WebSite, reader: Any) -> None:
    with reader.expect_response(lambda answer: answer.url.endswith("/events")):
        reader.goto(f"{site.address}/timeline")
    reader.set_viewport_size({"width": 1280, "height": 300})
    reader.evaluate("scrollTo(0, document.body.scrollHeight)")
    (site.workspace / "memory" / "newer.md").write_text("- Milk.\n", encoding="utf-8")
    line = reader.locator("#live")
    line.get_by_text("1 file has changed:").wait_for()
    box = line.bounding_box()
    assert 0 <= box["y"] <= 300 - box["height"]


def test_explaining_keeps_the_chosen_hit(site: WebSite, reader: Any) -> None:
    reader.goto(f"{site.address}/search?q=Anna+Berg")
    reader.locator("#q:focus").wait_for()
    reader.keyboard.press("Escape")
    reader.keyboard.press("j")
    reader.keyboard.press("j")
    chosen = reader.locator(".hit.current .citation").inner_text()
    reader.keyboard.press("e")
    reader.locator(".hit table.sum").first.wait_for()
    assert reader.locator(".hit.current .citation").inner_text() == chosen


def test_address_of_a_typed_search_has_no_empty_filters(site: WebSite, reader: Any) -> None:
    reader.get_by_role("searchbox").press_sequentially("ferry")
    reader.locator(".hit").first.wait_for()
    reader.wait_for_url("**/search?q=ferry")


def test_citation_of_several_lines_leads_to_all_of_them(site: WebSite, reader: Any) -> None:
    reader.goto(f"{site.address}/file/MEMORY.md#L3-L4")
    assert reader.locator(".named").all_inner_texts() == [
        "Ann prefers tea.",
        "The safe opens with the birthday of Aunt Ottilie.",
    ]
    reader.goto(f"{site.address}/file/MEMORY.md#L6")
    assert reader.locator(".named").count() == 1


def test_citation_of_lines_far_down_is_scrolled_to(site: WebSite, reader: Any) -> None:
    text = "".join(f"- Item {number}\n" for number in range(1, 301))
    (site.workspace / "memory" / "items.md").write_text(text, encoding="utf-8")
    reader.goto(f"{site.address}/file/memory/items.md#L200-L202")
    reader.locator(".named").first.wait_for()
    assert reader.locator(".named").count() == 3
    top = reader.locator(".named").first.bounding_box()["y"]
    assert 40 <= top <= 700


def test_session_named_by_its_key_has_a_json_twin(site: WebSite) -> None:
    answer = site.get(f"/session?key={quote(MAIN)}&format=json")
    address = answer.headers["location"]
    assert json.loads(site.get(address).body)["key"] == MAIN


def test_every_view_fits_on_a_phone(site: WebSite, chromium: Any) -> None:
    context = chromium.new_context(viewport=PHONE)
    try:
        page = context.new_page()
        page.goto(site.first_address)
        wide = list[str]()
        day = next((site.workspace / "memory").glob("20*.md")).relative_to(site.workspace)
        for path in (
            "/search?q=ferry&explain=1",
            "/why-not?q=tea&target=MEMORY.md",
            "/timeline",
            "/file/MEMORY.md",
            "/file/MEMORY.md?line=3#L3",
            f"/file/{LONG}",
            "/edit/MEMORY.md",
            "/history/MEMORY.md",
            f"/history/{LONG}",
            f"/history/{day}",
            "/forget?text=prefers",
            "/sessions",
            f"/session?key={quote(MAIN)}",
            "/review",
            f"/as/{GROUP}?q=tea",
            "/graph",
            "/health?checks=1",
        ):
            page.goto(site.address + path)
            if page.evaluate("document.documentElement.scrollWidth") > PHONE["width"]:
                wide.append(path)
        assert wide == []
    finally:
        context.close()


def test_bar_has_one_line_of_views_on_a_phone(site: WebSite, chromium: Any) -> None:
    context = chromium.new_context(viewport=PHONE)
    try:
        page = context.new_page()
        page.goto(site.first_address)
        page.evaluate(
            "document.querySelector('nav a[href=\"/review\"]').textContent = 'Review (12)'"
        )
        tops = page.eval_on_selector_all("nav a", "all => all.map((one) => one.offsetTop)")
        assert len(set(tops)) == 1
    finally:
        context.close()


def test_memory_without_sessions_fits_on_a_phone(tmp_path: Path, chromium: Any) -> None:
    (tmp_path / "workspace").mkdir()
    state = tmp_path / ("a-very-long-name-of-a-folder" * 3)
    state.mkdir(mode=0o700)
    context = chromium.new_context(viewport=PHONE)
    try:
        with serve_web(tmp_path / "workspace", state) as empty:
            page = context.new_page()
            page.goto(empty.first_address)
            page.goto(f"{empty.address}/sessions")
            assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
            assert str(tmp_path) not in page.locator("main").inner_text()  # from the home folder
    finally:
        context.close()
