from __future__ import annotations

from itertools import pairwise

import pytest

from clawmark.model.documents import Chunk
from clawmark.text.chunking.markdown import chunk_markdown
from clawmark.text.chunking.tokens import quarter_tokens


def _lines(chunks: list[Chunk]) -> list[tuple[int, int]]:
    return [(chunk.start_line, chunk.end_line) for chunk in chunks]


def _paragraph(words: int) -> str:
    return ("word " * words).strip()


def test_a_short_note_is_one_chunk_with_its_exact_lines() -> None:
    (chunk,) = chunk_markdown("# Title\n\nSome text.\n", 400, 80)
    assert (chunk.start_line, chunk.end_line, chunk.text) == (1, 3, "# Title\n\nSome text.")
    assert chunk.heading == "Title"


def test_blank_lines_around_a_chunk_are_left_out() -> None:
    (chunk,) = chunk_markdown("\n\n  \ntext  \n\n", 400, 80)
    assert (chunk.start_line, chunk.end_line, chunk.text) == (4, 4, "text  ")


@pytest.mark.parametrize("text", ["", "\n\n\n", "   \n\t\n"])
def test_a_blank_note_has_no_chunks(text: str) -> None:
    assert chunk_markdown(text, 400, 80) == []


def test_small_sections_share_a_chunk_under_the_headings_they_share() -> None:
    text = "# Day\n\n## 10:32 Standup\n\nDone.\n\n## 11:00 Billing\n\nPaid."
    (chunk,) = chunk_markdown(text, 400, 80)
    assert chunk.text == text
    assert chunk.heading == "Day"


def test_a_well_filled_chunk_ends_with_its_section() -> None:
    text = f"## A\n\n{_paragraph(220)}\n\n## B\n\n{_paragraph(30)}"
    chunks = chunk_markdown(text, 400, 80)
    assert _lines(chunks) == [(1, 3), (5, 7)]
    assert [chunk.heading for chunk in chunks] == ["A", "B"]


def test_a_section_of_three_words_joins_the_chunk_before() -> None:
    text = f"## A\n\n{_paragraph(220)}\n\n## B\n\nthree small words"
    assert _lines(chunk_markdown(text, 400, 80)) == [(1, 7)]


def test_every_chunk_of_a_long_section_has_its_heading_path() -> None:
    text = "# Project\n\n## Decisions\n\n" + "\n\n".join(_paragraph(60) for _ in range(20))
    chunks = chunk_markdown(text, 100, 0)
    assert len(chunks) > 5
    assert {chunk.heading for chunk in chunks[1:]} == {"Project > Decisions"}


def test_paragraphs_are_whole_when_they_fit() -> None:
    text = "\n\n".join(f"{number} {_paragraph(50)}" for number in range(20))
    for chunk in chunk_markdown(text, 200, 0):
        assert all(part.endswith("word") and part[0].isdigit() for part in chunk.text.split("\n\n"))


def test_fenced_code_with_blank_lines_is_whole_when_it_fits() -> None:
    code = (
        "```python\n" + "\n\n".join(f"value_{number} = {number}" for number in range(20)) + "\n```"
    )
    text = f"{_paragraph(60)}\n\n{code}\n\n{_paragraph(60)}"
    assert any(code in chunk.text for chunk in chunk_markdown(text, 130, 0))


def test_a_list_is_whole_when_it_fits() -> None:
    items = "\n".join(f"- item {number} of the list" for number in range(12))
    text = f"{_paragraph(70)}\n\n{items}\n\n{_paragraph(70)}"
    assert any(items in chunk.text for chunk in chunk_markdown(text, 100, 0))


def test_a_list_that_does_not_fit_is_cut_between_items() -> None:
    text = "\n".join(f"- item {number}\n  goes on here {_paragraph(10)}" for number in range(40))
    for chunk in chunk_markdown(text, 100, 0):
        assert chunk.text.startswith("- item")
        assert chunk.text.count("- item") == chunk.text.count("goes on here")


def test_the_last_lines_of_a_chunk_are_repeated_within_a_section() -> None:
    text = "\n\n".join(f"turn {number}: {_paragraph(12)}" for number in range(60))
    chunks = chunk_markdown(text, 200, 40)
    assert all(two.start_line <= one.end_line for one, two in pairwise(chunks))
    assert all(two.start_line > one.start_line for one, two in pairwise(chunks))


def test_nothing_is_repeated_across_a_heading() -> None:
    text = f"# A\n\n{_paragraph(250)}\n\n# B\n\n{_paragraph(250)}"
    assert _lines(chunk_markdown(text, 400, 80)) == [(1, 3), (5, 7)]


def test_a_heading_stays_with_a_paragraph_that_just_fits() -> None:
    text = f"## Topic\n\n{'x' * 1595}"
    assert _lines(chunk_markdown(text, 400, 80)) == [(1, 3)]


def test_a_line_that_is_too_long_is_cut_into_pieces() -> None:
    line = " ".join(f"Sentence number {number} ends here." for number in range(200))
    chunks = chunk_markdown(f"before\n{line}\nafter", 100, 20)
    pieces = [chunk for chunk in chunks if chunk.start_line == chunk.end_line == 2]
    assert len(pieces) > 10
    assert all(piece.text in line for piece in pieces)
    assert all(piece.text.rstrip().endswith(".") for piece in pieces)
    assert chunks[0].text == "before"
    assert chunks[-1].text == "after"


def test_front_matter_stays_together() -> None:
    front = "---\n" + "\n".join(f"key{number}: value" for number in range(10)) + "\n---"
    chunks = chunk_markdown(f"{front}\n# T\n\n{_paragraph(300)}", 400, 80)
    assert chunks[0].text.startswith(front)


def test_cjk_text_is_cut_at_a_quarter_of_the_latin_length() -> None:
    text = "这是一个关于记忆系统的句子。" * 200
    chunks = chunk_markdown(text, 400, 80)
    assert all(len(chunk.text) <= 400 for chunk in chunks)
    assert all(chunk.text.endswith("。") for chunk in chunks)


@pytest.mark.parametrize(
    "text",
    [
        "# " + "x" * 1_000_000 + "\nbody",
        "\n".join(f"# heading {number}" for number in range(100_000)),
        "> " * 300_000,
        "```\n" * 100_001,
        "".join("`" * size + "\n" for size in range(1400, 3, -1)),
        "a" * 1_000_000,
        "e" + "\u0301" * 1_000_000,
        "title\n---\n" * 100_000,
        "\n" * 1_000_000,
        "- a\n" * 200_000,
    ],
    ids=[
        "heading",
        "headings",
        "quotes",
        "fences",
        "shrinking",
        "line",
        "marks",
        "underlines",
        "blank",
        "bullets",
    ],
)
def test_hostile_notes_are_cut_within_the_limit(text: str) -> None:
    for chunk in chunk_markdown(text, 400, 80):
        assert quarter_tokens(chunk.text) <= 1680
        assert len(chunk.heading) <= 200
