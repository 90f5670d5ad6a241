from __future__ import annotations

import pytest

from clawmark.text.globs import path_matcher


@pytest.mark.parametrize(
    ("pattern", "path", "expected"),
    [
        ("MEMORY.md", "MEMORY.md", True),
        ("log.md", "memory/team/log.md", True),
        ("2026-*.md", "memory/2026-02-24.md", True),
        ("memory/*.md", "memory/log.md", True),
        ("memory/*.md", "memory/team/log.md", False),
        ("memory/**", "memory/team/deep/log.md", True),
        ("memory/**/log.md", "memory/log.md", True),
        ("memory/**/log.md", "memory/a/b/log.md", True),
        ("**/team/*", "memory/team/log.md", True),
        ("memory/", "memory/team/log.md", True),
        ("memory", "memory/log.md", False),
        ("memory/lo?.md", "memory/log.md", True),
        ("memory/lo?.md", "memory/lo/.md", False),
        ("memory/[kl]og.md", "memory/log.md", True),
        ("memory/[!kl]og.md", "memory/log.md", False),
        ("memory/[a-z]og.md", "memory/log.md", True),
        ("memory/log[.md", "memory/log[.md", True),
        ("./memory/log.md", "memory/log.md", True),
        ("../docs/**", "../docs/guide.md", True),
        ("MEMORY.MD", "MEMORY.md", False),
        ("memory/(log).md", "memory/(log).md", True),
        ("at-10:30.md", "memory/at-10:30.md", True),
        ("memory/at-10:30.md", "memory/at-10:30.md", True),
        ("log.md", "notes:log.md", True),
        ("notes:", "notes:team/log.md", True),
        ("notes:*.md", "notes:team/log.md", False),
        ("notes:log.md", "notes:team/log.md", False),
        ("notes:", "notes-2:log.md", False),
        ("team/**", "notes:team/log.md", False),
        ("**/team/**", "notes:team/log.md", True),
    ],
)
def test_patterns_match_whole_paths(pattern: str, path: str, expected: bool) -> None:
    assert path_matcher(pattern)(path) is expected


def test_a_pattern_with_many_stars_is_matched_quickly() -> None:
    path = "/".join(["a" * 120] * 30)
    assert not path_matcher("*a" * 100 + "b/" + "**/" * 60 + "x")(path)
    assert not path_matcher("**/" + "*a" * 200 + "b")(path)
