"""Listing, deleting and renaming below `memory`, guarded and durable."""

from __future__ import annotations

import hashlib
import sys
import threading
from pathlib import Path

import pytest

from clawmark.model.errors import (
    NotText,
    PathDenied,
    WorkspaceError,
    WorkspaceReadOnly,
    WriteConflict,
)
from clawmark.workspace import Workspace
from clawmark.workspace.guard import Folder

needs_links = pytest.mark.skipif(sys.platform == "win32", reason="links need a privilege there")


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    (tmp_path / "agent" / "memory" / "people").mkdir(parents=True)
    (tmp_path / "agent" / "MEMORY.md").write_text("always\n", encoding="utf-8")
    opened = Workspace(str(tmp_path / "agent"), lock_dir=str(tmp_path / "locks"))
    opened.replace("memory/a.md", "a\n", "")
    opened.replace("memory/people/carla.md", "dentist\n", "")
    return opened


@pytest.fixture
def folder(workspace: Workspace) -> Path:
    return Path(workspace.root) / "memory"


def test_a_folder_lists_itself_and_what_a_scan_would_find(
    workspace: Workspace, folder: Path
) -> None:
    for name in ("x.txt", ".#lock.md", "people/deep/er/note.md", ".git/x.md", "node_modules/y.md"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("x", encoding="utf-8")
    assert [
        (entry.path, entry.is_folder) for entry in workspace.list_folder("memory", 2) or ()
    ] == [
        ("memory", True),
        ("memory/a.md", False),
        ("memory/people", True),
        ("memory/people/carla.md", False),
        ("memory/people/deep", True),
    ]
    assert len(workspace.list_folder("memory", 1) or ()) == 3
    assert (
        workspace.list_folder("memory/none") is None
        and workspace.list_folder("memory/a.md") is None
    )


@pytest.mark.parametrize(
    "path",
    [
        "",
        "/",
        "..",
        "memory/..",
        "people",
        "MEMORY.md",
        "memory/.git",
        "memory/node_modules",
        "/etc",
    ],
)
def test_no_other_folder_is_listed_deleted_or_moved(workspace: Workspace, path: str) -> None:
    with pytest.raises(PathDenied):
        workspace.list_folder(path)
    with pytest.raises(PathDenied):
        workspace.delete(path)
    with pytest.raises(PathDenied):
        workspace.rename(path, "memory/new")
    with pytest.raises(PathDenied):
        workspace.rename("memory/people", path)


def test_the_folder_memory_itself_stays(workspace: Workspace, folder: Path) -> None:
    with pytest.raises(PathDenied, match="stays where it is"):
        workspace.delete("memory")
    with pytest.raises(WorkspaceError):
        workspace.rename("memory", "memory/new")
    assert (folder / "a.md").exists()


def test_a_file_is_read_and_written_with_its_own_line_ends(
    workspace: Workspace, folder: Path
) -> None:
    (folder / "dos.md").write_bytes(b"\xef\xbb\xbfone\r\ntwo\r\n")
    found = workspace.read_exact("memory/dos.md")
    assert found is not None and found.text == "\ufeffone\r\ntwo\r\n"
    workspace.replace("memory/dos.md", found.text.replace("two", "three"), found.hash)
    assert (folder / "dos.md").read_bytes() == b"\xef\xbb\xbfone\r\nthree\r\n"
    assert found.hash == hashlib.sha256(b"\xef\xbb\xbfone\r\ntwo\r\n").hexdigest()
    assert workspace.read_exact("memory/none.md") is None
    (folder / "bad.md").write_bytes(b"\xff\xfe\xfa")
    with pytest.raises(NotText):
        workspace.read_exact("memory/bad.md")


def test_deleting_is_synced_after_it_is_done(
    workspace: Workspace, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    unlink, sync = Folder.unlink, Folder.sync

    def noted_unlink(self: Folder, name: str) -> None:
        unlink(self, name)
        done.append(f"unlink {name}")

    def noted_sync(self: Folder) -> None:
        sync(self)
        done.append(f"sync {Path(self.path).name}")

    monkeypatch.setattr(Folder, "unlink", noted_unlink)
    monkeypatch.setattr(Folder, "sync", noted_sync)
    assert workspace.delete("memory/people") is True
    assert done == ["unlink carla.md", "sync people", "sync memory"]
    assert workspace.delete("memory/a.md") is True and done[3:] == ["unlink a.md", "sync memory"]
    assert workspace.delete("memory/a.md") is False
    done.clear()
    workspace.replace("memory/b.md", "b\n", "")
    done.clear()
    workspace.rename("memory/b.md", "memory/new/b.md")
    assert done == ["sync memory", "sync new", "sync memory"], (
        "the new folder, then both ends of the move"
    )


def test_what_is_deleted_is_kept_as_a_version(workspace: Workspace, tmp_path: Path) -> None:
    workspace.delete("memory/a.md")
    workspace.delete("memory/people")
    kept = {
        file.parent.name.rpartition("-")[0]: file.read_text(encoding="utf-8")
        for file in tmp_path.glob("versions/*/*.md")
    }
    assert kept == {"memory_a.md": "a\n", "memory_people_carla.md": "dentist\n"}


def test_a_rename_never_replaces_and_never_goes_into_itself(
    workspace: Workspace, folder: Path
) -> None:
    with pytest.raises(WriteConflict, match="already there"):
        workspace.rename("memory/a.md", "memory/people/carla.md")
    with pytest.raises(WorkspaceError, match="cannot be moved"):
        workspace.rename("memory/people", "memory/people/more/people")
    with pytest.raises(WorkspaceError, match="cannot be moved"):
        workspace.rename("memory/a.md", "memory/a.md")
    with pytest.raises(PathDenied):
        workspace.rename("memory/a.md", "memory/a.txt")
    with pytest.raises(PathDenied):
        workspace.rename("memory/a.md", "MEMORY.md/../../x.md")
    assert workspace.rename("memory/none.md", "memory/new.md") is False
    assert (folder / "a.md").read_text(encoding="utf-8") == "a\n"
    assert (folder / "people" / "carla.md").read_text(encoding="utf-8") == "dentist\n"


def test_a_read_only_file_stays(workspace: Workspace, folder: Path) -> None:
    (folder / "people" / "carla.md").chmod(0o444)
    for path in ("memory/people/carla.md", "memory/people"):
        with pytest.raises(WorkspaceReadOnly):
            workspace.delete(path)
    with pytest.raises(WorkspaceReadOnly):
        workspace.rename("memory/people/carla.md", "memory/b.md")
    assert (folder / "people" / "carla.md").exists()


@needs_links
def test_a_link_is_not_followed_to_what_it_names(
    workspace: Workspace, folder: Path, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept.md").write_text("kept", encoding="utf-8")
    (folder / "people" / "link").symlink_to(outside, target_is_directory=True)
    (folder / "people" / "link.md").symlink_to(outside / "kept.md")
    with pytest.raises(WorkspaceError, match="which is not a note"):
        workspace.delete("memory/people")
    for path in ("memory/people/link", "memory/people/link/kept.md", "memory/people/link.md"):
        with pytest.raises(PathDenied):
            workspace.delete(path)
        with pytest.raises(PathDenied):
            workspace.rename(path, "memory/stolen.md")
    assert (outside / "kept.md").read_text(encoding="utf-8") == "kept"


def test_renames_that_cross_do_not_wait_for_each_other(workspace: Workspace, folder: Path) -> None:
    """Each moves a file to where the other's was; whoever is first decides, and both end."""

    def swing(first: str, second: str) -> None:
        for _ in range(50):
            for old, new in ((first, second), (second, first)):
                try:
                    workspace.rename(old, new)
                except WriteConflict:
                    continue

    threads = [
        threading.Thread(target=swing, args=paths, daemon=True)
        for paths in (("memory/a.md", "memory/z.md"), ("memory/z.md", "memory/a.md"))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads)
    left = [
        path.read_text(encoding="utf-8")
        for path in (folder / "a.md", folder / "z.md")
        if path.exists()
    ]
    assert left == ["a\n"]
