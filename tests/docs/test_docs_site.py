"""The site is built without a warning, shows every page, and asks no other host for anything."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import pytest
from docblocks import ROOT, documents, where

pytest.importorskip("material", reason="the extra `docs` is not installed")

LOADING = {"script": "src", "img": "src", "link": "href", "iframe": "src", "source": "srcset"}
"""What a browser loads by itself: tags, and the attributes with the address."""


class Addresses(HTMLParser):
    """Collects what a page loads, what it links to, and its anchors."""

    def __init__(self) -> None:
        super().__init__()
        self.loaded = list[str]()
        self.linked = list[str]()
        self.anchors = set[str]()

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attributes}
        if tag in LOADING and LOADING[tag] in values:
            self.loaded.append(values[LOADING[tag]])
        if tag == "a" and "href" in values:
            self.linked.append(values["href"])
        self.anchors.update(values[name] for name in ("id", "name") if name in values)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    return folder


def pages(site: Path) -> Iterator[tuple[Path, Addresses]]:
    for file in sorted(site.rglob("*.html")):
        found = Addresses()
        found.feed(file.read_text(encoding="utf-8"))
        yield file, found


def is_elsewhere(address: str) -> bool:
    return bool(re.match(r"(?:[a-z]+:)?//", address))


def test_every_document_is_a_page(site: Path) -> None:
    expected = {
        (site / file.relative_to(ROOT / "docs")).with_suffix(".html")
        for file in documents()
        if file.is_relative_to(ROOT / "docs")
    }
    outside = ("changelog", "contributing", "measurements", "notices")
    expected |= {site / f"{name}.html" for name in outside}
    assert sorted(str(file) for file in expected if not file.is_file()) == []


def test_pages_and_stylesheets_load_nothing_from_another_host(site: Path) -> None:
    loaded = {
        f"{file.name}: {address}"
        for file, found in pages(site)
        for address in found.loaded
        if is_elsewhere(address)
    }
    styles = {
        f"{file.name}: {address}"
        for file in site.rglob("*.css")
        for address in re.findall(r"url\(['\"]?([^'\")]+)", file.read_text(encoding="utf-8"))
        if is_elsewhere(address)
    }
    assert loaded | styles == set()


def test_everything_a_page_loads_or_links_to_is_on_the_site(site: Path) -> None:
    anchors = {file.resolve(): found.anchors for file, found in pages(site)}
    missing = set[str]()
    for file, found in pages(site):
        if file.name == "404.html":  # its addresses begin at the root of the server
            continue
        for address in (*found.loaded, *found.linked):
            if is_elsewhere(address) or address.startswith(("mailto:", "data:", "javascript:")):
                continue
            path, _, anchor = unquote(address).partition("#")
            target = (file.parent / path).resolve() if path else file.resolve()
            is_page = target in anchors
            if not target.exists() or (anchor and is_page and anchor not in anchors[target]):
                missing.add(f"{file.relative_to(site)}: {address}")
    assert sorted(missing) == []


def test_search_knows_the_pages(site: Path) -> None:
    index = (site / "search" / "search_index.json").read_text(encoding="utf-8")
    assert "how-to/hosts/claude-code.html" in index
    assert "memorySearch.query.minScore" in index


def test_pictures_of_a_document_are_there() -> None:
    missing = [
        f"{where(file)}: {name}"
        for file in documents()
        for name in re.findall(
            r'(?:srcset|src)="([^"]+)"|!\[[^\]]*\]\(([^)\s]+)\)', file.read_text(encoding="utf-8")
        )
        for name in name
        if name and not is_elsewhere(name) and not (file.parent / name).is_file()
    ]
    assert missing == []


def test_the_charts_are_those_of_the_results() -> None:
    script = ROOT / "scripts" / "charts"
    compared = subprocess.run(
        [sys.executable, str(script), "--check"], capture_output=True, text=True, check=False
    )
    assert (compared.returncode, compared.stdout) == (0, "")
