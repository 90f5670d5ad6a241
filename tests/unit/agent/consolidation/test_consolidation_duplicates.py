"""Which entries of MEMORY.md are removed because another one says the same."""

from __future__ import annotations

import pytest
from consolidation_samples import entries_of, page

from clawmark.agent.consolidation.duplicates import find_duplicates


def removed(*lines: str) -> list[int]:
    """Return the lines of the entries that are duplicates."""
    return [one.entry.start_line for one in find_duplicates(entries_of(page(*lines)))]


@pytest.mark.parametrize(
    "lines",
    [
        ("- Oat milk, rye bread, plums", "- Oat milk, rye bread, plums"),
        ("- Rent: 800 euros, warm", "- Rent: 800 euros, warm"),
        ("- Backups are kept for ten weeks.", "- All good.", "- Backups are kept for ten weeks."),
    ],
)
def test_an_entry_of_the_same_list_is_a_duplicate(lines: tuple[str, ...]) -> None:
    assert removed(*lines) == [len(lines)]


def test_a_whole_sentence_is_a_duplicate_below_another_heading() -> None:
    fact = "- Backups are kept for ten weeks."
    assert removed("## Rules", "", fact, "", "## Server", "", fact) == [7]


DIFFERENT = {
    "who does it to whom": ("- Ravi always helps Ines.", "- Ines always helps Ravi."),
    "from which to which": ("- Road 7 is before road 9.", "- Road 9 is before road 7."),
    "an introduction": ("- Tents worth buying:", "- Tents worth buying:"),
    "a bold introduction": ("- **Tents worth buying:**", "- **Tents worth buying:**"),
    "a pronoun": ("- They have a large garden.", "- They have a large garden."),
    "a field below two headings": (
        *("## Shop", "", "- Opening hours: 9:00 to 17:00", ""),
        *("## Office", "", "- Opening hours: 9:00 to 17:00"),
    ),
    "a part of two lists": (
        *("- Bread:", "- 2 cups of rye flour", "- Cake:", "- 2 cups of rye flour"),
    ),
    "a verb that is a noun": (
        *("- Pans:", "- Ease of use and needs of cooks", "- Pots:"),
        "- Ease of use and needs of cooks",
    ),
}


@pytest.mark.parametrize("name", DIFFERENT)
def test_what_needs_its_surroundings_or_says_something_else_is_kept(name: str) -> None:
    assert removed(*DIFFERENT[name]) == []


def test_very_many_equal_entries_are_all_found() -> None:
    assert len(removed(*["- Backups are kept for ten weeks."] * 3_000)) == 2_999
