"""A reranker reorders the best candidates only; if it fails, nothing changes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from clawmark.engine.search.rerank import RerankStep, rerank
from clawmark.engine.search.scoring import Candidate
from clawmark.model.errors import RerankError
from clawmark.model.values import ChunkRow, Degraded
from clawmark.testing import OverlapReranker


def candidate(key: int, score: float, text: str) -> Candidate:
    row = ChunkRow(
        key=key,
        path=f"{key}.md",
        source="memory",
        start_line=1,
        end_line=1,
        hash="h",
        heading="",
        text=text,
    )
    return Candidate(
        row=row,
        text=0.0,
        name=0.0,
        vector=score,
        space="",
        bm25=0.0,
        mask=0,
        meaning=1.0,
        score=score,
    )


CANDIDATES = [
    candidate(1, 0.9, "tea"),
    candidate(2, 0.7, "heron plan"),
    candidate(3, 0.5, "heron"),
    candidate(4, 0.4, "plan"),
]


def test_the_first_candidates_are_reordered_and_scores_keep_their_positions() -> None:
    found = rerank("heron plan", CANDIDATES, RerankStep(OverlapReranker(), 3, 1.0))
    assert [(one.row.key, one.score, one.rerank) for one in found.candidates] == [
        (2, 0.9, 1.0),
        (3, 0.7, 0.5),
        (1, 0.5, 0.0),
        (4, 0.4, None),
    ]
    assert found.degraded is None and "first 3 by overlap" in found.summary


def test_a_reranker_that_fails_leaves_the_order_and_says_why() -> None:
    failing = OverlapReranker(RerankError("It was late.", hint="Give it more time."))
    found = rerank("heron plan", CANDIDATES, RerankStep(failing, 20, 1.0))
    assert found.candidates == CANDIDATES
    assert found.degraded == Degraded("It was late.", "Give it more time.")


def test_one_candidate_is_not_reranked() -> None:
    reranker = OverlapReranker()
    assert (
        rerank("heron", CANDIDATES[:1], RerankStep(reranker, 20, 1.0)).candidates == CANDIDATES[:1]
    )
    assert reranker.asked == []


def test_labels_inside_comments_are_not_judged() -> None:
    reranker = OverlapReranker()
    rerank(
        "heron",
        [candidate(1, 0.9, "tea <!-- clawmark: origin=agent session=heron -->"), CANDIDATES[1]],
        RerankStep(reranker, 20, 1.0),
    )
    assert "heron" not in reranker.asked[0][1][0]


@given(
    st.lists(
        st.tuples(st.floats(0, 1), st.sampled_from(["tea", "heron", "plan", "heron plan"])),
        max_size=8,
    ),
    st.integers(2, 6),
)
def test_reranking_keeps_every_candidate_and_every_score(
    items: list[tuple[float, str]], top: int
) -> None:
    ranked = sorted(
        (candidate(n, score, text) for n, (score, text) in enumerate(items)),
        key=lambda one: -one.score,
    )
    found = rerank("heron plan", ranked, RerankStep(OverlapReranker(), top, 1.0)).candidates
    assert [one.score for one in found] == [one.score for one in ranked]
    assert sorted(one.row.key for one in found[:top]) == sorted(one.row.key for one in ranked[:top])
    assert [one.row.key for one in found[top:]] == [one.row.key for one in ranked[top:]]
