"""A full disk, a home that cannot be written, no folder for temporary files, no descriptor left:
one sentence says so, nothing is lost, and the next run is right."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

resource = pytest.importorskip("resource", reason="Windows has other limits")

Ended = subprocess.CompletedProcess[str]


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    notes = tmp_path / "ws" / "memory"
    notes.mkdir(parents=True)
    (tmp_path / "ws" / "MEMORY.md").write_text(
        "# Memory\n\n- The zebra is striped.\n", encoding="utf-8"
    )
    for number in range(120):
        text = " ".join(f"word{number}x{line}" for line in range(800))
        (notes / f"{number}.md").write_text(f"# Note {number}\n\n{text}\n", encoding="utf-8")
    return tmp_path / "ws"


def clawmark(workspace: Path, state: Path, *words: str, descriptors: int = 0, **more: str) -> Ended:
    def limit() -> None:
        if descriptors:
            resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors, descriptors))

    command = [
        sys.executable,
        "-m",
        "clawmark",
        *words,
        "--workspace",
        str(workspace),
        "--state-dir",
        str(state),
    ]
    (workspace.parent / "clawmark.json").write_text(
        '{"memorySearch": {"provider": "none"}}', encoding="utf-8"
    )
    command += ["--config", str(workspace.parent / "clawmark.json")]
    return subprocess.run(
        command, env={**os.environ, **more}, capture_output=True, text=True, preexec_fn=limit
    )


def mounted(folder: Path, options: str) -> bool:
    folder.mkdir(exist_ok=True)
    mount = shutil.which("mount")
    if mount is None or os.geteuid() != 0:
        return False
    return (
        subprocess.run(
            [mount, "-t", "tmpfs", "-o", options, "tmpfs", str(folder)], capture_output=True
        ).returncode
        == 0
    )


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    if not mounted(folder, "size=2m"):
        pytest.skip("a file system of two megabytes cannot be mounted here")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


@pytest.fixture
def read_only(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    if not mounted(folder, "ro"):
        pytest.skip("a read-only file system cannot be mounted here")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_full_disk_is_named_with_its_room_and_the_next_run_is_right(
    workspace: Path, small_disk: Path
) -> None:
    ended = clawmark(workspace, small_disk / "state", "index")
    assert ended.returncode == 3
    assert "The disk is full" in ended.stderr and str(small_disk) in ended.stderr
    assert "Traceback" not in ended.stderr
    searched = clawmark(workspace, small_disk / "state", "search", "zebra")
    assert searched.returncode == 0, searched.stderr
    assert "files due" in searched.stdout
    assert "The disk is full" in searched.stderr
    subprocess.run(["mount", "-o", "remount,size=40m", str(small_disk)], check=True)
    assert clawmark(workspace, small_disk / "state", "index").returncode == 0
    assert clawmark(workspace, small_disk / "state", "verify").returncode == 0


def test_a_state_folder_that_cannot_be_written_is_named(workspace: Path, read_only: Path) -> None:
    ended = clawmark(workspace, read_only / "state", "index")
    assert ended.returncode == 3
    assert "Read-only file system" in ended.stderr and str(read_only) in ended.stderr
    searched = clawmark(workspace, read_only / "state", "search", "zebra")
    assert searched.returncode == 0
    assert "Still indexing: 121 files are due." in searched.stdout
    assert "Read-only file system" in searched.stderr


def test_an_index_on_a_read_only_disk_still_answers(workspace: Path, tmp_path: Path) -> None:
    folder = tmp_path / "disk"
    if not mounted(folder, "size=40m"):
        pytest.skip("nothing can be mounted here")
    try:
        assert clawmark(workspace, folder / "state", "index").returncode == 0
        subprocess.run(["mount", "-o", "remount,ro", str(folder)], check=True)
        (workspace / "memory" / "new.md").write_text("A quagga.\n", encoding="utf-8")
        searched = clawmark(workspace, folder / "state", "search", "zebra")
        assert searched.returncode == 0, searched.stderr
        assert "MEMORY.md" in searched.stdout
        assert "1 file due" in searched.stdout
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def test_no_folder_for_temporary_files_is_needed(workspace: Path, tmp_path: Path) -> None:
    for words in (("index",), ("index", "--force"), ("search", "zebra")):
        ended = clawmark(workspace, tmp_path / "state", *words, TMPDIR=str(tmp_path / "nowhere"))
        assert ended.returncode == 0, ended.stderr


@pytest.mark.parametrize("descriptors", [6, 8, 10, 12])
def test_running_out_of_descriptors_is_said_and_the_next_run_is_right(
    descriptors: int, workspace: Path, tmp_path: Path
) -> None:
    ended = clawmark(workspace, tmp_path / "state", "index", descriptors=descriptors)
    assert "Traceback" not in ended.stderr
    if ended.returncode:
        assert "oo many" in ended.stderr and "ulimit -n" in ended.stderr, ended.stderr
    noted = clawmark(
        workspace, tmp_path / "state", "remember", "A quagga.", descriptors=descriptors
    )
    assert noted.returncode == 0 or "ulimit -n" in noted.stderr, noted.stderr
    assert clawmark(workspace, tmp_path / "state", "index").returncode == 0
    assert clawmark(workspace, tmp_path / "state", "verify").returncode == 0


def bound_by_permissions(*words: str) -> list[str]:
    """A command that the permissions of files bind, root or not."""
    if os.geteuid() != 0:
        return list(words)
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        pytest.skip("root may read everything, and setpriv is not installed")
    return [setpriv, "--bounding-set", "-dac_override,-dac_read_search", *words]


def bound(workspace: Path, state: Path, *words: str) -> Ended:
    command = bound_by_permissions(sys.executable, "-m", "clawmark", *words)
    config = workspace.parent / "clawmark.json"
    config.write_text('{"memorySearch": {"provider": "none"}}', encoding="utf-8")
    command += ["--workspace", str(workspace), "--state-dir", str(state), "--config", str(config)]
    return subprocess.run(command, capture_output=True, text=True)


def test_an_unreadable_file_is_reported_by_index_status_and_doctor(
    workspace: Path, tmp_path: Path
) -> None:
    state = tmp_path / "state"
    assert bound(workspace, state, "index").returncode == 0
    (workspace / "memory" / "7.md").write_text("Other words.\n", encoding="utf-8")
    (workspace / "memory" / "7.md").chmod(0)
    indexed = bound(workspace, state, "index")
    assert "memory/7.md cannot be read: permission denied" in indexed.stdout
    assert "1 could not be indexed" in bound(workspace, state, "status").stdout
    assert (
        json.loads(bound(workspace, state, "status", "--json").stdout)["metrics"]["read.errors"]
        == 1
    )
    examined = bound(workspace, state, "doctor")
    assert (
        examined.returncode == 1
        and "memory/7.md cannot be read: permission denied" in examined.stdout
    )
    assert bound(workspace, state, "get", "memory/7.md").returncode != 0
    page = bound(workspace, state, "status").stdout
    assert re.search(r"Read errors +[0-9]+ times \(last ", page), page
    (workspace / "memory" / "7.md").chmod(0o600)
    assert bound(workspace, state, "index").returncode == 0
    assert (
        json.loads(bound(workspace, state, "status", "--json").stdout)["metrics"]["read.errors"]
        == 0
    )
    assert bound(workspace, state, "doctor").returncode == 0


def test_a_folder_that_cannot_be_listed_is_reported_in_one_sentence(
    workspace: Path, tmp_path: Path
) -> None:
    state = tmp_path / "state"
    (workspace / "memory" / "closed").mkdir(mode=0)
    assert "\n  memory/closed: permission denied\n" in bound(workspace, state, "index").stdout
    told = "memory/closed could not be listed: permission denied."
    assert told in bound(workspace, state, "search", "zebra").stderr
    assert told.rstrip(".") in bound(workspace, state, "doctor").stdout
    (workspace / "memory" / "closed").chmod(0o700)


def test_an_index_that_cannot_be_reached_is_not_taken_for_none(
    workspace: Path, tmp_path: Path
) -> None:
    state = tmp_path / "state"
    assert bound(workspace, state, "index").returncode == 0
    (state / "memory").chmod(0)
    for words in (("status",), ("search", "zebra"), ("doctor",)):
        ended = bound(workspace, state, *words)
        assert ended.returncode == 3 and "cannot be opened" in ended.stderr, ended.stdout
    (state / "memory").chmod(0o700)
    assert "MEMORY.md" in bound(workspace, state, "search", "zebra").stdout
