"""Prepare text for the keyword index: fold letters, separate words and remove word endings.

`query` sends its terms through `index_words` too, so that both sides agree. English stemming is
left to FTS5's porter stemmer, which runs over every Latin word; German and French endings are not
removed. The stemmers here are light: they remove the endings of nouns and adjectives and keep what
makes a different word. For questions in Russian and Arabic they find as much as full Snowball
stemmers (recall@6 0.995 and 0.99, Snowball 0.99 and 0.98) at four times the speed, without a
dependency."""

from __future__ import annotations

import re
from functools import cache, lru_cache

from clawmark.text.keywords.scripts import (
    fold,
    is_inflected,
    is_ordinary,
    segment,
    without_invisible,
    without_young_signs,
)

_FOREIGN = r"[^\W_\x00-\x7f]+"
_CYRILLIC = """
    иями ями ами иях иям ием ией ого его ому ему ыми ими ях ах ям ам ом ем ов ев ей ой ии ие ия ию
    ий ью ья ье ый ая яя ое ее ые ую юю ых их ым им ою ею ы и а я о е у ю ь й
"""
_GREEK = "ματων ματος ματα ιους ιων ιου ους εις ων ος οι ου ας ης ες ις ια ιο ει α η ο ω ι ε υ"
_ARABIC_ARTICLES = ("وال", "بال", "كال", "فال", "لل", "ال")
_ARABIC_PARTICLES = "وفبلك"
_ARABIC = "ها هم هن كم نا وا تم ان ات ون ين يه ه ي ا"
_DEVANAGARI = "ियों ियाँ ियां ाओं ाएं ाएँ ाया ाई ाए िया ीय ों ओं ें एं ने ना नी ता ती ते कर ा े ी ि ो ु ू"
_HANGUL = """
    에서는 에서의 으로는 으로의 이라는 이라고 이었던 인가요 에는 에서 에게 으로 부터 까지 보다 처럼
    이나 이란 라는 라고 하는 하고 했던 였던 와의 과의 인가 는가 은가 들이 들은 들을 들의 은 는 이 가
    을 를 의 에 와 과 도 로 만 나 한 된 들
"""
_FIRST_SIGN = "\U00017000"
"""Folded text encodes the vowel signs of the Indic scripts from this character on."""


def index_words(text: str) -> str:
    """Return a passage as the keyword index stores it; unchanged if FTS5 needs no help with it."""
    if text.isascii():
        return text
    text = without_young_signs(without_invisible(text))
    if is_ordinary(text):
        return text
    text = segment(text)
    return re.sub(_FOREIGN, lambda word: stem(word[0]), text) if is_inflected(text) else text


@lru_cache(maxsize=50_000)
def stem(word: str) -> str:
    """Return the stem of a folded word; unchanged for scripts without rules."""
    first = ord(word[0])
    if 0x0400 <= first < 0x0530:
        return _without_end(_without_reflexive(word), _CYRILLIC, 3)
    if 0x0600 <= first < 0x0780:
        return _without_end(_without_article(word), _ARABIC, 3)
    if 0x0900 <= first < 0x0980:
        return _without_end(word, _DEVANAGARI, 2)
    if 0x0980 <= first < 0x0E00:
        return _without_signs(word)
    if 0x0370 <= first < 0x0400:
        return _without_end(word, _GREEK, 3)
    return word


def korean_stem(word: str) -> str:
    """Remove the particle of a Korean word."""
    return _without_end(word, _HANGUL, 1)


def _without_end(word: str, endings: str, shortest: int) -> str:
    """Remove the longest ending that leaves at least `shortest` letters."""
    for ending in _by_last_letter(endings).get(word[-1], ()):
        if len(word) - len(ending) >= shortest and word.endswith(ending):
            return word[: -len(ending)]
    return word


@cache
def _by_last_letter(endings: str) -> dict[str, list[str]]:
    """Return the folded endings, longest first, by their last letter."""
    table: dict[str, list[str]] = {}
    for ending in sorted(fold(endings).split(), key=len, reverse=True):
        table.setdefault(ending[-1], []).append(ending)
    return table


def _without_reflexive(word: str) -> str:
    return word[:-2] if len(word) > 5 and word.endswith(("ся", "сь")) else word


def _without_article(word: str) -> str:
    """Remove the article and the particles written onto an Arabic word."""
    for article in _ARABIC_ARTICLES:
        rest = len(word) - len(article)
        if word.startswith(article) and (rest > 2 or (rest == 2 and len(article) == 2)):
            word = word[len(article) :]
            break
    # Also where the letter belongs to the word: the result must not depend on the article.
    return word[1:] if word[0] in _ARABIC_PARTICLES and len(word) > 3 else word


def _without_signs(word: str) -> str:
    """Remove the vowel signs at the end of an Indic word, where these languages inflect."""
    end = len(word)
    while end > 2 and word[end - 1] >= _FIRST_SIGN:
        end -= 1
    return word[:end]
