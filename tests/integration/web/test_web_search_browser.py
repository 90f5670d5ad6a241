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
    browser_page.keyboard.press("Escape")  # leave the field
    browser_page.keyboard.press("j")
    assert browser_page.locator(".hit").first.get_attribute("class") == "hit current"
    browser_page.keyboard.press("?")
    browser_page.get_by_role("dialog").wait_for()
    browser_page.keyboard.press("Escape")
    browser_page.keyboard.press("/")
    assert browser_page.evaluate("document.activeElement.id") == "q"
