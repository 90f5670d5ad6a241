"""Append and replace: what is acknowledged is on disk, whole, once, and no other text is lost."""

from __future__ import annotations

import errno
import hashlib
import os
import resource
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from clawmark.model.documents import Written
from clawmark.model.errors import PathDenied, WorkspaceError, WorkspaceReadOnly, WriteConflict
from clawmark.system.file_lock import is_at
from clawmark.workspace import Workspace
from clawmark.workspace.write import MAX_ENTRY_BYTES

LOG = "memory/2026-02-24.md"


@pytest.fixture
def ws(tmp_path: Path) -> Path:
    (tmp_path / "ws").mkdir()
    return tmp_path / "ws"


@pytest.fixture(params=["lock folder", "no lock folder"])
def workspace(request: pytest.FixtureRequest, ws: Path, tmp_path: Path) -> Workspace:
    return Workspace(
        str(ws),
        lock_dir=str(tmp_path / "state" / "locks") if request.param == "lock folder" else None,
    )


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def put(ws: Path, data: bytes, path: str = LOG) -> Path:
    (ws / path).parent.mkdir(parents=True, exist_ok=True)
    (ws / path).write_bytes(data)
    return ws / path


# --- appending ---


def test_the_first_entry_makes_the_log_with_its_heading(workspace: Workspace, ws: Path) -> None:
    written = workspace.remember("We chose PostgreSQL", "2026-02-24")
    assert written == Written(LOG, 3, 3)
    assert (ws / LOG).read_text() == "# 2026-02-24\n\n- We chose PostgreSQL\n"


def test_later_entries_follow_and_know_their_lines(workspace: Workspace, ws: Path) -> None:
    workspace.remember("one", "2026-02-24")
    assert workspace.remember("two\nand more", "2026-02-24") == Written(LOG, 4, 5)
    assert workspace.read_lines(LOG + "#L4-L5").text == "- two\n  and more"
    assert (ws / LOG).read_text() == "# 2026-02-24\n\n- one\n- two\n  and more\n"


def test_the_citation_of_an_entry_reads_that_entry(workspace: Workspace) -> None:
    written = workspace.append("MEMORY.md", "- tea, not coffee")
    assert workspace.read_lines(written.citation).text == "- tea, not coffee"


def test_an_incomplete_last_line_gets_its_line_end_first(workspace: Workspace, ws: Path) -> None:
    put(ws, b"# Day\n\n- torn")
    assert workspace.append(LOG, "- whole") == Written(LOG, 4, 4)
    assert (ws / LOG).read_bytes() == b"# Day\n\n- torn\n- whole\n"


def test_an_empty_file_gets_the_heading(workspace: Workspace, ws: Path) -> None:
    put(ws, b"")
    workspace.remember("x", "2026-02-24")
    assert (ws / LOG).read_text() == "# 2026-02-24\n\n- x\n"


def test_missing_folders_are_made(workspace: Workspace, ws: Path) -> None:
    workspace.append("memory/a/b/c.md", "- x")
    assert (ws / "memory" / "a" / "b" / "c.md").read_text() == "- x\n"


def test_new_files_follow_the_umask(workspace: Workspace, ws: Path) -> None:
    before = os.umask(0o027)
    try:
        workspace.append(LOG, "- x")
    finally:
        os.umask(before)
    assert (ws / LOG).stat().st_mode & 0o777 == 0o640
    assert (ws / "memory").stat().st_mode & 0o777 == 0o750


@pytest.mark.parametrize("text", ["", "  \n ", "a\0b", "half \ud83d", "x" * (MAX_ENTRY_BYTES + 1)])
def test_an_invalid_text_is_refused_and_creates_nothing(
    workspace: Workspace, ws: Path, text: str
) -> None:
    with pytest.raises(WorkspaceError) as caught:
        workspace.append(LOG, text)
    assert caught.value.message.endswith(".")
    assert not (ws / "memory").exists()


