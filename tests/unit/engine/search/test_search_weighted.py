"""The published form of the score: a weighted sum of the two legs."""

from __future__ import annotations

import pytest

from clawmark.engine.search.scoring import TextMatch, VectorMatch
from clawmark.engine.search.weighted import calibrate, merge_weighted, share_met, term_weights
from clawmark.model.values import ChunkRow, Query

QUERY = Query("anything", fusion="weighted")


def chunk(key: int, path: str = "memory/a.md") -> ChunkRow:
    return ChunkRow(
        key=key,
        path=path,
        source="memory",
        start_line=key,
        end_line=key,
        hash="hash",
        heading="",
        text=f"text {key}",
    )


def match(bm25: float, mask: int) -> TextMatch:
    return TextMatch(text=0.0, name=0.0, bm25=bm25, mask=mask)


def test_calibration_puts_the_floor_at_0_and_the_ceiling_at_1() -> None:
    assert calibrate(0.5, 0.5, 0.9) == 0.0
    assert calibrate(0.9, 0.5, 0.9) == 1.0
    assert calibrate(0.1, 0.5, 0.9) == 0.0
    assert calibrate(0.6, 0.5, 0.9) < calibrate(0.7, 0.5, 0.9) < calibrate(0.8, 0.5, 0.9)


def test_rare_terms_weigh_more_and_the_weights_sum_to_1() -> None:
    common, rare = term_weights([90, 1])
    assert rare > common
    assert common + rare == pytest.approx(1.0)


def test_a_passage_that_meets_every_term_meets_the_whole_query() -> None:
    weights = term_weights([3, 5, 7])
    assert share_met(0b111, weights) == pytest.approx(1.0)
    assert share_met(0, weights) == 0.0


def test_the_best_keyword_match_of_a_fully_met_query_scores_1() -> None:
    texts = {1: match(8.0, 1), 2: match(4.0, 1)}
    candidates = merge_weighted(QUERY, {1: chunk(1), 2: chunk(2)}, texts, {}, 1)
    assert {one.row.key: one.score for one in candidates} == {1: 1.0, 2: 0.5}


def test_the_published_weights_apply() -> None:
    (one,) = merge_weighted(QUERY, {1: chunk(1)}, {1: match(2.0, 1)}, {1: VectorMatch(0.5, "m")}, 1)
    assert one.score == pytest.approx(0.7 * 0.5 + 0.3 * 1.0)
    assert (one.vector, one.text) == (0.5, 1.0)


def test_configured_weights_apply() -> None:
    query = QUERY._replace(vector_weight=0.2, text_weight=0.8)
    (one,) = merge_weighted(query, {1: chunk(1)}, {1: match(2.0, 1)}, {1: VectorMatch(0.5, "m")}, 1)
    assert one.score == pytest.approx(0.2 * 0.5 + 0.8 * 1.0)


def test_a_passage_without_a_vector_is_judged_by_its_words_alone() -> None:
    texts, vectors = {1: match(2.0, 1), 2: match(1.0, 1)}, {2: VectorMatch(0.5, "m")}
    candidates = merge_weighted(QUERY, {1: chunk(1), 2: chunk(2)}, texts, vectors, 1)
    assert {one.row.key: one.score for one in candidates} == {
        1: 1.0,
        2: pytest.approx(0.7 * 0.5 + 0.3 * 0.5),
    }


def test_vectors_decide_when_no_passage_has_any_of_the_words() -> None:
    (one,) = merge_weighted(QUERY, {1: chunk(1)}, {}, {1: VectorMatch(0.5, "m")}, 2)
    assert one.score == 0.5


def test_meeting_every_term_makes_a_match_exact() -> None:
    texts = {1: match(1.0, 0b11), 2: match(1.0, 0b01)}
    candidates = merge_weighted(QUERY, {1: chunk(1), 2: chunk(2)}, texts, {}, 2)
    assert {one.row.key: one.is_exact for one in candidates} == {1: True, 2: False}


def test_equal_scores_are_ordered_by_path_and_line() -> None:
    rows = {3: chunk(3, "memory/b.md"), 1: chunk(1, "memory/b.md"), 2: chunk(2, "memory/a.md")}
    candidates = merge_weighted(QUERY, rows, {key: match(1.0, 1) for key in rows}, {}, 1)
    assert [one.row.key for one in candidates] == [2, 1, 3]
