"""Timeline, files, edits and forgetting in a real browser."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from web_fixtures import WebSite, serve_web

from clawmark import Memory
from clawmark.model.provenance import Origin

PAGE = "# Facts\n\n- Billing runs on MySQL.\n- Ann prefers tea.\n- Bob is the plumber.\n"
SECRET = "the code of the garage is 4711"
WEB = Origin(actor="agent", kind="web", trust="external", session="agent:main:main")


@pytest.fixture
def site(tmp_path: Path) -> Iterator[WebSite]:
    workspace, state = tmp_path / "workspace", tmp_path / "state"
    (workspace / "memory").mkdir(parents=True)
    (workspace / "MEMORY.md").write_text(PAGE, encoding="utf-8")
    with Memory.open(workspace, state_dir=state, provider="none", background=False) as memory:
        memory.append(f"Mum says {SECRET}")
        memory.append("A page says that gold is cheap", origin=WEB)
        memory.sync()
        memory.history.record()
    with serve_web(workspace, state) as served:
        yield served


def page_of(site: WebSite) -> str:
    return (site.workspace / "MEMORY.md").read_text(encoding="utf-8")


def everything(folder: Path) -> bytes:
    return b"".join(file.read_bytes() for file in sorted(folder.rglob("*")) if file.is_file())


def test_new_user_forgets_an_entry_after_seeing_the_plan(site: WebSite, browser_page: Any) -> None:
    browser_page.goto(site.first_address)
    browser_page.get_by_role("link", name="Timeline").click()
    entry = browser_page.locator(".entry", has_text=SECRET)
    entry.locator("a.citation").click()
    browser_page.locator(".row", has_text=SECRET).locator("a.number").click()
    browser_page.get_by_role("link", name="Forget this entry").click()
    browser_page.get_by_role("heading", name="Memory files").wait_for()
    browser_page.get_by_role("heading", name="History").wait_for()
    browser_page.get_by_role("heading", name="What cannot be reached").wait_for()
    assert SECRET.encode() in everything(site.workspace)  # the plan has changed nothing
    browser_page.get_by_role("button", name="Forget it").click()
    browser_page.get_by_role("heading", name="Forgotten: 1 memory file changed").wait_for()
    assert SECRET.encode() not in everything(site.workspace)
    assert SECRET.encode() not in everything(site.state)
    browser_page.goto(f"{site.address}/timeline")
    browser_page.get_by_text("gold is cheap").wait_for()
    assert SECRET not in browser_page.content()


def test_plan_that_is_out_of_date_is_shown_again(site: WebSite, browser_page: Any) -> None:
    browser_page.goto(site.first_address)
    browser_page.goto(f"{site.address}/forget?lines=MEMORY.md%23L4")
    (site.workspace / "MEMORY.md").write_text("# Facts\n\n- new\n" + PAGE, encoding="utf-8")
    browser_page.get_by_role("button", name="Forget it").click()
    browser_page.get_by_role("alert").get_by_text("The memory has changed").wait_for()
    assert "- Ann prefers tea." in page_of(site)


def test_file_is_edited_and_saved(site: WebSite, browser_page: Any) -> None:
    browser_page.goto(site.first_address)
    browser_page.goto(f"{site.address}/file/MEMORY.md")
    browser_page.keyboard.press("e")
    field = browser_page.get_by_label("Text of MEMORY.md")
    field.fill(PAGE.replace("MySQL", "PostgreSQL"))
    browser_page.keyboard.press("Control+Enter")
    browser_page.wait_for_url("**/file/MEMORY.md*")
    browser_page.get_by_text("Billing runs on PostgreSQL.").wait_for()
    assert page_of(site) == PAGE.replace("MySQL", "PostgreSQL")


def test_conflict_shows_both_changes_and_saves_what_was_merged(
    site: WebSite, browser_page: Any
) -> None:
    browser_page.goto(site.first_address)
    browser_page.goto(f"{site.address}/edit/MEMORY.md")
    theirs = PAGE.replace("Bob is the plumber", "Rita is the plumber")
    (site.workspace / "MEMORY.md").write_text(theirs, encoding="utf-8")
    browser_page.get_by_label("Text of MEMORY.md").fill(PAGE.replace("MySQL", "PostgreSQL"))
    browser_page.get_by_role("button", name="Save").click()
    browser_page.get_by_role("alert").get_by_text("has changed since you opened it").wait_for()
    assert page_of(site) == theirs
    changed = browser_page.get_by_role("table", name="What changed in the file")
    assert changed.locator("tr.added .text").inner_text() == "- Rita is the plumber."
    browser_page.get_by_text("The text below has both changes.").wait_for()
    browser_page.get_by_role("button", name="Save this text").click()
    browser_page.wait_for_url("**/file/MEMORY.md*")
    assert page_of(site) == theirs.replace("MySQL", "PostgreSQL")


def test_conflict_in_the_same_line_keeps_the_users_text_in_the_form(
    site: WebSite, browser_page: Any
) -> None:
    browser_page.goto(site.first_address)
    browser_page.goto(f"{site.address}/edit/MEMORY.md")
    theirs = PAGE.replace("MySQL", "Oracle")
    (site.workspace / "MEMORY.md").write_text(theirs, encoding="utf-8")
    browser_page.get_by_label("Text of MEMORY.md").fill(PAGE.replace("MySQL", "PostgreSQL"))
    browser_page.get_by_role("button", name="Save").click()
    browser_page.get_by_text("The text below is yours").wait_for()
    assert "PostgreSQL" in browser_page.get_by_label("Text of MEMORY.md").input_value()
    assert page_of(site) == theirs


def test_line_shows_its_history_on_click(site: WebSite, browser_page: Any) -> None:
    changed = PAGE.replace("MySQL", "PostgreSQL")
    (site.workspace / "MEMORY.md").write_text(changed, encoding="utf-8")
    browser_page.goto(site.first_address)
    browser_page.goto(f"{site.address}/file/MEMORY.md")
    browser_page.get_by_role("link", name="Line 3").click()
    details = browser_page.get_by_role("region", name="Line 3")
    assert details.locator("tr.removed .text").inner_text() == "- Billing runs on MySQL."
    assert details.locator("tr.added .text").first.inner_text() == "- Billing runs on PostgreSQL."
    details.locator(".line-history a").first.click()
    browser_page.get_by_role("table", name="What this version changed").wait_for()


def test_earlier_version_is_restored(site: WebSite, browser_page: Any) -> None:
    (site.workspace / "MEMORY.md").write_text("# Empty\n", encoding="utf-8")
    browser_page.goto(site.first_address)
    browser_page.goto(f"{site.address}/history/MEMORY.md")
    browser_page.locator(".versions a").last.click()
    browser_page.get_by_text("Restore this version").click()
    browser_page.get_by_role("button", name="Restore").click()
    browser_page.wait_for_url("**/file/MEMORY.md")
    assert page_of(site) == PAGE


def test_timeline_says_whose_words_an_entry_has(site: WebSite, browser_page: Any) -> None:
    browser_page.goto(site.first_address)
    browser_page.goto(f"{site.address}/timeline")
    outside = browser_page.locator(".entry", has_text="gold is cheap")
    assert outside.locator(".trust").inner_text() == "from outside"
    own = browser_page.locator(".entry", has_text=SECRET)
    assert own.locator(".trust").inner_text() == "yours"
    browser_page.locator(".calendar a").first.click()
    browser_page.wait_for_url("**/timeline?until=*")


def test_address_of_a_line_in_a_long_file_leads_to_its_part(
    site: WebSite, browser_page: Any
) -> None:
    text = "".join(f"- entry number {number}\n" for number in range(1, 1001))
    (site.workspace / "memory" / "long.md").write_text(text, encoding="utf-8")
    browser_page.goto(site.first_address)
    browser_page.goto(f"{site.address}/file/memory/long.md#L950")
    browser_page.get_by_text("entry number 950", exact=True).wait_for()


@pytest.mark.parametrize(
    ("path", "status", "says"),
    [
        ("/file/memory/nothing.md", 404, "There is no memory file"),
        ("/file/AGENTS.txt", 403, "AGENTS.txt"),
        ("/file/..%2f..%2fetc%2fpasswd", 403, "passwd"),
        ("/edit/notes.txt", 403, "notes.txt"),
        ("/history/MEMORY.md?version=00000000", 400, "is not a version"),
        ("/day/2026-99-01", 400, "must be a day"),
        ("/timeline?year=x", 400, "is not a year"),
        ("/review/p99", 404, "There is no proposal"),
        ("/forget?lines=MEMORY.md%23L99", 400, "There is no entry"),
        ("/forget?lines=a&text=b", 400, "more than one way"),
    ],
)
def test_wrong_address_gets_one_sentence_and_its_status(
    site: WebSite, path: str, status: int, says: str
) -> None:
    answer = site.get(path)
    assert (answer.status, says in answer.body) == (status, True), answer.body


def test_every_view_has_a_json_twin(site: WebSite) -> None:
    for path in (
        "/timeline",
        "/day/2026-11-02",
        "/file/MEMORY.md",
        "/file/MEMORY.md?line=3",
        "/history/MEMORY.md",
        "/edit/MEMORY.md",
        "/review",
        "/forget?lines=MEMORY.md%23L4",
    ):
        joined = f"{path}{'&' if '?' in path else '?'}format=json"
        answer = site.get(joined)
        assert answer.status == 200, path
        assert isinstance(json.loads(answer.body), dict), path
