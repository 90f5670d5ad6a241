"""Wrapping, alignment and number formats."""

from __future__ import annotations

import os

import pytest

from clawmark.cli import layout, output
from clawmark.cli.commands import ls, recent
from clawmark.model.documents import MemoryEntry, MemoryFile


def test_lines_are_wrapped_at_blanks() -> None:
    lines = layout.wrap("the quick brown fox jumps over the lazy dog", 12)
    assert lines == ["the quick", "brown fox", "jumps over", "the lazy dog"]


def test_a_word_longer_than_a_line_is_broken() -> None:
    assert layout.wrap("ab " + "x" * 25 + " cd", 10) == [
        "ab",
        "xxxxxxxxxx",
        "xxxxxxxxxx",
        "xxxxx cd",
    ]


def test_wide_letters_take_two_columns() -> None:
    assert layout.cells("日本語") == 6
    assert layout.cells("e\u0301") == 1
    assert layout.wrap("日本語日本語", 4) == ["日本", "語日", "本語"]


def test_an_empty_text_has_no_lines() -> None:
    assert layout.wrap(" \n ", 10) == []


def test_a_snippet_keeps_its_lines_and_is_wrapped() -> None:
    assert layout.snippet_lines("# Head\n\n- one\n- two", 40) == ["# Head", "- one", "- two"]
    assert layout.snippet_lines("\n".join(f"line {n}" for n in range(20)), 40) == [
        f"line {n}" for n in range(20)
    ]
    lines = layout.snippet_lines("word " * 100, 20)
    assert (
        all(layout.cells(line) <= 20 for line in lines)
        and " ".join(lines).split() == ["word"] * 100
    )


def test_a_wrapped_line_is_joined_with_its_continuation() -> None:
    note = "- Cashews are dangerous for Ines, even as traces\n  in pesto.\n- Milk is fine."
    assert layout.snippet_lines(note, 30) == [
        "- Cashews are dangerous for",
        "Ines, even as traces in pesto.",
        "- Milk is fine.",
    ]
    assert layout.snippet_lines(note, 60) == note.replace("  in", "in").split("\n")


@pytest.mark.parametrize(
    "following",
    [
        "- an item",
        "2. an item",
        "# Head",
        "| a | b |",
        "> said",
        "User (2026-02-24 10:03Z): no",
        "Assistant: no",
    ],
)
def test_a_line_that_starts_a_new_item_is_not_joined(following: str) -> None:
    assert following in layout.snippet_lines(f"a line of some more words than fit\n{following}", 30)


def test_lines_of_code_are_not_joined() -> None:
    lines = layout.snippet_lines("```\na line of some more words than fit\nexit 1\n```", 30)
    assert lines == ["```", "a line of some more words than", "fit", "exit 1", "```"]


def test_a_snippet_cannot_harm_the_terminal() -> None:
    assert layout.snippet_lines("a\x1b]0;evil\x07b", 40) == ["a\\x1b]0;evil\\x07b"]


def test_query_words_are_bold_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    assert layout.emphasise("We chose Postgres", "chose") == "We chose Postgres"
    monkeypatch.setattr(output, "is_terminal", lambda stream: True)
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert layout.emphasise("We chose (it)", "we (chose)?") == "We \x1b[1mchose\x1b[0m (it)"


def test_columns_align() -> None:
    assert layout.table([("a", "1", "x"), ("日本", "22", "y")], right=(1,)) == [
        "a      1  x",
        "日本  22  y",
    ]


def test_a_wide_cell_shifts_only_its_own_row() -> None:
    assert layout.table([("a", "1"), ("a long name", "2"), ("b", "3")], most={0: 3}) == [
        "a    1",
        "a long name  2",
        "b    3",
    ]


def test_colour_codes_do_not_count_in_the_width_of_a_name() -> None:
    assert layout.facts([("Files", "2"), ("\x1b[33mWarnings\x1b[0m", "1")]) == [
        "Files     2",
        "\x1b[33mWarnings\x1b[0m  1",
    ]


def test_facts_omit_empty_values_and_indent_further_lines() -> None:
    assert layout.facts([("Name", "a\nb"), ("None", ""), ("X", "c")]) == [
        "Name  a",
        "      b",
        "X     c",
    ]


@pytest.mark.parametrize(
    ("shown", "text"),
    [
        (layout.plural(1, "file"), "1 file"),
        (layout.plural(1234, "file"), "1,234 files"),
        (layout.size(0), "0 B"),
        (layout.size(12_345), "12.3 KB"),
        (layout.size(4_500_000_000_000), "4500.0 GB"),
        (layout.duration(0.0412), "41 ms"),
        (layout.duration(2.34), "2.3 s"),
        (layout.duration(200), "3 min 20 s"),
        (layout.duration(7500), "2 h 5 min"),
    ],
)
def test_numbers_sizes_and_durations_are_formatted(shown: str, text: str) -> None:
    assert shown == text


def test_a_long_name_is_shortened_in_the_middle() -> None:
    assert layout.middle("short.md") == "short.md"
    assert layout.middle("a" * 50 + "b" * 50, 11) == "aaaaa…bbbbb"


def test_the_home_folder_is_shown_as_a_tilde(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ann")
    assert layout.short_path("/home/ann/agent") == "~/agent"
    assert layout.short_path("/home/anna") == "/home/anna"
    assert layout.short_path(os.sep) == "/"


def test_a_line_is_cut_to_its_display_width() -> None:
    assert layout.fitted("short", 5) == "short"
    assert layout.fitted("a long line", 6) == "a lon…"
    assert layout.fitted("\x1b[31mred\x1b[0m", 3) == "\x1b[31mred\x1b[0m"
    assert layout.fitted("\x1b[31mred line\x1b[0m", 4) == "\x1b[31mred…\x1b[0m"
    assert layout.fitted("漢字漢字", 5) == "漢字…"


@pytest.mark.parametrize("width", [40, 80])
def test_listed_files_and_entries_fit_a_narrow_terminal(width: int) -> None:
    path = "memory/projects/a-very-long-name-of-a-project-in-the-harbour.md"
    file = MemoryFile(path=path, size=98_304, changed="2026-11-16T16:47:00", entries=1234)
    entry = MemoryEntry(
        path="MEMORY.md",
        start_line=3,
        end_line=3,
        day="2026-11-16",
        is_dated=False,
        heading="",
        text="- The launch is in March, 漢字漢字漢字, after the review of the whole committee.",
    )
    for line in (*ls.listing((file,), width), *recent.entry_lines((entry,), width)):
        assert layout.cells(line) <= width, line


def test_paths_in_a_sentence_are_shown_from_the_home_folder(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HOME", "/home/ann")
    assert layout.short_paths("The log is /home/ann/a.log.") == "The log is ~/a.log."
    assert layout.short_paths("The log is /home/anna/a.log.") == "The log is /home/anna/a.log."
