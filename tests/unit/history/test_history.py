"""The history of a workspace: recording versions, reading them, limits, damage and kills."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
from dulwich.object_format import DEFAULT_OBJECT_FORMAT
from dulwich.objects import Blob
from dulwich.pack import Pack

from clawmark.history import recorded_files
from clawmark.history.history import History, Retention
from clawmark.history.recorded_files import RecordedFiles, is_recorded
from clawmark.model.errors import HistoryDamaged, WorkspaceError
from clawmark.model.values import FileState
from clawmark.system import shared_json

NOTE = "memory/2026-02-24.md"


class Folder:
    """A workspace folder with a history and a clock."""

    def __init__(self, path: Path, retention: Retention | None = None) -> None:
        self.path = path / "workspace"
        self.path.mkdir(parents=True)
        self.now = datetime(2026, 2, 24, 12, tzinfo=UTC).timestamp()
        self.reads: list[str] = []
        self.history = History(
            str(path / "state/history/main"), retention or Retention(), clock=lambda: self.now
        )

    def write(self, name: str, text: str) -> None:
        file = self.path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        os.utime(file, (self.now - 60, self.now - 60))

    def states(self) -> list[FileState]:
        found = []
        for file in sorted(self.path.rglob("*.md")):
            info = file.stat()
            found.append(
                FileState(
                    path=str(file.relative_to(self.path)),
                    source="memory",
                    size=info.st_size,
                    mtime_ns=info.st_mtime_ns,
                    inode=info.st_ino,
                    device=info.st_dev,
                )
            )
        return found

    def read(self, name: str) -> bytes | None:
        self.reads.append(name)
        try:
            return (self.path / name).read_bytes()
        except FileNotFoundError:
            return None

    def record(self, reason: str = "sync") -> str:
        self.now += 60
        version = self.history.record(self.states(), self.read, reason)
        return version.id if version else ""


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def changes_of(folder: Folder, path: str | None = None) -> list[tuple[str, list[tuple[str, str]]]]:
    return [
        (one.version.reason, [(change.kind, change.path) for change in one.changes])
        for one in folder.history.versions(path)
    ]


def test_versions_list_what_changed_the_newest_first(folder: Folder) -> None:
    folder.write("MEMORY.md", "- A\n")
    folder.write(NOTE, "# 2026-02-24\n\n- one\n")
    folder.record("first")
    folder.write(NOTE, "# 2026-02-24\n\n- one\n- two\n")
    folder.record("second")
    (folder.path / "MEMORY.md").unlink()
    folder.record("third")
    assert changes_of(folder) == [
        ("third", [("removed", "MEMORY.md")]),
        ("second", [("changed", NOTE)]),
        ("first", [("added", "MEMORY.md"), ("added", NOTE)]),
    ]
    assert changes_of(folder, NOTE) == [
        ("second", [("changed", NOTE)]),
        ("first", [("added", NOTE)]),
    ]


def test_an_unchanged_workspace_adds_no_version_and_reads_no_file(folder: Folder) -> None:
    folder.write(NOTE, "- one\n")
    assert folder.record()
    folder.reads.clear()
    assert folder.record() == ""
    assert folder.reads == []


def test_a_file_that_changed_a_moment_ago_is_read_again(folder: Folder) -> None:
    folder.write(NOTE, "- one\n")
    os.utime(folder.path / NOTE, (folder.now + 60, folder.now + 60))
    folder.record()
    info = (folder.path / NOTE).stat()
    (folder.path / NOTE).write_text("- two\n", encoding="utf-8")
    os.utime(folder.path / NOTE, ns=(info.st_atime_ns, info.st_mtime_ns))
    assert folder.record(), "the same size and time do not hide a change"


def test_files_are_kept_byte_by_byte(folder: Folder) -> None:
    data = b"\xef\xbb\xbf# x\r\n\r\n\xff\xfe\x00 no newline"
    (folder.path / "MEMORY.md").write_bytes(data)
    name = os.fsdecode(b"memory-\xff.md")
    (folder.path / name).write_bytes(b"odd name")
    version = folder.history.find(folder.record())
    assert folder.history.read(version, "MEMORY.md") == data
    assert folder.history.read(version, name) == b"odd name"
    assert folder.history.read(version, "absent.md") is None
    assert dict(folder.history.tree(version)) == {"MEMORY.md": data, name: b"odd name"}


def test_a_version_is_found_by_the_beginning_of_its_id_and_by_time(folder: Folder) -> None:
    assert folder.history.at(datetime.fromtimestamp(folder.now, UTC)) is None
    folder.write(NOTE, "- one\n")
    first = folder.record()
    between = datetime.fromtimestamp(folder.now + 30, UTC)
    folder.write(NOTE, "- two\n")
    second = folder.record()
    assert folder.history.find(first[:8]).id == first
    at = folder.history.at(between)
    assert at is not None and at.id == first
    at = folder.history.at(datetime.fromtimestamp(folder.now + 30, UTC))
    assert at is not None and at.id == second
    for wrong in ("", "abc", "0" * 40, first[:8] + "zz"):
        with pytest.raises(WorkspaceError, match="is not a version"):
            folder.history.find(wrong)


def test_a_diff_shows_added_and_removed_lines(folder: Folder) -> None:
    folder.write(NOTE, "- one\n- two\n")
    old = folder.history.find(folder.record())
    folder.write(NOTE, "- one\n- three")
    new = folder.history.find(folder.record())
    assert folder.history.diff(NOTE, old, new) == (
        f"--- a/{NOTE}\n+++ b/{NOTE}\n@@ -1,2 +1,2 @@\n - one\n-- two\n+- three\n"
        "\\ No newline at end of file\n"
    )
    assert folder.history.diff(NOTE, None, old).startswith("--- /dev/null\n")


def test_the_history_of_another_program_can_be_read_by_git(folder: Folder) -> None:
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    folder.write(NOTE, "- one\n")
    version = folder.record("sync")
    shown = subprocess.run(
        ["git", "-C", folder.history.folder, "show", f"{version}:{NOTE}"],
        capture_output=True,
        check=True,
    )
    assert shown.stdout == b"- one\n"
    subprocess.run(["git", "-C", folder.history.folder, "fsck", "--strict"], check=True)


def test_versions_older_than_the_retention_are_removed_from_the_disk(tmp_path: Path) -> None:
    folder = Folder(tmp_path, Retention(days=10))
    folder.write(NOTE, "- the word xylophone\n")
    old = folder.record()
    for number in range(30):
        folder.now += 86_400
        folder.write(NOTE, f"- day {number}\n")
        folder.record()
    versions = list(folder.history.versions())
    assert 10 <= len(versions) <= 12
    assert len(versions[-1].changes) == 1, "the oldest version that is left is complete"
    with pytest.raises(WorkspaceError):
        folder.history.find(old)
    assert b"xylophone" not in all_objects(folder)


def test_a_history_that_grows_too_large_loses_its_older_half(tmp_path: Path) -> None:
    folder = Folder(tmp_path, Retention(megabytes=1))
    for number in range(8):
        (folder.path / "MEMORY.md").write_bytes(os.urandom(300_000))
        assert folder.record(), number
    assert folder.history.size() < 2 << 20
    assert len(list(folder.history.versions())) >= 1


def test_rewriting_removes_text_from_every_version(folder: Folder) -> None:
    folder.write(NOTE, "- keep\n- secret word\n")
    folder.write("MEMORY.md", "- secret word\n")
    folder.record("first")
    folder.write(NOTE, "- keep\n- secret word\n- more\n")
    folder.record("second")

    def without(path: str, data: bytes) -> bytes | None:
        return None if path == "MEMORY.md" else data.replace(b"- secret word\n", b"")

    folder.history.rewrite(without)
    assert changes_of(folder) == [
        ("second", [("changed", NOTE)]),
        ("first", [("added", NOTE)]),
    ]
    assert b"secret" not in all_objects(folder)


def all_objects(folder: Folder) -> bytes:
    """Return the content of everything in the repository, reachable or not."""
    from dulwich.repo import Repo

    with Repo(folder.history.folder) as repo:
        return b"".join(repo[name].as_raw_string() for name in repo.object_store)


def test_a_damaged_history_is_reported(folder: Folder) -> None:
    folder.write(NOTE, "- one\n")
    folder.record()
    for file in Path(folder.history.folder, "objects").rglob("*"):
        if file.is_file():
            file.chmod(0o600)
            file.write_bytes(b"rubbish")
    with pytest.raises(HistoryDamaged, match="cannot be read"):
        list(folder.history.versions())


def test_a_version_that_meets_a_damaged_object_reports_it(folder: Folder) -> None:
    folder.write(NOTE, "- one\n")
    folder.record()
    folder.write(NOTE, "- two\n")
    blob = Blob.from_string(b"- two\n").id.decode()
    damaged = Path(folder.history.folder, "objects", blob[:2], blob[2:])
    damaged.parent.mkdir(exist_ok=True)
    damaged.write_bytes(b"x\n")
    with pytest.raises(HistoryDamaged, match="cannot be read"):
        folder.record()


def test_another_process_that_records_is_not_waited_for(folder: Folder) -> None:
    folder.write(NOTE, "- one\n")
    folder.record()
    lock = f"{folder.history.folder}.lock"
    script = (
        "import sys\nfrom clawmark.system import file_lock\n"
        "file_lock.acquire(sys.argv[1], 5)\nprint('locked', flush=True)\nsys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script, lock], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout is not None and other.stdout.readline() == b"locked\n"
        folder.write(NOTE, "- two\n")
        assert folder.record() == ""
        other.send_signal(signal.SIGKILL)
    assert folder.record(), "a killed process leaves no lock"


@pytest.mark.parametrize("step", ["built", "moved", "placed"])
def test_a_replacement_that_was_interrupted_is_finished(folder: Folder, step: str) -> None:
    folder.write(NOTE, "- one\n")
    version = folder.record()
    here, old, new = (Path(folder.history.folder + suffix) for suffix in ("", ".old", ".new"))
    shutil.copytree(here, new)
    if step != "built":
        here.rename(old)
    if step == "placed":
        new.rename(here)
    assert folder.history.find(version).id == version
    folder.write(NOTE, "- two\n")
    assert folder.record()
    assert not old.exists() and not new.exists()


def test_a_file_that_cannot_be_read_stays_as_it_was(folder: Folder) -> None:
    folder.write(NOTE, "- one\n")
    folder.write("MEMORY.md", "- A\n")
    folder.record()
    folder.write(NOTE, "- two\n")
    folder.write("MEMORY.md", "- B\n")

    def read(name: str) -> bytes | None:
        if name == NOTE:
            raise WorkspaceError("cannot be read")
        return folder.read(name)

    version = folder.history.record(folder.states(), read, "sync")
    assert version is not None
    assert dict(folder.history.tree(version)) == {"MEMORY.md": b"- B\n", NOTE: b"- one\n"}
    assert folder.record(), "it is read again the next time"


def test_the_states_of_another_repository_are_not_used(folder: Folder) -> None:
    folder.write(NOTE, "- one\n")
    folder.record()
    shutil.rmtree(folder.history.folder)
    version = folder.history.find(folder.record())
    assert folder.history.read(version, NOTE) == b"- one\n"


def test_leftovers_of_a_killed_process_do_not_stop_the_next_one(folder: Folder) -> None:
    folder.write(NOTE, "- one\n")
    folder.record()
    here = Path(folder.history.folder)
    (here / "refs/heads/main.lock").touch()
    Path(f"{here}.busy").touch()
    folder.write(NOTE, "- two\n")
    assert folder.record()
    assert not (here / "refs/heads/main.lock").exists()


def test_nothing_to_record_is_known_without_the_repository(folder: Folder) -> None:
    folder.write(NOTE, "- one\n")
    folder.record()
    assert is_recorded(folder.history.folder, folder.states())
    folder.write("MEMORY.md", "- A\n")
    assert not is_recorded(folder.history.folder, folder.states())
    folder.record()
    (folder.path / "MEMORY.md").unlink()
    assert not is_recorded(folder.history.folder, folder.states())


def test_recorded_states_are_read_as_they_were_saved(tmp_path: Path) -> None:
    blobs = {
        "memory/b 1/2/3.md/1/2/3": "b" * 40,
        "memory/line\nbreak.md/0/5/6": "c" * 40,
        "MEMORY.md/7/8/9": "a" * 40,
    }
    recorded = RecordedFiles("f" * 40, blobs, 12)
    recorded_files.save(str(tmp_path / "history.git"), recorded)
    assert recorded_files.load(str(tmp_path / "history.git")) == recorded


@pytest.mark.parametrize("states", ["", "a/1/2/3//b/1/2/3"])
def test_damaged_states_count_as_nothing_recorded(tmp_path: Path, states: str) -> None:
    folder = str(tmp_path / "history.git")
    values: dict[str, object] = {"version": "f" * 40, "states": states, "blobs": "a" * 40}
    shared_json.save(f"{folder}.files.json", values)
    assert recorded_files.load(folder) == recorded_files.NOTHING


def test_many_files_with_the_same_text_are_stored_once_and_readable_by_the_owner_only(
    folder: Folder,
) -> None:
    for number in range(100):
        folder.write(f"memory/{number}.md", f"- {number % 50}\n")
    version = folder.history.find(folder.record())
    assert folder.history.read(version, "memory/99.md") == b"- 49\n"
    (pack,) = Path(folder.history.folder).glob("objects/pack/*.pack")
    assert [file.stat().st_mode & 0o777 for file in pack.parent.iterdir()] == [0o600, 0o600]
    with Pack(str(pack.with_suffix("")), object_format=DEFAULT_OBJECT_FORMAT) as opened:
        opened.check()
        assert len(opened) == 50
        assert opened.name().decode() in pack.name


def test_many_files_at_once_are_recorded_like_few(folder: Folder) -> None:
    for number in range(100):
        folder.write(f"memory/a/{number % 7}/{number}.md", f"- {number}\n")
    version = folder.history.find(folder.record())
    assert len(dict(folder.history.tree(version))) == 100
    assert folder.history.read(version, "memory/a/3/3.md") == b"- 3\n"
    assert folder.history.read(version, "memory/a/3") is None
