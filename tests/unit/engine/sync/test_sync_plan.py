"""The plan is a pure comparison of disk and index."""

from __future__ import annotations

from clawmark.engine.sync.plan import DAY_NS, GRAIN_NS, changed_since, newest_first, plan_sync
from clawmark.model.values import FileStat, FileState, Scan, ScanFailure

NOW = 1_000 * GRAIN_NS


def state(path: str, *, size: int = 10, mtime_ns: int = 5, inode: int = 1) -> FileState:
    return FileState(
        path=path, source="memory", size=size, mtime_ns=mtime_ns, inode=inode, device=7
    )


def row(
    _path: str, *, size: int = 10, mtime_ns: int = 5, inode: int = 1, seen_ns: int = NOW
) -> FileStat:
    return size, mtime_ns, inode, 7, seen_ns


def scan(*states: FileState, failures: tuple[ScanFailure, ...] = ()) -> Scan:
    return Scan(files=states, skipped=(), failures=failures, taken_ns=NOW)


def test_a_new_file_is_added() -> None:
    plan = plan_sync(scan(state("a.md")), {})
    assert [s.path for s in plan.add] == ["a.md"]
    assert plan.due == 1


def test_an_unchanged_file_is_not_touched() -> None:
    plan = plan_sync(scan(state("a.md")), {"a.md": row("a.md")})
    assert (plan.due, plan.unchanged) == (0, 1)


def test_a_file_with_another_size_time_or_inode_is_checked() -> None:
    indexed = {"a.md": row("a.md")}
    for changed in (state("a.md", size=11), state("a.md", mtime_ns=6), state("a.md", inode=2)):
        assert plan_sync(scan(changed), indexed).check == (changed,)


def test_a_file_that_is_gone_is_deleted() -> None:
    assert plan_sync(scan(), {"a.md": row("a.md")}).delete == ("a.md",)


def test_a_folder_that_could_not_be_listed_deletes_nothing_below_it() -> None:
    failed = scan(failures=(ScanFailure("memory/old", "permission denied"),))
    indexed = {path: row(path) for path in ("memory/old/a.md", "memory/older.md")}
    plan = plan_sync(failed, indexed)
    assert plan.kept == ("memory/old/a.md",)
    assert plan.delete == ("memory/older.md",)


def test_a_root_that_could_not_be_listed_deletes_nothing_at_all() -> None:
    failed = scan(failures=(ScanFailure("", "gone"),))
    plan = plan_sync(failed, {"MEMORY.md": row("MEMORY.md"), "memory/a.md": row("memory/a.md")})
    assert plan.delete == ()
    assert len(plan.kept) == 2


def test_a_file_indexed_within_a_clock_tick_of_its_change_is_rechecked() -> None:
    fresh = row("a.md", mtime_ns=NOW - 2 * GRAIN_NS, seen_ns=NOW - 2 * GRAIN_NS + 1)
    plan = plan_sync(scan(state("a.md", mtime_ns=fresh[1])), {"a.md": fresh})
    assert [s.path for s in plan.recheck] == ["a.md"]
    assert plan.due == 0, "a second look is not a change"


def test_a_file_with_a_future_time_is_not_rechecked_forever() -> None:
    future = NOW + 100 * GRAIN_NS
    plan = plan_sync(scan(state("a.md", mtime_ns=future)), {"a.md": row("a.md", mtime_ns=future)})
    assert (plan.due, plan.recheck, plan.unchanged) == (0, (), 1)


def test_changes_since_a_moment_are_new_and_changed_files_and_deletions() -> None:
    indexed = {
        "changed.md": row("changed.md"),
        "changed-before.md": row("changed-before.md"),
        "gone.md": row("gone.md"),
    }
    seen = scan(
        state("new.md", mtime_ns=20),
        state("new-before.md", mtime_ns=19),
        state("changed.md", mtime_ns=20),
        state("changed-before.md", mtime_ns=19),
    )
    part = changed_since(plan_sync(seen, indexed), 20)
    assert [s.path for s in (*part.add, *part.check)] == ["new.md", "changed.md"]
    assert part.delete == ("gone.md",)


def test_memory_and_the_newest_days_are_indexed_first() -> None:
    def file(path: str, mtime_ns: int = 0) -> FileState:
        return FileState(path=path, source="memory", size=1, mtime_ns=mtime_ns, inode=1, device=1)

    listed = [
        file("MEMORY.md"),
        file("memory/2024-12-31.md", 9),
        file("memory/2025-01-02.md", 3),
        file("memory/old.md", DAY_NS),
        file("memory/projects/2025-01-01-ferry.md"),
        file("memory/young-a.md", 3 * DAY_NS),
        file("memory/young-b.md", 3 * DAY_NS + 1),
        file("notes:2025-01-03.md"),
    ]
    assert [state.path for state in newest_first(listed)] == [
        "MEMORY.md",
        "memory/2025-01-02.md",
        "memory/projects/2025-01-01-ferry.md",
        "memory/2024-12-31.md",
        "memory/young-a.md",
        "memory/young-b.md",
        "memory/old.md",
        "notes:2025-01-03.md",
    ]
