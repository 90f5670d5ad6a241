"""Evidence of words and of meaning, and the confidence it adds up to."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clawmark.engine.search import scoring
from clawmark.engine.search.scoring import (
    INSTANT_MEANING,
    MODEL_MEANING,
    MOST_VECTOR,
    Candidate,
    Noise,
    Terms,
    TextMatch,
    VectorMatch,
    best_keys,
    confidence,
    evidence_scale,
    merge,
    noise_of_query,
    raise_exact,
    ranked,
    rarity,
    text_matches,
)
from clawmark.model.values import ChunkRow, Query
from clawmark.testing.vectors import unit

QUERY = Query("anything")
ONE_TERM = Terms(total=100, counts=[1], names=[False])


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


def candidate(
    key: int = 1, *, path: str = "memory/a.md", score: float = 0.5, mask: int = 0, **evidence: Any
) -> Candidate:
    made = Candidate(
        row=chunk(key, path),
        text=0.0,
        name=0.0,
        vector=0.0,
        space="",
        bm25=0.0,
        mask=mask,
        meaning=MODEL_MEANING,
        score=score,
    )
    return made._replace(**evidence)


def with_evidence(amount: float, *kinds: str) -> Candidate:
    evidence: dict[str, Any] = dict.fromkeys(kinds, amount)
    return candidate(**evidence)


def keys(candidates: Sequence[Candidate]) -> list[int]:
    return [one.row.key for one in candidates]


# --- words ----------------------------------------------------------------------------------------


@given(st.integers(1, 100_000), st.integers(0, 100_000), st.integers(1, 1000))
def test_a_term_is_rarer_the_fewer_passages_have_it(total: int, count: int, more: int) -> None:
    assert rarity(count, total) > rarity(count + more, total) > 0.0


@given(st.integers(0, 1000), st.integers(1000, 100_000), st.integers(1, 1000))
def test_a_term_is_rarer_the_more_passages_do_not_have_it(
    count: int, total: int, more: int
) -> None:
    assert rarity(count, total + more) > rarity(count, total)


def test_a_match_at_the_bound_of_every_term_is_the_whole_evidence() -> None:
    bound = scoring.MOST_TF * math.log((100 - 1 + 0.5) / (1 + 0.5))
    match = text_matches({7: {0: bound}}, {}, ONE_TERM)[7]
    assert match.text == pytest.approx(1.0)
    assert (match.bm25, match.mask) == (bound, 1)


def test_words_that_stand_together_do_not_lift_the_evidence_above_one() -> None:
    match = text_matches({7: {0: 1000.0}}, {7: 1000.0}, ONE_TERM)[7]
    assert match.text == 1.0


def test_words_that_stand_together_add_evidence() -> None:
    terms = Terms(total=100, counts=[5, 5], names=[False, False])
    scores = {1: {0: 2.0, 1: 2.0}, 2: {0: 2.0, 1: 2.0}}
    matches = text_matches(scores, {2: 1.0}, terms)
    assert matches[2].text > matches[1].text


def test_a_rare_term_counts_more_than_a_common_one() -> None:
    terms = Terms(total=1000, counts=[500, 2], names=[False, False])
    matches = text_matches({1: {0: 1.0}, 2: {1: 1.0}}, {}, terms)
    assert matches[2].text > matches[1].text
    assert (matches[1].mask, matches[2].mask) == (0b01, 0b10)


def test_text_evidence_of_a_passage_does_not_depend_on_the_other_passages() -> None:
    terms = Terms(total=1000, counts=[500, 2], names=[False, True])
    alone = text_matches({1: {0: 1.0, 1: 3.0}}, {}, terms)[1]
    among = text_matches({1: {0: 1.0, 1: 3.0}, 2: {0: 9.0, 1: 9.0}, 3: {0: 0.1}}, {2: 5.0}, terms)[
        1
    ]
    assert alone == among


def test_name_evidence_is_that_of_the_rarest_name_met() -> None:
    terms = Terms(total=1000, counts=[3, 1, 400], names=[False, True, True])
    matches = text_matches({1: {0: 1.0}, 2: {1: 1.0, 2: 1.0}, 3: {2: 1.0}}, {}, terms)
    assert matches[1].name == 0.0
    assert matches[2].name == pytest.approx(rarity(1, 1000) / math.log(1001))
    assert 0.0 < matches[3].name < matches[2].name


@given(
    st.integers(1, 50).flatmap(
        lambda total: st.tuples(
            st.just(total),
            st.lists(
                st.tuples(st.integers(1, total), st.booleans(), st.floats(0.0, 50.0)),
                min_size=1,
                max_size=5,
            ),
        )
    )
)
def test_evidence_of_words_lies_between_0_and_1_in_indexes_of_any_size(
    case: tuple[int, list[tuple[int, bool, float]]],
) -> None:
    total, rows = case
    terms = Terms(total, [count for count, _, _ in rows], [is_name for _, is_name, _ in rows])
    match = text_matches(
        {1: {number: bm25 for number, (_, _, bm25) in enumerate(rows)}}, {1: 1.0}, terms
    )[1]
    assert 0.0 <= match.text <= 1.0
    assert 0.0 <= match.name <= 1.0


# --- meaning --------------------------------------------------------------------------------------


def test_vector_evidence_is_0_at_the_mean_and_1_at_the_best_of_chance() -> None:
    height = math.sqrt(2 * math.log(5000))
    assert evidence_scale(0.3, 0.1, 5000)(0.3) == 0.0
    assert evidence_scale(0.3, 0.1, 5000)(0.3 + 0.1 * height) == pytest.approx(1.0)
    assert evidence_scale(0.3, 0.1, 5000)(-1.0) == 0.0
    assert evidence_scale(0.0, 0.01, 5000)(1.0) == MOST_VECTOR


def test_the_same_cosine_says_less_in_a_larger_index() -> None:
    assert evidence_scale(0.2, 0.1, 20_000)(0.5) < evidence_scale(0.2, 0.1, 1_000)(0.5)


def test_indexes_with_few_passages_share_one_scale() -> None:
    assert evidence_scale(0.2, 0.1, 3)(0.5) == evidence_scale(0.2, 0.1, scoring.SMALLEST_SPACE)(0.5)


def test_a_space_that_was_not_measured_uses_the_start_values_of_its_model() -> None:
    assert noise_of_query(None, unit([1.0, 0.0]), 0.2, 0.7) == pytest.approx((0.3, 0.05, 0))


def test_noise_of_other_dimensions_than_the_query_is_ignored() -> None:
    noise = Noise(unit([1.0, 0.0, 0.0]), 0.5, 1000)
    assert noise_of_query(noise, unit([1.0, 0.0]), 0.2, 0.7) == noise_of_query(
        None, unit([1.0, 0.0]), 0.2, 0.7
    )


def test_the_mean_of_a_query_is_its_cosine_with_the_centre() -> None:
    noise = Noise(unit([0.6, 0.8]), 0.11, 10_000_000)
    mean, spread, passages = noise_of_query(noise, unit([1.0, 0.0]), 0.2, 0.7)
    assert mean == pytest.approx(0.6, abs=1e-5)
    assert spread == pytest.approx(0.11, abs=1e-5)
    assert passages == 10_000_000


def test_a_small_measured_index_lies_between_the_start_values_and_the_measure() -> None:
    query, centre = unit([1.0, 0.0]), unit([0.6, 0.8])
    mean, spread, _ = noise_of_query(Noise(centre, 0.15, scoring.PRIOR_PASSAGES), query, 0.2, 0.7)
    assert mean == pytest.approx((0.6 + 0.3) / 2, abs=1e-5)
    assert spread == pytest.approx((0.15 + 0.05) / 2, abs=1e-5)


@given(st.floats(-0.5, 0.5), st.floats(0.01, 0.3), st.floats(0.5, 2.0))
def test_evidence_is_the_same_for_a_model_whose_cosines_are_shifted_and_scaled(
    shift: float, spread: float, scale: float
) -> None:
    """A model with low cosines is judged as one with high cosines is: only the distance from chance
    counts.
    """
    one = evidence_scale(0.2, spread, 1000)(0.4)
    other = evidence_scale(0.2 * scale + shift, spread * scale, 1000)(0.4 * scale + shift)
    assert one == pytest.approx(other, abs=1e-9)


# --- confidence -----------------------------------------------------------------------------------

EVIDENCE = st.fixed_dictionaries(
    {
        "text": st.floats(0.0, 1.0),
        "name": st.floats(0.0, 1.0),
        "vector": st.floats(0.0, MOST_VECTOR),
        "line": st.floats(0.0, MOST_VECTOR),
        "user": st.floats(0.0, MOST_VECTOR),
    }
)


@given(
    EVIDENCE,
    st.sampled_from(["text", "name", "vector", "line", "user"]),
    st.floats(0.001, 1.0),
    st.floats(0.0, 1.0),
)
def test_more_of_any_evidence_never_lowers_the_confidence(
    evidence: dict[str, Any], kind: str, more: float, vector_weight: float
) -> None:
    query = QUERY._replace(vector_weight=vector_weight, text_weight=1.0 - vector_weight)
    before = candidate(**evidence)
    after = candidate(**evidence | {kind: evidence[kind] + more})
    assert confidence(after, query) >= confidence(before, query)


@pytest.mark.parametrize("kind", ["text", "name", "vector", "line", "user"])
def test_each_kind_of_evidence_raises_the_confidence_on_its_own(kind: str) -> None:
    assert confidence(with_evidence(0.5, kind), QUERY) > confidence(candidate(), QUERY)


@given(EVIDENCE)
def test_confidence_lies_between_0_and_1(evidence: dict[str, Any]) -> None:
    assert 0.0 < confidence(candidate(**evidence), QUERY) <= 1.0


def test_without_any_evidence_a_passage_stays_below_the_default_threshold() -> None:
    assert confidence(candidate(), QUERY) < QUERY.min_score / 4


def test_evidence_of_both_legs_is_worth_more_than_that_of_either() -> None:
    both = confidence(candidate(text=0.4, vector=0.8), QUERY)
    assert both > confidence(candidate(text=0.4), QUERY)
    assert both > confidence(candidate(vector=0.8), QUERY)


def test_a_model_counts_more_than_the_instant_tier() -> None:
    instant, model = (
        candidate(vector=1.0, meaning=INSTANT_MEANING),
        candidate(vector=1.0, meaning=MODEL_MEANING),
    )
    assert confidence(model, QUERY) > confidence(instant, QUERY)


@pytest.mark.parametrize(
    ("weights", "kinds"),
    [((0.0, 1.0), ("vector", "line", "user")), ((1.0, 0.0), ("text", "name"))],
    ids=["words", "meaning"],
)
def test_a_leg_with_weight_0_adds_nothing(
    weights: tuple[float, float], kinds: tuple[str, ...]
) -> None:
    query = QUERY._replace(vector_weight=weights[0], text_weight=weights[1])
    assert confidence(with_evidence(1.0, *kinds), query) == confidence(candidate(), query)


# --- candidates -----------------------------------------------------------------------------------


def merged(
    texts: Mapping[int, TextMatch], vectors: Mapping[int, VectorMatch], terms: int = 1
) -> list[Candidate]:
    scores = best_keys(QUERY, texts, vectors, 100)
    return merge(scores, {key: chunk(key) for key in scores}, texts, vectors, terms)


def test_a_candidate_has_the_evidence_of_both_legs() -> None:
    texts, vectors = (
        {1: TextMatch(text=0.4, name=0.2, bm25=3.5, mask=0b1)},
        {1: VectorMatch(0.6, "a model", INSTANT_MEANING)},
    )
    (one,) = merged(texts, vectors)
    assert (one.text, one.name, one.bm25, one.mask) == (0.4, 0.2, 3.5, 1)
    assert (one.vector, one.space, one.meaning) == (0.6, "a model", INSTANT_MEANING)
    assert one.score == confidence(one, QUERY)


def test_a_passage_that_either_leg_judged_is_among_the_best() -> None:
    best = best_keys(
        QUERY, {1: TextMatch(text=0.4, name=0.0, bm25=1.0, mask=1)}, {2: VectorMatch(0.5, "m")}, 100
    )
    assert best.keys() == {1, 2}


def test_only_the_best_passages_are_read_and_those_that_always_are() -> None:
    texts = {key: TextMatch(text=key / 10, name=0.0, bm25=1.0, mask=1) for key in range(1, 10)}
    assert list(best_keys(QUERY, texts, {}, 3)) == [9, 8, 7]
    assert list(best_keys(QUERY, texts, {}, 3, always=[2, 8, 77])) == [9, 8, 7, 2]


def test_a_passage_without_a_vector_is_judged_by_its_words_alone() -> None:
    (one,) = merged({1: TextMatch(text=0.4, name=0.0, bm25=1.0, mask=1)}, {})
    assert one.score == confidence(candidate(text=0.4), QUERY)


def test_the_score_of_a_candidate_does_not_depend_on_the_other_candidates() -> None:
    texts = {
        1: TextMatch(text=0.4, name=0.1, bm25=2.0, mask=0b01),
        2: TextMatch(text=1.0, name=1.0, bm25=9.0, mask=0b11),
    }
    vectors = {1: VectorMatch(0.7, "m"), 3: VectorMatch(1.5, "m")}
    (alone,) = merged({1: texts[1]}, {1: vectors[1]}, 2)
    among = merged(texts, vectors, 2)
    assert next(one for one in among if one.row.key == 1) == alone


def test_meeting_every_term_makes_a_match_exact() -> None:
    texts = {
        1: TextMatch(text=0.4, name=0.0, bm25=1.0, mask=0b11),
        2: TextMatch(text=0.4, name=0.0, bm25=1.0, mask=0b01),
    }
    found = merged(texts, {3: VectorMatch(1.0, "m")}, 2)
    assert {one.row.key: one.is_exact for one in found} == {1: True, 2: False, 3: False}


def test_nothing_is_exact_in_a_query_without_terms() -> None:
    (one,) = merged({}, {1: VectorMatch(1.0, "m")}, 0)
    assert not one.is_exact


def test_equal_scores_are_ordered_by_path_and_line() -> None:
    some = [
        candidate(3, path="memory/b.md"),
        candidate(1, path="memory/b.md"),
        candidate(2),
        candidate(9, score=0.6),
    ]
    assert keys(ranked(some)) == [9, 2, 1, 3]


# --- rare exact terms -----------------------------------------------------------------------------


def test_the_best_passage_with_a_rare_term_is_raised_to_the_third_place() -> None:
    order = [candidate(n, mask=0b10 if n in (5, 6) else 0b01) for n in range(1, 8)]
    raised = raise_exact(order, 0b10)
    assert keys(raised) == [1, 2, 5, 3, 4, 6, 7]
    assert [one.row.key for one in raised if one.is_exact] == [5]


def test_a_rare_match_that_is_among_the_first_three_keeps_its_place() -> None:
    order = [candidate(1), candidate(2, mask=1), candidate(3)]
    raised = raise_exact(order, 0b1)
    assert keys(raised) == [1, 2, 3]
    assert raised[1].is_exact


def test_without_rare_terms_nothing_moves() -> None:
    order = [candidate(n, mask=1) for n in range(1, 6)]
    assert raise_exact(order, 0) == order


def test_a_rare_term_that_no_candidate_has_moves_nothing() -> None:
    order = [candidate(n, mask=0b01) for n in range(1, 6)]
    assert raise_exact(order, 0b10) == order


@given(st.lists(st.integers(0, 0b111), min_size=3, max_size=9))
def test_the_best_passages_of_up_to_three_rare_terms_are_all_among_the_first_three(
    masks: list[int],
) -> None:
    order = [candidate(number, mask=mask) for number, mask in enumerate(masks)]
    raised = raise_exact(order, 0b111)
    assert sorted(keys(raised)) == sorted(keys(order))
    best = {
        next((number for number, mask in enumerate(masks) if mask >> bit & 1), None)
        for bit in range(3)
    } - {None}
    assert best <= set(keys(raised)[:3])
    assert {one.row.key for one in raised if one.is_exact} == best
    others = [key for key in keys(raised) if key not in best]
    assert others == sorted(others)
