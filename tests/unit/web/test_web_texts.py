"""Blocks, differences and the way of a text through a form."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clawmark.web.blocks import link_definitions, render_block, split_blocks
from clawmark.web.diffs import MOST_LINES, diff_texts
from clawmark.web.form_text import can_be_in_form, from_form, to_form

PAGE = "# Facts\n\n- one\n- two\n  more\n\nA paragraph\nof two lines.\n\n```\ncode\n\n```\n"


def test_blocks_are_headings_items_paragraphs_and_code_with_their_lines() -> None:
    assert [one[:2] for one in split_blocks(PAGE)] == [(1, 1), (3, 3), (4, 5), (7, 8), (10, 13)]
    assert split_blocks(PAGE, 100)[0][:2] == (100, 100)


def test_front_matter_is_one_block_and_not_a_heading() -> None:
    text = "---\ntitle: x\n---\n\n# Facts\n"
    first, second = split_blocks(text)
    assert (first.start_line, first.end_line, second.start_line) == (1, 3, 5)
    assert "<h2" not in render_block(first.text, 1, "MEMORY.md")


@given(st.text(alphabet="-#* \n`1.ab>|[]:", max_size=80))
def test_blocks_have_every_line_that_is_not_blank_exactly_once(text: str) -> None:
    blocks = split_blocks(text)
    numbers = [n for one in blocks for n in range(one.start_line, one.end_line + 1)]
    assert numbers == sorted(set(numbers))
    filled = {n for n, line in enumerate(text.split("\n"), 1) if line.strip()}
    assert filled <= set(numbers)


def test_a_link_finds_its_target_in_another_block() -> None:
    text = "See [the page][1].\n\n[1]: https://example.org/\n"
    html = render_block("See [the page][1].", 1, "MEMORY.md", link_definitions(text))
    assert 'href="https://example.org/"' in html


def test_a_block_without_html_is_shown_as_it_is() -> None:
    assert "example.org" in render_block("[1]: https://example.org/", 7, "MEMORY.md")


def test_a_diff_has_the_numbers_of_both_texts() -> None:
    lines = diff_texts("a\nb\nc\n", "a\nB\nc\n")
    assert [(one.sign, one.old, one.new, one.text) for one in lines] == [
        (" ", 1, 1, "a"),
        ("-", 2, None, "b"),
        ("+", None, 2, "B"),
        (" ", 3, 3, "c"),
    ]
    assert diff_texts("a\n", "a\n") == ()


def test_a_long_diff_is_cut_and_says_so() -> None:
    lines = diff_texts("", "\n".join(map(str, range(MOST_LINES + 10))))
    assert len(lines) == MOST_LINES + 1
    assert lines[-1].text == "… 10 more lines"


def test_a_long_line_of_a_diff_is_cut_and_says_so() -> None:
    (line,) = diff_texts("", "x" * 1_000_000)
    assert line.text.endswith("… (998,000 more characters)")


@pytest.mark.parametrize("original", ["a\nb\n", "a\r\nb\r\n", "\ufeffa\r\nb", "a\r\nb\nc\rd\n", ""])
def test_a_text_that_is_not_changed_is_the_same_after_a_form(original: str) -> None:
    sent = to_form(original).replace("\n", "\r\n")  # as browsers send it
    assert from_form(sent, original) == original


def test_a_changed_text_keeps_the_line_ends_of_its_file() -> None:
    assert from_form("a\r\nnew\r\nb\r\n", "a\r\nb\r\n") == "a\r\nnew\r\nb\r\n"
    assert from_form("a\r\nnew\r\nb\r\n", "a\nb\n") == "a\nnew\nb\n"
    assert from_form("a\nB\nc\nd", "a\r\nb\nc\rd") == "a\r\nB\nc\rd"


def test_a_text_with_nul_does_not_survive_a_form() -> None:
    assert not can_be_in_form("a\0b")
    assert can_be_in_form("a\tb\n")
