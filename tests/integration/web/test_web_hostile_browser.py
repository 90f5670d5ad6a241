"""Hostile notes in a real browser: nothing runs, nothing breaks, no other host is asked."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from web_attacks import HUGE, NAMES, clean, have_attacks, write_attacks
from web_fixtures import WebSite, serve_web
from web_scene import MAIN, open_scene

from clawmark.model.errors import KeptForReview
from clawmark.model.provenance import Origin
from clawmark.web.pages.sessions import session_address

DAY = date.today().isoformat()
FILES = ("MEMORY.md", f"memory/{DAY}.md", "memory/attacks.md", *HUGE, *NAMES)

INSPECT = r"""() => {
  const found = [];
  const allowed = new Set(["SCRIPT", "LINK"]);
  for (const one of document.querySelectorAll("*")) {
    for (const attribute of one.attributes) {
      if (/^on/i.test(attribute.name)) found.push(`handler ${attribute.name}`);
      if (attribute.name === "style") found.push("style attribute");
      if (/^(href|src|action|formaction|xlink:href|data|srcdoc)$/i.test(attribute.name)) {
        const to = new URL(attribute.value, location.href);
        const isLink = one.tagName === "A" && ["http:", "https:", "mailto:"].includes(to.protocol);
        if (to.origin !== location.origin && !isLink) found.push(`${one.tagName} ${to.href}`);
      }
    }
  }
  const main = document.querySelector("main");
  const forbidden = "script, style, link, iframe, object, embed, base, img, video, audio, meta";
  for (const one of main.querySelectorAll(forbidden)) found.push(`element ${one.tagName}`);
  if (window.attacked) found.push("a script ran");
  if (!main.getBoundingClientRect().height) found.push("main is not visible");
  if (document.documentElement.scrollWidth > innerWidth + 1)
    found.push(`the page is ${document.documentElement.scrollWidth} pixels wide`);
  const odd = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f\u202a-\u202e\u2066-\u2069]/;
  if (odd.test(main.innerText)) found.push("a control or direction character is shown");
  return found;
}"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebSite]:
    folder = tmp_path_factory.mktemp("attacks")
    workspace, state = folder / "agent", folder / "state"
    workspace.mkdir()
    agents = {"defaults": {"review": "all"}}
    with open_scene(workspace, state, agents=agents) as memory:
        write_attacks(workspace, DAY)
        have_attacks(memory, MAIN)
        memory.sync()
        origin = Origin("agent", "tool", "agent", session="<script>window.attacked=1</script>")
        text = clean((workspace / "memory" / "attacks.md").read_text(encoding="utf-8"))
        with pytest.raises(KeptForReview):
            memory.workspace.append("MEMORY.md", text, origin=origin)
    with serve_web(workspace, state) as made:
        yield made


@pytest.fixture
def visit(site: WebSite, browser_page: Any) -> Any:
    """Open a page and look for everything that a note must not do."""
    browser_page.set_default_timeout(120_000)  # a busy machine
    browser_page.on("dialog", lambda dialog: pytest.fail(f"a dialog: {dialog.message}"))
    browser_page.goto(site.first_address)

    def look(path: str, expected: int = 200) -> None:
        answer = browser_page.goto(site.address + path)
        assert answer.status == expected, f"{path}: {answer.status}"
        assert browser_page.url.startswith(site.address)
        assert browser_page.evaluate(INSPECT) == [], path

    return look


def at(path: str) -> str:
    return quote(path.encode(), safe="/")


@pytest.mark.parametrize("path", FILES)
def test_a_hostile_file_runs_nothing_in_any_of_its_views(path: str, visit: Any) -> None:
    visit(f"/file/{at(path)}")
    visit(f"/file/{at(path)}?view=raw")
    visit(f"/history/{at(path)}")
    visit(f"/forget?path={quote(path.encode(), safe='')}")
    visit(f"/graph?at={quote(path.encode(), safe='')}")


@pytest.mark.parametrize(
    "path",
    [
        "/search?q=harpoon",
        "/search?q=harpoon&explain=1",
        "/search?q=%3Cscript%3Ewindow.attacked%3D1%3C%2Fscript%3E%22%27%3E%E2%80%AE%1b",
        "/timeline",
        f"/day/{DAY}",
        "/sessions",
        "/review",
        "/graph",
        "/health",
        "/as",
        f"/as/{MAIN}?q=harpoon&path=memory/attacks.md",
        "/as/%3Cscript%3Ewindow.attacked=1%3C/script%3E?q=%22%3E%3Cscript%3E&path=%22onfocus=x",
    ],
)
def test_a_view_over_hostile_notes_runs_nothing(path: str, visit: Any) -> None:
    visit(path)


def test_hostile_transcripts_run_nothing(site: WebSite, visit: Any, browser_page: Any) -> None:
    visit("/sessions")
    addresses = browser_page.locator(".session-title").evaluate_all(
        "all => all.map(one => one.getAttribute('href'))"
    )
    assert len(addresses) == 2
    for address in addresses:
        visit(address)
    following = browser_page.get_by_role("link", name="Next messages")
    if following.count():
        visit(following.get_attribute("href"))


def test_a_hostile_proposal_runs_nothing(visit: Any, browser_page: Any) -> None:
    visit("/review")
    address = browser_page.locator("main a[href^='/review/']").first.get_attribute("href")
    visit(address)


@pytest.mark.parametrize(
    "path",
    [
        "/file/%3Cscript%3Ewindow.attacked=1%3C/script%3E",
        "/file/..%2f..%2fetc%2fpasswd",
        "/graph?at=%3Cimg%20src=x%20onerror=window.attacked=1%3E",
        "/session/%3Cimg%20src=y%20onerror=window.attacked=1%3E",
        "/day/%3Cscript%3E",
        "/review/%3Cscript%3E",
        "/%3Cscript%3Ewindow.attacked=1%3C/script%3E",
    ],
)
def test_an_error_page_shows_a_hostile_address_as_text(
    path: str, site: WebSite, browser_page: Any
) -> None:
    browser_page.goto(site.first_address)
    answer = browser_page.goto(site.address + path)
    assert 400 <= answer.status < 500
    assert browser_page.evaluate(INSPECT) == []


def test_editing_a_hostile_note_shows_it_exactly(site: WebSite, browser_page: Any) -> None:
    browser_page.goto(site.first_address)
    browser_page.goto(f"{site.address}/edit/memory/editable.md")
    written = Path(site.workspace, "memory", "editable.md").read_text(encoding="utf-8")
    assert "</textarea>" in written
    assert browser_page.locator("textarea").input_value() == written
    assert not browser_page.evaluate("window.attacked")


def test_a_note_that_a_form_cannot_hold_is_not_edited_on_the_page(visit: Any) -> None:
    visit("/edit/memory/attacks.md", expected=400)


def test_session_addresses_with_odd_names_can_be_opened() -> None:
    assert "<" not in session_address("sessions/<img>.jsonl")
