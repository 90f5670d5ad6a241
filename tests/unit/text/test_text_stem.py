from __future__ import annotations

import pytest

from clawmark.text.keywords.scripts import fold
from clawmark.text.keywords.stem import korean_stem, stem


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
def test_short_words_are_left_alone(word: str) -> None:
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
