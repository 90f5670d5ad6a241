"""What the full-text index knows about the terms of a query."""

from __future__ import annotations

import pytest

from clawmark.store.sqlite.store import Index
from clawmark.testing.vectors import file_of, fill, random_vectors


def put(index: Index, path: str, *texts: str) -> None:
    with index.writing() as writer:
        writer.put_file(*file_of(path, *texts))


def test_matches_of_each_term_are_counted(index: Index) -> None:
    put(index, "a.md", "heron plan", "heron lake", "otter lake")
    with index.reading() as reader:
        assert reader.count_matches(['"heron"', '"lake"', '"heron plan"', '"badger"']) == [
            2,
            2,
            1,
            0,
        ]
        assert reader.count_rows_of_words() == 3


def test_passages_of_deleted_files_are_not_counted(index: Index) -> None:
    put(index, "a.md", "heron plan", "heron lake")
    put(index, "b.md", "heron pond")
    with index.writing() as writer:
        writer.drop_file("a.md")
        writer.sweep()
    with index.reading() as reader:
        assert reader.count_matches(['"heron"']) == [1]
        assert reader.count_rows_of_words() == 1


def test_an_empty_index_has_no_passages(index: Index) -> None:
    with index.reading() as reader:
        assert reader.count_rows_of_words() == 0
        assert reader.count_matches(['"heron"']) == [0]
        assert reader.term_scores(['"heron"'], [1, 2]) == {}


def test_terms_are_scored_one_by_one_for_the_passages_that_have_them(index: Index) -> None:
    put(
        index,
        "a.md",
        *[f"dull filler text {n}" for n in range(20)],
        "heron plan",
        "heron heron",
        "otter plan",
    )
    with index.reading() as reader:
        rows = {row.text: row.key for row in reader.chunks(_keys(index)).values()}
        scores = reader.term_scores(['"heron"', '"plan"', '"badger"'], list(rows.values()))
    both, twice, plan = (rows[text] for text in ("heron plan", "heron heron", "otter plan"))
    assert {key: set(met) for key, met in scores.items()} == {both: {0, 1}, twice: {0}, plan: {1}}
    assert scores[twice][0] > scores[both][0] > 0.0


def test_a_phrase_is_scored_where_its_words_stand_together(index: Index) -> None:
    with index.writing() as writer:
        one, two, three = writer.put_file(
            *file_of("a.md", "red fox runs", "the fox sleeps", "red brick")
        )
    with index.reading() as reader:
        met = reader.term_scores(['"red"', '"fox"', '"red fox"', '"zebra"'], [one, two, three])
    assert {key: set(scores) for key, scores in met.items()} == {
        one: {0, 1, 2},
        two: {1},
        three: {0},
    }


def test_terms_are_scored_only_for_the_passages_that_are_asked_about(index: Index) -> None:
    put(index, "a.md", "heron plan", "heron lake", "heron pond")
    first, _, last = _keys(index)
    with index.reading() as reader:
        assert set(reader.term_scores(['"heron"'], [first, last])) == {first, last}
        assert reader.term_scores(['"heron"'], []) == {}


def test_the_scores_of_single_terms_add_up_to_the_score_of_all(index: Index) -> None:
    put(
        index,
        "a.md",
        *[f"dull filler text {n}" for n in range(20)],
        "heron plan",
        "heron heron",
        "otter plan",
    )
    keys = _keys(index)
    with index.reading() as reader:
        together = reader.keywords_among('"heron" OR "plan"', keys)
        single = reader.term_scores(['"heron"', '"plan"'], keys)
    assert {key: sum(met.values()) for key, met in single.items()} == pytest.approx(together)


def test_noise_is_kept_with_its_space(index: Index) -> None:
    fill(index, "a.md", random_vectors(4, 8, seed=1), 8)
    with index.writing() as writer:
        (space,) = writer.spaces()
        assert writer.noise(space.id) == {}
        writer.set_noise(space.id, {"centre": "00", "spread": 0.5, "passages": 4})
    with index.reading() as reader:
        assert reader.noise(space.id) == {"centre": "00", "spread": 0.5, "passages": 4}
        assert reader.noise(space.id + 1) == {}


def test_a_sample_of_a_small_space_is_all_of_it(index: Index) -> None:
    vectors = random_vectors(5, 8, seed=1)
    fill(index, "a.md", vectors, 8)
    with index.reading() as reader:
        (space,) = reader.spaces()
        assert sorted(reader.sample_vectors(space.id, 100)) == sorted(vectors)
        assert len(reader.sample_vectors(space.id, 2)) <= 2


def _keys(index: Index) -> list[int]:
    with index.reading() as reader:
        return sorted(key for key, _ in reader.keywords('"dull" OR "heron" OR "otter"', 100))
