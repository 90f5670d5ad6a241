from __future__ import annotations

from clawmark.text.chunking.tokens import estimate_tokens, quarter_tokens, utf16_length, well_formed


def test_four_latin_characters_are_a_token() -> None:
    assert estimate_tokens("abcd" * 100) == 100
    assert estimate_tokens("é" * 8) == 2


def test_an_empty_text_has_no_tokens_and_a_letter_has_one() -> None:
    assert estimate_tokens("") == 0
    assert estimate_tokens("a") == 1


def test_a_cjk_character_is_a_token() -> None:
    assert estimate_tokens("记忆") == 2
    assert estimate_tokens("メモリ") == 3
    assert estimate_tokens("기억") == 2


def test_cyrillic_and_typography_count_like_latin() -> None:
    assert quarter_tokens("память — «это»") == len("память — «это»")


def test_utf16_length_counts_emoji_twice() -> None:
    assert utf16_length("a😀") == 3
    assert utf16_length("plain") == 5


def test_lone_surrogates_become_replacement_characters() -> None:
    assert well_formed("a\ud83d") == "a\ufffd"
    assert well_formed("\ude00b") == "\ufffdb"
    assert well_formed("fine 😀") == "fine 😀"


def test_lone_surrogates_can_be_measured() -> None:
    assert utf16_length("\ud83d") == 1
    assert estimate_tokens("\ud83d") == 1
