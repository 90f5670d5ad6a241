from __future__ import annotations

import pytest

from clawmark.embed.local.onnx_tokenizer import Normalization, WordPiece

MARKS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
WORDS = [*MARKS, "data", "##base", "##s", "the", "un", "##aff", "##able", "a", "##b", ","]
VOCABULARY = {word: number for number, word in enumerate(WORDS)}
BEFORE, AFTER = [2], [3]

# What the package `tokenizers` 0.23 gives for BertNormalizer and BertPreTokenizer.
SPLIT = {
    "Hello, World!": ["hello", ",", "world", "!"],
    "Naïve CAFÉ — “quoted”": ["naive", "cafe", "—", "“", "quoted", "”"],
    "请问 数据库 ok": ["请", "问", "数", "据", "库", "ok"],
    "a\x00b\u200bc\tD\r\nE": ["abc", "d", "e"],
    "ΣΊΣΥΦΟΣ straße İstanbul": ["σισυφοσ", "straße", "istanbul"],
    "e-mail: Foo_Bar@x.io $5": [
        "e",
        "-",
        "mail",
        ":",
        "foo",
        "_",
        "bar",
        "@",
        "x",
        ".",
        "io",
        "$",
        "5",
    ],
    "😀👩\u200d👩\u200d👧 don't": ["😀👩👩👧", "don", "'", "t"],
    "[SEP] [CLS]": ["[", "sep", "]", "[", "cls", "]"],
    "²½ Ⅷ": ["²½", "ⅷ"],
    " \n ": [],
}


@pytest.fixture
def tokenizer() -> WordPiece:
    return WordPiece(VOCABULARY, BEFORE, AFTER)


@pytest.mark.parametrize("text", SPLIT)
def test_texts_are_cut_into_words_as_bert_cuts_them(tokenizer: WordPiece, text: str) -> None:
    assert tokenizer.split(text) == SPLIT[text]


def test_a_cased_model_keeps_capitals_and_accents() -> None:
    cased = WordPiece(
        VOCABULARY, BEFORE, AFTER, normalization=Normalization(lower=False, accents=True)
    )
    assert cased.split("Naïve CAFÉ İstanbul") == ["Naïve", "CAFÉ", "İstanbul"]


def test_a_word_becomes_the_longest_pieces_from_the_left(tokenizer: WordPiece) -> None:
    assert tokenizer.encode("the databases, unaffable", 99) == [2, 7, 4, 5, 6, 13, 8, 9, 10, 3]


def test_a_word_that_cannot_be_cut_is_unknown_as_a_whole(tokenizer: WordPiece) -> None:
    assert tokenizer.encode("dataxyz the " + "a" * 101, 99) == [2, 1, 7, 1, 3]


def test_a_cut_text_keeps_its_end_token(tokenizer: WordPiece) -> None:
    assert tokenizer.encode("the " * 50, 6) == [2, 7, 7, 7, 7, 3]
    assert tokenizer.encode("", 6) == [2, 3]


def test_special_tokens_in_a_text_are_ordinary_words(tokenizer: WordPiece) -> None:
    assert 3 not in tokenizer.encode("[SEP]", 99)[1:-1]
