"""Captured entries as lines of Markdown."""

from __future__ import annotations

from clawmark.backends.lancedb.entries import (
    Captured,
    derived_id,
    format_entry,
    parse_entries,
    unique_entries,
)
from clawmark.backends.lancedb.writing import says_the_same
from clawmark.text.untrusted.origin_labels import origin_of, without_comments

PATH = "memory/captured/2026-11-16.md"
ENTRY = Captured(
    id="0b2e7c1a-9a51-4d4b-8f1e-3f0a1c2d3e4f",
    text="I prefer tea.",
    category="preference",
    importance=0.8,
    origin="user",
    created="2026-11-16T14:05:00+01:00",
    path=PATH,
    start_line=3,
    end_line=3,
)


def test_an_entry_is_read_back_as_it_was_written() -> None:
    line = format_entry(ENTRY, "agent:main:main")
    assert parse_entries(PATH, f"# 2026-11-16\n\n{line}") == [ENTRY]
    assert ENTRY.created_ms == 1_794_834_300_000


def test_the_comment_is_a_label_that_the_index_leaves_out() -> None:
    line = format_entry(ENTRY, "agent:main:main")
    assert without_comments(line) == "- I prefer tea.\n"
    assert origin_of(line) == "user"


def test_lines_without_a_comment_are_entries_with_a_derived_id() -> None:
    text = "# Mine\n\n- Tea at four\n  with milk\n* Coffee at nine\n\nA paragraph.\n---\n"
    found = parse_entries(PATH, text)
    assert [(one.text, one.start_line, one.end_line) for one in found] == [
        ("Tea at four with milk", 3, 4),
        ("Coffee at nine", 5, 5),
        ("A paragraph.", 7, 7),
    ]
    assert found[0].id == derived_id("Tea at four with milk")
    assert (found[0].category, found[0].importance, found[0].origin) == ("other", 0.7, "unknown")


def test_fields_that_a_person_has_broken_get_their_defaults() -> None:
    line = "- Tea <!-- clawmark: origin=me category=drinks importance=high id=7 at=noon -->"
    (entry,) = parse_entries(PATH, line)
    assert entry.text == "Tea"
    assert (entry.category, entry.importance, entry.origin) == ("other", 0.7, "unknown")
    assert entry.id == derived_id("Tea")


def test_a_copied_line_is_one_entry_and_a_copied_id_stays_with_the_first() -> None:
    other = ENTRY._replace(text="I prefer coffee.")
    kept = unique_entries([ENTRY, ENTRY, other])
    assert [one.text for one in kept] == ["I prefer tea.", "I prefer coffee."]
    assert kept[0].id == ENTRY.id != kept[1].id


def test_texts_with_other_numbers_addresses_or_a_negation_are_not_duplicates() -> None:
    assert says_the_same(0.96, "We use PostgreSQL", "We do use PostgreSQL")
    assert not says_the_same(0.94, "We use PostgreSQL", "We do use PostgreSQL")
    for one, other in (
        ("Call +420 777 123 456", "Call +420 777 123 457"),
        ("Anna's mail is anna@example.com", "Anna's mail is anna@example.org"),
        ("We decided to use MySQL", "We decided not to use MySQL"),
        ("The birthday is on 4 May", "The birthday is on 5 May"),
    ):
        assert not says_the_same(0.99, one, other)


def test_the_time_that_a_flush_writes_is_not_part_of_what_an_entry_says() -> None:
    text = (
        "- 11:28 Ann chose the blue boat. <!-- clawmark: origin=agent session=agent:main:main -->\n"
        "- 09:30 is the time of the stand-up.\n"
    )
    entries = parse_entries("memory/captured/2026-11-16.md", text)
    assert [entry.text for entry in entries] == [
        "Ann chose the blue boat.",
        "09:30 is the time of the stand-up.",
    ]
