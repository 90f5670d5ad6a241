"""Added folders as a workspace sees them: what is listed, how it is cited, and what cannot be
reached through them.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from clawmark import Memory
from clawmark.engine.sync.plan import plan_sync
from clawmark.model.errors import ConfigError, PathDenied
from clawmark.model.values import ScanFailure, is_cited_below, is_in_workspace
from clawmark.text.dates import date_of
from clawmark.workspace import Workspace
from clawmark.workspace.file_counts import survey
from clawmark.workspace.places import AGENT_FILES, Source


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    folder = tmp_path / "notes"
    (folder / "sub" / ".hidden").mkdir(parents=True)
    (folder / "a.md").write_text("alpha\n", encoding="utf-8")
    (folder / "sub" / "b.md").write_text("beta\n", encoding="utf-8")
    (folder / "sub" / ".hidden" / "c.md").write_text("secret\n", encoding="utf-8")
    (folder / "link.md").symlink_to("/etc/hostname")
    return folder


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "ws" / "memory").mkdir(parents=True)
    (tmp_path / "ws" / "MEMORY.md").write_text("own\n", encoding="utf-8")
    return tmp_path / "ws"


def opened(root: Path, *sources: Source) -> Workspace:
    return Workspace(str(root), sources=lambda: sources)


def test_files_of_a_source_are_cited_by_its_name(root: Path, notes: Path) -> None:
    workspace = opened(root, Source("notes", str(notes)))
    assert [state.path for state in workspace.scan().files] == [
        "MEMORY.md",
        "notes:a.md",
        "notes:sub/b.md",
    ]
    assert workspace.read_lines("notes:sub/b.md#L1").text == "beta"
    assert workspace.read_lines(str(notes / "a.md")).path == "notes:a.md"
    assert workspace.absolute("notes:sub/b.md#L1-L2") == str(notes / "sub" / "b.md")
    assert workspace.absolute("MEMORY.md") == str(root / "MEMORY.md")
    assert workspace.read_lines("notes:nope.md").missing


@pytest.mark.parametrize(
    "path",
    [
        "notes:",
        "notes:/a.md",
        "notes:../ws/MEMORY.md",
        "notes:sub/../a.md",
        "notes:sub/.hidden/c.md",
        "notes:link.md",
        "notes:a.txt",
        "notes:sub//b.md",
        "notes:\0a.md",
        "Notes:a.md",
        "other:a.md",
    ],
)
def test_nothing_else_is_reached_through_a_source(root: Path, notes: Path, path: str) -> None:
    with pytest.raises(PathDenied):
        opened(root, Source("notes", str(notes))).read_lines(path)


def test_a_source_is_never_written(root: Path, notes: Path) -> None:
    workspace = opened(root, Source("notes", str(notes)))
    with pytest.raises(PathDenied):
        workspace.append("notes:a.md", "more\n")
    with pytest.raises(PathDenied):
        workspace.replace("notes:new.md", "more\n", "")
    assert (notes / "a.md").read_text(encoding="utf-8") == "alpha\n"


def test_a_folder_that_became_a_link_is_not_followed(
    root: Path, notes: Path, tmp_path: Path
) -> None:
    source = Source("notes", str(notes))
    notes.rename(tmp_path / "real")
    notes.symlink_to(tmp_path / "real")
    scan = opened(root, source).scan()
    assert [state.path for state in scan.files] == ["MEMORY.md"]
    assert [item.path for item in scan.skipped] == ["notes:"]
    with pytest.raises(PathDenied):
        opened(root, source).read_lines("notes:a.md")


def test_a_source_inside_the_workspace_leaves_its_own_files_alone(root: Path) -> None:
    (root / "docs").mkdir()
    (root / "docs" / "x.md").write_text("x\n", encoding="utf-8")
    (root / "memory" / "m.md").write_text("m\n", encoding="utf-8")
    for name in AGENT_FILES:
        (root / name).write_text("instructions\n", encoding="utf-8")
    docs = opened(root, Source("docs", str(root / "docs")))
    assert [state.path for state in docs.scan().files] == ["MEMORY.md", "docs:x.md", "memory/m.md"]
    whole = opened(root, Source("ws", str(root)))
    assert [state.path for state in whole.scan().files] == [
        "MEMORY.md",
        "memory/m.md",
        "ws:docs/x.md",
    ]
    assert whole.read_lines("docs/x.md").path == "ws:docs/x.md"
    assert whole.read_lines("ws:memory/m.md").path == "memory/m.md"
    with pytest.raises(PathDenied):
        whole.read_lines("ws:USER.md")


def test_a_source_around_the_workspace_does_not_list_it_again(
    root: Path, tmp_path: Path, notes: Path
) -> None:
    workspace = opened(root, Source("all", str(tmp_path)))
    assert [state.path for state in workspace.scan().files] == [
        "MEMORY.md",
        "all:notes/a.md",
        "all:notes/sub/b.md",
    ]
    assert workspace.read_lines("all:ws/MEMORY.md").path == "MEMORY.md"


def test_passages_of_a_folder_that_cannot_be_listed_are_kept(root: Path, notes: Path) -> None:
    workspace = opened(root, Source("notes", str(notes)))
    stats = {state.path: (*state[2:], 0) for state in workspace.scan().files}
    failed = workspace.scan()._replace(files=(), failures=())
    plan = plan_sync(failed._replace(failures=(ScanFailure("notes:", "gone"),)), stats)
    assert plan.kept == ("notes:a.md", "notes:sub/b.md") and plan.delete == ("MEMORY.md",)


def test_a_cited_path_shows_whether_it_is_in_the_workspace() -> None:
    assert [
        is_in_workspace(path) for path in ("MEMORY.md", "memory/a:b.md", "notes:x.md", "../x.md")
    ] == [
        True,
        True,
        False,
        False,
    ]
    assert is_cited_below("notes:x.md", "notes:") and is_cited_below("notes:sub/x.md", "notes:sub")
    assert not is_cited_below("notes2:x.md", "notes:") and not is_cited_below(
        "memory2/x.md", "memory"
    )
    assert date_of("notes:2025-03-04-x.md") == date_of("notes:sub/2025-03-04.md") == "2025-03-04"


def test_a_survey_counts_by_ending_and_stops_at_its_limit(notes: Path) -> None:
    (notes / "x.PDF").write_bytes(b"")
    (notes / ".DS_Store").write_bytes(b"")
    (notes / "Makefile").write_bytes(b"")
    found = survey(str(notes))
    assert (found.markdown, found.others, found.is_complete) == (2, {".pdf": 1, "": 1}, True)
    info = os.stat(notes / "a.md")
    assert survey(str(notes), known={(info.st_dev, info.st_ino)}).markdown == 1
    assert survey(str(notes), left_out={"a.md"}).markdown == 1
    assert not survey(str(notes), most_entries=3).is_complete


def test_two_open_memories_see_what_one_of_them_adds(
    root: Path, notes: Path, tmp_path: Path
) -> None:
    def memory() -> Memory:
        return Memory.open(root, state_dir=tmp_path / "state", provider="none", background=False)

    with memory() as one, memory() as two:
        assert two.search("beta").hits == ()
        assert one.add_source(notes, name="n1").files == 2
        assert [hit.path for hit in one.search("beta").hits] == ["n1:sub/b.md"]
        assert [report.name for report in two.sources()] == ["n1"]
        two.sync()
        assert [hit.path for hit in two.search("beta").hits] == ["n1:sub/b.md"]
        assert two.remove_source("n1") == str(notes)
        one.sync()
        assert one.search("beta").hits == ()
        with pytest.raises(ConfigError):
            one.remove_source("n1")


def test_a_source_added_while_watching_is_watched(root: Path, notes: Path, tmp_path: Path) -> None:
    with (
        Memory.open(root, state_dir=tmp_path / "state", provider="none") as memory,
        memory.watch(files=True) as watching,
    ):
        assert watching.wait_quiet(60)
        folders = watching.watched_folders
        with Memory.open(
            root, state_dir=tmp_path / "state", provider="none", background=False
        ) as other:
            other.add_source(notes)
        assert watching.wait_quiet(60)
        (notes / "new.md").write_text("gamma\n", encoding="utf-8")
        assert watching.wait_quiet(60)
        assert [hit.path for hit in memory.search("gamma").hits] == ["notes:new.md"]
        assert not watching.polls_because and watching.watched_folders > folders
