"""One score out of two legs."""

from __future__ import annotations

import pytest

from clawmark.search.fuse import TextMatch, VectorMatch, calibrate, fuse, share_met, term_weights, text_scores
from clawmark.types import ChunkRow, Query

QUERY = Query("anything")


def chunk(key: int, path: str = "memory/a.md") -> ChunkRow:
    return ChunkRow(key, path, "memory", key, key, "hash", "", f"text {key}")


def test_calibration_puts_chance_at_zero_and_a_perfect_answer_at_one() -> None:
    assert calibrate(0.5, 0.5, 0.9) == 0.0
    assert calibrate(0.9, 0.5, 0.9) == 1.0
    assert calibrate(0.1, 0.5, 0.9) == 0.0
    assert calibrate(0.6, 0.5, 0.9) < calibrate(0.7, 0.5, 0.9) < calibrate(0.8, 0.5, 0.9)


def test_rare_terms_weigh_more_and_all_weights_make_one() -> None:
    common, rare = term_weights([90, 1])
    assert rare > common
    assert common + rare == pytest.approx(1.0)


def test_a_chunk_that_meets_every_term_meets_the_whole_query() -> None:
    weights = term_weights([3, 5, 7])
    assert share_met(0b111, weights) == pytest.approx(1.0)
    assert share_met(0, weights) == 0.0


def test_the_best_keyword_match_of_a_fully_met_query_scores_one() -> None:
    scores = text_scores({1: TextMatch(8.0, 1), 2: TextMatch(4.0, 1)}, [1.0])
    assert scores == {1: 1.0, 2: 0.5}


def test_the_published_weights_apply() -> None:
    (candidate,) = fuse(QUERY, {1: chunk(1)}, {1: TextMatch(2.0, 1)}, {1: VectorMatch(0.5, "m")}, [1.0], has_vector_leg=True)
    assert candidate.score == pytest.approx(0.7 * 0.5 + 0.3 * 1.0)


def test_a_chunk_without_a_vector_is_judged_by_its_words_alone() -> None:
    (candidate,) = fuse(QUERY, {1: chunk(1)}, {1: TextMatch(2.0, 1)}, {}, [1.0], has_vector_leg=True)
    assert candidate.score == 1.0


def test_meaning_alone_decides_when_no_chunk_has_any_of_the_words() -> None:
    (candidate,) = fuse(QUERY, {1: chunk(1)}, {}, {1: VectorMatch(0.5, "m")}, [0.5, 0.5], has_vector_leg=True)
    assert candidate.score == 0.5


def test_meeting_every_term_makes_a_match_exact() -> None:
    rows = {1: chunk(1), 2: chunk(2)}
    ranked = fuse(QUERY, rows, {1: TextMatch(1.0, 0b11), 2: TextMatch(1.0, 0b01)}, {}, [0.5, 0.5], has_vector_leg=False)
    assert {c.row.key: c.is_exact for c in ranked} == {1: True, 2: False}


def test_equal_scores_are_ordered_by_path_and_line() -> None:
    rows = {3: chunk(3, "memory/b.md"), 1: chunk(1, "memory/b.md"), 2: chunk(2, "memory/a.md")}
    ranked = fuse(QUERY, rows, {k: TextMatch(1.0, 1) for k in rows}, {}, [1.0], has_vector_leg=False)
    assert [c.row.key for c in ranked] == [2, 1, 3]
