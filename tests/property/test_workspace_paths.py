"""No path leads out of the workspace, and every path that a scan lists leads back to its file."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from clawmark.model.errors import ClawmarkError
from clawmark.workspace import Workspace
from clawmark.workspace.guard import MAX_COMPONENTS, open_beneath, open_root

CANARY = "canary-of-the-outside"
SEGMENTS = (
    "..",
    ".",
    "",
    "memory",
    "x.md",
    "up",
    "out.md",
    "out",
    "root",
    "abs.md",
    "canary.md",
    "pipe.md",
    "\\",
    "..\\..",
)

segments = st.one_of(st.sampled_from(SEGMENTS), st.text(max_size=6))
wild_paths = st.builds(
    lambda lead, parts, tail: lead + "/".join(parts) + tail,
    st.sampled_from(("", "", "/", "//", "./", "../", "{root}/", "{root}/../")),
    st.lists(segments, max_size=8),
    st.sampled_from(("", "", "/", "#L1-L3", "\0", ".md")),
)


@pytest.fixture(scope="module")
def ws() -> Iterator[Path]:
    """A workspace full of ways out: links up, out, absolute, to the root of the file system."""
    top = Path(os.path.realpath(tempfile.mkdtemp()))
    memory = top / "ws" / "memory"
    memory.mkdir(parents=True)
    (top / "canary.md").write_text(CANARY)
    (top / "ws" / "canary.md").write_text(CANARY)
    (memory / "x.md").write_text("inside")
    for name, target in (
        ("up", ".."),
        ("out", top),
        ("out.md", "../../canary.md"),
        ("root", "/"),
        ("abs.md", top / "canary.md"),
    ):
        (memory / name).symlink_to(target)
    os.mkfifo(memory / "pipe.md")
    yield top / "ws"
    shutil.rmtree(top)


@given(relative=wild_paths)
@example(relative="memory/up/canary.md")
@example(relative="memory/out/canary.md")
@example(relative="../canary.md")
@example(relative="memory/\ud800.md")
@settings(max_examples=400, deadline=None)
def test_open_beneath_never_leaves_its_root(ws: Path, relative: str) -> None:
    with open_root(str(ws / "memory")) as root:
        try:
            fd = open_beneath(root, relative.replace("{root}", str(ws)))
        except (ClawmarkError, FileNotFoundError):
            return
    with os.fdopen(fd) as file:
        assert file.read() == "inside"


@given(path=wild_paths)
@example(path="{root}/../canary.md")
@example(path="memory/up/../canary.md")
@example(path="canary.md")
@settings(max_examples=400, deadline=None)
def test_reading_never_shows_what_is_not_memory(ws: Path, path: str) -> None:
    workspace = Workspace(str(ws))
    try:
        excerpt = workspace.read_lines(path.replace("{root}", str(ws)))
    except ClawmarkError as error:
        assert "\n" not in error.message
        assert error.message.endswith(".")
        return
    assert excerpt.text in ("", "inside")


names = st.text(
    st.characters(exclude_characters="/\0", exclude_categories=["Cs"]), min_size=1, max_size=40
).filter(lambda name: name not in (".", ".."))


@given(parts=st.lists(names, min_size=1, max_size=4))
@settings(max_examples=150, deadline=None)
def test_what_a_scan_lists_is_read_by_that_very_path(parts: list[str]) -> None:
    with tempfile.TemporaryDirectory() as top:
        path = "memory/" + "/".join(parts) + ".md"
        (Path(top) / path).parent.mkdir(parents=True)
        (Path(top) / path).write_text("here\n")
        workspace = Workspace(top)
        found = workspace.scan()
        assert len(found.files) + len(found.skipped) == 1
        for state in found.files:
            assert state.path == path
            assert workspace.read_lines(path).text == "here"
            assert workspace.read_document(state).text == "here\n"
        for _ in found.skipped:
            with pytest.raises(ClawmarkError):
                workspace.read_lines(path)


@given(depth=st.integers(MAX_COMPONENTS - 3, MAX_COMPONENTS + 3))
@settings(max_examples=10, deadline=None)
def test_the_same_depth_is_listed_and_read(depth: int) -> None:
    with tempfile.TemporaryDirectory() as top:
        path = "memory/" + "d/" * (depth - 2) + "x.md"
        (Path(top) / path).parent.mkdir(parents=True)
        (Path(top) / path).write_text("here\n")
        workspace = Workspace(top)
        listed = [state.path for state in workspace.scan().files]
        assert listed == ([path] if depth <= MAX_COMPONENTS else [])
        if not listed:
            with pytest.raises(ClawmarkError):
                workspace.read_lines(path)
