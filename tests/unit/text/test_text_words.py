from __future__ import annotations

from clawmark.text.keywords.words import index_words


def test_latin_text_is_returned_as_it_is() -> None:
    for text in ("plain ASCII", "naïve café — “ok”"):
        assert index_words(text) is text


def test_words_are_stemmed_and_letters_set_apart() -> None:
    assert index_words("Решения и 记忆").split() == ["решен", "и", "记", "忆"]


def test_latin_words_in_a_foreign_text_stay_whole() -> None:
    assert index_words("Мы выбрали PostgreSQL 16").split()[-2:] == ["PostgreSQL", "16"]


def test_soft_hyphens_and_zero_width_spaces_do_not_part_words() -> None:
    assert index_words("soft\u00adware and zero\u200bwidth") == "software and zerowidth"


def test_young_symbols_do_not_stick_to_words() -> None:
    assert index_words("₽100 paid").split() == ["100", "paid"]
    assert index_words("done🤖now").split() == ["done", "now"]


def test_a_text_of_many_different_words_is_stemmed_to_the_end() -> None:
    words = " ".join(f"слово{number}ами" for number in range(60_000))
    assert index_words(words).split()[-1] == "слов59999ами"


def test_lone_surrogates_are_no_problem() -> None:
    assert index_words("\ud800 слова").split()[-1] == "слов"