@pytest.mark.parametrize(
    "path", ["../x.md", "AGENTS.md", "memory/x.sh", "/etc/x.md", "memory/.git/x.md", "notes/x.md"]
)
def test_only_memory_is_written(ws: Path, path: str) -> None:
    (ws / "notes").mkdir()
    with pytest.raises(PathDenied):
        Workspace(str(ws), ["notes"]).append(path, "x")
    assert [p.name for p in ws.rglob("*")] == ["notes"]


def test_a_write_never_goes_through_a_link(workspace: Workspace, ws: Path, tmp_path: Path) -> None:
    outside = put(tmp_path, b"outside\n", "outside/x.md")
    (ws / "memory").mkdir()
    (ws / "memory" / "out.md").symlink_to(outside)
    (ws / "memory" / "away").symlink_to(outside.parent)
    for path in ("memory/out.md", "memory/away/x.md", "memory/away/new.md"):
        with pytest.raises(PathDenied):
            workspace.append(path, "x")
        with pytest.raises(PathDenied):
            workspace.replace(path, "x", "")
    assert [p.name for p in outside.parent.iterdir()] == ["x.md"]
    assert outside.read_bytes() == b"outside\n"


def test_a_write_to_a_pipe_or_a_folder_is_refused(workspace: Workspace, ws: Path) -> None:
    (ws / "memory" / "folder.md").mkdir(parents=True)
    os.mkfifo(ws / "memory" / "pipe.md")
    for path in ("memory/pipe.md", "memory/folder.md"):
        with pytest.raises(PathDenied):
            workspace.append(path, "x")


def test_the_other_name_of_a_file_never_changes(
    workspace: Workspace, ws: Path, tmp_path: Path
) -> None:
    outside = put(tmp_path, b"shared\n", "outside.md")
    (ws / "memory").mkdir()
    os.link(outside, ws / LOG)
    assert workspace.append(LOG, "- mine") == Written(LOG, 2, 2)
    assert (ws / LOG).read_bytes() == b"shared\n- mine\n"
    assert outside.read_bytes() == b"shared\n"
    assert [p.name for p in (ws / "memory").iterdir()] == ["2026-02-24.md"]


def test_a_file_marked_read_only_stays_as_it_is(workspace: Workspace, ws: Path) -> None:
    put(ws, b"keep\n").chmod(0o444)
    with pytest.raises(WorkspaceReadOnly, match=r"memory/2026-02-24\.md is marked read-only\."):
        workspace.append(LOG, "x")
    with pytest.raises(WorkspaceReadOnly):
        workspace.replace(LOG, "x", sha256("keep\n"))
    assert (ws / LOG).read_bytes() == b"keep\n"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_folder_is_named(workspace: Workspace, ws: Path) -> None:
    (ws / "memory").mkdir(mode=0o555)
    with pytest.raises(WorkspaceReadOnly, match="cannot be written: permission denied"):
        workspace.append(LOG, "x")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_file_that_cannot_be_written_is_reported_as_such(workspace: Workspace, ws: Path) -> None:
    put(ws, b"theirs\n").chmod(0o424)
    with pytest.raises(WorkspaceReadOnly, match="cannot be written: permission denied"):
        workspace.append(LOG, "x")


def test_text_in_a_wide_encoding_is_not_mixed_with_utf8(workspace: Workspace, ws: Path) -> None:
    data = b"\xff\xfe" + "wide\n".encode("utf-16-le")
    put(ws, data)
    with pytest.raises(WorkspaceError, match="UTF-16 or UTF-32"):
        workspace.append(LOG, "x")
    assert (ws / LOG).read_bytes() == data


