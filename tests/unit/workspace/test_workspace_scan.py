"""What a scan lists and skips, and that a failure is not taken for a deletion."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from clawmark.model.values import Scan, ScanFailure
from clawmark.workspace import Workspace
from clawmark.workspace.guard import MAX_COMPONENTS, MAX_FILE_BYTES


@pytest.fixture
def ws(tmp_path: Path) -> Path:
    root = tmp_path / "ws"
    (root / "memory").mkdir(parents=True)
    return root


def write(root: Path, *paths: str) -> None:
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(f"{path}\n")


def scan(root: Path, *extra: str) -> Scan:
    return Workspace(str(root), extra).scan()


def paths(found: Scan) -> list[str]:
    return [state.path for state in found.files]


def reasons(found: Scan) -> dict[str, str]:
    return {skip.path: skip.reason for skip in found.skipped}


def test_memory_files_are_listed_in_path_order(ws: Path) -> None:
    write(
        ws,
        "memory/b.md",
        "memory/a/z.md",
        "memory/a-b.md",
        "MEMORY.md",
        "memory/é.md",
        "memory/a.md",
        "AGENTS.md",
        "x.md",
    )
    found = scan(ws)
    assert paths(found) == [
        "MEMORY.md",
        "memory/a-b.md",
        "memory/a.md",
        "memory/a/z.md",
        "memory/b.md",
        "memory/é.md",
    ]
    assert found.skipped == ()
    assert found.failures == ()


def test_a_file_state_is_what_the_disk_says(ws: Path) -> None:
    write(ws, "memory/a.md")
    info = (ws / "memory" / "a.md").stat()
    state = scan(ws).files[0]
    assert (state.size, state.mtime_ns, state.inode, state.device) == (
        info.st_size,
        info.st_ctime_ns,
        info.st_ino,
        info.st_dev,
    )
    assert state.source == "memory"


def test_an_empty_file_is_listed(ws: Path) -> None:
    (ws / "memory" / "empty.md").touch()
    assert [state.size for state in scan(ws).files] == [0]


def test_a_workspace_without_memory_is_empty_and_not_a_failure(tmp_path: Path) -> None:
    found = scan(tmp_path)
    assert (found.files, found.skipped, found.failures) == ((), (), ())


def test_the_extension_counts_in_any_case(ws: Path) -> None:
    write(ws, "memory/a.MD", "memory/b.Md", "memory/c.mdx", "memory/d.md.bak", "memory/e")
    assert paths(scan(ws)) == ["memory/a.MD", "memory/b.Md"]


def test_hidden_and_vendor_folders_are_skipped_with_a_reason(ws: Path) -> None:
    write(
        ws,
        "memory/.git/x.md",
        "memory/.obsidian/x.md",
        "memory/node_modules/p/x.md",
        "memory/__pycache__/x.md",
        "memory/a.md",
    )
    found = scan(ws)
    assert paths(found) == ["memory/a.md"]
    assert reasons(found) == {
        "memory/.git": "a hidden folder",
        "memory/.obsidian": "a hidden folder",
        "memory/node_modules": "a folder of installed packages",
        "memory/__pycache__": "a folder of installed packages",
    }


def test_leftovers_are_skipped_and_dotted_notes_are_not(ws: Path) -> None:
    write(
        ws,
        "memory/.#x.md",
        "memory/._x.md",
        "memory/.x.md",
        "memory/x.md~",
        "memory/#x.md#",
        "memory/.x.md.swp",
    )
    found = scan(ws)
    assert paths(found) == ["memory/.x.md"]
    assert set(reasons(found)) == {"memory/.#x.md", "memory/._x.md"}


def test_notes_in_another_format_are_mentioned_only_below_memory(ws: Path) -> None:
    write(ws, "memory/a.txt", "memory/b.markdown", "memory/c.png", "docs/d.txt")
    assert set(reasons(scan(ws, "docs"))) == {"memory/a.txt", "memory/b.markdown"}


def test_links_are_skipped_with_a_reason(ws: Path, tmp_path: Path) -> None:
    write(tmp_path, "outside/secret.md")
    (ws / "memory" / "out.md").symlink_to(tmp_path / "outside" / "secret.md")
    (ws / "memory" / "out").symlink_to(tmp_path / "outside")
    (ws / "MEMORY.md").symlink_to(tmp_path / "outside" / "secret.md")
    found = scan(ws)
    assert paths(found) == []
    assert reasons(found) == dict.fromkeys(
        ("MEMORY.md", "memory/out", "memory/out.md"), "a link, and links are never followed"
    )


def test_special_files_are_skipped_and_a_folder_named_like_a_note_is_entered(ws: Path) -> None:
    os.mkfifo(ws / "memory" / "pipe.md")
    write(ws, "memory/folder.md/inner.md")
    found = scan(ws)
    assert paths(found) == ["memory/folder.md/inner.md"]
    assert reasons(found) == {"memory/pipe.md": "a pipe, not a file"}


def test_a_name_that_is_not_utf8_is_skipped_and_shown(ws: Path) -> None:
    (ws / os.fsdecode(b"memory/caf\xe9.md")).write_text("x")
    (ws / os.fsdecode(b"memory/d\xff")).mkdir()
    found = scan(ws)
    assert paths(found) == []
    assert reasons(found) == {
        "memory/caf\\xe9.md": "the file's name is not valid UTF-8",
        "memory/d\\xff": "the folder's name is not valid UTF-8",
    }


def test_a_file_over_the_limit_is_skipped(ws: Path) -> None:
    with (ws / "memory" / "big.md").open("wb") as file:
        file.truncate(MAX_FILE_BYTES + 1)
    assert reasons(scan(ws)) == {"memory/big.md": "67,108,865 bytes; the limit is 67,108,864"}


def test_what_is_too_deep_is_reported(ws: Path) -> None:
    deepest = "memory/" + "d/" * (MAX_COMPONENTS - 2)
    write(ws, deepest + "x.md", deepest + "e/x.md")
    found = scan(ws)
    assert paths(found) == [deepest + "x.md"]
    assert reasons(found) == {deepest + "e": "more than 64 folders deep"}


# --- one inode, one file ---


def test_memory_md_wins_over_its_second_name(ws: Path) -> None:
    write(ws, "MEMORY.md")
    os.link(ws / "MEMORY.md", ws / "memory.md")
    os.link(ws / "MEMORY.md", ws / "memory" / "a.md")
    found = scan(ws)
    assert paths(found) == ["MEMORY.md"]
    assert reasons(found) == dict.fromkeys(("memory.md", "memory/a.md"), "same file as MEMORY.md")


def test_the_first_of_two_names_in_path_order_is_kept(ws: Path) -> None:
    write(ws, "memory/b.md")
    os.link(ws / "memory" / "b.md", ws / "memory" / "a.md")
    assert paths(scan(ws)) == ["memory/a.md"]


def test_the_own_file_wins_over_an_extra_path(ws: Path, tmp_path: Path) -> None:
    write(ws, "memory/z.md")
    (tmp_path / "docs").mkdir()
    os.link(ws / "memory" / "z.md", tmp_path / "docs" / "a.md")
    assert paths(scan(ws, "../docs")) == ["memory/z.md"]


def test_two_different_root_files_are_two_files(ws: Path) -> None:
    write(ws, "MEMORY.md", "memory.md")
    assert paths(scan(ws)) == ["MEMORY.md", "memory.md"]


# --- extra paths ---


def test_extra_paths_are_walked_and_cited(ws: Path, tmp_path: Path) -> None:
    write(ws, "notes/a.md", "plan.md", "AGENTS.md")
    write(
        tmp_path,
        "team-docs/x.md",
        "team-docs/sub/y.md",
        "team-docs/.git/z.md",
        "single/s.md",
        "single/other.md",
    )
    found = scan(ws, "notes", "plan.md", "../team-docs", str(tmp_path / "single" / "s.md"))
    assert paths(found) == [
        "../single/s.md",
        "../team-docs/sub/y.md",
        "../team-docs/x.md",
        "notes/a.md",
        "plan.md",
    ]


def test_overlapping_extra_paths_list_a_file_once_and_quietly(ws: Path) -> None:
    write(ws, "memory/a.md", "notes/b.md", "AGENTS.md")
    (ws / "notes" / "l.md").symlink_to("b.md")
    found = scan(ws, ".", "memory", "notes")
    assert paths(found) == ["AGENTS.md", "memory/a.md", "notes/b.md"]
    assert list(reasons(found)) == ["notes/l.md"]


def test_an_extra_path_around_the_workspace_does_not_list_it_again(
    ws: Path, tmp_path: Path
) -> None:
    write(ws, "memory/a.md", "AGENTS.md")
    write(tmp_path, "other.md")
    assert paths(scan(ws, "..")) == ["../other.md", "memory/a.md"]


def test_a_missing_extra_path_is_reported_and_the_rest_is_listed(ws: Path) -> None:
    write(ws, "memory/a.md")
    found = scan(ws, "../gone")
    assert paths(found) == ["memory/a.md"]
    assert reasons(found) == {"../gone": "extra path not found"}


def test_a_missing_extra_path_is_reported_first(ws: Path) -> None:
    write(ws, "memory/a.md")
    (ws / "memory" / "l.md").symlink_to("a.md")
    assert list(reasons(scan(ws, "zzz"))) == ["zzz", "memory/l.md"]


def test_an_extra_folder_that_became_a_link_is_not_followed(ws: Path, tmp_path: Path) -> None:
    write(tmp_path, "outside/secret.md")
    write(ws, "notes/a.md")
    workspace = Workspace(str(ws), ["notes"])
    (ws / "notes").rename(ws / "was")
    (ws / "notes").symlink_to(tmp_path / "outside")
    found = workspace.scan()
    assert paths(found) == []
    assert reasons(found)["notes"].startswith(
        "a link; to index what it leads to, name its real location: "
    )


# --- failures are not deletions ---


@contextmanager
def descriptors_left(count: int) -> Iterator[None]:
    """Let the process open only `count` more files: a real system error, also for root."""
    # The numbers in use may have gaps, so the ones that are free are counted.
    free = [os.open(os.devnull, os.O_RDONLY) for _ in range(count + 1)]
    for descriptor in free:
        os.close(descriptor)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (free[count], hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_missing_root_is_a_failure_of_everything(tmp_path: Path) -> None:
    found = scan(tmp_path / "gone")
    assert found.files == ()
    assert [failure.path for failure in found.failures] == [""]
    assert found.failures[0].reason.startswith("no such file or directory (")


def test_a_root_that_is_a_file_is_a_failure(tmp_path: Path) -> None:
    write(tmp_path, "ws")
    assert [failure.path for failure in scan(tmp_path / "ws").failures] == [""]


def test_a_folder_that_cannot_be_opened_is_a_failure_of_its_prefix(ws: Path) -> None:
    write(ws, "memory/a.md", "memory/sub/b.md", "MEMORY.md")
    workspace = Workspace(str(ws))
    with descriptors_left(3):  # the root, memory, and the listing of memory
        found = workspace.scan()
    assert paths(found) == ["MEMORY.md", "memory/a.md"]
    assert [(f.path, f.reason) for f in found.failures] == [("memory/sub", "too many open files")]


def test_a_root_that_cannot_be_opened_is_a_failure_of_everything(ws: Path) -> None:
    write(ws, "memory/a.md")
    workspace = Workspace(str(ws))
    with descriptors_left(0):
        found = workspace.scan()
    assert [failure.path for failure in found.failures] == [""]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may list everything")
@pytest.mark.parametrize("mode", [0o000, 0o400])
def test_a_folder_without_permission_is_a_failure(ws: Path, mode: int) -> None:
    write(ws, "memory/sub/b.md")
    (ws / "memory" / "sub").chmod(mode)
    try:
        assert [failure.path for failure in scan(ws).failures] == ["memory/sub"]
    finally:
        (ws / "memory" / "sub").chmod(0o700)


def test_memory_as_a_link_is_a_failure_that_says_what_to_do(ws: Path, tmp_path: Path) -> None:
    (ws / "memory").rename(tmp_path / "shared")
    (ws / "memory").symlink_to(tmp_path / "shared")
    failure = scan(ws).failures[0]
    assert failure.path == "memory"
    assert failure.reason.endswith(f"add {tmp_path}/shared to memorySearch.extraPaths")


def test_memory_as_a_file_is_a_failure(tmp_path: Path) -> None:
    write(tmp_path, "memory")
    assert scan(tmp_path).failures == (ScanFailure("memory", "a file, not a folder"),)


def test_a_scan_names_its_roots(ws: Path, tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    write(ws, "memory/a.md")
    found = Workspace(str(ws), ["../docs", "../gone"]).scan()
    there = [
        (path, folder.stat())
        for path, folder in (("", ws), ("memory", ws / "memory"), ("../docs", tmp_path / "docs"))
    ]
    assert found.roots == (
        *((path, info.st_dev, info.st_ino) for path, info in there),
        ("../gone", -1, -1),
    )


def test_an_extra_path_that_cannot_be_looked_at_is_a_failure(ws: Path) -> None:
    found = Workspace(str(ws), ["x" * 300]).scan()
    assert found.failures == (
        ScanFailure("x" * 300, "extra path cannot be read: file name too long"),
    )


def test_a_deleted_file_is_simply_not_there(ws: Path) -> None:
    write(ws, "memory/a.md")
    workspace = Workspace(str(ws))
    workspace.scan()
    (ws / "memory" / "a.md").unlink()
    found = workspace.scan()
    assert (found.files, found.failures) == ((), ())
