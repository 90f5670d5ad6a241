"""Questions without an answer lose their evidence; single lines and the user's statements add
theirs.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clawmark.engine.search import statements
from clawmark.engine.search.neighbours import join_neighbours
from clawmark.engine.search.scoring import BIAS, INSTANT_MEANING, Candidate, confidence, ranked
from clawmark.engine.search.snippet import make_spotter
from clawmark.engine.search.statements import weigh_statements
from clawmark.model.values import ChunkRow, Query, Term

QUERY = Query("spare key boat house")
SPOTTER = make_spotter([Term(word, word) for word in ("spare", "key", "boat", "house")], [0.25] * 4)
ASKED = "user: Where is the spare key of the boat house?\nassistant: I don't know.\n"
ANSWERED = (
    "user: Where is the spare key of the boat house?\nassistant: Under the third flower pot.\n"
)


def candidate(text: str, key: int = 1, words: float = 0.8, vector: float = 0.9) -> Candidate:
    made = Candidate(
        row=ChunkRow(
            key=key,
            path=f"memory/{key:03}.md",
            source="memory",
            start_line=1,
            end_line=1 + text.count("\n"),
            hash="hash",
            heading="",
            text=text,
        ),
        text=words,
        name=0.5,
        vector=vector,
        space="m",
        bm25=1.0,
        mask=1,
        meaning=INSTANT_MEANING,
        score=0.0,
    )
    return made._replace(score=confidence(made, QUERY))


def near_to(word: str):  # type: ignore[no-untyped-def]
    return lambda parts: [1.0 if word in part else 0.1 for part in parts]


def test_a_passage_that_only_asks_loses_the_evidence_of_its_meaning() -> None:
    (weighed,) = weigh_statements(QUERY, [candidate(ASKED, words=0.0)], SPOTTER, near_to("key"))
    assert (weighed.vector, weighed.line, weighed.user, weighed.stated) == (0.0, 0.0, 0.0, 0.0)
    assert weighed.score == confidence(weighed, QUERY) < QUERY.min_score


def test_the_threshold_applies_to_a_match_that_is_only_asked() -> None:
    exact = candidate(ASKED)._replace(is_exact=True)
    stated = (
        "user: The spare key of the boat house is under the pot.\nassistant: I will remember it.\n"
    )
    weighed = weigh_statements(
        QUERY, [exact, candidate(ASKED + stated, 2)._replace(is_exact=True)], SPOTTER, None
    )
    assert {one.row.key: one.is_exact for one in weighed} == {1: False, 2: True}


def test_a_question_with_its_answer_keeps_its_evidence() -> None:
    before = candidate(ANSWERED)
    (weighed,) = weigh_statements(QUERY, [before], SPOTTER, None)
    assert weighed == before


def test_the_answer_ranks_above_the_echo_of_the_question() -> None:
    echo = candidate(ASKED, 1, words=0.3, vector=1.2)
    answer = candidate("The spare key is under the third flower pot.", 2, words=0.3, vector=0.6)
    weighed = weigh_statements(QUERY, ranked([echo, answer]), SPOTTER, None)
    assert [one.row.key for one in weighed] == [2, 1]


def test_a_passage_that_asks_more_than_it_states_keeps_some_of_its_evidence() -> None:
    before = candidate(ASKED * 3 + "user: We painted the fence green in May.\nassistant: Good.\n")
    (weighed,) = weigh_statements(QUERY, [before], SPOTTER, None)
    assert 0.0 < weighed.vector < before.vector
    assert 0.0 < weighed.stated < 1.0
    assert weighed.text == before.text, "the words of questions are not in it"


def test_the_header_of_a_session_note_states_nothing() -> None:
    head = (
        "# Session: 2026-10-01 08:00:00 UTC\n\n- **Session Key**: "
        "agent:main:chat\n- **Session ID**: 1\n\n"
    )
    (echo,) = weigh_statements(QUERY, [candidate(head + ASKED)], SPOTTER, near_to("chat"))
    assert (echo.stated, echo.vector, echo.line) == (0.0, 0.0, 0.0)
    (short,) = weigh_statements(
        QUERY, [candidate(head + "user: Hello.\nassistant: Hi.\n")], SPOTTER, near_to("chat")
    )
    assert 0.0 < short.stated < 1.0
    (long,) = weigh_statements(QUERY, [candidate(head + ANSWERED * 5)], SPOTTER, near_to("chat"))
    assert long.stated == 1.0


def test_what_a_small_memory_adds_is_not_added_to_a_passage_that_only_asks() -> None:
    (asked,) = weigh_statements(QUERY, [candidate(ASKED)], SPOTTER, None, BIAS + 1.0)
    assert asked.score == weigh_statements(QUERY, [candidate(ASKED)], SPOTTER, None)[0].score
    text = "The spare key lies under the pot."
    (plain,) = weigh_statements(QUERY, [candidate(text)], SPOTTER, near_to("spare"), BIAS + 1.0)
    assert (
        plain.score > weigh_statements(QUERY, [candidate(text)], SPOTTER, near_to("spare"))[0].score
    )


def test_plain_notes_keep_their_evidence_and_gain_that_of_their_best_line() -> None:
    text = "# Places\n\nThe fence was painted green.\nThe spare key lies under the pot.\n"
    before = candidate(text)
    (weighed,) = weigh_statements(QUERY, [before], SPOTTER, near_to("spare"))
    assert (weighed.text, weighed.name, weighed.vector) == (before.text, before.name, before.vector)
    assert (weighed.line, weighed.user) == (1.0, 0.0)
    assert weighed.score > before.score


def test_a_line_that_asks_is_not_the_best_line() -> None:
    text = "Where is the spare key of the boat house?\nNobody has seen it for a year.\n"
    (weighed,) = weigh_statements(QUERY, [candidate(text)], SPOTTER, near_to("spare"))
    assert weighed.line == pytest.approx(0.1)


def test_what_the_user_states_counts_on_its_own() -> None:
    text = (
        "user: I moved to Lisbon in the spring.\nassistant: Lisbon "
        "is a fine city with many hills and trams.\n"
    )
    (by_user,) = weigh_statements(QUERY, [candidate(text)], SPOTTER, near_to("spring"))
    (by_assistant,) = weigh_statements(QUERY, [candidate(text)], SPOTTER, near_to("trams"))
    assert (by_user.user, by_assistant.user) == pytest.approx((1.0, 0.1))
    assert by_user.score > by_assistant.score


def test_without_an_embedder_for_lines_only_echoes_are_judged() -> None:
    first, second = weigh_statements(
        QUERY, ranked([candidate(ASKED, 1), candidate("A plain note.", 2)]), SPOTTER, None
    )
    assert (first.row.key, second.row.key) == (2, 1)
    assert first.line == first.user == 0.0


def test_echoes_do_not_use_up_the_candidates_that_are_read() -> None:
    echoes = [candidate(ASKED, key, words=0.0, vector=1.5) for key in range(1, 51)]
    answer = candidate("The spare key lies under the third flower pot.", 99, words=0.0, vector=0.5)
    weighed = weigh_statements(QUERY, ranked([*echoes, answer]), SPOTTER, near_to("spare"))
    assert weighed[0].row.key == 99
    assert weighed[0].line == 1.0


def test_lines_are_not_judged_once_the_results_are_full() -> None:
    many = ranked([candidate(f"Plain note number {key} says little.", key) for key in range(1, 60)])
    weighed = weigh_statements(QUERY, many, SPOTTER, near_to("says"))
    assert {one.row.key for one in weighed} == {one.row.key for one in many}
    judged = [one.line > 0.0 for one in weighed]
    assert sum(judged) == statements.BATCH * QUERY.max_results
    assert all(judged[: QUERY.max_results])


def test_every_candidate_is_judged_when_the_order_changes_afterwards() -> None:
    many = ranked([candidate(f"Plain note number {key} says little.", key) for key in range(1, 60)])
    weighed = weigh_statements(QUERY, many, SPOTTER, near_to("says"), judge_all=True)
    assert all(one.line > 0.0 for one in weighed)


def test_lines_are_judged_as_long_as_there_is_room() -> None:
    weak = [
        candidate(f"Plain note number {key} says little.", key, words=0.0, vector=1.0)
        for key in range(1, 40)
    ]
    last = candidate("The spare key lies under the third flower pot.", 99, words=0.0, vector=0.95)
    query = QUERY._replace(min_score=weak[0].score + 0.05)
    weighed = weigh_statements(
        query, ranked([*weak, last]), SPOTTER, lambda parts: [1.0 * ("spare" in p) for p in parts]
    )
    assert weighed[0].row.key == 99
    assert weighed[0].line == 1.0


def test_lines_of_a_candidate_that_cannot_reach_the_threshold_are_not_judged() -> None:
    weak = candidate(
        "The spare key lies under the third flower pot.", words=0.0, vector=0.0
    )._replace(name=0.0)
    weak = weak._replace(score=confidence(weak, QUERY))
    (weighed,) = weigh_statements(QUERY, [weak], SPOTTER, near_to("spare"))
    assert weighed.line == 0.0
    assert confidence(weighed._replace(line=1.5), QUERY) < QUERY.min_score
    (exact,) = weigh_statements(QUERY, [weak._replace(is_exact=True)], SPOTTER, near_to("spare"))
    assert exact.line == 1.0


def test_a_hit_made_of_joined_neighbours_counts_once() -> None:
    def part(key: int) -> Candidate:
        made = candidate("The spare key lies under the pot.", key)
        return made._replace(
            row=made.row._replace(path="memory/one.md", start_line=key, end_line=key + 1)
        )

    others = [
        candidate(f"Plain note number {key} says little.", key, words=0.6) for key in range(20, 50)
    ]
    order = ranked([*(part(key) for key in range(1, 13)), *others])
    weighed = weigh_statements(QUERY, order, SPOTTER, near_to("e"))
    passages, _ = join_neighbours(weighed, QUERY.max_results, QUERY.min_score)
    assert len(passages) == QUERY.max_results
    assert all(passage.best.line == 1.0 for passage in passages)


def test_a_score_does_not_depend_on_how_many_other_candidates_are_better() -> None:
    last = candidate("The spare key lies under the third flower pot.", 99, words=0.2)
    others = [
        candidate(f"Plain note number {key} says little.", key, words=0.5) for key in range(1, 20)
    ]
    query = QUERY._replace(max_results=20)
    among_few = weigh_statements(query, ranked([*others[:5], last]), SPOTTER, near_to("spare"))
    among_more = weigh_statements(query, ranked([*others, last]), SPOTTER, near_to("spare"))
    few, more = (
        next(one for one in weighed if one.row.key == 99) for weighed in (among_few, among_more)
    )
    assert few.line == 1.0
    assert few.score == more.score


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_the_score_of_a_hit_is_the_same_among_any_other_candidates(data: st.DataObject) -> None:
    share = st.floats(0.0, 1.0)
    made = [
        candidate(
            f"Note {key}: the {'spare' if data.draw(st.booleans()) else 'other'} key.",
            key,
            data.draw(share),
            data.draw(share),
        )
        for key in range(1, data.draw(st.integers(2, 40)))
    ]
    query = QUERY._replace(max_results=data.draw(st.integers(1, 6)), min_score=data.draw(share))
    alone = {
        one.row.key: weigh_statements(query, [one], SPOTTER, near_to("spare"))[0].score
        for one in made
    }
    passages, _ = join_neighbours(
        weigh_statements(query, ranked(made), SPOTTER, near_to("spare")),
        query.max_results,
        query.min_score,
    )
    assert all(passage.best.score == alone[passage.best.row.key] for passage in passages)
    room = query.max_results - len(passages)
    lost = [key for key, score in alone.items() if score >= query.min_score] if room else []
    assert set(lost) <= {passage.best.row.key for passage in passages}


def test_of_a_passage_with_very_many_lines_those_with_the_words_are_judged() -> None:
    text = "\n".join(
        [
            *[f"An ordinary line, number {n}." for n in range(40)],
            "The spare key lies under the pot.",
        ]
    )
    read: list[str] = []

    def nearness(parts: Sequence[str]) -> list[float]:
        read.extend(parts)
        return [0.5] * len(parts)

    weigh_statements(QUERY, [candidate(text)], SPOTTER, nearness)
    assert len(read) == statements.MOST_LINES
    assert "The spare key lies under the pot." in read


def test_short_lines_are_not_judged() -> None:
    read: list[str] = []

    def nearness(parts: Sequence[str]) -> list[float]:
        read.extend(parts)
        return [0.5] * len(parts)

    weigh_statements(
        QUERY, [candidate("# Keys\n\n- yes\nThe spare key lies under the pot.")], SPOTTER, nearness
    )
    assert read == ["The spare key lies under the pot."]
