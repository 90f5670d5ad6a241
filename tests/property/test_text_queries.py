"""Properties of any query, run against a real FTS5 table."""

from __future__ import annotations

from itertools import pairwise

import apsw
from hypothesis import given, settings
from hypothesis import strategies as st

from clawmark.model.values import KeywordQuery
from clawmark.store.sqlite.keywords.expressions import match_expression
from clawmark.text.keywords.query import (
    MAX_QUERY,
    MAX_TERMS,
    clean_query,
    query_terms,
)
from clawmark.text.keywords.words import index_words

_SCRIPTS = (
    "abcdefgh XYZ 0123456789 _-./@:+&\\'’\"*()^~#%$!?,; \n\t éüßñçøåİ don't Caroline's naïve"
    "привет ёлка Москва ελλάδα Σίσυφος سؤال المشروع שלום हिन्दी किताबों বাংলা தமிழ்"
    "记忆系统是什么的讨论 のデプロイ戦略について ｶﾞｲﾄﾞ ﬁ 한국어에서는 ไทยภาษา ລາວ ខ្មែរ"
    "မြန်မာ 👩\u200d💻 \u200b\u00ad\ufeff\x00"
)
_WORDS = st.lists(st.sampled_from(sorted(set(_SCRIPTS))), max_size=60).map("".join)
_ANYTHING = st.text(st.characters(exclude_categories=()), max_size=120)
_SYNTAX = ["NEAR", "AND", "OR", "NOT", "text", ":", "*", "(", '"', "{", "the", "a"]
_QUERY_WORDS = st.lists(st.sampled_from(_SYNTAX), max_size=12)
_QUERIES = _ANYTHING | _WORDS | _QUERY_WORDS.map(" ".join)


def _table(*passages: str) -> apsw.Connection:
    database = apsw.Connection(":memory:")
    database.execute(
        "CREATE VIRTUAL TABLE words USING fts5(text, context, content='', contentless_delete=1, "
        'tokenize="porter unicode61 remove_diacritics 2")'
    )
    for passage in passages:
        database.execute("INSERT INTO words(text, context) VALUES (?, '')", (index_words(passage),))
    return database


_EMPTY = _table()


def _rows(database: apsw.Connection, expression: str) -> list[int]:
    found = database.execute(
        "SELECT rowid FROM words WHERE words MATCH ? ORDER BY bm25(words)", (expression,)
    )
    return [row[0] for row in found]


@settings(max_examples=500)
@given(_QUERIES)
def test_every_query_is_an_expression_that_fts5_accepts(query: str) -> None:
    phrases = tuple(term.phrase for term in query_terms(query))
    expression = match_expression(KeywordQuery(phrases))
    assert bool(expression) == bool(phrases)
    near = match_expression(KeywordQuery(pairs=tuple(pairwise(phrases)), stated_only=True))
    for valid in filter(None, (expression, near)):
        assert _rows(_EMPTY, valid) == []


@settings(max_examples=300)
@given(_QUERIES)
def test_terms_are_few_different_and_the_same_every_time(query: str) -> None:
    terms = query_terms(query)
    assert len(terms) <= MAX_TERMS
    assert len({term.phrase for term in terms}) == len(terms)
    assert terms == query_terms(query)


@settings(max_examples=300)
@given(_QUERIES)
def test_a_clean_query_is_one_printable_line(query: str) -> None:
    cleaned = clean_query(query)
    cleaned.encode()
    assert cleaned == clean_query(cleaned)
    assert len(cleaned) <= MAX_QUERY
    assert not any(ord(character) < 32 for character in cleaned)


@settings(max_examples=500)
@given(_WORDS)
def test_a_text_is_found_by_every_term_of_its_own_words(text: str) -> None:
    database = _table(text)
    for term in query_terms(text):
        assert _rows(database, match_expression(KeywordQuery((term.phrase,)))) == [1], term


@settings(max_examples=300)
@given(_ANYTHING)
def test_index_words_can_always_be_stored(text: str) -> None:
    words = index_words(text)
    if text.isascii():
        assert words == text
    assert words == index_words(text)
