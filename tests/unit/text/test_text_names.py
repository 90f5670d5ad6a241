"""Which terms of a query are names, identifiers or codes."""

from __future__ import annotations

import pytest

from clawmark.text.keywords.query import are_names, query_terms


def names(query: str) -> list[str]:
    terms = query_terms(query)
    return [
        term.text for term, is_name in zip(terms, are_names(query, terms), strict=True) if is_name
    ]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("When did Melanie paint a sunrise?", ["melanie"]),
        ("what did we decide about PostgreSQL for billing", ["postgresql"]),
        ("the error E4711 in production", ["e4711"]),
        ("who changed max_connections last week", ["max_connections"]),
        ("is release v2.3.1 out yet", ["v2.3.1"]),
        ("what does the WHO say about sleep", ["who"]),
        ("where does Zoë live now", ["zoë"]),
        ("the parser of GPT4all models", ["gpt4all"]),
        ("where is the settings file", []),
        ("Where is the settings file? Somebody moved the folder.", []),
    ],
)
def test_digits_underscores_and_capitals_inside_a_sentence_make_a_name(
    query: str, expected: list[str]
) -> None:
    assert [name for name in names(query) if name in expected] == expected
    if not expected:
        assert names(query) == []


@pytest.mark.parametrize(
    "query",
    ["where is nginx.conf kept", "mails to dana@example.com bounced", "what is in src/main today"],
)
def test_words_joined_by_a_dot_a_slash_or_an_at_sign_are_identifiers(query: str) -> None:
    (name,) = [term.text for term in query_terms(query) if not term.text.isalnum()]
    assert name in names(query)


def test_a_capital_at_the_start_of_a_sentence_does_not_make_a_name() -> None:
    assert names("Painting lessons. Sunrise at the lake.") == []
    assert names('"Painting lessons at the lake"') == []


def test_the_only_term_of_a_query_counts_as_a_name() -> None:
    assert names("melanie") == ["melanie"]
    assert names("what is a heron?") == ["heron"]


def test_a_query_without_terms_has_no_names() -> None:
    assert are_names("", []) == []


def test_there_is_one_result_for_each_term() -> None:
    for query in (
        "",
        "a",
        "Zoë wrote “v2.3.1” to dana@example.com",
        "我们决定使用 PostgreSQL 数据库",
        "ПРИВЕТ МИР",
    ):
        terms = query_terms(query)
        assert len(are_names(query, terms)) == len(terms)
