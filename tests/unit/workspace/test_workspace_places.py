"""Which paths are memory, and what an extra path may be."""

from __future__ import annotations

from pathlib import Path

import pytest

from clawmark.model.errors import PathDenied
from clawmark.model.values import ScanFailure, Skipped
from clawmark.workspace.places import Extra, Place, locate, resolve_extras


@pytest.fixture
def home(tmp_path: Path) -> Path:
    for folder in ("home/agent/memory", "home/agent/notes", "home/docs", "team-docs"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "team-docs" / "plan.md").write_text("plan\n")
    (tmp_path / "team-docs" / "plan.txt").write_text("plan\n")
    return tmp_path / "home"


def resolve(home: Path, *given: str) -> tuple[tuple[Extra, ...], tuple[Skipped | ScanFailure, ...]]:
    return resolve_extras(str(home / "agent"), given, str(home))


# --- memory paths ---


@pytest.mark.parametrize(
    "path", ["MEMORY.md", "memory.md", "memory/a.md", "memory/x/y/z.MD", "memory/.note.md"]
)
def test_memory_is_the_root_files_and_what_is_below_memory(path: str) -> None:
    assert locate("/ws", (), (), path) == Place(
        root="/ws", relative=path, path=path, writable=True, anchor=1
    )


@pytest.mark.parametrize(
    "path", ["./memory/a.md", "././memory/a.md", "/ws/memory/a.md", "/alias/memory/a.md"]
)
def test_a_memory_path_may_be_spelled_in_other_ways(path: str) -> None:
    assert locate("/ws", ("/alias",), (), path).path == "memory/a.md"


@pytest.mark.parametrize(
    ("path", "rule"),
    [
        ("AGENTS.md", "not-memory"),
        ("secrets.txt", "not-memory"),
        ("memory", "not-a-file"),
        ("memory/x.txt", "not-markdown"),
        ("memory/.env", "not-markdown"),
        ("memory/.git/config.md", "not-memory"),
        ("memory/node_modules/p/README.md", "not-memory"),
        ("memory/.#a.md", "not-memory"),
        ("memory/._a.md", "not-memory"),
        ("memory/.md", "not-memory"),
        ("memory\\a.md", "not-memory"),
        ("~/x.md", "not-memory"),
        ("/etc/passwd.md", "outside"),
        ("/ws-evil/memory/x.md", "outside"),
        ("/ws/../etc/x.md", "outside"),
        ("../x.md", "outside"),
        ("/ws", "outside"),
    ],
)
def test_everything_else_is_refused_by_name(path: str, rule: str) -> None:
    with pytest.raises(PathDenied) as caught:
        locate("/ws", (), (), path)
    assert caught.value.rule == rule


def test_a_path_with_backslashes_is_refused_with_a_hint() -> None:
    with pytest.raises(PathDenied) as caught:
        locate("/ws", (), (), "memory\\2026-02-24.md")
    assert caught.value.hint == "Write paths with forward slashes."


# --- extra paths ---


def test_a_folder_outside_is_cited_relative_to_the_workspace(home: Path, tmp_path: Path) -> None:
    for given in ("../../team-docs", str(tmp_path / "team-docs"), "../../team-docs/"):
        extras, skipped = resolve(home, given)
        assert extras == (Extra("../../team-docs", str(tmp_path / "team-docs"), ""),)
        assert skipped == ()


def test_a_folder_inside_is_reached_through_the_workspace(home: Path) -> None:
    assert resolve(home, "notes")[0] == (Extra("notes", "", ""),)
    assert resolve(home, ".")[0] == (Extra("", "", ""),)


def test_a_single_file_is_an_extra_path(home: Path, tmp_path: Path) -> None:
    extras, _ = resolve(home, "../../team-docs/plan.md")
    assert extras == (Extra("../../team-docs/plan.md", str(tmp_path / "team-docs"), "plan.md"),)


def test_the_own_home_is_expanded(home: Path) -> None:
    assert resolve(home, "~/docs")[0] == (Extra("../docs", str(home / "docs"), ""),)


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ("", "an empty extra path"),
        ("   ", "an empty extra path"),
        ("nosuch", "extra path not found"),
        ("$HOME/docs", "extra path not found (variables are not expanded)"),
        ("*", "extra path not found (patterns are not expanded; name the folder)"),
        ("~root/docs", "only ~ and ~/… are expanded, not another user's home; give the full path"),
        ("a\0b", "not a valid path"),
        ("\udcff", "not a valid path"),
        ("/", "the whole home folder or more; name a folder inside it"),
        ("~", "the whole home folder or more; name a folder inside it"),
        ("..", "the whole home folder or more; name a folder inside it"),
        ("notes/../..", "the whole home folder or more; name a folder inside it"),
        ("../../team-docs/plan.txt", "not a .md file"),
        ("/dev/null", "neither a folder nor a file"),
    ],
)
def test_an_extra_path_that_cannot_be_used_is_reported(home: Path, given: str, reason: str) -> None:
    extras, skipped = resolve(home, given)
    assert extras == ()
    assert [skip.reason for skip in skipped] == [reason]


def test_a_link_as_extra_path_names_the_real_folder(home: Path, tmp_path: Path) -> None:
    (home / "agent" / "shared").symlink_to(tmp_path / "team-docs")
    (home / "linked").symlink_to(tmp_path / "team-docs")
    for given in ("shared", "shared/", "../linked", "~/linked"):
        extras, skipped = resolve(home, given)
        assert extras == ()
        assert (
            skipped[0].reason
            == f"a link; to index what it leads to, name its real location: {tmp_path}/team-docs"
        )


