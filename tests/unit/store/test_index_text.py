"""Files, chunks and words: what is put in is found, and what is taken out is gone."""

from __future__ import annotations

from pathlib import Path

import pytest

from clawmark.store.sqlite.reader import STATED
from clawmark.store.sqlite.store import Index, Reader
from clawmark.testing.vectors import file_of, fill, random_vectors


def found(reader: Reader, expression: str) -> list[str]:
    keys = [key for key, _ in reader.keywords(expression, 100)]
    rows = reader.chunks(keys)
    return [rows[key].text for key in keys]


def test_a_chunk_comes_back_as_it_was_put_in(index: Index) -> None:
    file = file_of("memory/2026-01-02.md", "Grüße aus Köln", "zwei", heading="Reise > Tag 1")
    file[1][:] = [
        chunk._replace(first_day="2026-01-02", last_day="2026-01-03") for chunk in file[1]
    ]
    with index.writing() as writer:
        keys = writer.put_file(*file)
    with index.reading() as reader:
        rows = reader.chunks(keys)
        assert reader.chunks_of("memory/2026-01-02.md") == [rows[key] for key in keys]
        assert reader.files() == {"memory/2026-01-02.md": file[0]}
    for key, chunk in zip(keys, file[1], strict=True):
        row = rows[key]
        assert (row.key, row.path, row.source) == (key, "memory/2026-01-02.md", "memory")
        assert (row.start_line, row.end_line, row.text, row.hash, row.heading) == chunk[:5]
        assert (row.first_day, row.last_day) == ("2026-01-02", "2026-01-03")


def test_words_are_stemmed_and_accents_ignored(index: Index) -> None:
    with index.writing() as writer:
        writer.put_file(*file_of("a.md", "We decided on databases in Köln"))
    with index.reading() as reader:
        for word in ('"deciding"', '"DATABASE"', '"koln"'):
            assert len(reader.keywords(word, 5)) == 1


def test_headings_are_searched_with_the_text(index: Index) -> None:
    with index.writing() as writer:
        writer.put_file(*file_of("a.md", "nothing else", heading="Billing"))
    with index.reading() as reader:
        assert found(reader, '"billing"') == ["nothing else"]


def test_scores_are_positive_and_best_first(index: Index) -> None:
    texts = ["redis " * times + "other words here " * (5 - times) for times in range(1, 5)]
    with index.writing() as writer:
        writer.put_file(*file_of("a.md", *texts, "nothing of the kind"))
    with index.reading() as reader:
        scores = [score for _, score in reader.keywords('"redis"', 10)]
        assert len(scores) == 4
        assert all(score >= 0 for score in scores)
        assert scores == sorted(scores, reverse=True)
        assert found(reader, '"redis"')[0] == texts[-1]
        assert len(reader.keywords('"redis"', 2)) == 2


def test_term_scores_say_which_phrases_a_chunk_contains(index: Index) -> None:
    with index.writing() as writer:
        one, two, three = writer.put_file(
            *file_of("a.md", "red fox runs", "the fox sleeps", "red brick")
        )
    with index.reading() as reader:
        scores = reader.term_scores(['"red"', '"fox"', '"red fox"', '"zebra"'], [one, two, three])
        assert {key: set(met) for key, met in scores.items()} == {
            one: {0, 1, 2},
            two: {1},
            three: {0},
        }
        assert all(score > 0.0 for met in scores.values() for score in met.values())
        assert reader.term_scores(['"red"', '"fox"'], [two]).keys() == {two}
        assert reader.term_scores(['"red"'], []) == {}


def test_the_score_of_a_phrase_is_the_one_it_is_found_with(index: Index) -> None:
    with index.writing() as writer:
        keys = writer.put_file(
            *file_of("a.md", "red fox runs", "the fox sleeps", "red brick", "a fox and a fox")
        )
    with index.reading() as reader:
        by_chunk = {key: met[0] for key, met in reader.term_scores(['"fox"'], keys).items()}
        assert by_chunk == dict(reader.keywords('"fox"', 10))


def test_matches_are_counted_for_each_phrase(index: Index) -> None:
    with index.writing() as writer:
        writer.put_file(*file_of("a.md", "red fox runs", "the fox sleeps", "red brick"))
    with index.reading() as reader:
        assert reader.count_matches(['"red"', '"fox"', '"red fox"', '"zebra"']) == [2, 2, 1, 0]
        assert reader.count_rows_of_words() == 3


