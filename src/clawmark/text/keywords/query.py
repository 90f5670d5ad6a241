"""What a query looks for.

Takes a query and gives terms: phrases of the words that `words.index_words` put into the index.
Nothing here raises, whatever the text. Ranking is left to `search`.

A term is a word, an identifier kept whole (`v2.3.1`, `foo_bar`, `user@example.com`, looked for as a
phrase), or a few characters where a script has no spaces between words. Small words are left out
unless there is nothing else.

Patterns and modules that only some queries need are loaded on first use: every cold search imports
this module."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import groupby

from clawmark.model.values import Term
from clawmark.text.keywords.scripts import (
    HAN,
    HANGUL,
    KANA,
    UNSPACED,
    fold,
    is_ordinary,
    script_of,
    unfold,
    without_invisible,
)
from clawmark.text.keywords.stopwords import is_small, meaningful, without_small_words
from clawmark.text.keywords.words import index_words

__all__ = ["are_names", "clean_query", "index_words", "query_terms"]

MAX_QUERY = 4_000
MAX_TERMS = 64

_ACCENTS = dict.fromkeys(
    range(0x0300, 0x0370)
)  # left over where there is no letter with the accent on it
_CONTROL = dict.fromkeys([*range(32), *range(127, 160)], " ")
_JOINERS = " \u200c\u200d\u200e\u200f\ufe0f"  # show only between other characters
_WORD = re.compile(r"[^\W_]+")
# Parts joined by one of these, without a space, are one name: a path, an address, a version, a
# compound.
_NAME = re.compile(r"[^\W_]+(?:(?:://|[-_./@:+&\\])[^\W_]+)*")
# What English and French write onto a word with an apostrophe.
_CONTRACTION = r"(?i)(?<=\w)['’](?:s|t|d|m|ll|re|ve)\b|\b(?:[cdjlmnst]|qu)['’](?=\w)"
_QUOTED = r'"([^"]{3,100})"'


def clean_query(text: str) -> str:
    """The query on one line, at most 4,000 characters, without control characters, invisible ones
    and broken ones.

    Empty when there is nothing to look for: only white space, only punctuation.
    """
    text = text.strip()[: 4 * MAX_QUERY]
    if not text.isascii():
        import unicodedata

        text = without_invisible(
            unicodedata.normalize("NFC", text.encode("utf-8", "ignore").decode())
        )
    text = " ".join(text.translate(_CONTROL).split())[:MAX_QUERY].strip(_JOINERS)
    return text if any(map(str.isalnum, text)) or not text.isascii() else ""


def query_terms(text: str) -> list[Term]:
    """What to look for, in the order of the query, without repetition; at most 64 terms."""
    text = clean_query(text)
    names = _capitals(text)
    text = text.lower().replace("i\u0307", "i")  # what Python makes of the Turkish capital İ
    if not text.isascii():
        text = text.translate(_ACCENTS) if is_ordinary(text) else fold(text)
    unique = {term.phrase: term for term in _quoted(text)}
    if "'" in text or "’" in text:
        text = re.sub(_CONTRACTION, " ", text)
    for term in [*_terms(text, names, small_words=False)] or _terms(text, names, small_words=True):
        unique.setdefault(term.phrase, term)
    return list(unique.values())[:MAX_TERMS]


def are_names(text: str, terms: Sequence[Term]) -> list[bool]:
    """Which terms are names, identifiers or codes.

    Those are written with a digit, a capital inside a sentence, or a joiner other than a hyphen.
    The only term of a query counts as one: it is what the query is about."""
    if len(terms) == 1:
        return [True]
    written: set[str] = set()
    for found in re.finditer(r"\w[\w'’.-]*", text):
        word = found[0]
        is_capital = word[0].isupper() and not _begins_sentence(text, found.start())
        is_code = "_" in word or any(
            letter.isdigit() or (at and letter.isupper()) for at, letter in enumerate(word)
        )
        if is_capital or is_code:
            written.update(_WORD.findall(_folded(word)))
    return [
        _is_joined(term.text) or any(part in written for part in _WORD.findall(_folded(term.text)))
        for term in terms
    ]


def _is_joined(term: str) -> bool:
    """Whether a term is a path, an address or the name of a file; compounds with a hyphen are
    ordinary words.
    """
    return " " not in term and any(mark in term for mark in "./@\\")


def _begins_sentence(text: str, at: int) -> bool:
    before = text[:at].rstrip(" \"'“(")
    return not before or before[-1] in ".!?"


def _folded(text: str) -> str:
    if text.isascii():
        return text.lower()
    import unicodedata

    return "".join(
        c for c in unicodedata.normalize("NFKD", text.lower()) if not unicodedata.combining(c)
    )


def _capitals(text: str) -> set[str]:
    """The words in capitals of a sentence that is not: IT and WHO are names there and not small
    words.
    """
    if text.isupper():
        return set()
    return {word.lower() for word in _WORD.findall(text) if len(word) > 1 and word.isupper()}


def _quoted(text: str) -> list[Term]:
    """The phrases in quotation marks."""
    phrases = re.findall(_QUOTED, text) if '"' in text else []
    return [_phrase(phrase) for phrase in phrases if len(_WORD.findall(phrase)) > 1]


def _terms(text: str, names: set[str], small_words: bool) -> Iterator[Term]:
    """The terms of a folded text; those that tell least come last."""
    tokens = _NAME.findall(text)
    words = _WORD.findall(" ".join(tokens))
    wanted = names.union(words if small_words else meaningful(words))
    single: list[str] = []
    for token in tokens:
        parts = [token]
        if not token.isalnum():
            yield _phrase(token)
            # Of a version or an address only the parts that are words are worth looking for on
            # their own.
            parts = [part for part in _WORD.findall(token) if part.isalpha() and len(part) > 2]
        for part in parts:
            if part in wanted:
                yield from _word_terms(part, small_words, single)
    yield from [Term(character, character) for character in single]


def _word_terms(word: str, small_words: bool, single: list[str]) -> Iterator[Term]:
    """The terms of letters and digits of any script; Han characters are also left in `single`, one
    by one.
    """
    if word.isascii():
        yield Term(word, word)
        return
    for script, letters in groupby(word, _kind):
        run = "".join(letters)
        if script == HAN:
            for part in [run] if small_words else without_small_words(run):
                yield from [
                    _piece(piece)
                    for piece in _pieces(part, 2)
                    if small_words or not is_small(piece)
                ]
                single += [
                    c for c in part if script_of(ord(c)) == HAN and (small_words or not is_small(c))
                ]
        elif script == HANGUL:
            from clawmark.text.keywords.stem import korean_stem

            stem = korean_stem(run)
            if small_words or meaningful([stem]):
                yield from map(_piece, _pieces(stem, 2))
        elif script == UNSPACED:
            yield from map(_piece, _pieces(run, 3))
        else:
            yield _phrase(run)


def _kind(letter: str) -> str:
    script = script_of(ord(letter))
    return HAN if script == KANA else script  # a Japanese word is often both


def _pieces(run: str, size: int) -> list[str]:
    """Every `size` neighbouring characters; the run itself when it is shorter."""
    return [run[start : start + size] for start in range(max(1, len(run) - size + 1))]


def _piece(characters: str) -> Term:
    """A term for neighbouring characters, which the index holds one by one."""
    return Term(characters, " ".join(characters))


def _phrase(text: str) -> Term:
    words = " ".join(index_words(text).replace('"', " ").split())
    return Term(unfold(text), words)
