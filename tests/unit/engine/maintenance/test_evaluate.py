"""Questions with known answers: how they are read, and how answers to them are judged."""

from __future__ import annotations

import pytest

from clawmark.engine.maintenance.evaluate import (
    Expected,
    Question,
    changed,
    evaluate,
    read_questions,
)
from clawmark.model.documents import Excerpt
from clawmark.model.errors import PathDenied, QuestionError
from clawmark.model.reports import Evaluation
from clawmark.model.values import Found, Hit

FILES = {
    "a.md": "one\nWe chose PostgreSQL for billing because invoices need transactions\nthree",
    "b.md": "tea\n" * 200,
}


def read(citation: str) -> Excerpt:
    path, _, span = citation.partition("#L")
    if path not in FILES:
        if path.startswith("secret"):
            raise PathDenied("no", path=path, rule="outside")
        return Excerpt(
            path=path, text="", start=1, lines=0, total_lines=0, truncated=False, next_start=None
        )
    lines = FILES[path].split("\n")
    first, _, last = span.partition("-L")
    chosen = lines[int(first) - 1 : int(last or first)] if span else lines
    return Excerpt(
        path=path,
        text="\n".join(chosen),
        start=1,
        lines=len(chosen),
        total_lines=len(lines),
        truncated=False,
        next_start=None,
    )


def hit(path: str, start: int, end: int, snippet: str = "") -> Hit:
    return Hit(
        path=path,
        start_line=start,
        end_line=end,
        score=0.5,
        snippet=snippet,
        snippet_start=start,
        snippet_end=end,
        source="memory",
        vector_score=0.5,
        text_score=0.5,
        date="",
    )


def judged(question: str, *hits: Hit) -> Evaluation:
    found = Found(
        hits=hits,
        nothing=None,
        mode="hybrid",
        provider="p",
        model="m",
        degraded=None,
        due_files=0,
        milliseconds=1.0,
    )
    return evaluate(read_questions([question]), lambda _: found, read)


OTHERS = tuple(hit("b.md", line, line) for line in range(1, 7))


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ('{"question": "q", "path": "a.md"}', Expected(path="a.md", start=0, end=0, text="")),
        ('{"question": "q", "path": "a.md#L2"}', Expected(path="a.md", start=2, end=2, text="")),
        (
            '\ufeff{"question": "q", "path": "./a.md#L2-L4", "text": "t"}',
            Expected(path="a.md", start=2, end=4, text="t"),
        ),
        ('{"question": "q", "text": "t"}', Expected(path="", start=0, end=0, text="t")),
    ],
)
def test_a_line_is_parsed_into_a_question_with_its_expectation(
    line: str, expected: Expected
) -> None:
    assert read_questions(["", line]) == [Question("q", (expected,))]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "Line 1 of the questions is not JSON."),
        ("[1]", "is not an object"),
        ('{"path": "a.md"}', "has no question"),
        ('{"question": " ", "path": "a.md"}', "has no question"),
        ('{"question": "q"}', "does not say what"),
        ('{"question": "q", "path": 7}', "path of line 1 of the questions must be text"),
        ('{"question": "q", "text": ["t", ""]}', "must be text"),
        ("", "There are no questions"),
    ],
)
def test_an_invalid_line_is_named_in_the_error(line: str, message: str) -> None:
    with pytest.raises(QuestionError, match=message):
        read_questions([line])


def test_recall_counts_hits_that_overlap_the_expected_lines() -> None:
    question = '{"question": "q", "path": "a.md#L2"}'
    result = judged(
        question, hit("b.md", 1, 3), hit("a.md", 3, 9), hit("a.md", 1, 2, "PostgreSQL for billing")
    )
    assert (result.recall_1, result.recall_3, result.recall_6) == (0.0, 1.0, 1.0)
    assert result.mrr == pytest.approx(1 / 3, abs=1e-4)
    assert (result.questions[0].rank, result.questions[0].found) == (
        3,
        ("b.md#L1-L3", "a.md#L3-L9", "a.md#L1-L2"),
    )


def test_hits_after_the_sixth_do_not_count() -> None:
    result = judged('{"question": "q", "path": "a.md"}', *OTHERS, hit("a.md", 1, 2))
    assert (result.recall_6, result.mrr, result.questions[0].rank) == (0.0, 0.0, 0)


def test_an_expected_text_is_looked_for_in_the_whole_passage_and_seen_only_in_the_snippet() -> None:
    question = (
        '{"question": "q", "text": "postgresql for BILLING, because invoices need transactions"}'
    )
    hidden = judged(question, hit("a.md", 1, 3, "one"))
    assert (hidden.recall_1, hidden.seen) == (1.0, 0.0)
    shown = judged(
        question, hit("a.md", 1, 3, "… PostgreSQL for billing because invoices need transactions")
    )
    assert (shown.recall_1, shown.seen) == (1.0, 1.0)


def test_lines_are_seen_when_eight_of_their_words_are_shown_in_a_row() -> None:
    question = '{"question": "q", "path": "a.md#L2"}'
    assert judged(question, hit("a.md", 1, 3, "We chose PostgreSQL for billing")).seen == 0.0
    assert (
        judged(
            question, hit("a.md", 1, 3, "We chose PostgreSQL for billing because invoices need")
        ).seen
        == 1.0
    )


def test_several_expectations_count_by_their_share() -> None:
    result = judged(
        '{"question": "q", "path": ["a.md", "b.md", "c.md", "secret.md"]}',
        hit("a.md", 1, 1),
        hit("b.md", 1, 1),
    )
    assert (result.recall_1, result.recall_3, result.seen) == (0.25, 0.5, 0.5)
    assert result.missing == ("c.md", "secret.md")


def test_only_questions_that_are_answered_differently_are_changed() -> None:
    question = '{"question": "q", "path": "a.md"}'
    one, two = (
        judged(question, hit("a.md", 1, 1)),
        judged(question, hit("b.md", 1, 1), hit("a.md", 1, 1)),
    )
    assert changed(one, one) == []
    assert [(a.rank, b.rank) for a, b in changed(one, two)] == [(1, 2)]
