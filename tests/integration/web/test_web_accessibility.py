"""Accessibility of every view, checked by axe-core in a real browser."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from web_fixtures import WebSite, serve_web
from web_scene import GROUP, MAIN, have_sessions, open_scene

from clawmark.model.errors import KeptForReview
from clawmark.model.provenance import Origin

AXE = Path(__file__).parents[2] / "servers" / "axe" / "axe.min.js"
VIEWS = (
    "/search?q=tea",
    "/search?q=tea&explain=1",
    "/timeline",
    f"/day/{date.today().isoformat()}",
    "/file/MEMORY.md",
    "/file/MEMORY.md?view=raw",
    "/edit/MEMORY.md",
    "/history/MEMORY.md",
    "/forget?path=memory/alone.md",
    "/sessions",
    "session",
    "/review",
    "proposal",
    "/graph",
    "/as",
    f"/as/{MAIN}?q=tea&path=MEMORY.md",
    f"/as/{GROUP}?q=tea",
    "/health",
    "/file/memory/none.md",
)
SERIOUS = ("serious", "critical")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebSite]:
    folder = tmp_path_factory.mktemp("scene")
    workspace, state = folder / "agent", folder / "state"
    workspace.mkdir()
    with open_scene(workspace, state) as memory:
        have_sessions(memory)
        memory.append("Tea is served at four.")
        memory.sync()
        with pytest.raises(KeptForReview):
            memory.workspace.append(
                "MEMORY.md", "- Ann also likes cake.\n", origin=Origin("agent", "curation", "agent")
            )
    with serve_web(workspace, state) as made:
        yield made


def open_view(site: WebSite, page: Any, view: str) -> None:
    page.goto(site.first_address)
    if view == "session":
        page.goto(f"{site.address}/sessions")
        page.locator(".session-title").last.click()
    elif view == "proposal":
        page.goto(f"{site.address}/review")
        page.locator("main a[href^='/review/']").first.click()
    else:
        page.goto(site.address + view)
    page.locator("main h1, main form").first.wait_for()


@pytest.mark.parametrize("view", VIEWS)
def test_axe_has_no_serious_finding(site: WebSite, chromium: Any, view: str) -> None:
    source = AXE.read_text(encoding="utf-8")
    found = list[str]()
    for scheme, width in (("light", 1280), ("dark", 390)):
        context = chromium.new_context(
            viewport={"width": width, "height": 800}, color_scheme=scheme, bypass_csp=True
        )
        try:
            page = context.new_page()
            open_view(site, page, view)
            page.evaluate(source)
            result = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
        finally:
            context.close()
        found += [
            f"{scheme}: {one['id']} ({one['help']}): {one['nodes'][0]['html'][:200]}"
            for one in result["violations"]
            if one["impact"] in SERIOUS
        ]
    assert not found, "\n".join(found)
