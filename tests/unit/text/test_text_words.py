from __future__ import annotations

import pytest

from clawmark.text.keywords.scripts import fold
from clawmark.text.keywords.words import index_words, korean_stem, stem


def test_latin_text_is_returned_as_it_is() -> None:
    for text in ("plain ASCII", "naïve café — “ok”"):
        assert index_words(text) is text


def test_words_are_stemmed_and_han_letters_are_separated() -> None:
    assert index_words("Решения и 记忆").split() == ["решен", "и", "记", "忆"]


def test_latin_words_in_a_foreign_text_stay_whole() -> None:
    assert index_words("Мы выбрали PostgreSQL 16").split()[-2:] == ["PostgreSQL", "16"]


def test_soft_hyphens_and_zero_width_spaces_do_not_split_words() -> None:
    assert index_words("soft\u00adware and zero\u200bwidth") == "software and zerowidth"


def test_newer_symbols_are_separated_from_words() -> None:
    assert index_words("₽100 paid").split() == ["100", "paid"]
    assert index_words("done🤖now").split() == ["done", "now"]


def test_a_text_of_many_different_words_is_stemmed_to_the_end() -> None:
    words = " ".join(f"слово{number}ами" for number in range(60_000))
    assert index_words(words).split()[-1] == "слов59999ами"


def test_lone_surrogates_can_be_indexed() -> None:
    assert index_words("\ud800 слова").split()[-1] == "слов"


@pytest.mark.parametrize(
    "forms",
    [
        ["решение", "решения", "решению", "решениями"],
        ["база", "базы", "базу", "базой", "базах"],
        ["новый", "новая", "новые", "нового", "новым"],
        ["המידע"],
        ["المشروع", "مشروع", "والمشروع", "بالمشروع", "للمشروع"],
        ["كتاب", "الكتاب", "كتابها"],
        ["किताब", "किताबें", "किताबों"],
        ["απόφαση", "αποφάσεις"],
    ],
    ids=lambda forms: str(forms[0]),
)
def test_forms_of_a_word_share_a_stem(forms: list[str]) -> None:
    assert len({stem(fold(form)) for form in forms}) == 1


@pytest.mark.parametrize("word", ["да", "он", "له", "में", "ω", "x", "é", "記"])
def test_short_words_are_not_stemmed(word: str) -> None:
    assert stem(fold(word)) == fold(word)


def test_different_words_stay_different() -> None:
    assert stem("банк") != stem("банан")
    assert stem("مدينه") != stem("مدير")


def test_a_bengali_word_loses_the_vowel_signs_at_its_end() -> None:
    assert stem(fold("বাড়ি")) == stem(fold("বাড়ী"))


def test_korean_words_lose_their_particle() -> None:
    assert korean_stem("전략에서") == "전략"
    assert korean_stem("데이터베이스를") == "데이터베이스"
    assert korean_stem("은") == "은"
