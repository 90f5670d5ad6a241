from __future__ import annotations

import pytest

from clawmark.text.keywords.scripts import (
    fold,
    is_inflected,
    is_ordinary,
    segment,
    unfold,
    without_accents,
)


@pytest.mark.parametrize(
    "text", ["", "plain", "café — “quoted” naïve 100 € → ok…", "Łódź, Žižek, ångström"]
)
def test_latin_text_is_ordinary(text: str) -> None:
    assert is_ordinary(text)


@pytest.mark.parametrize(
    "text", ["память", "记忆", "メモ", "기억", "ذاكرة", "स्मृति", "ความจำ", "ελλάδα", "x🤖", "ｆｕｌ"]
)
def test_other_scripts_and_emoji_are_not_ordinary(text: str) -> None:
    assert not is_ordinary(text)


def test_scripts_with_endings_are_inflected() -> None:
    assert is_inflected("память")
    assert is_inflected("ذاكرة")
    assert not is_inflected("记忆 and memory")


def test_han_kana_hangul_and_thai_letters_are_separated() -> None:
    assert segment("记忆x").split() == ["记", "忆", "x"]
    assert segment("メモリー").split() == ["メ", "モ", "リ", "ー"]
    assert segment("기억2").split() == ["기", "억", "2"]
    assert segment("ปี2023").split() == ["ป", "2023"]


def test_compatibility_forms_become_ordinary() -> None:
    assert fold("ｆｕｌｌ ﬁｌｅ") == "full file"
    assert fold("ｶﾞｲﾄﾞ") == "ガイド"
    assert fold("한국") == "한국"


def test_vowel_signs_become_letters_and_back() -> None:
    folded = fold("किताब")
    assert folded.isalnum()
    assert unfold(folded) == "किताब"


def test_spelling_variants_are_folded() -> None:
    assert fold("أُسْرَة") == fold("اسره")
    assert fold("ёлка") == "елка"
    assert fold("Ελλάς") == "ελλασ"
    assert fold("за́мок") == "замок"


def test_emoji_become_spaces() -> None:
    assert fold("готово🤖да").split() == ["готово", "да"]


def test_accents_are_removed() -> None:
    assert without_accents("qué") == "que"
    assert without_accents("über") == "uber"
