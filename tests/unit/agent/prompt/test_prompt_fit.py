"""A text is cut along its sections and entries, keeps its newest, and says what is missing."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clawmark.agent.prompt.fit import fit

ENTRIES = (
    "- fact {0}.0 about it\n- fact {0}.1 about it\n- fact {0}.2 about it\n- fact {0}.3 about it\n"
)
SECTIONS = "# Memory\n\nWhat stays.\n\n" + "".join(
    f"## Topic {n}\n\n{ENTRIES.format(n)}\n" for n in range(10)
)
NOTICE = re.compile(
    r"\[… lines? ([0-9]+)(?:-([0-9]+))? of (\S+) left out here, [0-9,]+ characters; "
    r"(?:memory_get reads them|open the file to read them) …\]"
)


def test_text_within_the_limit_is_unchanged() -> None:
    assert fit(SECTIONS, 10_000, "MEMORY.md", grows=True) == SECTIONS.rstrip()


def test_a_growing_file_keeps_its_introduction_and_its_newest_sections_whole() -> None:
    shown = fit(SECTIONS, 600, "MEMORY.md", grows=True)
    assert len(shown) <= 600
    assert shown.startswith("# Memory\n\nWhat stays.\n\n[… lines 5-")
    assert "## Topic 9\n\n- fact 9.0 about it\n" in shown and "## Topic 8\n\n- fact 8.0" in shown
    assert "Topic 0" not in shown


def test_a_standing_file_keeps_its_first_sections_whole() -> None:
    shown = fit(SECTIONS, 600, "AGENTS.md", grows=False)
    assert len(shown) <= 600
    assert "## Topic 0\n\n- fact 0.0 about it\n" in shown and "Topic 9" not in shown
    assert shown.endswith("open the file to read them …]")


def test_the_notice_names_the_file_and_exactly_the_missing_lines() -> None:
    lines = SECTIONS.rstrip().split("\n")
    shown = fit(SECTIONS, 600, "MEMORY.md", grows=True)
    found = NOTICE.search(shown)
    assert found is not None and found[3] == "MEMORY.md"
    missing = range(int(found[1]), int(found[2]) + 1)
    for number, line in enumerate(lines, 1):
        if line.startswith("- fact"):
            assert (line in shown) == (number not in missing)


def test_a_newest_first_file_keeps_its_beginning() -> None:
    text = "# Log\n\n" + "".join(
        f"## 2026-02-{day:02}\n\nthing {day}\n\n" for day in range(28, 0, -1)
    )
    shown = fit(text, 300, "MEMORY.md", grows=True)
    assert "thing 28" in shown and "thing 1\n" not in shown


def test_a_list_without_headings_keeps_its_newest_entries_whole() -> None:
    text = "".join(f"- entry {number} begins\n  and goes on\n" for number in range(50))
    shown = fit(text, 400, "memory/2026-02-24.md", grows=True)
    kept = re.findall(r"- entry ([0-9]+) begins\n  and goes on", shown)
    assert (
        kept and kept[-1] == "49" and kept == [str(number) for number in range(50 - len(kept), 50)]
    )
    assert shown.count("- entry") == len(kept)


def test_code_stays_with_the_entry_it_belongs_to() -> None:
    fence = "```\n- not an entry\n\n# not a heading\n```\n"
    text = "- old " + "x" * 300 + "\n\n- new\n\n" + fence
    assert fit(text, 200, "MEMORY.md", grows=True).endswith(fence.rstrip())


def test_very_long_line_is_truncated_with_a_notice() -> None:
    shown = fit("word " * 2000, 300, "MEMORY.md", grows=True)
    assert (
        len(shown) <= 300
        and shown.startswith("word word")
        and "line 1 of MEMORY.md left out" in shown
    )


@pytest.mark.parametrize("limit", [0, 1, 20])
def test_without_room_for_the_notice_there_is_nothing(limit: int) -> None:
    assert fit(SECTIONS, limit, "MEMORY.md", grows=True) == ""


def test_a_hostile_file_is_cut_as_quickly_as_any_other() -> None:
    """Nothing but marks: quadratic work would take an hour."""
    for part in ("```\n", "# x\n", "- \n", "\n", "###### x\n# y\n"):
        assert (
            len(fit(part * (300_000 // len(part)) + "end", 20_000, "MEMORY.md", grows=True))
            <= 20_000
        )


_LINES = st.sampled_from(
    [
        "# a",
        "## b",
        "### c",
        "- entry",
        "  more",
        "prose",
        "",
        "```",
        "---",
        "1. one",
        "## 2026-01-02",
    ]
)


@given(st.lists(_LINES, max_size=60).map("\n".join), st.integers(0, 400), st.booleans())
def test_it_is_never_longer_and_every_line_is_from_the_file_or_a_notice(
    text: str, limit: int, grows: bool
) -> None:
    shown = fit(text, limit, "x.md", grows=grows)
    assert len(shown) <= max(limit, 0)
    own = set(text.split("\n"))
    for line in shown.split("\n"):
        assert (
            line in own
            or NOTICE.fullmatch(line)
            or any(line and whole.startswith(line) for whole in own)
            or line == ""
        )
