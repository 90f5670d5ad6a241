"""The watcher notices every change among the memory files, and nothing else."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from clawmark.workspace import Workspace
from clawmark.workspace.watching import inotify
from clawmark.workspace.watching.folders import Target, WatchedFolders
from clawmark.workspace.watching.watcher import Watcher, memory_targets

LONG = 60.0
"""A test that has to wait this long has failed."""

on_linux = pytest.mark.skipif(sys.platform != "linux", reason="inotify is Linux's")


class Notes:
    """What the watcher said, and a way to wait for it."""

    def __init__(self) -> None:
        self.changes: list[str] = []
        self.warnings: list[str] = []
        self._new = threading.Condition()

    def changed(self, path: str) -> None:
        with self._new:
            self.changes.append(path)
            self._new.notify_all()

    def warned(self, message: str) -> None:
        with self._new:
            self.warnings.append(message)
            self._new.notify_all()

    def wait_for(self, path: Path | str) -> None:
        with self._new:
            assert self._new.wait_for(lambda: str(path) in self.changes, LONG), (
                str(path),
                self.changes,
            )

    def forget(self) -> None:
        with self._new:
            self.changes.clear()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path.resolve() / "agent"
    (folder / "memory").mkdir(parents=True)
    (folder / "memory" / "a.md").write_text("one")
    return folder


@pytest.fixture
def notes() -> Notes:
    return Notes()


Start = Callable[..., Watcher]


@pytest.fixture
def start(root: Path, notes: Notes) -> Iterator[Start]:
    started: list[Watcher] = []

    def begin(extra: tuple[str, ...] = (), **options: object) -> Watcher:
        watcher = Watcher(
            lambda: memory_targets(str(root), extra),
            Workspace(str(root), extra).scan,
            notes.changed,
            warn=notes.warned,
            **options,  # type: ignore[arg-type]
        )
        started.append(watcher)
        watcher.start()
        return watcher

    yield begin
    for watcher in started:
        watcher.close()


def only_this_was_said(notes: Notes, mark: Path, *expected: Path) -> None:
    """A last change marks the end: what came before it is what was said."""
    mark.write_text("the end")
    notes.wait_for(mark)
    assert {change for change in notes.changes if change != str(mark)} == set(map(str, expected))


@on_linux
def test_files_that_are_written_renamed_touched_or_deleted_are_told(
    root: Path, start: Start, notes: Notes
) -> None:
    start()
    file, other = root / "memory" / "a.md", root / "memory" / "b.md"
    for change in (
        lambda: file.write_text("two"),
        lambda: os.utime(file, ns=(1, 1)),
        lambda: os.replace(file, other),
        lambda: os.replace(other, file),
        file.unlink,
        lambda: file.write_text("three"),
    ):
        change()
        notes.wait_for(file)
        notes.forget()


@on_linux
def test_an_edit_that_keeps_size_and_time_is_told(root: Path, start: Start, notes: Notes) -> None:
    file = root / "memory" / "a.md"
    before = file.stat()
    start()
    with file.open("r+") as opened:
        opened.write("two")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    notes.wait_for(file)
    states = {state.path: state for state in Workspace(str(root)).scan().files}
    assert states["memory/a.md"].mtime_ns != before.st_ctime_ns


@on_linux
def test_only_memory_files_are_told(root: Path, start: Start, notes: Notes) -> None:
    (root / "notes").mkdir()
    (root / "memory" / ".git").mkdir()
    start()
    for name in ("README.md", "notes/x.md", "memory/.git/x.md", "memory/swap.txt", "memory/.#a.md"):
        (root / name).write_text("not memory")
    (root / "memory" / "node_modules").mkdir()
    (root / "memory" / "node_modules" / "x.md").write_text("not memory")
    only_this_was_said(notes, root / "MEMORY.md")


@on_linux
def test_folders_are_followed_as_they_come_move_and_go(
    root: Path, start: Start, notes: Notes
) -> None:
    watcher = start()
    (root / "elsewhere" / "11").mkdir(parents=True)
    inside, outside = root / "memory" / "2026", root / "elsewhere"
    os.rename(outside, inside)
    notes.wait_for(inside)
    assert watcher.watched_folders == 4
    (inside / "11" / "x.md").write_text("new")
    notes.wait_for(inside / "11" / "x.md")
    moved = root / "memory" / "old"
    os.rename(inside, moved)
    notes.wait_for(moved)
    os.truncate(moved / "11" / "x.md", 0)  # one event, so that none of it comes after `forget`
    notes.wait_for(moved / "11" / "x.md")
    notes.forget()
    os.rename(moved, outside)
    notes.wait_for(moved)
    (outside / "11" / "x.md").write_text("no longer memory")
    only_this_was_said(notes, root / "MEMORY.md", moved)
    assert watcher.watched_folders == 2


@on_linux
def test_a_whole_tree_that_comes_at_once_is_told_at_its_top(
    root: Path, start: Start, notes: Notes
) -> None:
    start()
    outside = root.parent / "made"
    for number in range(50):
        (outside / str(number)).mkdir(parents=True)
        (outside / str(number) / "x.md").write_text("x")
    os.rename(outside, root / "memory" / "made")
    notes.wait_for(root / "memory" / "made")
    changed = root / "memory" / "made" / "49" / "x.md"
    changed.write_text("watched by now")
    notes.wait_for(changed)


@on_linux
def test_memory_that_is_moved_away_and_made_anew_is_watched_again(
    root: Path, start: Start, notes: Notes
) -> None:
    start()
    os.rename(root / "memory", root / "old")
    notes.wait_for("")
    notes.forget()
    (root / "memory").mkdir()
    notes.wait_for("")
    (root / "memory" / "new.md").write_text("new")
    notes.wait_for(root / "memory" / "new.md")


@on_linux
def test_a_workspace_that_is_not_there_yet_is_waited_for(
    tmp_path: Path, start: Start, notes: Notes, root: Path
) -> None:
    os.rename(root, tmp_path / "away")
    start()
    os.rename(tmp_path / "away", root)
    notes.wait_for("")
    (root / "memory" / "a.md").write_text("back")
    notes.wait_for(root / "memory" / "a.md")


@on_linux
def test_extra_paths_are_watched_even_before_they_are_there(
    root: Path, start: Start, notes: Notes
) -> None:
    team, single, later = (
        root.parent / "team",
        root.parent / "one" / "single.md",
        root.parent / "a" / "b" / "later",
    )
    team.mkdir()
    single.parent.mkdir()
    single.write_text("x")
    start((str(team), str(single), str(later)))
    (team / "x.md").write_text("x")
    notes.wait_for(team / "x.md")
    (single.parent / "other.md").write_text("not named")
    single.write_text("y")
    notes.wait_for(single)
    assert str(single.parent / "other.md") not in notes.changes
    for folder in (
        later.parent.parent,
        later.parent,
        later,
    ):  # one by one: what comes at once may be told as one
        notes.forget()
        folder.mkdir()
        notes.wait_for("")
    (later / "x.md").write_text("x")
    notes.wait_for(later / "x.md")


@on_linux
def test_links_are_not_followed(root: Path, start: Start, notes: Notes) -> None:
    outside = root.parent / "outside"
    outside.mkdir()
    (root / "memory" / "link").symlink_to(outside)
    watcher = start()
    (root / "memory" / "link2").symlink_to(outside)
    (outside / "x.md").write_text("x")
    only_this_was_said(notes, root / "MEMORY.md")
    assert watcher.watched_folders == 2


@on_linux
def test_an_overflow_means_that_everything_is_set_up_anew(root: Path) -> None:
    folders = WatchedFolders([Target(str(root), bool, deep=True)])
    assert folders._take(inotify.Event(-1, inotify.OVERFLOW, "")) is None
    folders.close()


@on_linux
@pytest.mark.parametrize("most", [0, 2])
def test_without_watches_left_there_is_one_warning_and_polling(
    root: Path, start: Start, notes: Notes, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    monkeypatch.setattr("clawmark.workspace.watching.watcher.LEAST_REST_SECONDS", 0.01)
    for name in ("b", "c"):
        (root / "memory" / name).mkdir()
    watcher = start(most_watches=most)
    assert "no watches left" in watcher.polls_because and watcher.watched_folders == 0
    notes.wait_for("")
    notes.forget()
    (root / "memory" / "c" / "x.md").write_text("found by looking")
    notes.wait_for("")
    assert len(notes.warnings) == 1 and "max_user_watches" in notes.warnings[0]


@on_linux
def test_watches_that_run_out_later_change_nothing_about_that(
    root: Path, start: Start, notes: Notes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("clawmark.workspace.watching.watcher.LEAST_REST_SECONDS", 0.01)
    watcher = start(most_watches=3)
    assert watcher.polls_because == ""
    for name in ("b", "c"):
        (root / "memory" / name).mkdir()
    notes.wait_for("")
    notes.forget()
    (root / "memory" / "c" / "x.md").write_text("found by looking")
    notes.wait_for("")
    assert "no watches left" in watcher.polls_because and len(notes.warnings) == 1


def test_polling_tells_changes_and_only_changes(
    root: Path, start: Start, notes: Notes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("clawmark.workspace.watching.watcher.LEAST_REST_SECONDS", 0.001)
    looks = threading.Semaphore(0)
    workspace = Workspace(str(root))

    def scan() -> object:
        looks.release()
        return workspace.scan()

    watcher = start(poll_because="a test")
    watcher._scan = scan  # type: ignore[assignment]
    for _ in range(5):
        assert looks.acquire(timeout=LONG)
    assert notes.changes == [] and notes.warnings == []
    (root / "memory" / "b.md").write_text("x")
    notes.wait_for("")


def test_closing_twice_is_fine_and_leaves_no_thread_and_no_descriptor(
    root: Path, start: Start
) -> None:
    threads, before = threading.active_count(), _descriptors()
    watcher = start()
    watcher.close()
    watcher.close()
    assert threading.active_count() == threads and _descriptors() == before


@on_linux
def test_any_number_of_folders_needs_three_descriptors(root: Path, start: Start) -> None:
    for number in range(200):
        (root / "memory" / str(number)).mkdir()
    before = _descriptors()
    watcher = start()
    assert watcher.watched_folders == 202 and _descriptors() - before <= 3


def _descriptors() -> int:
    return len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
