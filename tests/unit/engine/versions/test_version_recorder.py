"""What a recording takes from the scan of a sync, and when it looks at the disk itself."""

from __future__ import annotations

from pathlib import Path

from clawmark.engine.versions.recorder import VersionRecorder
from clawmark.history.history import History
from clawmark.model.values import FileState
from clawmark.workspace import Workspace


def recorded(history: History) -> list[str]:
    version = history.newest
    assert version is not None
    return sorted(path for path, _ in history.tree(version))


def make(tmp_path: Path, extra_paths: tuple[str, ...] = ()) -> tuple[Workspace, History]:
    root = tmp_path / "workspace"
    (root / "memory").mkdir(parents=True)
    (root / "MEMORY.md").write_text("- A\n")
    (root / "memory" / "tea.md").write_text("- Tea.\n")
    return Workspace(str(root), extra_paths=extra_paths), History(str(tmp_path / "history.git"))


def test_the_memory_files_of_a_given_scan_are_recorded(tmp_path: Path) -> None:
    workspace, history = make(tmp_path)
    scan = workspace.scan()
    transcript = FileState(
        path="sessions/a.jsonl", source="sessions", size=1, mtime_ns=1, inode=1, device=1
    )
    scan = scan._replace(files=(*scan.files, transcript))
    recorder = VersionRecorder(workspace, history.folder, lambda: history)
    assert recorder.record("sync", scan=scan)
    assert recorded(history) == ["MEMORY.md", "memory/tea.md"]


def test_the_disk_is_looked_at_if_there_are_extra_paths(tmp_path: Path) -> None:
    workspace, history = make(tmp_path, extra_paths=("notes",))
    (Path(workspace.root) / "notes").mkdir()
    (Path(workspace.root) / "notes" / "later.md").write_text("- Later.\n")
    recorder = VersionRecorder(workspace, history.folder, lambda: history)
    assert recorder.record("sync", scan=workspace.scan())
    assert recorded(history) == ["MEMORY.md", "memory/tea.md"]
