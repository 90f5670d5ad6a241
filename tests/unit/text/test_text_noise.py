"""Which passages have enough words to be embedded."""

from __future__ import annotations

import base64
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clawmark.text.chunking.noise import MIN_WORDS, SHORT, has_meaning

NOISE = random.Random(7).randbytes(1200)
BASE64 = base64.b64encode(NOISE).decode()
WITHOUT = {
    "one character": "a" * 1600,
    "one letter a line": "a\n" * 800,
    "letters one by one": " ".join("abcdefghijklmnopqrstuvwxyz" * 30),
    "numbered items": "\n".join(f"- item {number}" for number in range(50427, 50540)),
    "numbered words": " ".join(f"word{number}" for number in range(53406, 53560)),
    "numbers": " ".join(str(number) for number in range(1000, 1300)),
    "keys": "\n".join(f"k{number}: v" for number in range(10569, 10700)),
    "headings": "\n".join(f"# H{number}" for number in range(10652, 10852)),
    "base64": BASE64,
    "base64 in lines": base64.encodebytes(NOISE).decode(),
    "base64url": base64.urlsafe_b64encode(NOISE).decode(),
    "hex": NOISE.hex(),
    "hex in lines": "\n".join(NOISE.hex()[start : start + 64] for start in range(0, 2400, 64)),
    "long words of hex letters": " ".join(letter * 60 for letter in "abcdef"),
    "punctuation": "*_" * 800,
    "a table of numbers": "| 2026-11-15 | 12.5 | 33 |\n" * 60,
    "blank": " \n" * 800,
    "two Chinese characters": "记忆" * 200,
    "emoji": "🌸" * 800,
}
WITH = {
    "a short note": "Tea.",
    "a short number": "42",
    "a repeated sentence": "the same line again\n" * 80,
    "words around encoded data": f"The invoice that Ann sent on Monday:\n\n{BASE64}",
    "an address made of words": "https://example.org/how-we-moved-the-billing-service-to-postgresql-and-what-we-learned-from-that\n"
    * 3,
    "minified JSON": '{"city":"Berlin","drink":"tea","people":["Ann","Bob"]},' * 20,
    "Chinese": "我们决定把账单服务迁移到新的数据库因为旧的太慢而且很难维护" * 10,
    "Thai": "เราตัดสินใจย้ายบริการเรียกเก็บเงินไปยังฐานข้อมูลใหม่" * 6,
    "Russian": "Мы решили перенести сервис счетов в новую базу данных. " * 5,
    "Korean": "우리는 청구 서비스를 새 데이터베이스로 옮기기로 했다. " * 8,
}


@pytest.mark.parametrize("name", WITHOUT)
def test_a_passage_without_words_has_no_meaning(name: str) -> None:
    assert len(WITHOUT[name]) >= SHORT
    assert not has_meaning(WITHOUT[name])


@pytest.mark.parametrize("name", WITH)
def test_a_passage_with_words_has_a_meaning(name: str) -> None:
    assert has_meaning(WITH[name])


@given(
    st.lists(
        st.sampled_from(["we", "chose", "a", "database", "for", "billing", "because"]), min_size=60
    ),
    st.text(),
)
def test_enough_words_make_any_passage_meaningful(words: list[str], around: str) -> None:
    passage = f"{around} {' '.join(words)} {around}"
    assert has_meaning(passage) or len({word for word in words if len(word) > 1}) < MIN_WORDS


@given(st.text(max_size=2000))
def test_any_text_can_be_judged(text: str) -> None:
    assert has_meaning(text) in (True, False)