@contextmanager
def files_no_larger_than(size: int) -> Iterator[None]:
    """A real full disk for one file: writes beyond the size come out short, then fail."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_short_write_is_taken_back_and_reported(workspace: Workspace, ws: Path) -> None:
    before = b"x" * 99_999 + b"\n"
    put(ws, before)
    with (
        files_no_larger_than(100_010),
        pytest.raises(WorkspaceError, match="could not be written in full"),
    ):
        workspace.append(LOG, "- this entry is longer than ten bytes")
    assert (ws / LOG).read_bytes() == before


def test_a_refused_write_is_reported_with_its_path_and_cause(
    workspace: Workspace, ws: Path
) -> None:
    before = b"x" * 99_999 + b"\n"
    put(ws, before)
    cause = os.strerror(errno.EFBIG).lower()
    with (
        files_no_larger_than(100_000),
        pytest.raises(WorkspaceError, match=rf"memory/2026-02-24\.md .*: {cause}\."),
    ):
        workspace.append(LOG, "- x")
    assert (ws / LOG).read_bytes() == before


def test_writers_at_once_lose_nothing(ws: Path, tmp_path: Path) -> None:
    locks = str(tmp_path / "locks")

    def write(writer: int) -> None:
        workspace = Workspace(str(ws), lock_dir=locks)
        for number in range(20):
            written = workspace.append(LOG, f"- {writer}:{number}", header="# Day\n\n")
            assert workspace.read_lines(written.citation).text == f"- {writer}:{number}"

    threads = [threading.Thread(target=write, args=(writer,)) for writer in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    lines = (ws / LOG).read_text().split("\n")
    assert lines[:2] == ["# Day", ""]
    assert sorted(lines[2:-1]) == sorted(f"- {w}:{n}" for w in range(6) for n in range(20))


def test_an_entry_follows_an_editor_that_replaces_the_file(
    ws: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The editor renames its own version over the log between the write and the check."""
    put(ws, b"old\n")
    real_fsync = os.fsync
    edits = [b"edited\n"]

    def fsync_and_edit(fd: int) -> None:
        real_fsync(fd)
        if edits:
            put(ws, edits.pop(), "memory/new.tmp").replace(ws / LOG)

    monkeypatch.setattr(os, "fsync", fsync_and_edit)
    assert Workspace(str(ws)).append(LOG, "- mine") == Written(LOG, 2, 2)
    assert (ws / LOG).read_bytes() == b"edited\n- mine\n"


# --- replacing ---


def test_a_replace_with_the_right_base_wins(workspace: Workspace, ws: Path) -> None:
    put(ws, b"old\n").chmod(0o640)
    assert workspace.replace(LOG, "new\n", sha256("old\n")) == sha256("new\n")
    assert (ws / LOG).read_text() == "new\n"
    assert (ws / LOG).stat().st_mode & 0o777 == 0o640
    assert [p.name for p in (ws / "memory").iterdir()] == ["2026-02-24.md"]


def test_a_replace_with_another_base_is_a_conflict(workspace: Workspace, ws: Path) -> None:
    put(ws, b"theirs\n")
    with pytest.raises(WriteConflict) as caught:
        workspace.replace(LOG, "mine\n", sha256("old\n"))
    assert (caught.value.base_hash, caught.value.current_hash) == (
        sha256("old\n"),
        sha256("theirs\n"),
    )
    assert caught.value.message == "memory/2026-02-24.md has changed since it was read."
    assert (ws / LOG).read_text() == "theirs\n"


def test_an_empty_base_hash_requires_that_the_file_does_not_exist(
    workspace: Workspace, ws: Path
) -> None:
    assert workspace.replace("MEMORY.md", "first\n", "") == sha256("first\n")
    with pytest.raises(WriteConflict, match="is already there"):
        workspace.replace("MEMORY.md", "second\n", "")
    (ws / "MEMORY.md").unlink()
    with pytest.raises(WriteConflict, match="is gone"):
        workspace.replace("MEMORY.md", "second\n", sha256("first\n"))


def test_the_next_write_removes_what_a_killed_writer_left(workspace: Workspace, ws: Path) -> None:
    put(ws, b"old\n")
    left = ws / "memory" / ".clawmark-0.tmp"
    left.write_text("half of a tex")
    workspace.replace(LOG, "new\n", sha256("old\n"))
    assert not left.exists()
    left.write_text("half of a tex")
    workspace.append(LOG, "- more")
    assert (ws / LOG).read_text() == "new\n- more\n"
    assert not left.exists()


