"""The watcher reports every change of a memory file, and nothing else."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from clawmark.workspace import Workspace
from clawmark.workspace.watching import Watcher, memory_targets

LONG = 60.0
"""A test that has to wait this long has failed."""

on_linux = pytest.mark.skipif(sys.platform != "linux", reason="counts the watches of Linux")


class Reports:
    """What the watcher reported, and a way to wait for it."""

    def __init__(self) -> None:
        self.changes: list[str] = []
        self.warnings: list[str] = []
        self._new = threading.Condition()

    def changed(self, path: str) -> None:
        with self._new:
            self.changes.append(path)
            self._new.notify_all()

    def warn(self, message: str) -> None:
        with self._new:
            self.warnings.append(message)
            self._new.notify_all()

    def wait_for(self, path: Path | str) -> None:
        with self._new:
            assert self._new.wait_for(lambda: str(path) in self.changes, LONG), (
                str(path),
                self.changes,
            )

    def clear(self) -> None:
        with self._new:
            self.changes.clear()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path.resolve() / "agent"
    (folder / "memory").mkdir(parents=True)
    (folder / "memory" / "a.md").write_text("one")
    return folder


@pytest.fixture
def reports() -> Reports:
    return Reports()


Start = Callable[..., Watcher]


@pytest.fixture(params=[False, True], ids=["folders", "trees"])
def recursive(request: pytest.FixtureRequest) -> bool:
    """Whether whole trees are watched, as on macOS and Windows; Linux can do both."""
    return bool(request.param)


@pytest.fixture
def start(root: Path, reports: Reports, recursive: bool) -> Iterator[Start]:
    started: list[Watcher] = []

    def begin(extra: tuple[str, ...] = (), **options: object) -> Watcher:
        watcher = Watcher(
            lambda: memory_targets(str(root), extra),
            Workspace(str(root), extra).scan,
            reports.changed,
            warn=reports.warn,
            recursive=recursive,
            **options,  # type: ignore[arg-type]
        )
        started.append(watcher)
        watcher.start()
        return watcher

    yield begin
    for watcher in started:
        watcher.close()


def assert_only(reports: Reports, mark: Path, *expected: Path) -> None:
    """Make a last change, and check what was reported before it."""
    mark.write_text("the end")
    reports.wait_for(mark)
    assert {change for change in reports.changes if change != str(mark)} == set(map(str, expected))


def test_written_renamed_touched_and_deleted_files_are_reported(
    root: Path, start: Start, reports: Reports
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
        reports.wait_for(file)
        reports.clear()


def test_an_edit_that_keeps_size_and_time_is_reported(
    root: Path, start: Start, reports: Reports
) -> None:
    file = root / "memory" / "a.md"
    before = file.stat()
    start()
    with file.open("r+") as opened:
        opened.write("two")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    reports.wait_for(file)
    states = {state.path: state for state in Workspace(str(root)).scan().files}
    assert states["memory/a.md"].mtime_ns != before.st_ctime_ns


def test_only_memory_files_are_reported(root: Path, start: Start, reports: Reports) -> None:
    (root / "notes").mkdir()
    (root / "memory" / ".git").mkdir()
    start()
    for name in ("README.md", "notes/x.md", "memory/.git/x.md", "memory/swap.txt", "memory/.#a.md"):
        (root / name).write_text("not memory")
    (root / "memory" / "node_modules").mkdir()
    (root / "memory" / "node_modules" / "x.md").write_text("not memory")
    assert_only(reports, root / "MEMORY.md")


def test_folders_are_followed_as_they_come_move_and_go(
    root: Path, start: Start, reports: Reports
) -> None:
    start()
    (root / "elsewhere" / "11").mkdir(parents=True)
    inside, outside = root / "memory" / "2026", root / "elsewhere"
    os.rename(outside, inside)
    reports.wait_for(inside)
    (inside / "11" / "x.md").write_text("new")
    reports.wait_for(inside / "11" / "x.md")
    moved = root / "memory" / "old"
    os.rename(inside, moved)
    reports.wait_for(moved)
    os.truncate(moved / "11" / "x.md", 0)  # one event, so that none of it comes after `clear`
    reports.wait_for(moved / "11" / "x.md")
    reports.clear()
    os.rename(moved, outside)
    reports.wait_for(moved)
    (outside / "11" / "x.md").write_text("no longer memory")
    assert_only(reports, root / "MEMORY.md", moved)


def test_a_tree_that_is_moved_in_is_reported_and_watched(
    root: Path, start: Start, reports: Reports
) -> None:
    start()
    outside = root.parent / "made"
    for number in range(50):
        (outside / str(number)).mkdir(parents=True)
        (outside / str(number) / "x.md").write_text("x")
    os.rename(outside, root / "memory" / "made")
    reports.wait_for(root / "memory" / "made")
    changed = root / "memory" / "made" / "49" / "x.md"
    changed.write_text("watched by now")
    reports.wait_for(changed)


def test_a_memory_folder_that_is_replaced_is_watched_again(
    root: Path, start: Start, reports: Reports
) -> None:
    start()
    os.rename(root / "memory", root / "old")
    reports.wait_for("")
    reports.clear()
    (root / "memory").mkdir()
    reports.wait_for("")
    (root / "memory" / "new.md").write_text("new")
    reports.wait_for(root / "memory" / "new.md")


def test_a_workspace_that_appears_later_is_watched(
    tmp_path: Path, start: Start, reports: Reports, root: Path
) -> None:
    os.rename(root, tmp_path / "away")
    start()
    os.rename(tmp_path / "away", root)
    reports.wait_for("")
    (root / "memory" / "a.md").write_text("back")
    reports.wait_for(root / "memory" / "a.md")


def test_an_extra_path_that_appears_later_is_watched(
    root: Path, start: Start, reports: Reports
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
    reports.wait_for(team / "x.md")
    (single.parent / "other.md").write_text("not named")
    single.write_text("y")
    reports.wait_for(single)
    assert str(single.parent / "other.md") not in reports.changes
    reports.clear()
    later.mkdir(parents=True)
    reports.wait_for("")
    (later / "x.md").write_text("x")
    reports.wait_for(later / "x.md")


def test_a_count_of_changes_stays_the_same_until_a_file_changes(
    root: Path, start: Start, reports: Reports
) -> None:
    watcher = start()
    before = watcher.count_changes()
    assert before is not None
    assert watcher.count_changes() == before
    (root / "memory" / "a.md").write_text("two")
    until = time.monotonic() + LONG
    while watcher.count_changes() == before:
        assert time.monotonic() < until
    # What the count has read is still reported.
    reports.wait_for(root / "memory" / "a.md")


def test_a_watcher_that_polls_has_no_count_of_changes(start: Start) -> None:
    assert start(poll_because="a test").count_changes() is None


@pytest.mark.parametrize("recursive", [False])  # Linux alone follows links when it watches trees
def test_links_are_not_followed(root: Path, start: Start, reports: Reports) -> None:
    outside = root.parent / "outside"
    outside.mkdir()
    (root / "memory" / "link").symlink_to(outside)
    watcher = start()
    (root / "memory" / "link2").symlink_to(outside)
    (outside / "x.md").write_text("x")
    assert_only(reports, root / "MEMORY.md")
    assert watcher.watched_folders == 2


@on_linux
@pytest.mark.parametrize("recursive", [False])
def test_the_number_of_watches_follows_the_folders(
    root: Path, start: Start, reports: Reports
) -> None:
    watcher = start()
    assert watcher.watched_folders == 2
    inside, outside = root / "memory" / "2026", root / "elsewhere"
    (outside / "11").mkdir(parents=True)
    os.rename(outside, inside)
    reports.wait_for(inside)
    assert watcher.watched_folders == 4
    reports.clear()
    os.rename(inside, outside)
    reports.wait_for(inside)
    assert watcher.watched_folders == 2


def test_a_name_that_is_not_utf8_does_not_stop_the_watcher(
    root: Path, start: Start, reports: Reports
) -> None:
    watcher = start()
    Path(os.fsdecode(os.fsencode(root / "memory") + b"/\xff.md")).write_text("not UTF-8")
    reports.wait_for("")
    (root / "memory" / "b.md").write_text("reported")
    reports.wait_for(root / "memory" / "b.md")
    assert watcher.polls_because == "" and reports.warnings == []


def test_polling_reports_changes_and_only_changes(
    root: Path, start: Start, reports: Reports, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("clawmark.workspace.watching.LEAST_REST_SECONDS", 0.001)
    looks = threading.Semaphore(0)
    workspace = Workspace(str(root))

    def scan() -> object:
        looks.release()
        return workspace.scan()

    watcher = start(poll_because="a test")
    watcher._scan = scan  # type: ignore[assignment]
    for _ in range(5):
        assert looks.acquire(timeout=LONG)
    assert reports.changes == [] and reports.warnings == []
    (root / "memory" / "b.md").write_text("x")
    reports.wait_for("")


def test_closing_leaves_no_thread_and_no_descriptor(root: Path, start: Start) -> None:
    threads, before = threading.active_count(), _descriptors()
    watcher = start()
    watcher.close()
    watcher.close()
    assert threading.active_count() == threads
    pause = threading.Event()  # watchfiles closes its descriptors in a thread of its own
    assert any(_descriptors() == before or pause.wait(0.01) for _ in range(int(100 * LONG)))


@on_linux
@pytest.mark.parametrize("recursive", [False])
def test_any_number_of_folders_needs_three_descriptors(root: Path, start: Start) -> None:
    for number in range(200):
        (root / "memory" / str(number)).mkdir()
    before = _descriptors()
    watcher = start()
    assert watcher.watched_folders == 202 and _descriptors() - before <= 3


def _descriptors() -> int:
    return len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
