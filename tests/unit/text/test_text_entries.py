"""How a memory file is split into entries."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from clawmark.text.entries import split_entries


def lines_of(text: str) -> list[tuple[int, int, str]]:
    return [(entry.start_line, entry.end_line, entry.text) for entry in split_entries(text)]


def test_list_items_and_paragraphs_are_entries_and_headings_are_not() -> None:
    text = "# Facts\n\nA paragraph\nof two lines.\n\n- one\n- two\n1. three\n"
    assert lines_of(text) == [
        (3, 4, "A paragraph\nof two lines."),
        (6, 6, "- one"),
        (7, 7, "- two"),
        (8, 8, "1. three"),
    ]


def test_nested_items_and_indented_paragraphs_belong_to_the_entry_above() -> None:
    text = "- one\n  - nested\n\n  more of one\n- two\n"
    assert lines_of(text) == [(1, 4, "- one\n  - nested\n\n  more of one"), (5, 5, "- two")]


def test_fenced_code_is_not_split() -> None:
    text = "- one\n\n```\n- not an item\n\n# not a heading\n---\n```\n- two\n"
    assert [entry[:2] for entry in lines_of(text)] == [(1, 1), (3, 8), (9, 9)]


def test_front_matter_rules_and_underlined_headings_are_not_entries() -> None:
    text = "---\ntitle: x\n---\nTitle\n=====\ntext\n\n***\nafter\n"
    assert lines_of(text) == [(6, 6, "text"), (9, 9, "after")]


def test_front_matter_directly_above_a_heading_is_not_an_entry() -> None:
    assert lines_of("---\ntitle: x\n---\n# Title\n- one\n") == [(5, 5, "- one")]


def test_an_entry_has_the_headings_above_it_and_the_day_of_the_innermost_dated_one() -> None:
    text = "# 2024-05-01\n## Plans\n- one\n## 3 May 2024\n- two\n# Later\n- three\n"
    found = [(entry.heading, entry.day) for entry in split_entries(text)]
    assert found == [
        ("2024-05-01 > Plans", "2024-05-01"),
        ("2024-05-01 > 3 May 2024", "2024-05-03"),
        ("Later", ""),
    ]


def test_labels_of_origin_are_not_part_of_an_entry() -> None:
    text = "- one <!-- clawmark: origin=user -->\n<!-- clawmark: origin=agent -->\n"
    assert [entry.text.strip() for entry in split_entries(text)] == ["- one"]


PIECES = st.sampled_from(
    ["- item", "  - nested", "text", "# heading", "=====", "---", "```", "~~~", "", "  ", "1. x"]
)


@given(st.lists(PIECES, max_size=30))
def test_entries_have_the_lines_they_name_in_order(pieces: list[str]) -> None:
    lines = pieces
    last = 0
    for entry in split_entries("\n".join(lines)):
        assert entry.start_line > last
        assert entry.text == "\n".join(lines[entry.start_line - 1 : entry.end_line]).rstrip()
        assert entry.text.strip()
        last = entry.end_line


@given(st.lists(PIECES, max_size=30))
def test_every_item_outside_of_code_is_in_an_entry(pieces: list[str]) -> None:
    lines = [piece for piece in pieces if piece[:3] not in ("```", "~~~", "---")]
    covered = {
        line
        for entry in split_entries("\n".join(lines))
        for line in range(entry.start_line, entry.end_line + 1)
    }
    items = {number for number, line in enumerate(lines, 1) if line.startswith(("- ", "1. "))}
    underlined = {number for number in items if lines[number : number + 1] == ["====="]}
    assert items - underlined <= covered
