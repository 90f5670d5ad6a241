"""Entries are labelled with their origin, and the least trusted of several counts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clawmark.text.untrusted.origin_labels import (
    ORIGINS,
    Origin,
    comment,
    origin_of,
    sessions_of,
    without_comments,
)


def test_the_comment_can_be_read_by_people() -> None:
    assert (
        comment("agent", "agent:main:main")
        == "<!-- clawmark: origin=agent session=agent:main:main -->"
    )
    assert comment("user", "") == "<!-- clawmark: origin=user -->"


@given(st.sampled_from(ORIGINS), st.text(max_size=300))
def test_no_session_key_can_end_the_comment_early(origin: Origin, key: str) -> None:
    made = comment(origin, key)
    assert made.count("--") == 2 and made.endswith(" -->") and "\n" not in made
    assert without_comments(f"- x {made}") == "- x"
    assert origin_of(f"- x {made}") == origin


@pytest.mark.parametrize(
    ("origins", "least"),
    [
        (["user"], "user"),
        (["user", "agent"], "agent"),
        (["tool", "user"], "tool"),
        (["import", "agent"], "import"),
        ([], "unknown"),
    ],
)
def test_the_least_trusted_origin_counts(origins: list[Origin], least: Origin) -> None:
    assert origin_of("\n".join(f"- x {comment(origin, 'k')}" for origin in origins)) == least


def test_one_entry_without_a_label_makes_the_whole_unknown() -> None:
    assert origin_of(f"- x {comment('user', '')}\n- y") == "unknown"
    assert origin_of("prose") == "unknown"


def test_every_line_of_an_imported_file_has_the_origin_import() -> None:
    assert origin_of("- x\n- y", "memory/imports/claude/2025-05-01-trip.md") == "import"
    assert origin_of("- x\n- y", "memory/2025-05-01.md") == "unknown"


def test_the_sessions_of_a_log_can_be_counted() -> None:
    text = f"- x {comment('agent', 'a:b')}\n- y\n- z {comment('user', '')}"
    assert sessions_of(text) == ["a:b", ""]
