"""Review in a real browser: accept, reject and edit what an agent proposes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from web_fixtures import WebSite, serve_web

from clawmark import Memory
from clawmark.agent.review.hunks import Because, appended_hunk, make_hunks
from clawmark.model.provenance import Origin

PAGE = "# Facts\n\n- Billing runs on MySQL.\n- Ann prefers tea.\n"
LOG = "# 2026-11-02\n\n- 10:15 Billing was moved to PostgreSQL 16.\n"
BY_AGENT = Origin(actor="agent", kind="curation", trust="agent", session="agent:main:main")


@pytest.fixture
def site(tmp_path: Path) -> Iterator[WebSite]:
    """A memory with two proposals, the first one with two changes."""
    workspace, state = tmp_path / "workspace", tmp_path / "state"
    (workspace / "memory").mkdir(parents=True)
    (workspace / "MEMORY.md").write_text(PAGE, encoding="utf-8")
    (workspace / "memory" / "2026-11-02.md").write_text(LOG, encoding="utf-8")
    with Memory.open(workspace, state_dir=state, provider="none", background=False) as memory:
        hunks = make_hunks(
            "MEMORY.md",
            PAGE,
            PAGE.replace("MySQL", "PostgreSQL 16"),
            lambda _: Because("Billing was moved in November.", ("memory/2026-11-02.md#L3",)),
        )
        more = appended_hunk("MEMORY.md", "- Bob is the plumber.", "He was mentioned three times.")
        memory.review.add((*hunks, more), title="Curate MEMORY.md", origin=BY_AGENT)
        note = appended_hunk("MEMORY.md", "- The moon is made of cheese.", "")
        memory.review.add((note,), title="A strange note", origin=BY_AGENT)
    with serve_web(workspace, state) as served:
        yield served


def page_of(site: WebSite) -> str:
    return (site.workspace / "MEMORY.md").read_text(encoding="utf-8")


def test_new_user_accepts_a_proposal_by_mouse(site: WebSite, browser_page: Any) -> None:
    browser_page.goto(site.first_address)
    browser_page.get_by_role("link", name="Review (2)").click()
    browser_page.get_by_role("link", name="Curate MEMORY.md").click()
    change = browser_page.get_by_role("region", name="Change 1 of 2")
    assert change.locator("tr.removed .text").inner_text() == "- Billing runs on MySQL."
    assert change.locator("tr.added .text").inner_text() == "- Billing runs on PostgreSQL 16."
    change.get_by_text("Billing was moved in November.").wait_for()
    change.locator("blockquote", has_text="moved to PostgreSQL 16").wait_for()
    change.get_by_role("button", name="Accept").click()
    browser_page.locator(".hunk.accepted").wait_for()
    assert "- Billing runs on PostgreSQL 16." in page_of(site)
    assert "plumber" not in page_of(site)


def test_keys_decide_and_the_next_one_is_shown_at_once(site: WebSite, browser_page: Any) -> None:
    browser_page.goto(site.first_address)
    browser_page.goto(f"{site.address}/review/p1")
    browser_page.keyboard.press("a")
    browser_page.locator("#hunk-1.accepted").wait_for()
    browser_page.keyboard.press("a")
    browser_page.wait_for_url("**/review/p2")
    browser_page.keyboard.press("r")
    browser_page.get_by_text("Nothing waits for review.").wait_for()
    text = page_of(site)
    assert "PostgreSQL 16" in text
    assert "plumber" in text
    assert "moon" not in text


def test_change_is_edited_before_it_is_accepted(site: WebSite, browser_page: Any) -> None:
    browser_page.goto(site.first_address)
    browser_page.goto(f"{site.address}/review/p2")
    browser_page.keyboard.press("e")
    field = browser_page.get_by_label("The new text")
    field.fill("- The moon is made of rock.")
    browser_page.keyboard.press("Control+Enter")
    browser_page.locator("tr.added", has_text="rock").wait_for()
    assert "moon" not in page_of(site)
    browser_page.keyboard.press("a")
    browser_page.wait_for_url("**/review/p1")
    assert "- The moon is made of rock." in page_of(site)


def test_change_that_no_longer_applies_is_explained(site: WebSite, browser_page: Any) -> None:
    browser_page.goto(site.first_address)
    browser_page.goto(f"{site.address}/review/p1")
    (site.workspace / "MEMORY.md").write_text("# Something else\n", encoding="utf-8")
    browser_page.keyboard.press("a")
    browser_page.get_by_role("alert").get_by_text("no longer applies").wait_for()
    browser_page.get_by_role("region", name="Change 1 of 2").get_by_role(
        "button", name="Reject"
    ).click()
    browser_page.locator("#hunk-1.rejected").wait_for()


def test_proposal_can_be_decided_without_javascript(site: WebSite, chromium: Any) -> None:
    context = chromium.new_context(java_script_enabled=False)
    try:
        page = context.new_page()
        page.goto(site.first_address)
        page.goto(f"{site.address}/review/p1")
        page.get_by_role("button", name="Accept all 2 changes").click()
        page.wait_for_url("**/review/p2")
        assert "plumber" in page_of(site)
    finally:
        context.close()


def test_decision_needs_the_form_token(site: WebSite) -> None:
    headers = {
        "cookie": site.cookie(),
        "origin": site.address,
        "content-type": "application/x-www-form-urlencoded",
    }
    answer = site.request("POST", "/review/p1/accept", headers, "hunk=1")
    assert answer.status == 403
    assert page_of(site) == PAGE
