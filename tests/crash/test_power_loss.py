"""What is acknowledged is on the disk: each test fails when one of the syncs before the
acknowledgement is left out.

Power is not really lost. `power_loss.Disk` records what was synced and knows which states a disk
could be in."""

from __future__ import annotations

import hashlib
import os
import resource
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from power_loss import Disk

from clawmark.agent.session.transcript_writer import TranscriptWriter
from clawmark.model.errors import WorkspaceError
from clawmark.workspace import Workspace

LOG = "memory/2026-02-24.md"
OLD = b"# Day\n\n- old\n"
NEW = b"# Day\n\n- new\n"
ENTRY = b"- mine\n"


@pytest.fixture
def ws(tmp_path: Path) -> Path:
    (tmp_path / "ws" / "memory").mkdir(parents=True)
    return tmp_path / "ws"


def put(ws: Path, path: str = LOG, text: bytes = OLD) -> None:
    (ws / path).parent.mkdir(parents=True, exist_ok=True)
    (ws / path).write_bytes(text)


def hash_of(text: bytes) -> str:
    return hashlib.sha256(text).hexdigest()


# --- appending ------------------------------------------------------------------------------------


def test_an_entry_appended_to_a_file_is_on_the_disk(ws: Path) -> None:
    put(ws)
    with Disk(ws, LOG) as disk:
        Workspace(str(ws)).append(LOG, "- mine")
        assert disk.possible(LOG) == {OLD + ENTRY}
    assert disk.ever == {OLD, OLD + ENTRY}


def test_an_entry_in_a_new_file_is_on_the_disk(ws: Path) -> None:
    with Disk(ws, LOG) as disk:
        Workspace(str(ws)).append(LOG, "- mine", header="# Day\n\n")
        assert disk.possible(LOG) == {b"# Day\n\n- mine\n"}


def test_an_entry_in_a_file_that_another_program_has_just_made_is_on_the_disk(ws: Path) -> None:
    with Disk(ws, LOG) as disk:
        put(ws)
        Workspace(str(ws)).append(LOG, "- mine")
        assert disk.possible(LOG) == {OLD + ENTRY}


def test_an_entry_in_new_folders_is_on_the_disk(ws: Path) -> None:
    path = "memory/a/b/note.md"
    with Disk(ws, path) as disk:
        Workspace(str(ws)).append(path, "- mine")
        assert disk.possible(path) == {ENTRY}


def test_an_entry_in_a_file_with_a_second_name_is_on_the_disk(ws: Path, tmp_path: Path) -> None:
    put(ws)
    os.link(ws / LOG, tmp_path / "second name.md")
    with Disk(ws, LOG) as disk:
        Workspace(str(ws)).append(LOG, "- mine")
        assert disk.possible(LOG) == {OLD + ENTRY}
    assert disk.ever == {OLD, OLD + ENTRY}


@pytest.mark.parametrize("syncs", [0, 1, 2])
def test_an_entry_that_an_editor_saved_without_a_sync_is_on_the_disk(syncs: int, ws: Path) -> None:
    """The editor saves after so many syncs of the append.

    Its version holds the entry, and it does not sync.
    """
    put(ws)
    edited = b"# Edited day\n\n- old\n" + ENTRY
    with Disk(ws) as disk:

        def save() -> None:
            if disk.syncs == syncs and (ws / LOG).read_bytes() == OLD + ENTRY:
                put(ws, "memory/saved", edited)
                (ws / "memory" / "saved").replace(ws / LOG)

        disk.check = save
        Workspace(str(ws)).append(LOG, "- mine")
        assert disk.possible(LOG) == {edited}


def test_a_write_that_was_cut_short_is_undone_on_the_disk(ws: Path) -> None:
    old = b"x" * 99_999 + b"\n"
    put(ws, text=old)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_010, hard))
    try:
        with (
            Disk(ws, LOG) as disk,
            pytest.raises(WorkspaceError, match="could not be written in full"),
        ):
            Workspace(str(ws)).append(LOG, "- this entry is longer than ten bytes")
        assert disk.possible(LOG) == {old}
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


# --- replacing ------------------------------------------------------------------------------------


def test_a_replaced_text_is_on_the_disk_and_never_anything_but_the_old_or_the_new_one(
    ws: Path,
) -> None:
    put(ws)
    with Disk(ws, LOG) as disk:
        Workspace(str(ws)).replace(LOG, NEW.decode(), hash_of(OLD))
        assert disk.possible(LOG) == {NEW}
    assert disk.ever == {OLD, NEW}


def test_a_text_in_a_new_file_is_on_the_disk_and_never_in_part(ws: Path) -> None:
    with Disk(ws, LOG) as disk:
        Workspace(str(ws)).replace(LOG, NEW.decode(), "")
        assert disk.possible(LOG) == {NEW}
    assert disk.ever == {None, NEW}


@pytest.mark.parametrize("change", ["replace", "delete"])
def test_the_kept_version_is_on_the_disk_before_the_old_text_may_be_gone(
    change: str, ws: Path, tmp_path: Path
) -> None:
    put(ws)
    workspace = Workspace(str(ws), lock_dir=str(tmp_path / "state" / "locks"))
    with Disk(tmp_path) as disk:

        def check() -> None:
            assert disk.possible(f"ws/{LOG}") == {OLD} or disk.always_holds("state/versions", OLD)

        disk.check = check
        if change == "replace":
            workspace.replace(LOG, NEW.decode(), hash_of(OLD))
        else:
            workspace.delete(LOG)
        assert disk.always_holds("state/versions", OLD)


# --- deleting and renaming ------------------------------------------------------------------------


def test_a_deleted_file_stays_deleted(ws: Path) -> None:
    put(ws)
    with Disk(ws, LOG) as disk:
        Workspace(str(ws)).delete(LOG)
        assert disk.possible(LOG) == {None}


def test_a_deleted_folder_stays_deleted(ws: Path) -> None:
    put(ws, "memory/a/b/note.md")
    with Disk(ws) as disk:
        Workspace(str(ws)).delete("memory/a")
        assert disk.possible("memory/a") == {None}


def test_a_renamed_file_is_found_under_its_new_name_and_no_other(ws: Path, tmp_path: Path) -> None:
    put(ws, "memory/a/note.md")
    (ws / "memory" / "b").mkdir()
    workspace = Workspace(str(ws), lock_dir=str(tmp_path / "state" / "locks"))
    with Disk(ws) as disk:
        workspace.rename("memory/a/note.md", "memory/b/note.md")
        assert disk.possible("memory/a/note.md") == {None}
        assert disk.possible("memory/b/note.md") == {OLD}


# --- transcripts ----------------------------------------------------------------------------------


def _no_transcript(_: Path) -> None:
    return


def _folder_only(file: Path) -> None:
    file.parent.mkdir(parents=True)


@pytest.mark.parametrize("prepare", [_no_transcript, _folder_only])
def test_a_message_is_on_the_disk_when_it_was_written_to_the_transcript(
    prepare: Callable[[Path], None], tmp_path: Path
) -> None:
    path = "state/agents/main/sessions/s.jsonl"
    prepare(tmp_path / path)
    log = TranscriptWriter(
        path=str(tmp_path / path),
        session_id="s",
        cwd=str(tmp_path),
        now=lambda: datetime(2026, 2, 24, tzinfo=UTC),
    )
    with Disk(tmp_path) as disk:
        for text in ("We chose PostgreSQL", "And Redis for the queue"):
            log.add_message("user", text)
            (held,) = disk.possible(path)
            assert held is not None
            assert text.encode() in held
