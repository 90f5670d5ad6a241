"""The hostile workspace on the web page: every view, every file and every case gets a page, and no
secret."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import pytest
from hostile import cases, input_bytes, make, needs_maker, remove
from web_fixtures import WebSite, serve_web

from clawmark import Memory

pytestmark = needs_maker

VIEWS = ("/search?q=project", "/timeline", "/sessions", "/graph", "/as", "/review", "/health")
CUT = "A line is too long to be shown whole."


class Tree(NamedTuple):
    """The hostile tree and its web page."""

    folder: Path
    site: WebSite
    cookie: str

    def get(self, path: str) -> tuple[int, str]:
        answer = self.site.request("GET", path, {"cookie": self.cookie})
        return answer.status, answer.body

    @property
    def items(self) -> list[dict[str, Any]]:
        text = (self.folder / "manifest.json").read_text(encoding="utf-8")
        found: list[dict[str, Any]] = json.loads(text)["items"]
        return found

    @property
    def forbidden(self) -> list[str]:
        """Markers of files that must never be shown; a hard link is a file of the memory."""
        manifest = json.loads((self.folder / "manifest.json").read_text(encoding="utf-8"))
        never = [one["marker"] for one in self.items if one["expect"] == "never"]
        canaries = manifest["canaries"]
        secret = {*never, canaries["outside"], canaries["other"]} - {canaries["hardlink"], ""}
        return [one for one in secret if one]


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tree]:
    folder = make(tmp_path_factory.mktemp("hostile") / "tree")
    state = folder.parent / "state"
    state.mkdir(mode=0o700)
    settings = {
        "memorySearch": {
            "provider": "none",
            "sources": ["memory", "sessions"],
            "sessions": {"paths": [str(folder / "sessions" / "main")]},
        }
    }
    (state / "clawmark.json").write_text(json.dumps(settings), encoding="utf-8")
    with Memory.open(folder / "workspace", state_dir=state) as memory:
        memory.sync()
    with serve_web(folder / "workspace", state) as site:
        yield Tree(folder, site, site.cookie())
    remove(folder)


def addresses(tree: Tree) -> Iterator[str]:
    """Yield the addresses of every file of the tree, also of those that are not the memory's."""
    for item in tree.items:
        path = base64.b64decode(item["path_b64"])
        if path.startswith(b"workspace/"):
            below = path.removeprefix(b"workspace/")
            yield f"/file/{quote(below, safe='/')}"
            yield f"/graph?at={quote(below, safe='')}"
        elif path.startswith(b"sessions/main/"):
            yield f"/session/{quote(path.rpartition(b'/')[2], safe='')}"
        else:
            yield f"/file/{quote(b'../' + path, safe='')}"
            yield f"/file/{quote(str(tree.folder).encode() + b'/' + path, safe='/')}"


@pytest.fixture(scope="module")
def answers(tree: Tree) -> dict[str, tuple[int, str]]:
    """The answers of all addresses."""
    return {address: tree.get(address) for address in addresses(tree)}


def test_every_file_has_a_page_or_one_sentence_and_no_secret_is_shown(
    tree: Tree, answers: dict[str, tuple[int, str]]
) -> None:
    forbidden = tree.forbidden
    assert len(forbidden) >= 2 and len(answers) > 300
    for address, (status, body) in answers.items():
        assert status in (200, 400, 403, 404), f"{address}: {status}"
        assert "<main" in body, address
        assert not [marker for marker in forbidden if marker in body], address


def test_every_indexed_file_is_shown_and_an_address_with_a_line_shows_that_line(
    tree: Tree, answers: dict[str, tuple[int, str]]
) -> None:
    further = 0
    for item in tree.items:
        path = base64.b64decode(item["path_b64"])
        if item["expect"] != "index" or not path.startswith((b"workspace/m", b"workspace/M")):
            continue
        address = f"/file/{quote(path.removeprefix(b'workspace/'), safe='/')}"
        status, body = answers[address]
        assert status == 200, f"{address}: {status}"
        if item["marker"] not in body:
            further += 1
            _, body = tree.get(f"{address}?line={line_of(tree.folder, path, item['marker'])}")
            assert item["marker"] in body or CUT in body, address
    assert further > 5


def line_of(folder: Path, path: bytes, marker: str) -> int:
    """Return the number of the line that has a marker; 1 if it is not there as UTF-8."""
    data = (folder / os.fsdecode(path)).read_bytes()
    return data.partition(marker.encode())[0].count(b"\n") + 1 if marker.encode() in data else 1


@pytest.mark.parametrize("view", VIEWS)
def test_every_view_answers_and_shows_no_secret(tree: Tree, view: str) -> None:
    status, body = tree.get(view)
    assert status == 200 and "<main" in body
    assert not [marker for marker in tree.forbidden if marker in body]


@pytest.mark.parametrize(
    ("corpus", "address"), [("queries", "/search?q="), ("get_paths", "/file/")]
)
def test_every_hostile_argument_gets_a_page(tree: Tree, corpus: str, address: str) -> None:
    forbidden = tree.forbidden
    for name, case in cases(tree.folder, corpus).items():
        if "input" not in case and "input_b64" not in case:
            continue
        given = input_bytes(case)[:6_000]
        status, body = tree.get(address + quote(given, safe=""))
        assert status < 500 and "<" in body, f"{name}: {status}"
        secret = [marker for marker in forbidden if marker.encode() not in given]
        assert not [marker for marker in secret if marker in body], name