def test_a_link_inside_the_workspace_does_not_lead_an_extra_path_out(
    home: Path, tmp_path: Path
) -> None:
    (tmp_path / "team-docs" / "sub").mkdir()
    (home / "agent" / "shared").symlink_to(tmp_path / "team-docs")
    extras, skipped = resolve(home, "shared/sub")
    assert extras == ()
    assert skipped[0].reason.endswith(f"name its real location: {tmp_path}/team-docs/sub")


def test_the_same_extra_path_counts_once(home: Path) -> None:
    extras, skipped = resolve(home, "notes", "./notes", "notes/")
    assert len(extras) == 1
    assert [skip.reason for skip in skipped] == ["same as the extra path notes"] * 2


def test_files_of_extra_paths_are_found_and_not_writable(home: Path, tmp_path: Path) -> None:
    workspace, docs = str(home / "agent"), str(tmp_path / "team-docs")
    extras, _ = resolve(home, "../../team-docs", "notes")
    place = Place(
        root=docs, relative="sub/x.md", path="../../team-docs/sub/x.md", writable=False, anchor=0
    )
    assert locate(workspace, (), extras, "../../team-docs/sub/x.md") == place
    assert locate(workspace, (), extras, f"{docs}/sub/x.md") == place
    assert locate(workspace, (), extras, "notes/x.md") == Place(
        root=workspace, relative="notes/x.md", path="notes/x.md", writable=False, anchor=1
    )


@pytest.mark.parametrize(
    "path", ["../../team-docs/../home/x.md", "../../team-docs/.git/x.md", "../../team-docs/x.txt"]
)
def test_hidden_files_and_siblings_of_an_extra_path_are_refused(home: Path, path: str) -> None:
    extras, _ = resolve(home, "../../team-docs")
    with pytest.raises(PathDenied):
        locate(str(home / "agent"), (), extras, path)


def test_a_single_extra_file_does_not_open_its_folder(home: Path) -> None:
    extras, _ = resolve(home, "../../team-docs/plan.md")
    assert locate(str(home / "agent"), (), extras, "../../team-docs/plan.md").relative == "plan.md"
    with pytest.raises(PathDenied):
        locate(str(home / "agent"), (), extras, "../../team-docs/other.md")


def test_an_extra_path_around_the_workspace_keeps_the_rules_of_the_workspace(
    tmp_path: Path,
) -> None:
    (tmp_path / "all" / "agent" / "memory").mkdir(parents=True)
    workspace = str(tmp_path / "all" / "agent")
    extras, _ = resolve_extras(workspace, [".."], "/nowhere")
    assert locate(workspace, (), extras, "../x.md").relative == "x.md"
    with pytest.raises(PathDenied):
        locate(workspace, (), extras, "../agent/AGENTS.md")


def test_a_hidden_folder_named_as_extra_path_is_memory(home: Path) -> None:
    (home / "agent" / "memory" / ".archive").mkdir()
    extras, _ = resolve(home, "memory/.archive")
    assert (
        locate(str(home / "agent"), (), extras, "memory/.archive/x.md").relative
        == "memory/.archive/x.md"
    )


# --- patterns ---


@pytest.mark.parametrize(
    ("pattern", "meant", "not_meant"),
    [
        ("*.md", ["a.md"], ["x/a.md"]),
        ("public/*.md", ["public/a.md"], ["a.md", "public/x/a.md", "private/a.md"]),
        ("public/**", ["public/a.md", "public/x/y/a.md"], ["a.md", "x/public/a.md"]),
        ("**/*.md", ["a.md", "x/y/a.md"], []),
        ("**/public/**/*.md", ["public/a.md", "x/public/y/a.md"], ["a.md", "x/y/a.md"]),
        ("**/**/a.md", ["a.md", "x/a.md", "x/y/a.md"], ["b.md"]),
        ("202?/[a-m]*.md", ["2026/anna.md"], ["2026/zoe.md", "226/anna.md"]),
    ],
)
def test_a_pattern_means_files_by_their_path_in_the_folder(
    pattern: str, meant: list[str], not_meant: list[str]
) -> None:
    extra = Extra(prefix="notes", folder="", file="", patterns=(pattern,))
    assert [path for path in (*meant, *not_meant) if extra.covers(path)] == meant


def test_a_long_pattern_takes_no_time() -> None:
    extra = Extra(
        prefix="notes", folder="", file="", patterns=("/".join(["**", "*a*a*a*"] * 50) + "/b.md",)
    )
    assert not extra.covers("/".join(["a" * 200] * 100) + "/c.md")


def test_what_a_pattern_leaves_out_is_not_memory(home: Path, tmp_path: Path) -> None:
    patterns = {"notes": ("public/*.md",), "../../team-docs": ("plan.md",)}
    extras, _ = resolve_extras(str(home / "agent"), patterns, str(home), patterns)
    workspace = str(home / "agent")
    for path in ("notes/public/a.md", "../../team-docs/plan.md"):
        assert locate(workspace, (), extras, path).path == path
    for path in (
        "notes/a.md",
        "notes/public/x/a.md",
        "../../team-docs/other.md",
        str(tmp_path / "team-docs" / "other.md"),
    ):
        with pytest.raises(PathDenied, match="left out by the pattern"):
            locate(workspace, (), extras, path)
