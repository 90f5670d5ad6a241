"""Overlapping chunks become one passage; thresholds and cuts give their reasons."""

from __future__ import annotations

from clawmark.engine.search.neighbours import MOST_CHUNKS, join_neighbours
from clawmark.engine.search.scoring import Candidate
from clawmark.model.values import ChunkRow


def candidate(
    key: int, start: int, end: int, score: float, *, path: str = "memory/a.md", exact: bool = False
) -> Candidate:
    text = "\n".join(f"line {n}" for n in range(start, end + 1))
    return Candidate(
        row=ChunkRow(
            key=key,
            path=path,
            source="memory",
            start_line=start,
            end_line=end,
            hash="h",
            heading="",
            text=text,
        ),
        text=0.0,
        name=0.0,
        vector=score,
        space="",
        bm25=0.0,
        mask=0,
        meaning=1.0,
        score=score,
        is_exact=exact,
    )


def test_overlapping_chunks_become_one_passage_with_each_line_once() -> None:
    passages, dropped = join_neighbours(
        [candidate(1, 5, 10, 0.9), candidate(2, 8, 14, 0.8)], 6, 0.0
    )
    assert [(p.start_line, p.end_line) for p in passages] == [(5, 14)]
    assert passages[0].text == "\n".join(f"line {n}" for n in range(5, 15))
    assert dropped == {2: "joined to hit 1"}


def test_an_earlier_chunk_is_joined_in_front() -> None:
    passages, _ = join_neighbours([candidate(1, 5, 10, 0.9), candidate(2, 1, 6, 0.8)], 6, 0.0)
    assert passages[0].text == "\n".join(f"line {n}" for n in range(1, 11))


def test_chunks_of_other_files_or_lines_stay_apart() -> None:
    far = [
        candidate(1, 1, 3, 0.9),
        candidate(2, 4, 6, 0.8),
        candidate(3, 1, 3, 0.7, path="memory/b.md"),
    ]
    assert len(join_neighbours(far, 6, 0.0)[0]) == 3


def test_a_passage_stops_growing() -> None:
    chain = [candidate(n, n * 3, n * 3 + 4, 1 - n / 100) for n in range(1, 12)]
    passages, _ = join_neighbours(chain, 20, 0.0)
    assert all(len(p.keys) <= MOST_CHUNKS for p in passages)


def test_the_threshold_does_not_apply_to_a_match_of_every_term() -> None:
    passages, dropped = join_neighbours(
        [candidate(1, 1, 2, 0.2, exact=True), candidate(2, 9, 9, 0.2)], 6, 0.35
    )
    assert [p.best.row.key for p in passages] == [1]
    assert dropped == {2: "below the minimum 0.35"}


def test_candidates_after_the_limit_say_so() -> None:
    _, dropped = join_neighbours([candidate(1, 1, 2, 0.9), candidate(2, 9, 9, 0.8)], 1, 0.0)
    assert dropped == {2: "after the first 1"}
