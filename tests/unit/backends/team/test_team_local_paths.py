"""Cited paths of shared spaces that can be files here."""

from __future__ import annotations

import pytest

from clawmark.backends.team.files.local_paths import is_space_path, local_path
from clawmark.model.errors import PathDenied


@pytest.mark.parametrize(
    ("path", "space", "author"),
    [
        ("spaces/team/2026-11-18.md", "team", ""),
        ("spaces/team/ada/memory/x.md", "team", "ada"),
        ("./spaces/a.b_c-d/ada/Plan für März.MD", "a.b_c-d", "ada"),
    ],
)
def test_a_path_has_a_space_and_an_author(path: str, space: str, author: str) -> None:
    place = local_path(path)
    assert (place.space, place.author, place.cited) == (space, author, path.removeprefix("./"))
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
        "spaces/team/Ada/x.md",
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
        local_path(path)
