"""The search page in a real browser: tasks that a new user has."""

from __future__ import annotations

from typing import Any

from web_fixtures import WebSite


def test_new_user_finds_an_answer_by_typing_a_question(
    web_site: WebSite, browser_page: Any
) -> None:
    browser_page.goto(web_site.first_address)
    browser_page.get_by_role("searchbox").press_sequentially("Which database did we choose?")
    first = browser_page.locator(".hit").first
    first.get_by_text("PostgreSQL 16").wait_for()
    assert "token" not in browser_page.url
    assert "q=Which" in browser_page.url  # the address can be kept


def test_search_works_without_javascript(web_site: WebSite, chromium: Any) -> None:
    context = chromium.new_context(java_script_enabled=False)
    try:
        page = context.new_page()
        page.goto(web_site.first_address)
        page.get_by_role("searchbox").fill("Which database did we choose?")
        page.get_by_role("button", name="Search").click()
        page.locator(".hit").first.get_by_text("PostgreSQL 16").wait_for()
    finally:
        context.close()


def test_keys_move_through_the_hits_and_show_all_keys(web_site: WebSite, browser_page: Any) -> None:
    browser_page.goto(web_site.first_address)
    browser_page.goto(f"{web_site.address}/search?q=database")
    browser_page.locator(".hit").first.wait_for()
    browser_page.locator("#q:focus").wait_for()
    browser_page.keyboard.press("Escape")  # leave the field
    browser_page.keyboard.press("j")
    assert browser_page.locator(".hit").first.get_attribute("class") == "hit current"
    browser_page.keyboard.press("?")
    browser_page.get_by_role("dialog").wait_for()
    browser_page.keyboard.press("Escape")
    browser_page.keyboard.press("/")
    assert browser_page.evaluate("document.activeElement.id") == "q"


def test_new_user_finds_out_why_an_expected_note_was_missed(
    web_site: WebSite, browser_page: Any
) -> None:
    browser_page.goto(web_site.first_address)
    browser_page.get_by_role("searchbox").press_sequentially("Which database did we choose?")
    browser_page.locator(".hit").first.wait_for()
    browser_page.get_by_role("link", name="A note is missing: why not?").click()
    browser_page.get_by_label("File or line").fill("MEMORY.md")
    browser_page.get_by_role("button", name="Find out").click()
    browser_page.get_by_text("dropped by the threshold").wait_for()
    browser_page.get_by_role("heading", name="What brings it up").wait_for()
    browser_page.get_by_role("link", name="Try it").click()
    browser_page.locator(".hit .citation", has_text="MEMORY.md").first.wait_for()


def test_explained_hit_shows_factors_that_add_up_to_its_score(
    web_site: WebSite, browser_page: Any
) -> None:
    browser_page.goto(web_site.first_address)
    browser_page.goto(f"{web_site.address}/search?q=Which+database+did+we+choose%3F")
    browser_page.locator("#q:focus").wait_for()
    browser_page.keyboard.press("Escape")
    browser_page.keyboard.press("e")
    table = browser_page.locator(".hit table.sum").first
    table.wait_for()
    adds = [float(text) for text in table.locator("tbody td:last-child").all_inner_texts()]
    total = float(table.locator("tfoot tr").first.locator("td").last.inner_text())
    assert abs(sum(adds) - total) < 0.005 * (len(adds) + 1)
    score = browser_page.locator(".hit .score").first.inner_text()
    assert table.locator(".total td").last.inner_text() == score


def test_page_says_quietly_that_a_file_has_changed(web_site: WebSite, browser_page: Any) -> None:
    browser_page.goto(web_site.first_address)
    with browser_page.expect_response(lambda answer: answer.url.endswith("/events")):
        browser_page.goto(f"{web_site.address}/search")
    (web_site.workspace / "memory" / "harbour.md").write_text(
        "# Harbour\n\n- Tea at the harbour.\n"
    )
    browser_page.get_by_text("1 file has changed:").wait_for()
    assert browser_page.locator(".hit").count() == 0  # nothing moved


def test_wrong_filter_is_explained_in_place(web_site: WebSite, browser_page: Any) -> None:
    browser_page.goto(web_site.first_address)
    browser_page.goto(f"{web_site.address}/search?q=tea&since=never")
    browser_page.get_by_text("since must be a day").wait_for()


def test_health_page_tries_the_embedder_when_asked(web_site: WebSite, browser_page: Any) -> None:
    browser_page.goto(web_site.first_address)
    browser_page.goto(f"{web_site.address}/health")
    browser_page.get_by_role("button", name="Try the embedder").click()
    browser_page.get_by_role("heading", name="Tried now").wait_for()


def test_health_page_shows_the_state_and_then_the_checks(
    web_site: WebSite, browser_page: Any
) -> None:
    browser_page.goto(web_site.first_address)
    browser_page.goto(f"{web_site.address}/health")
    browser_page.get_by_role("heading", name="State").wait_for()
    browser_page.get_by_text("checks passed").wait_for()
    assert "Run the checks" not in browser_page.locator("#checks").inner_text()


def test_checks_can_be_run_without_javascript(web_site: WebSite, chromium: Any) -> None:
    context = chromium.new_context(java_script_enabled=False)
    try:
        page = context.new_page()
        page.goto(web_site.first_address)
        page.goto(f"{web_site.address}/health")
        page.get_by_role("link", name="Run the checks").click()
        page.get_by_text("checks passed").wait_for()
    finally:
        context.close()


def test_rank_of_a_hit_is_explained_from_its_place(web_site: WebSite, browser_page: Any) -> None:
    browser_page.goto(web_site.first_address)
    browser_page.goto(f"{web_site.address}/search?q=Which+database+did+we+choose%3F")
    browser_page.locator(".hit").first.get_by_role("link", name="why this rank").click()
    browser_page.get_by_role("heading", name="Why does it rank where it does?").wait_for()
    browser_page.get_by_text("It is hit 1").wait_for()
