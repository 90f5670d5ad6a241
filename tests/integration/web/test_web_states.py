"""Empty, slow and broken states of the web page, with a real server in each of them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import pytest
from embeddings import EmbeddingServer
from web_fixtures import WebSite, serve_web

from clawmark import Memory
from clawmark.store.sqlite.files import lock_path
from clawmark.store.sqlite.locks import WriteLock

MOST_BYTES = 150_000
ARABIC = "memory/ملاحظات المشروع.md"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "workspace" / "memory").mkdir(parents=True)
    (tmp_path / "state").mkdir(mode=0o700)
    return tmp_path


def index(place: Path, provider: str = "none") -> str:
    """Index the notes by words only, and return the path of the index."""
    with Memory.open(
        place / "workspace", state_dir=place / "state", provider=provider, background=False
    ) as memory:
        memory.sync()
        return memory.places.index_path


def serve(place: Path, **search: object) -> AbstractContextManager[WebSite]:
    """Serve the notes; without settings of the search, by words only."""
    config = place / "config.json"
    given = {"memorySearch": search or {"provider": "none"}}
    config.write_text(json.dumps({"agents": {"defaults": given}}))
    return serve_web(place / "workspace", place / "state", "--config", str(config))


@pytest.fixture
def notes(place: Path) -> Path:
    """A workspace with three notes: a usual one, a large one, and one with an Arabic name."""
    root = place / "workspace"
    (root / "MEMORY.md").write_text("# Memory\n\n- The ferry to Nesodden leaves at 7:40.\n")
    lines = (
        f"- Entry {number}: crate {number * 7} went to the harbour." for number in range(20_000)
    )
    (root / "memory" / "large.md").write_text("\n".join(lines)[:1_000_000] + "\n")
    (root / ARABIC).write_text("# الميناء\n\n- اخترنا قاعدة البيانات PostgreSQL للميناء.\n")
    index(place)
    return place


@pytest.fixture
def site(notes: Path) -> Iterator[WebSite]:
    with serve(notes) as made:
        yield made


def test_memory_without_notes_says_how_to_write_the_first_one(place: Path) -> None:
    with serve(place) as site:
        pages = [site.get(path) for path in ("/search", "/search?q=tea", "/timeline", "/graph")]
    assert [page.status for page in pages] == [200] * 4
    for page in pages:
        assert "clawmark remember" in page.body
    assert "There are no notes yet." in pages[0].body


def test_page_says_that_the_index_is_being_built(place: Path) -> None:
    lock = WriteLock(lock_path(index(place)))
    (place / "workspace" / "MEMORY.md").write_text("- The ferry leaves at 7:40.\n")
    with (
        lock.held(5),  # another process is indexing, and takes its time
        serve(place) as site,
    ):
        start, answer = site.get("/search"), site.get("/search?q=ferry")
    assert "The index is being built: 1 file." in start.body
    assert answer.status == 200
    assert "Still indexing: 1 file is due." in answer.body


def test_search_says_what_still_works_while_the_provider_fails(place: Path) -> None:
    (place / "workspace" / "MEMORY.md").write_text("- The ferry leaves at 7:40.\n")
    with EmbeddingServer(key="sk-test") as server:
        remote = {"baseUrl": server.url, "apiKey": "sk-test"}
        with serve(place, provider="openai", remote=remote) as site:
            while "due" in site.get("/search?q=ferry&part=results").body:
                pass  # until the provider has embedded it
            server.spoil(500)
            answer = site.get("/search?q=boat+departs")
            probed = site.post("/health", {"action": "probe"})
    assert answer.status == 200
    assert 'class="doubt"' in answer.body
    assert 'class="hit"' in answer.body and "7:40" in answer.body  # the index still answers
    assert "sk-test" not in answer.body + probed.body
    assert "<strong>failed</strong>" in probed.body


def test_damaged_index_is_rebuilt_and_the_page_says_so(notes: Path) -> None:
    (damaged,) = (notes / "state").rglob("*.sqlite")
    damaged.write_bytes(b"not a database" * 1000)
    with serve(notes) as site:
        start, answer = site.get("/search"), site.get("/search?q=ferry")
        again = site.get("/search?q=ferry&format=json")  # unlike the page, it waits for the index
    assert start.status == 200
    assert (answer.status, again.status) == (200, 200)
    assert "7:40" in again.body


def test_file_outside_the_memory_is_refused_with_a_sentence(site: WebSite) -> None:
    (site.workspace / "memory" / "leak.md").symlink_to("/etc/hostname")
    answer = site.get("/file/memory/leak.md")
    assert answer.status in (403, 404)
    assert "<h1>" in answer.body and Path("/etc/hostname").read_text().strip() not in answer.body


def test_words_that_do_not_occur_are_named_as_the_reason(site: WebSite) -> None:
    answer = site.get("/search?q=zeppelin")
    assert "None of these words occur in the memory." in answer.body
    assert "Try other words, or fewer." in answer.body


def test_nothing_above_the_threshold_shows_the_nearest_passages(web_site: WebSite) -> None:
    answer = web_site.get("/search?q=zeppelin")
    assert "Nothing reaches the minimum score" in answer.body
    assert "The nearest passages, below the threshold" in answer.body
    assert 'class="hit"' in answer.body


def test_large_note_is_found_and_shown_in_parts_that_stay_light(site: WebSite) -> None:
    found = site.get("/search?q=crate+harbour")
    shown = site.get("/file/memory/large.md")
    last = site.get("/file/memory/large.md?line=19000")
    for page in (found, shown, last):
        assert page.status == 200
        assert len(page.body.encode()) < MOST_BYTES
    assert "Lines from 401" in shown.body
    assert 'id="L19000"' in last.body


def test_name_in_arabic_is_found_opened_and_forgotten(site: WebSite, browser_page: Any) -> None:
    browser_page.goto(site.first_address)
    browser_page.goto(f"{site.address}/search?" + urlencode({"q": "الميناء"}))
    hit = browser_page.locator(".hit", has_text=ARABIC).first
    hit.get_by_role("link", name="open").click()
    browser_page.get_by_role("heading", name=ARABIC).wait_for()
    assert quote(ARABIC) in browser_page.url
    browser_page.go_back()
    hit.get_by_role("link", name="forget").click()
    browser_page.get_by_role("heading", name=f"Forget: {ARABIC}").wait_for()


@pytest.mark.parametrize(
    "path", ["/search?q=ferry&explain=1", "/timeline", "/file/memory/large.md", "/health", "/as"]
)
def test_page_fits_on_a_phone(site: WebSite, chromium: Any, path: str) -> None:
    context = chromium.new_context(viewport={"width": 390, "height": 844})
    try:
        page = context.new_page()
        page.goto(site.first_address)
        page.goto(site.address + path)
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
    finally:
        context.close()
