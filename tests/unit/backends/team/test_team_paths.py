"""Cited paths of shared spaces."""

from __future__ import annotations

import pytest

from clawmark.backends.team.paths import SpacePath, is_space_path, parse_space_path
from clawmark.model.errors import PathDenied


@pytest.mark.parametrize(
    ("path", "parts"),
    [
        ("spaces/team/2026-11-18.md", SpacePath("team", "", "2026-11-18.md")),
        ("spaces/team/ada/memory/x.md", SpacePath("team", "ada", "memory/x.md")),
        ("./spaces/a.b_c-d/ada/Plan für März.md", SpacePath("a.b_c-d", "ada", "Plan für März.md")),
    ],
)
def test_a_path_has_a_space_an_author_and_a_file(path: str, parts: SpacePath) -> None:
    assert parse_space_path(path) == parts
    assert parts.cited == path.removeprefix("./")
    assert is_space_path(path)


@pytest.mark.parametrize(
    "path",
    [
        "",
        "spaces",
        "spaces/team",
        "spaces/team/",
        "spaces/team/plan.md",
        "spaces/Team/ada/x.md",
        "spaces/team/../x/y.md",
        "spaces/team/ada/../../../x.md",
        "spaces/team/ada/.hidden/x.md",
        "spaces/team/ada/.md",
        "spaces/team/ada//x.md",
        "spaces/team/ada/x.txt",
        "spaces/team/ada/a\\b.md",
        "spaces/team/ada/c:x.md",
        "spaces/team/ada/nul\0.md",
        "spaces/team/ada/line\n.md",
        "spaces/team/ada/\udcff.md",
        "spaces/team/ada/folder./x.md",
        "spaces/team/ada/" + "x" * 300 + ".md",
        "spaces/" + "x/" * 600 + "y.md",
        "memory/x.md",
        "/spaces/team/ada/x.md",
    ],
)
def test_a_path_that_could_leave_its_folder_or_is_not_markdown_is_denied(path: str) -> None:
    with pytest.raises(PathDenied):
        parse_space_path(path)
