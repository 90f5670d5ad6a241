"""The files of a root are kept if it is suddenly another, empty folder."""

from __future__ import annotations

from clawmark.engine.sync.plan import flag_lost_roots, plan_sync, roots_to_store
from clawmark.model.values import FileState, Scan, ScanFailure

ROOT, MEMORY, EXTRA = ("", 1, 10), ("memory", 1, 11), ("../docs", 1, 12)
BEFORE = {"": [1, 10], "memory": [1, 11], "../docs": [1, 12]}
STAT = (5, 0, 7, 1, 0)


def look(
    *paths: str,
    roots: tuple[tuple[str, int, int], ...] = (ROOT, MEMORY, EXTRA),
    failed: str | None = None,
) -> Scan:
    files = tuple(
        FileState(path=path, source="memory", size=5, mtime_ns=0, inode=number, device=1)
        for number, path in enumerate(paths)
    )
    return Scan(
        files=files,
        skipped=(),
        failures=() if failed is None else (ScanFailure(failed, "cannot be listed"),),
        taken_ns=0,
        roots=roots,
    )


def failed(scan: Scan) -> list[str]:
    return [failure.path for failure in scan.failures]


def test_a_replaced_and_empty_root_keeps_its_files() -> None:
    scan = flag_lost_roots(
        look("MEMORY.md", "../docs/d.md", roots=(ROOT, ("memory", 1, 99), EXTRA)), BEFORE
    )
    assert failed(scan) == ["memory"]
    assert "clawmark index --force" in scan.failures[0].reason
    plan = plan_sync(scan, {"memory/a.md": STAT, "../docs/x.md": STAT})
    assert (plan.delete, plan.kept) == (("../docs/x.md",), ("memory/a.md",))


def test_an_unmounted_workspace_keeps_everything() -> None:
    scan = flag_lost_roots(look(roots=(("", 2, 2),)), BEFORE)
    assert failed(scan) == [""]
    assert plan_sync(scan, {"MEMORY.md": STAT, "memory/a.md": STAT}).delete == ()


def test_an_extra_path_that_is_gone_keeps_its_files() -> None:
    assert failed(
        flag_lost_roots(
            look("MEMORY.md", "memory/a.md", roots=(ROOT, MEMORY, ("../docs", -1, -1))), BEFORE
        )
    ) == ["../docs"]


def test_the_files_of_an_emptied_root_are_deleted() -> None:
    scan = look()
    assert flag_lost_roots(scan, BEFORE) is scan


def test_a_replaced_root_that_holds_memory_is_accepted() -> None:
    scan = look("memory/new.md", roots=(("", 1, 77), ("memory", 1, 78)))
    assert flag_lost_roots(scan, BEFORE) is scan


def test_a_root_that_is_no_longer_configured_is_removed() -> None:
    scan = look("MEMORY.md", "memory/a.md", roots=(ROOT, MEMORY))
    assert flag_lost_roots(scan, BEFORE) is scan
    assert roots_to_store(scan, BEFORE) == {"": [1, 10], "memory": [1, 11]}


def test_a_root_that_never_held_memory_may_change() -> None:
    scan = look(roots=(ROOT, ("memory", 5, 5)))
    assert flag_lost_roots(scan, {}) is scan


def test_roots_that_hold_memory_are_stored() -> None:
    assert roots_to_store(look("memory/a.md"), {}) == {"": [1, 10], "memory": [1, 11]}
    assert roots_to_store(look("../docs/d.md"), {}) == {"../docs": [1, 12]}


def test_a_lost_root_is_stored_unchanged() -> None:
    scan = flag_lost_roots(look("MEMORY.md", roots=(ROOT, ("memory", 1, 99))), BEFORE)
    assert roots_to_store(scan, BEFORE) == {"": [1, 10], "memory": [1, 11]}


def test_a_root_that_cannot_be_listed_is_stored_unchanged() -> None:
    assert roots_to_store(look("MEMORY.md", roots=(ROOT,), failed="memory"), BEFORE)["memory"] == [
        1,
        11,
    ]
    assert roots_to_store(look(roots=(), failed=""), BEFORE) == BEFORE