def test_words_that_are_only_asked_are_found_but_not_among_what_is_stated(index: Index) -> None:
    row, chunks, _ = file_of(
        "a.md", "user: Where is the key?\nassistant: Not sure.", "The key is under the pot."
    )
    with index.writing() as writer:
        asked, stated = writer.put_file(
            row, chunks, [("", "", "where is the key"), ("the key is under the pot", "")]
        )
    with index.reading() as reader:
        assert [key for key, _ in reader.keywords('"key"', 5)] == [stated, asked]
        assert [key for key, _ in reader.keywords(STATED + '"key"', 5)] == [stated]
        assert reader.count_matches(['"key"', STATED + '"key"']) == [2, 1]


def test_putting_a_file_again_replaces_it(index: Index) -> None:
    with index.writing() as writer:
        first = writer.put_file(*file_of("a.md", "alpha", "beta"))
        second = writer.put_file(*file_of("a.md", "gamma"))
    assert not set(first) & set(second)
    with index.reading() as reader:
        assert reader.chunks([*first, *second]).keys() == set(second)
        assert found(reader, '"alpha" OR "beta" OR "gamma"') == ["gamma"]
        assert (reader.state().files, reader.state().chunks) == (1, 1)


def test_a_deleted_file_leaves_no_rows(index: Index) -> None:
    fill(index, "a.md", random_vectors(3, 8, seed=1), 8)
    with index.writing() as writer:
        writer.drop_file("a.md")
        writer.drop_file("never-there.md")
    with index.reading() as reader:
        assert reader.files() == {}
        assert reader.keywords('"passage"', 5) == []
        assert reader._db.rows("SELECT count(*) FROM chunks") == [(0,)]
        assert reader._db.rows("SELECT count(*) FROM chunks_vec") == [(0,)]


def test_a_touched_file_keeps_its_chunks_under_a_new_stat(index: Index) -> None:
    row, chunks, words = file_of("a.md", "alpha")
    with index.writing() as writer:
        keys = writer.put_file(row, chunks, words)
        writer.touch_file(row._replace(mtime_ns=77, inode=78, seen_ns=79))
    with index.reading() as reader:
        assert reader.files()["a.md"] == row._replace(mtime_ns=77, inode=78, seen_ns=79)
        assert reader.chunks(keys).keys() == set(keys)


def test_an_empty_file_is_known_without_chunks(index: Index) -> None:
    with index.writing() as writer:
        assert writer.put_file(*file_of("empty.md")) == []
    with index.reading() as reader:
        assert reader.files()["empty.md"].chunks == 0


@pytest.mark.parametrize("how", ["drop", "replace", "rebuild"])
def test_deleted_text_is_in_no_page_of_the_file(how: str, index: Index) -> None:
    """The words too: a full-text index keeps them in sorted lists, where a search of the bytes
    would find them.
    """
    secret = "xylophonequartz"
    with index.writing() as writer:
        writer.put_file(*file_of("a.md", f"the password is {secret}", heading=secret))
        for number in range(40):
            writer.put_file(*file_of(f"{number}.md", f"other text number {number} " * 20))
    index.close()
    assert secret.encode() in Path(index.path).read_bytes()
    with index.writing() as writer:
        if how == "drop":
            writer.drop_file("a.md")
        elif how == "replace":
            writer.put_file(*file_of("a.md", "nothing to see"))
        else:
            number = writer.begin_rebuild()
            writer.put_file(*file_of("a.md", "nothing to see"), building=number)
            for other in range(40):
                writer.put_file(
                    *file_of(f"{other}.md", f"other text number {other} " * 20), building=number
                )
            writer.publish(number)
    with index.reading() as reader:
        assert reader.state().dead_words > 0 or reader.state().has_dead
    sweep(index)
    with index.reading() as reader:
        assert (reader.state().dead_words, reader.state().has_dead) == (0, False)
        assert len(reader.keywords('"number"', 100)) == 40
        assert reader.integrity_problems() == []
    index.close()
    files = [Path(index.path + suffix).read_bytes() for suffix in ("", "-wal")]
    for part in (secret.encode(), b"quartz", b"xylophon"):
        assert not any(part in content for content in files)


def sweep(index: Index) -> int:
    rounds = 0
    while True:
        with index.writing() as writer:
            if not writer.sweep():
                return rounds
        rounds += 1
        assert rounds < 1000


def test_sweeping_a_clean_index_does_nothing(index: Index) -> None:
    with index.writing() as writer:
        writer.put_file(*file_of("a.md", "alpha"))
    assert sweep(index) == 0


def test_a_query_of_sixty_four_terms_is_answered(index: Index) -> None:
    with index.writing() as writer:
        writer.put_file(*file_of("a.md", "alpha beta"))
    expression = " OR ".join(f'"word{number}"' for number in range(63)) + ' OR "alpha"'
    with index.reading() as reader:
        assert found(reader, expression) == ["alpha beta"]