def test_a_failed_replace_leaves_the_old_text_and_no_temporary_file(
    workspace: Workspace, ws: Path
) -> None:
    put(ws, b"old\n")
    with files_no_larger_than(100_000), pytest.raises(WorkspaceError):
        workspace.replace(LOG, "x" * 200_000, sha256("old\n"))
    assert (ws / LOG).read_text() == "old\n"
    assert [p.name for p in (ws / "memory").iterdir()] == ["2026-02-24.md"]


def test_readers_see_the_old_or_the_new_text_and_never_a_mix(ws: Path) -> None:
    versions = [f"{n}\n" * 20_000 for n in range(2)]
    put(ws, versions[0].encode())
    done = threading.Event()
    seen: set[str] = set()

    def read() -> None:
        reader = Workspace(str(ws))
        while not done.is_set():
            seen.add(reader.read_document(reader.scan().files[0]).text)

    thread = threading.Thread(target=read)
    thread.start()
    writer = Workspace(str(ws))
    for n in range(60):
        writer.replace(LOG, versions[(n + 1) % 2], sha256(versions[n % 2]))
    done.set()
    thread.join()
    assert seen <= set(versions)


def test_two_editors_with_one_base_never_lose_a_text(ws: Path) -> None:
    put(ws, b"")
    won: list[str] = []

    def edit(editor: int) -> None:
        workspace = Workspace(str(ws))
        for n in range(30):
            base = (ws / LOG).read_text()
            line = f"{editor}:{n}\n"
            try:
                workspace.replace(LOG, base + line, sha256(base))
            except WriteConflict:
                continue
            won.append(line)

    threads = [threading.Thread(target=edit, args=(editor,)) for editor in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted((ws / LOG).read_text().splitlines(keepends=True)) == sorted(won)


# --- locks ---


def test_lock_files_are_private_and_outside_the_workspace(ws: Path, tmp_path: Path) -> None:
    locks = tmp_path / "state" / "locks"
    before = os.umask(0)
    try:
        Workspace(str(ws), lock_dir=str(locks)).append(LOG, "x")
    finally:
        os.umask(before)
    (lock,) = locks.iterdir()
    assert lock.suffix == ".lock"
    assert lock.stat().st_mode & 0o777 == 0o600
    assert [folder.stat().st_mode & 0o777 for folder in (locks, locks.parent)] == [0o700, 0o700]


def test_a_lock_on_a_deleted_lock_file_is_not_valid(tmp_path: Path) -> None:
    file = tmp_path / "x.lock"
    for is_there_again in (False, True):
        file.touch()
        fd = os.open(file, os.O_RDWR)
        file.rename(tmp_path / "deleted")
        if is_there_again:
            file.touch()
        assert not is_at(fd, str(file))
        os.close(fd)


def test_a_lock_folder_that_cannot_be_made_is_named(ws: Path, tmp_path: Path) -> None:
    (tmp_path / "state").write_text("not a folder")
    workspace = Workspace(str(ws), lock_dir=str(tmp_path / "state" / "locks"))
    with pytest.raises(WorkspaceError, match=r"The lock for memory/2026-02-24\.md cannot be taken"):
        workspace.append(LOG, "x")


def test_waiting_for_a_writer_that_hangs_ends_with_an_error(
    ws: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import fcntl

    monkeypatch.setattr("clawmark.workspace.write_lock._TIMEOUT", 0.0)
    holder = os.open(ws, os.O_RDONLY)
    try:
        fcntl.flock(holder, fcntl.LOCK_EX)
        with pytest.raises(WorkspaceError, match="Another process has been writing"):
            Workspace(str(ws)).append(LOG, "x")
    finally:
        os.close(holder)
    Workspace(str(ws)).append(LOG, "x")
