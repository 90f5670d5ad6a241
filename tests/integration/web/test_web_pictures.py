"""The pictures of the docs show the web page as it is: every view is opened in a real browser.

`UPDATE_SCREENSHOTS=1` takes the pictures again and writes them to `docs/images/web`; it needs
Pillow."""

from __future__ import annotations

import io
import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from picture_scene import GROUP, build_scene
from web_fixtures import WebSite, serve_web

PICTURES = Path(__file__).parents[3] / "docs" / "images" / "web"
WIDTH, HEIGHT = 1280, 800
MAX_BYTES = 120_000
SCHEMES = ("light", "dark")
IS_UPDATE = bool(os.environ.get("UPDATE_SCREENSHOTS"))


class View(NamedTuple):
    """A view, and a text that tells that it is complete."""

    path: str
    shows: str
    click: str = ""
    """Selector of the link that leads to it from the path."""
    scrolled: int = 0
    """How far down the picture begins."""


QUESTION = "q=How+long+did+the+restore+drill+take%3F"
NEARLY_FOUND = 5  # the log that is just not among the hits, counted from the oldest
VIEWS = {
    "search": View(f"/search?{QUESTION}", "21 minutes"),
    "explain": View(f"/search?{QUESTION}&explain=1", "21 minutes"),
    "why-not": View(f"/why-not?{QUESTION}&target=memory/DAY.md", "What brings it up"),
    "timeline": View("/timeline", "nynorsk"),
    "file": View("/file/MEMORY.md", "Ines Carvalho"),
    "history": View("/history/MEMORY.md", "45-day trial", ".versions a"),
    "edit": View("/edit/MEMORY.md", "MEMORY.md"),
    "review": View("/review", "next by Tomasz alone", "main a[href^='/review/']"),
    "forget": View("/forget?text=Biscuit", "Memory files"),
    "sessions": View("/sessions", "Which foods are unsafe"),
    "session": View("/sessions", "Taken from the memory", "main a:has-text('Which foods')"),
    "view-as": View(f"/as/{GROUP}?q=Who+takes+Biscuit%3F", "not private"),
    "graph": View("/graph?at=memory/schools.md", "Schools", scrolled=110),
    "health": View("/health", "Nothing is wrong"),
}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebSite]:
    home = tmp_path_factory.mktemp("home")
    build_scene(home / "agent", home / ".clawmark")
    with serve_web(home / "agent", home / ".clawmark") as served:
        served.get("/search?q=warm")  # so that no picture shows how long a model takes to load
        yield served


def picture(name: str, scheme: str) -> Path:
    return PICTURES / f"{name}-{scheme}.png"


def quantised(png: bytes) -> bytes:
    """Return a picture with 64 colours, which is a third of its size."""
    # Imported late: only needed when pictures are written.
    from PIL import Image

    few = Image.open(io.BytesIO(png)).convert("RGB").quantize(64, dither=Image.Dither.NONE)
    written = io.BytesIO()
    few.save(written, "PNG", optimize=True)
    return written.getvalue()


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("name", VIEWS)
def test_view_of_a_picture_can_be_opened(
    site: WebSite, browser_page: Any, name: str, scheme: str
) -> None:
    view, page = VIEWS[name], browser_page
    page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
    page.set_viewport_size({"width": WIDTH, "height": HEIGHT})
    page.goto(site.first_address)
    day = sorted((site.workspace / "memory").glob("20*.md"))[NEARLY_FOUND].stem
    page.goto(site.address + view.path.replace("DAY", day))
    if view.click:
        page.locator(view.click).first.click()
    page.locator("main").get_by_text(view.shows).first.wait_for()
    assert page.evaluate("document.documentElement.scrollWidth") <= WIDTH
    home = str(site.workspace.parent)
    assert home not in page.locator("main").inner_text(), "paths are shown from the home folder"
    if IS_UPDATE:
        page.evaluate(f"scrollTo(0, {view.scrolled})")
        PICTURES.mkdir(parents=True, exist_ok=True)
        taken = page.screenshot(animations="disabled", caret="hide")
        picture(name, scheme).write_bytes(quantised(taken))


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("name", VIEWS)
def test_picture_is_small_and_has_the_size_of_the_page(name: str, scheme: str) -> None:
    data = picture(name, scheme).read_bytes()
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    assert struct.unpack(">II", data[16:24]) == (WIDTH, HEIGHT)
    assert len(data) < MAX_BYTES


def test_every_picture_belongs_to_a_view() -> None:
    expected = {picture(name, scheme).name for name in VIEWS for scheme in SCHEMES}
    assert {file.name for file in PICTURES.iterdir()} == expected
