"""What is known of models, what they cost, and how texts are packed for them."""

from __future__ import annotations

import pytest

from clawmark.embed.models import (
    MODELS,
    UNKNOWN,
    look_up,
    plain_name,
    price_per_million,
    prompts_for,
)
from clawmark.embed.services.packing import BLANK, cut, most_texts, pack, sendable, usual_texts
from clawmark.embed.services.wire import Limits
from clawmark.model.providers import PROVIDERS
from clawmark.text.chunking.tokens import estimate_tokens


@pytest.mark.parametrize("model", MODELS)
def test_the_cosines_of_every_known_model_are_a_range(model: str) -> None:
    known = MODELS[model]
    assert 0 <= known.floor < known.ceiling <= 1
    assert plain_name(model) == model


@pytest.mark.parametrize(
    ("model", "dims"),
    [
        ("text-embedding-3-small", 1536),
        ("text-embedding-3-large", 3072),
        ("voyage-4-large", 1024),
        ("mistral-embed", 1024),
        ("gemini-embedding-001", 3072),
        ("nomic-embed-text:latest", 768),
        ("text-embedding-nomic-embed-text-v1.5@q8_0", 768),
        ("BAAI/bge-m3", 1024),
        ("Qwen/Qwen3-Embedding-4B", 2560),
        ("qwen3-embedding:4b", 0),
        ("snowflake-arctic-embed:22m", 0),
        ("amazon.titan-embed-text-v2:0", 1024),
    ],
)
def test_a_size_is_known_where_the_name_is_enough(model: str, dims: int) -> None:
    assert look_up(model).dims == dims


def test_unknown_model_has_average_cosines() -> None:
    assert look_up("my-own") == UNKNOWN
    assert prompts_for("my-own") == ("", "")


def test_prices_are_given_where_they_are_known() -> None:
    assert price_per_million("openai", "text-embedding-3-small") == 0.02
    assert price_per_million("bedrock", "amazon.titan-embed-text-v2:0") == 0.02
    assert price_per_million("ollama", "anything") == 0.0
    assert price_per_million("openai", "text-embedding-9") is None
    assert price_per_million("openai-compatible", "text-embedding-3-small") is None
    assert all(0 < price < 1 for row in PROVIDERS.values() for price in row.prices.values())


def test_texts_are_packed_by_number_in_their_order() -> None:
    assert pack(["a"] * 5, Limits(2, 0, 100), 2) == [range(2), range(2, 4), range(4, 5)]
    assert pack([], Limits(2, 0, 100), 2) == []


def test_texts_are_packed_by_tokens_and_an_oversized_one_is_sent_separately() -> None:
    limits = Limits(100, 10, 1000)  # filled to eight tokens
    texts = ["x" * 16, "x" * 16, "x" * 4, "x" * 400, "x"]
    assert pack(texts, limits, 100) == [range(2), range(2, 3), range(3, 4), range(4, 5)]


def test_requests_limit_the_size_of_their_responses() -> None:
    assert most_texts(Limits(2048, 0, 8191), 1536) * 1536 * 22 <= 8 << 20
    assert most_texts(Limits(2048, 0, 8191), 0) < most_texts(Limits(2048, 0, 8191), 1536)
    assert most_texts(Limits(1, 0, 8191), 1024) == 1


def test_a_usual_call_is_one_request() -> None:
    limits = Limits(512, 16_384, 8192)
    chunks = ["word " * 320] * usual_texts(limits, 1024)  # 400 tokens each
    assert len(pack(chunks, limits, most_texts(limits, 1024))) == 1
    assert usual_texts(Limits(1, 0, 8192), 1024) == 1


@pytest.mark.parametrize(
    "text", ["x" * 9000, "数据库" * 3000, "ab数" * 3000, "😀" * 5000, "x" * 8000 + "数" * 2000]
)
def test_a_text_is_cut_to_what_a_model_reads(text: str) -> None:
    short = cut(text, 1000)
    assert text.startswith(short)
    assert 999 <= estimate_tokens(short) <= 1000


def test_text_that_fits_is_unchanged() -> None:
    assert cut("hello", 2) == "hello"
    assert cut("x" * 9000, 0) == "x" * 9000


def test_what_is_sent_has_something_to_read_and_whole_characters() -> None:
    assert sendable(" \n\t ", 10) == BLANK
    assert sendable("", 10) == BLANK
    assert sendable("a\ud800b", 10) == "a\ufffdb"
