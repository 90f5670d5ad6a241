"""Names of spaces and authors, and cited paths of a space."""

from __future__ import annotations

import pytest

from clawmark.model.errors import SpaceInputError
from clawmark.text.space_paths import (
    check_author,
    check_published_path,
    check_space_name,
    log_path,
    parse_space_path,
    published_path,
)


@pytest.mark.parametrize("name", ["team", "project-x", "a", "0", "a.b_c-d", "x" * 63])
def test_ordinary_names_are_accepted(name: str) -> None:
    assert check_space_name(name) == check_author(name) == name


@pytest.mark.parametrize("name", ["", "Team", "-a", ".a", "a/b", "a b", "ä", "x" * 64, "a\n"])
def test_other_names_are_refused(name: str) -> None:
    for check in (check_space_name, check_author):
        with pytest.raises(SpaceInputError) as raised:
            check(name)
        assert raised.value.hint


def test_an_author_cannot_be_called_like_a_log() -> None:
    with pytest.raises(SpaceInputError):
        check_author("2026-11-18.md")


@pytest.mark.parametrize("path", ["a.md", "memory/team/plan.md", "memory/Ärger?.MD", "a b/c.md"])
def test_paths_of_markdown_files_can_be_published(path: str) -> None:
    assert check_published_path(path) == path


@pytest.mark.parametrize(
    "path",
    ["", "/a.md", "a//b.md", "../a.md", "a/./b.md", "a/..", "a\\b.md", "a\0.md", "a\n.md",
     "a.txt", "a", ".md/", "\ud800.md", "x" * 510 + ".md"],
)  # fmt: skip
def test_other_paths_are_refused(path: str) -> None:
    with pytest.raises(SpaceInputError) as raised:
        check_published_path(path)
    assert raised.value.hint


def test_a_cited_path_is_taken_apart_and_put_together() -> None:
    for place, author, is_log in (
        (log_path("team", "2026-11-18"), "", True),
        (published_path("team", "ada", "memory/a.md"), "ada", False),
    ):
        assert parse_space_path(place.cited) == place
        assert parse_space_path(f"./{place.cited}") == place
        assert (place.author, place.is_log) == (author, is_log)
    assert log_path("team", "2026-11-18").cited == "spaces/team/2026-11-18.md"


@pytest.mark.parametrize("path", ["", "spaces", "spaces/team", "spaces/team/", "memory/a.md"])
def test_other_paths_are_not_of_a_space(path: str) -> None:
    assert parse_space_path(path) is None
