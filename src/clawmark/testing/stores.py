"""What every index store must do, as checks that anyone can run.

Each check takes an empty `IndexStore` and raises `AssertionError` if it fails:

    @pytest.mark.parametrize("check", index_store_contract)
    def test_contract(check, tmp_path):
        check(SqliteStore(str(tmp_path / "index.sqlite")))
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from clawmark.model.values import Filters, KeywordQuery
from clawmark.store.base import IndexStore
from clawmark.testing.store_samples import any_of, found, put, put_dated, texts_of
from clawmark.testing.store_vectors import vector_checks
from clawmark.testing.vectors import file_of, identity_of

TRANSCRIPT = "sessions/x.jsonl"


# --- files, chunks, snapshots ---------------------------------------------------------------------


def _an_empty_store_answers_nothing(store: IndexStore) -> None:
    with store.snapshot() as snapshot:
        assert snapshot.files() == {}
        assert snapshot.stats() == {}
        assert snapshot.chunks([1]) == {}
        assert snapshot.count_chunks() == 0
        assert snapshot.spaces() == ()
        assert snapshot.facts("identity") == {}
        assert snapshot.building == 0
        assert snapshot.search_keywords(any_of("heron"), 10) == []
        assert snapshot.count_keywords([any_of("heron")]) == (0, [0])
        assert snapshot.score_keywords([any_of("heron")], [1, 2]) == [{}]


def _a_file_is_read_as_it_was_written(store: IndexStore) -> None:
    row, chunks, words = file_of("memory/a.md", "Grüße aus Köln", "zwei", heading="Reise > Tag 1")
    chunks = [chunk._replace(first_day="2026-01-02", last_day="2026-01-03") for chunk in chunks]
    with store.transaction() as transaction:
        keys = transaction.put_file(row, chunks, words)
        assert transaction.files() == {row.path: row}
    put(store, "empty.md")
    with store.snapshot() as snapshot:
        rows = snapshot.chunks([*keys, 999_999])
        assert snapshot.chunks_of(row.path) == [rows[key] for key in keys]
        assert snapshot.chunks_of(row.path, (2, 2)) == [rows[keys[1]]]
        assert snapshot.files([row.path, "absent.md"]) == {row.path: row}
        assert snapshot.stats([row.path]) == {row.path: row[3:8]}
        assert snapshot.stats().keys() == {row.path, "empty.md"}
        assert snapshot.files()["empty.md"].chunks == 0
        assert snapshot.count_chunks() == 2
    for key, chunk in zip(keys, chunks, strict=True):
        stored = rows[key]
        assert (stored.key, stored.path, stored.source) == (key, row.path, "memory")
        assert (stored.start_line, stored.end_line, stored.text, stored.hash) == chunk[:4]
        assert (stored.heading, stored.first_day, stored.last_day) == chunk[4:]


def _a_snapshot_does_not_see_later_writes(store: IndexStore) -> None:
    put(store, "a.md", "before")
    with store.snapshot() as snapshot:
        assert found(snapshot, "before", "after") == ["before"]
        put(store, "a.md", "after")
        put(store, "b.md", "after")
        assert found(snapshot, "before", "after") == ["before"]
        assert list(snapshot.files()) == ["a.md"]
    assert texts_of(store, "before", "after") == ["after", "after"]


def _a_failed_transaction_changes_nothing(store: IndexStore) -> None:
    put(store, "a.md", "before")
    try:
        with store.transaction() as transaction:
            transaction.put_file(*file_of("b.md", "never"))
            transaction.delete_file("a.md")
            transaction.set_facts("last_sync", {"never": True})
            transaction.add_space(identity_of(8))
            raise KeyError("rolled back")
    except KeyError:
        pass
    with store.snapshot() as snapshot:
        assert list(snapshot.files()) == ["a.md"]
        assert snapshot.facts("last_sync") == {}
        assert snapshot.spaces() == ()
        assert found(snapshot, "before", "never") == ["before"]


def _a_replaced_file_answers_with_all_of_its_new_text(store: IndexStore) -> None:
    first = put(store, "a.md", "alpha one", "alpha two")
    second = put(store, "a.md", "beta one")
    assert not set(first) & set(second)
    with store.snapshot() as snapshot:
        assert snapshot.chunks([*first, *second]).keys() == set(second)
        assert found(snapshot, "one", "two") == ["beta one"]
        assert snapshot.count_chunks() == 1


def _a_large_file_appears_at_once(store: IndexStore) -> None:
    put(store, "a.md", "passage of the old version")
    row, chunks, words = file_of("a.md", *[f"passage {number}" for number in range(25)])
    seen = list[int]()

    def words_of(some: Sequence[object]) -> list[tuple[str, ...]]:
        with store.snapshot() as snapshot:
            seen.append(snapshot.count_chunks())
            assert found(snapshot, "passage") == ["passage of the old version"]
        return [words[chunks.index(chunk)] for chunk in some]  # type: ignore[arg-type]

    store.put_large_file(row, chunks, words_of, at_once=10)
    assert seen == [1, 1, 1]
    with store.snapshot() as snapshot:
        assert [chunk.text for chunk in snapshot.chunks_of("a.md")] == [c.text for c in chunks]
        assert len(found(snapshot, "passage")) == 25


def _a_deleted_file_is_gone(store: IndexStore) -> None:
    (key,) = put(store, "a.md", "alpha")
    put(store, "b.md", "beta")
    with store.transaction() as transaction:
        transaction.delete_file("a.md")
        transaction.delete_file("absent.md")
    with store.snapshot() as snapshot:
        assert list(snapshot.files()) == ["b.md"]
        assert snapshot.chunks([key]) == {}
        assert found(snapshot, "alpha", "beta") == ["beta"]
        assert snapshot.count_chunks() == 1
    store.tidy(force=True)
    assert texts_of(store, "alpha", "beta") == ["beta"]


def _a_touched_file_keeps_its_chunks(store: IndexStore) -> None:
    row, chunks, words = file_of("a.md", "alpha")
    with store.transaction() as transaction:
        keys = transaction.put_file(row, chunks, words)
    touched = row._replace(mtime_ns=77, inode=78, seen_ns=79)
    with store.transaction() as transaction:
        transaction.touch_file(touched)
    with store.snapshot() as snapshot:
        assert snapshot.files() == {"a.md": touched}
        assert snapshot.chunks(keys).keys() == set(keys)


def _a_growing_file_keeps_its_first_chunks(store: IndexStore) -> None:
    row, chunks, words = file_of(TRANSCRIPT, "amber", "birch", "cedar")
    row = row._replace(source="sessions", progress="one")
    with store.transaction() as transaction:
        keys = transaction.put_file(row, chunks, words)
    grown = row._replace(progress="two", size=99)
    tail = [chunk._replace(start_line=3, end_line=3) for chunk in file_of("", "cedar delta")[1]]
    with store.transaction() as transaction:
        assert transaction.extend_file(grown, 3, tail, [("cedar delta", "")], was="one")
        assert not transaction.extend_file(grown, 1, tail, [("lost", "")], was="one")
    with store.snapshot() as snapshot:
        rows = snapshot.chunks_of(TRANSCRIPT)
        assert [chunk.text for chunk in rows] == ["amber", "birch", "cedar delta"]
        assert [chunk.key for chunk in rows][:2] == keys[:2]
        assert snapshot.files()[TRANSCRIPT] == grown._replace(chunks=3)
        assert found(snapshot, "cedar", "lost") == ["cedar delta"]


def _facts_are_stored_by_name(store: IndexStore) -> None:
    facts = {"chunker": "markdown/1", "numbers": [1, 2], "ä": "ö"}
    with store.transaction() as transaction:
        transaction.set_facts("identity", facts)
        transaction.set_facts("roots", {"": [1, 2]})
        transaction.set_facts("last_sync", {"at": 1})
    with store.transaction() as transaction:
        transaction.set_facts("last_sync", {})
    with store.snapshot() as snapshot:
        assert snapshot.facts("identity") == facts
        assert snapshot.facts("roots") == {"": [1, 2]}
        assert snapshot.facts("last_sync") == {}


# --- keywords -------------------------------------------------------------------------------------


def _the_best_keyword_matches_come_first(store: IndexStore) -> None:
    texts = ["redis " * times + "other words here " * (5 - times) for times in range(1, 5)]
    put(store, "a.md", *texts, "nothing of the kind")
    with store.snapshot() as snapshot:
        scores = [score for _, score in snapshot.search_keywords(any_of("redis"), 10)]
        assert len(scores) == 4
        assert all(score >= 0 for score in scores)
        assert scores == sorted(scores, reverse=True)
        assert found(snapshot, "redis")[0] == texts[-1]
        assert len(snapshot.search_keywords(any_of("redis"), 2)) == 2


def _words_match_regardless_of_case_accents_and_endings(store: IndexStore) -> None:
    with store.transaction() as transaction:
        transaction.put_file(*file_of("a.md", "We decided on databases in Köln", heading="Billing"))
    for word in ("deciding", "DATABASE", "koln", "billing"):
        assert len(texts_of(store, word)) == 1


def _no_word_of_a_query_is_syntax(store: IndexStore) -> None:
    put(store, "a.md", "near the lake", "or not")
    with store.snapshot() as snapshot:
        for odd in (
            '"',
            "lake OR",
            'a" OR "or',
            "text : lake",
            "NEAR(near lake)",
            "lake*",
            "^near",
        ):
            snapshot.search_keywords(any_of(odd), 5)
        assert snapshot.search_keywords(KeywordQuery(), 5) == []
        assert found(snapshot, "OR") == ["or not"]
        many = [f"word{number}" for number in range(63)]
        assert found(snapshot, *many, "lake") == ["near the lake"]


def _the_words_of_a_phrase_follow_each_other(store: IndexStore) -> None:
    one, two, three = put(store, "a.md", "red fox runs", "the fox sleeps", "fox, red brick")
    phrases = [any_of("red"), any_of("fox"), any_of("red fox"), any_of("zebra")]
    with store.snapshot() as snapshot:
        scores = snapshot.score_keywords(phrases, [one, two, three])
        assert [set(met) for met in scores] == [{one, three}, {one, two, three}, {one}, set()]
        assert snapshot.count_keywords(phrases) == (3, [2, 3, 1, 0])


def _a_pair_matches_where_its_terms_are_close(store: IndexStore) -> None:
    filler = "and then a long walk around the whole lake before"
    close, _ = put(store, "a.md", "red and swift fox", f"red {filler} fox")
    pair = KeywordQuery(pairs=(("fox", "red"),))
    with store.snapshot() as snapshot:
        assert [key for key, _ in snapshot.search_keywords(pair, 5)] == [close]
        wide = pair._replace(distance=20)
        assert snapshot.count_keywords([pair, wide]).matches == [1, 2]


def _what_is_only_asked_can_be_ignored(store: IndexStore) -> None:
    row, chunks, _ = file_of("a.md", "Where is the key?", "The key is under the pot.")
    words = [("", "", "where is the key"), ("the key is under the pot", "")]
    with store.transaction() as transaction:
        asked, stated = transaction.put_file(row, chunks, words)
    both, only = any_of("key"), KeywordQuery(("key",), stated_only=True)
    with store.snapshot() as snapshot:
        assert [key for key, _ in snapshot.search_keywords(both, 5)] == [stated, asked]
        assert [key for key, _ in snapshot.search_keywords(only, 5)] == [stated]
        assert snapshot.count_keywords([both, only]).matches == [2, 1]
        assert [set(met) for met in snapshot.score_keywords([both, only], [asked, stated])] == [
            {asked, stated},
            {stated},
        ]


def _scores_of_terms_add_up(store: IndexStore) -> None:
    filler = [f"dull filler text {number}" for number in range(20)]
    keys = put(store, "a.md", *filler, "heron plan", "heron heron", "otter plan")
    both, twice, plan = keys[-3:]
    with store.snapshot() as snapshot:
        heron, planned, badger, either = snapshot.score_keywords(
            [any_of("heron"), any_of("plan"), any_of("badger"), any_of("heron", "plan")], keys
        )
        assert heron == dict(snapshot.search_keywords(any_of("heron"), 50))
        assert snapshot.score_keywords([any_of("heron")], [twice, plan]) == [{twice: heron[twice]}]
        assert snapshot.score_keywords([any_of("heron")], []) == [{}]
    assert (set(heron), set(planned), set(badger)) == ({both, twice}, {both, plan}, set())
    assert heron[twice] > heron[both] > 0.0
    assert abs(either[both] - heron[both] - planned[both]) < 1e-6


def _deleted_chunks_are_not_counted(store: IndexStore) -> None:
    put(store, "a.md", "heron plan", "heron lake")
    put(store, "b.md", "heron pond")
    with store.transaction() as transaction:
        transaction.delete_file("a.md")
    store.tidy(force=True)
    with store.snapshot() as snapshot:
        assert snapshot.count_keywords([any_of("heron")]) == (1, [1])


# --- filters --------------------------------------------------------------------------------------


def _fill_dated(store: IndexStore) -> None:
    put_dated(store, "memory/2026-01-05.md", ("2026-01-05", "2026-01-05"))
    put_dated(store, "memory/log.md", ("2026-01-07", "2026-01-10"), ("", ""))
    put_dated(store, "sessions/a.jsonl", ("2026-01-09", "2026-01-12"), source="sessions")
    put_dated(store, "Notes:MEMORY.md", ("", ""))


def _each_filter_keeps_what_passes_it(store: IndexStore) -> None:
    _fill_dated(store)
    day, log, undated = "memory/2026-01-05.md:1", "memory/log.md:1", "memory/log.md:2"
    session, notes = "sessions/a.jsonl:1", "Notes:MEMORY.md:1"
    for filters, expected in (
        (Filters(), {day, log, undated, session, notes}),
        (Filters(since="2026-01-10"), {log, session}),
        (Filters(since="2026-01-11"), {session}),
        (Filters(until="2026-01-07"), {day, log}),
        (Filters(since="2026-01-08", until="2026-01-08"), {log}),
        (Filters(since="2026-02-01"), set()),
        (Filters(source="sessions"), {session}),
        (Filters(source="notes"), {notes}),
        (Filters(path="memory/**"), {day, log, undated}),
        (Filters(path="2026-*", source="memory"), {day}),
    ):
        with store.snapshot() as snapshot:
            narrowed = snapshot.within(filters)
            keys = [key for key, _ in narrowed.search_keywords(any_of("heron"), 100)]
            rows = narrowed.chunks(keys).values()
            assert {f"{row.path}:{row.start_line}" for row in rows} == expected, filters
            assert narrowed.count_chunks() == len(expected), filters


def _a_limit_applies_after_the_filters(store: IndexStore) -> None:
    _fill_dated(store)
    put(store, "memory/crowd.md", *["heron heron heron"] * 50)
    with store.snapshot() as snapshot:
        dated = snapshot.within(Filters(since="2026-01-01"))
        assert len(dated.search_keywords(any_of("heron"), 3)) == 3
        assert snapshot.within(Filters(path="memory/*")).count_chunks(undated=True) == 51
        assert snapshot.within(Filters(since="2000-01-01")).count_chunks(undated=True) == 0
        assert snapshot.count_chunks(undated=True) == 52


def _filters_do_not_change_how_rare_a_word_is(store: IndexStore) -> None:
    _fill_dated(store)
    with store.snapshot() as snapshot:
        narrowed = snapshot.within(Filters(source="sessions"))
        query = [any_of("heron")]
        assert narrowed.count_keywords(query) == snapshot.count_keywords(query) == (5, [5])


# --- the store ------------------------------------------------------------------------------------


def _a_closed_store_opens_again(store: IndexStore) -> None:
    put(store, "a.md", "alpha")
    mark = store.mark()
    store.close()
    assert texts_of(store, "alpha") == ["alpha"]
    assert not store.was_replaced(mark)
    assert not store.was_replaced(None)
    store.check()
    assert store.recover_vectors() == 0
    with store.record_sync({"reason": "manual"}) as record:
        record(stage="text", done=1, total=2)
    assert store.lock_waits >= 0


index_store_contract: tuple[Callable[[IndexStore], None], ...] = (
    _an_empty_store_answers_nothing,
    _a_file_is_read_as_it_was_written,
    _a_snapshot_does_not_see_later_writes,
    _a_failed_transaction_changes_nothing,
    _a_replaced_file_answers_with_all_of_its_new_text,
    _a_large_file_appears_at_once,
    _a_deleted_file_is_gone,
    _a_touched_file_keeps_its_chunks,
    _a_growing_file_keeps_its_first_chunks,
    _facts_are_stored_by_name,
    _the_best_keyword_matches_come_first,
    _words_match_regardless_of_case_accents_and_endings,
    _no_word_of_a_query_is_syntax,
    _the_words_of_a_phrase_follow_each_other,
    _a_pair_matches_where_its_terms_are_close,
    _what_is_only_asked_can_be_ignored,
    _scores_of_terms_add_up,
    _deleted_chunks_are_not_counted,
    _each_filter_keeps_what_passes_it,
    _a_limit_applies_after_the_filters,
    _filters_do_not_change_how_rare_a_word_is,
    *vector_checks,
    _a_closed_store_opens_again,
)
"""The checks every `IndexStore` must pass."""
