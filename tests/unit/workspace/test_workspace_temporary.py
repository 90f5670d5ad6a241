"""Temporary files and sweeps at the same moment.

Killed writers are in `tests/crash/test_temporary_files.py`.
"""

from __future__ import annotations

import errno
import fcntl
import os
from pathlib import Path

import pytest

from clawmark.system.file_lock import try_lock
from clawmark.workspace import temporary
from clawmark.workspace.guard import open_root
from clawmark.workspace.temporary import create_temporary, remove_temporary, sweep


def test_a_sweep_leaves_a_file_that_is_in_use_and_removes_one_that_is_not(tmp_path: Path) -> None:
    with open_root(str(tmp_path)) as folder:
        first, name = create_temporary(folder)
        second, other = create_temporary(folder)
        os.close(second)
        sweep(folder)
        assert os.listdir(tmp_path) == [name]
        os.close(first)
        sweep(folder, [name])
        assert os.listdir(tmp_path) == []
        assert name != other


def test_a_file_that_is_swept_before_it_is_locked_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_root(str(tmp_path)) as folder:

        def lock_after_a_sweep(fd: int) -> bool:
            monkeypatch.setattr(temporary, "try_lock", try_lock)
            sweep(folder)
            return try_lock(fd)

        monkeypatch.setattr(temporary, "try_lock", lock_after_a_sweep)
        fd, name = create_temporary(folder)
        assert folder.holds(name, os.fstat(fd))
        os.close(fd)


def test_a_file_that_a_sweep_has_locked_is_left_to_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_root(str(tmp_path)) as folder:
        sweeping = []

        def lock_during_a_sweep(fd: int) -> bool:
            monkeypatch.setattr(temporary, "try_lock", try_lock)
            sweeping.append(os.open(tmp_path / ".clawmark-0.tmp", os.O_RDWR))
            fcntl.flock(sweeping[0], fcntl.LOCK_EX)
            return try_lock(fd)

        monkeypatch.setattr(temporary, "try_lock", lock_during_a_sweep)
        fd, name = create_temporary(folder)
        assert name == ".clawmark-1.tmp"
        os.close(fd)
        os.close(sweeping[0])


def test_a_sweep_does_not_remove_a_newer_file_of_the_same_name(tmp_path: Path) -> None:
    with open_root(str(tmp_path)) as folder:
        fd, name = create_temporary(folder)
        folder.rename(name, "note.md")
        newer, same = create_temporary(folder)
        assert same == name
        remove_temporary(folder, name, os.fstat(fd))
        assert folder.holds(name, os.fstat(newer))
        os.close(fd)
        os.close(newer)


def test_without_file_locks_files_can_be_made_and_none_is_swept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_locks(fd: int) -> bool:
        raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))

    monkeypatch.setattr(temporary, "try_lock", no_locks)
    with open_root(str(tmp_path)) as folder:
        fd, name = create_temporary(folder)
        sweep(folder)
        assert folder.holds(name, os.fstat(fd))
        os.close(fd)
