"""Snippets show what the query asked for, to the letter, with their lines."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clawmark.search.snippet import LIMIT, MAX_PIECES, Spotter, cut_snippet, make_spotter
from clawmark.types import Term


def spotter(*words: str):  # type: ignore[no-untyped-def]
    return make_spotter([Term(word, f'"{word}"') for word in words], [1.0 / len(words)] * len(words))


FILLER = "\n".join(f"- an ordinary line about nothing in particular, number {n}" for n in range(30))


def test_a_short_passage_is_shown_whole() -> None:
    snippet = cut_snippet("one\ntwo\n", 5, spotter("two"))
    assert snippet == ("one\ntwo", 5, 6)


def test_the_window_moves_to_the_words_that_were_asked_for() -> None:
    text = f"{FILLER}\n- We decided on PostgreSQL for billing.\n{FILLER}"
    snippet = cut_snippet(text, 1, spotter("decide", "postgresql"))
    assert "PostgreSQL for billing" in snippet.text
    assert snippet.start_line <= 31 <= snippet.end_line


def test_a_rare_term_outweighs_a_common_one() -> None:
    text = f"- line line line\n{FILLER}\n- the zebra crossing\n{FILLER}"
    weighted = make_spotter([Term("line", '"line"'), Term("zebra", '"zebra"')], [0.01, 0.99])
    assert "zebra" in cut_snippet(text, 1, weighted).text


def test_other_forms_of_a_word_are_recognised() -> None:
    text = f"{FILLER}\n- deciding took long\n{FILLER}"
    assert "deciding" in cut_snippet(text, 1, spotter("decided")).text


def test_scripts_without_spaces_are_found_inside_a_run() -> None:
    text = f"{FILLER}\n我们决定使用数据库\n{FILLER}"
    assert "数据库" in cut_snippet(text, 1, spotter("数据")).text


def test_nearness_in_meaning_decides_where_no_word_matches() -> None:
    text = f"{FILLER}\n- invoices moved to Postgres\n{FILLER}"
    near = cut_snippet(text, 1, spotter("database"), lambda parts: [float("Postgres" in part) for part in parts])
    assert "Postgres" in near.text


class CountingSpotter(Spotter):
    """Counts the pieces it is asked about."""

    def __init__(self, spotter: Spotter) -> None:
        super().__init__(spotter.needles)
        self.asked = 0

    def found(self, text: str) -> set[str]:
        self.asked += 1
        return super().found(text)


@pytest.mark.parametrize(
    ("lines", "most"), [(1_000, MAX_PIECES + 1), (2_500, MAX_PIECES + 1), (100_000, 100_000 * 4 // 120)]
)
def test_the_work_on_a_passage_of_many_short_lines_is_bounded(lines: int, most: int) -> None:
    counting, compared = CountingSpotter(spotter("a")), list[int]()

    def nearness(parts: Sequence[str]) -> list[float]:
        compared.append(len(parts))
        return [0.0] * len(parts)

    text = "b\n" * lines + "a\n" + "b\n" * lines
    snippet = cut_snippet(text, 1, counting, nearness)
    assert snippet.start_line <= lines + 1 <= snippet.end_line
    assert compared == [counting.asked]
    assert counting.asked <= most


@given(st.text(alphabet=st.sampled_from("ab .\n你。"), max_size=4000), st.integers(1, 50))
def test_a_snippet_is_a_part_of_its_passage_with_its_lines(text: str, start: int) -> None:
    snippet = cut_snippet(text, start, spotter("a"))
    assert len(snippet.text) <= LIMIT
    assert snippet.text in text
    lines = text.split("\n")[snippet.start_line - start : snippet.end_line - start + 1]
    assert snippet.text in "\n".join(lines)
    assert snippet.end_line - snippet.start_line == snippet.text.count("\n")
