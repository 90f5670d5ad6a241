from __future__ import annotations

from collections.abc import Callable

import apsw
import pytest

from clawmark.model.values import KeywordQuery
from clawmark.store.sqlite.keywords.expressions import match_expression
from clawmark.text.keywords.query import (
    MAX_QUERY,
    MAX_TERMS,
    clean_query,
    query_terms,
)
from clawmark.text.keywords.words import index_words

Find = Callable[[str], list[str]]


def _texts(query: str) -> list[str]:
    return [term.text for term in query_terms(query)]


def _finder(*passages: str) -> Find:
    """A search over these passages in a real FTS5 table, best first."""
    database = apsw.Connection(":memory:")
    database.execute(
        "CREATE VIRTUAL TABLE words USING fts5(text, context, content='', contentless_delete=1, "
        'tokenize="porter unicode61 remove_diacritics 2")'
    )
    for number, passage in enumerate(passages):
        database.execute(
            "INSERT INTO words(rowid, text, context) VALUES (?, ?, '')",
            (number, index_words(passage)),
        )

    def find(query: str) -> list[str]:
        ranked = "SELECT rowid FROM words WHERE words MATCH ? ORDER BY bm25(words, 1.0, 1.0)"
        expression = match_expression(KeywordQuery(tuple(t.phrase for t in query_terms(query))))
        return [passages[row[0]] for row in database.execute(ranked, (expression,))]

    return find


def test_a_question_becomes_its_content_words() -> None:
    assert _texts("Which database did we choose for billing?") == ["database", "choose", "billing"]


def test_words_repeat_once_and_in_order() -> None:
    assert _texts("billing API api Billing") == ["billing", "api"]


def test_a_question_of_stop_words_keeps_them_all() -> None:
    assert _texts("who are you") == ["who", "are", "you"]


@pytest.mark.parametrize("name", ["v2.3.1", "2026-02-24", "10:32"])
def test_a_number_with_points_is_one_term(name: str) -> None:
    (term,) = query_terms(name)
    assert term.phrase == name


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("foo_bar", ["foo", "bar"]),
        ("multi-agent", ["multi", "agent"]),
        ("src/app.py", ["src", "app"]),
        ("user@example.com", ["user", "example", "com"]),
    ],
)
def test_a_compound_is_one_term_and_its_words_are_more(name: str, parts: list[str]) -> None:
    assert _texts(name) == [name, *parts]


def test_a_commit_is_one_term() -> None:
    assert _texts("a828e60") == ["a828e60"]


def test_an_identifier_is_found_whole() -> None:
    find = _finder("released v2.3.1 today", "section 2 has 3 parts and 1 note", "v2 of 3.1")
    assert find("v2.3.1") == ["released v2.3.1 today"]


def test_apostrophes_do_not_hide_a_name() -> None:
    assert _texts("Caroline's plans, don't forget") == ["caroline", "plans", "forget"]
    assert _texts("l'avion d'Anna") == ["avion", "anna"]


def test_capitals_in_a_sentence_are_names() -> None:
    assert _texts("What does the IT team need") == ["it", "team"]
    assert _texts("WHAT DOES THE IT TEAM NEED") == ["team"]


def test_a_quoted_phrase_is_a_term() -> None:
    assert _texts('the "support group" visit') == ["support group", "support", "group", "visit"]


def test_dates_months_and_years_are_kept() -> None:
    assert _texts("what happened on May 24th 2023") == ["may", "24th", "2023"]


def test_chinese_is_searched_in_pairs_and_single_characters() -> None:
    assert _texts("之前讨论的那个方案") == ["讨论", "论的", "方案", "讨", "论", "方", "案"]
    assert query_terms("讨论")[0].phrase == "讨 论"


@pytest.mark.parametrize(
    ("note", "question"),
    [
        ("我们决定使用数据库来保存账单。", "数据库怎么用？"),
        ("昨日のデプロイ戦略を決めた。", "デプロイ戦略について"),
        ("배포 전략을 논의했다", "어제 논의한 배포 전략에서"),
        ("Мы выбрали базы данных для счетов", "какая база данных"),
        ("قررنا استخدام قاعدة البيانات الجديدة", "ما هي قواعد بيانات المشروع"),
        ("हमने नई किताबें खरीदीं", "कौन सी किताब"),
        ("เราเลือกฐานข้อมูลใหม่", "ฐานข้อมูลอะไร"),
        ("Αποφασίσαμε για τη βάση δεδομένων", "ποιες βάσεις"),
        ("Wir haben die Datenbank gewählt", "Welche Datenbank?"),
        ("Café in Łódź", "cafe łódź"),
        ("ｆｕｌｌ　ｗｉｄｔｈ メモ", "full width"),
        ("deployed🤖today", "deployed"),
    ],
)
def test_a_note_is_found_by_a_question_in_its_language(note: str, question: str) -> None:
    find = _finder(
        note, "unrelated text about gardens", "другое", "其他内容", "다른 내용", "موضوع اخر"
    )
    assert find(question)[0] == note


def test_a_query_without_words_has_no_terms() -> None:
    assert query_terms("?! … 🤖") == []


def test_a_long_query_is_cut_to_sixty_four_terms() -> None:
    terms = query_terms(" ".join(f"word{number}" for number in range(1000)))
    assert len(terms) == MAX_TERMS
    assert terms[0].text == "word0"


def test_a_query_is_cleaned_to_one_line() -> None:
    assert clean_query("  a\x00b\n\tc\u200bd\x1b[31m  ") == "a b cd [31m"
    assert clean_query("e\u0301") == "é"
    assert clean_query("\ud800x") == "x"
    assert clean_query("\u200b\u200d\ufeff") == clean_query("?!...,;:") == ""
    assert clean_query("🚀") == "🚀"
    assert len(clean_query("word " * 300_000)) <= MAX_QUERY


_SYNTAX = [
    '"',
    '""',
    "AND",
    "a AND",
    "NEAR(",
    "text:x",
    "*",
    "-",
    "(((",
    "a* OR",
    "{a b}: c",
    "\\",
    "'",
    "^a",
    "a + b",
]
_ODDITIES = [
    "\ud800",
    "\x00",
    "%_",
    "; DROP TABLE words",
    "\u0301",
    "ﷺ" * 1000,
    "🏳️\u200d🌈",
    "x" * 1_000_000,
]


@pytest.mark.parametrize("query", _SYNTAX + _ODDITIES, ids=ascii)
def test_any_query_makes_a_valid_expression(query: str) -> None:
    find = _finder("a note")
    if query_terms(query):
        find(query)
