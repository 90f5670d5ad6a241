"""What is shown of the hits: the lines that answer, to the letter, within one budget."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clawmark.engine.search.snippet import (
    GAP,
    LIMIT,
    LONG_PIECE,
    MAX_PIECES,
    Shown,
    Snippet,
    Spotter,
    make_spotter,
    pick_evidence,
    pieces_of,
    pieces_to_show,
)
from clawmark.model.values import Term

FILLER = "\n".join(f"- an ordinary line about nothing in particular, number {n}" for n in range(30))


def spotter(*words: str) -> Spotter:
    return make_spotter([Term(word, word) for word in words], [1.0 / len(words)] * len(words))


def shown(text: str, *words: str, start: int = 1, budget: int = LIMIT) -> Snippet:
    (snippet,) = pick_evidence([Shown(text, start, 0.5)], spotter(*words), {}, budget)
    return snippet


def parts_of(snippet: Snippet) -> list[str]:
    return snippet.text.split(f"\n{GAP}\n")


def characters(snippets: Sequence[Snippet]) -> int:
    """What counts against the budget: everything but ellipses and the line breaks between joined
    lines.
    """
    return sum(len(part.replace("\n", "")) for snippet in snippets for part in parts_of(snippet))


def test_a_short_passage_is_shown_whole() -> None:
    assert shown("one\ntwo\n", "two", start=5) == ("one\ntwo", ((5, 6),))


def test_the_line_with_the_words_that_were_asked_for_is_shown() -> None:
    snippet = shown(
        f"{FILLER}\n- We decided on PostgreSQL for billing.\n{FILLER}", "decide", "postgresql"
    )
    assert "- We decided on PostgreSQL for billing." in snippet.text
    assert any(first <= 31 <= last for first, last in snippet.ranges)


def test_a_rare_term_outweighs_a_common_one() -> None:
    text = f"- line line line\n{FILLER}\n- the zebra crossing\n{FILLER}"
    weighted = make_spotter([Term("line", "line"), Term("zebra", "zebra")], [0.01, 0.99])
    (snippet,) = pick_evidence([Shown(text, 1, 0.5)], weighted, {}, 60)
    assert "zebra" in snippet.text


def test_other_forms_of_a_word_are_recognised() -> None:
    assert (
        "deciding" in shown(f"{FILLER}\n- deciding took long\n{FILLER}", "decided", budget=60).text
    )


def test_scripts_without_spaces_are_found_inside_a_run() -> None:
    assert "数据库" in shown(f"{FILLER}\n我们决定使用数据库\n{FILLER}", "数据", budget=60).text


def test_nearness_in_meaning_decides_where_no_word_matches() -> None:
    passage = Shown(f"{FILLER}\n- invoices moved to Postgres\n{FILLER}", 1, 0.5)
    (near,) = pick_evidence(
        [passage],
        spotter("database"),
        {"- invoices moved to Postgres": 1.0},
        60,
    )
    assert "Postgres" in near.text


class CountingSpotter(Spotter):
    """Counts the pieces it is asked about."""

    def __init__(self, spotter: Spotter) -> None:
        super().__init__(spotter.needles)
        self.asked = 0

    def weight(self, text: str) -> float:
        self.asked += 1
        return super().weight(text)


@pytest.mark.parametrize(
    ("lines", "most"),
    [(1_000, MAX_PIECES + 1), (2_500, MAX_PIECES + 1), (100_000, 100_000 * 4 // 120)],
)
def test_the_work_on_a_passage_of_many_short_lines_is_bounded(lines: int, most: int) -> None:
    counting = CountingSpotter(spotter("a"))
    text = "b\n" * lines + "a\n" + "b\n" * lines
    (snippet,) = pick_evidence([Shown(text, 1, 0.5)], counting, {}, LIMIT)
    assert any(start <= lines + 1 <= end for start, end in snippet.ranges)
    assert len(pieces_to_show(text)) <= most
    assert counting.asked <= most


def test_parts_that_are_not_neighbours_are_separated_and_have_ranges_of_their_own() -> None:
    text = f"- the heron flies\n{FILLER}\n- the heron lands"
    snippet = shown(text, "heron", start=10, budget=40)
    assert snippet == (f"- the heron flies\n{GAP}\n- the heron lands", ((10, 10), (41, 41)))


def test_neighbouring_lines_are_joined_with_the_blank_lines_between_them() -> None:
    text = f"{FILLER}\n- the heron flies\n\n- the heron lands\n{FILLER}"
    snippet = shown(text, "heron", budget=40)
    assert snippet == ("- the heron flies\n\n- the heron lands", ((31, 33),))


def test_a_neighbour_of_a_match_is_shown_before_a_line_further_away() -> None:
    snippet = shown(f"{FILLER}\n- the heron flies\n{FILLER}", "heron", budget=80)
    ((first, last),) = snippet.ranges
    assert first <= 31 <= last
    assert last > first


def test_a_long_line_is_shown_in_sentences() -> None:
    dull = "Nothing of interest happened on that day. " * 10
    snippet = shown(f"{dull}The heron landed at noon. {dull}", "heron", budget=60)
    assert snippet == ("The heron landed at noon.", ((1, 1),))


def test_one_budget_is_shared_and_the_better_hit_gets_more_of_it() -> None:
    passages = [Shown(FILLER, 1, 0.9), Shown(FILLER, 1, 0.4)]
    better, worse = pick_evidence(passages, spotter("heron"), {}, 1400)
    assert len(better.text) > len(worse.text) > 0
    assert characters([better, worse]) <= 1400


def test_a_hit_with_the_answer_gets_room_that_other_hits_do_not_need() -> None:
    lines = "\n".join(f"- the heron was seen at the lake, day {n}" for n in range(30))
    long, short = pick_evidence(
        [Shown(lines, 1, 0.5), Shown("- the heron", 1, 0.5)], spotter("heron"), {}, 2 * LIMIT
    )
    assert len(long.text) > LIMIT
    assert short.text == "- the heron"


def test_a_passage_that_begins_with_a_blank_line_shows_a_line_with_text() -> None:
    line = (
        "The first line with text is longer than what the better hit "
        "leaves of the budget, so it needs a share."
    )
    passages = [Shown(FILLER, 1, 0.9), Shown(f"\n\n{line}\n{FILLER}", 1, 0.2)]
    _, snippet = pick_evidence(passages, spotter("heron"), {}, 900)
    assert snippet.text.startswith(line)
    assert snippet.ranges[0][0] == 3


def test_a_blank_passage_shows_nothing() -> None:
    assert shown(" \n\n ", "heron", start=4) == ("", ((4, 4),))
    assert pick_evidence([], spotter("heron"), {}, LIMIT) == []


def test_pieces_are_lines_and_the_sentences_of_long_lines() -> None:
    sentence = (
        "This sentence is about one hundred characters long, which "
        "is a good length for a sentence in a test. "
    )
    assert pieces_of(f"one\n\ntwo. three.\n{sentence * 3}end") == [
        "one",
        "",
        "two. three.",
        *[sentence] * 3,
        "end",
    ]
    assert len(sentence * 3) > LONG_PIECE


TEXT = st.text(alphabet=st.sampled_from("ab .\n你。"), max_size=1500).map(lambda text: text + "x")


@given(st.text(alphabet=st.sampled_from("ab .!\n你。"), max_size=3000))
def test_pieces_hold_every_character_of_a_text(text: str) -> None:
    assert "".join(pieces_of(text)) == text.replace("\n", "")
    assert all(len(piece) <= LIMIT // 2 for piece in pieces_of(text))


@given(
    st.lists(st.tuples(TEXT, st.integers(1, 50), st.floats(0.0, 1.0)), min_size=1, max_size=6),
    st.booleans(),
)
def test_snippets_stand_in_exactly_their_lines_within_the_budget(
    cases: list[tuple[str, int, float]], has_nearness: bool
) -> None:
    passages = [Shown(*case) for case in cases]
    budget = LIMIT * len(passages) // 2
    pieces = [piece for one in passages for piece in pieces_to_show(one.text)]
    near = {piece: piece.count("a") - 1.0 for piece in pieces if has_nearness}
    snippets = pick_evidence(passages, spotter("a", "b", "你"), near, budget)
    assert len(snippets) == len(passages)
    for passage, snippet in zip(passages, snippets, strict=True):
        lines = passage.text.split("\n")
        parts = parts_of(snippet)
        assert len(parts) == len(snippet.ranges)
        end = 0
        for part, (first, last) in zip(parts, snippet.ranges, strict=True):
            assert part.strip()
            assert last - first == part.count("\n")
            assert part in "\n".join(
                lines[first - passage.start_line : last - passage.start_line + 1]
            )
            end = passage.text.index(part, end) + len(part)
        assert list(snippet.ranges) == sorted(snippet.ranges)
    shown_characters = sum(
        len("".join(part.split())) for snippet in snippets for part in parts_of(snippet)
    )
    assert shown_characters <= budget
