"""Parse a query into terms: phrases of the words that `index_words` stores.

A term is a word, an identifier kept whole (`v2.3.1`, `foo_bar`, `user@example.com`, searched as a
phrase), or a few characters where a script has no spaces between words. Stop words are left out
unless there is nothing else. No text raises. Patterns that few
queries need are compiled on first use, because every cold search imports this module."""

from __future__ import annotations

import re
import unicodedata
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
from clawmark.text.keywords.stopwords import are_stop_words, remove_stop_words, split_at_stop_words
from clawmark.text.keywords.words import index_words, korean_stem

MAX_QUERY = 4_000
MAX_TERMS = 64

# Combining accents that remain where no precomposed letter exists.
_ACCENTS = dict.fromkeys(range(0x0300, 0x0370))
_CONTROL = dict.fromkeys([*range(32), *range(127, 160)], " ")
_JOINERS = " \u200c\u200d\u200e\u200f\ufe0f"  # have no effect at the ends of a text
_WORD = re.compile(r"[^\W_]+")
# Parts joined by one of these, without spaces, form one name: a path, an address, a version.
_NAME = re.compile(r"[^\W_]+(?:(?:://|[-_./@:+&\\])[^\W_]+)*")
# English and French contractions with an apostrophe.
_CONTRACTION = r"(?i)(?<=\w)['’](?:s|t|d|m|ll|re|ve)\b|\b(?:[cdjlmnst]|qu)['’](?=\w)"
_QUOTED = r'"([^"]{3,100})"'


def clean_query(text: str) -> str:
    """Return the query on one line, at most 4,000 characters, without control characters.

    Empty if there is nothing to search for: only white space or punctuation.
    """
    text = text.strip()[: 4 * MAX_QUERY]
    if not text.isascii():
        text = without_invisible(
            unicodedata.normalize("NFC", text.encode("utf-8", "ignore").decode())
        )
    text = " ".join(text.translate(_CONTROL).split())[:MAX_QUERY].strip(_JOINERS)
    return text if any(map(str.isalnum, text)) or not text.isascii() else ""


def query_terms(text: str) -> list[Term]:
    """Return the distinct terms of a query in order, at most 64."""
    text = clean_query(text)
    names = _capitals(text)
    text = text.lower().replace("i\u0307", "i")  # the Turkish capital İ in lower case
    if not text.isascii():
        text = text.translate(_ACCENTS) if is_ordinary(text) else fold(text)
    unique = {term.phrase: term for term in _quoted(text)}
    if "'" in text or "’" in text:
        text = re.sub(_CONTRACTION, " ", text)
    for term in [*_terms(text, names, keep_stop_words=False)] or _terms(
        text, names, keep_stop_words=True
    ):
        unique.setdefault(term.phrase, term)
    return list(unique.values())[:MAX_TERMS]


def are_names(text: str, terms: Sequence[Term]) -> list[bool]:
    """Return for each term whether it is a name, an identifier or a code.

    Those are written with a digit, a capital inside a sentence, or a joiner other than a hyphen.
    The only term of a query counts as one."""
    if len(terms) == 1:
        return [True]
    written: set[str] = set()
    # A class with a character beyond Latin-1 takes 0.3 ms to compile.
    for found in re.finditer(r"\w[\w'.-]*", text.replace("’", "'")):
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
    """Whether a term is a path, an address or a file name; a hyphen alone does not count."""
    return " " not in term and any(mark in term for mark in "./@\\")


def _begins_sentence(text: str, at: int) -> bool:
    before = text[:at].rstrip(" \"'“(")
    return not before or before[-1] in ".!?"


def _folded(text: str) -> str:
    if text.isascii():
        return text.lower()
    return "".join(
        c for c in unicodedata.normalize("NFKD", text.lower()) if not unicodedata.combining(c)
    )


def _capitals(text: str) -> set[str]:
    """Return the words in capitals: IT and WHO are then names and not stop words."""
    if text.isupper():
        return set()
    return {word.lower() for word in _WORD.findall(text) if len(word) > 1 and word.isupper()}


def _quoted(text: str) -> list[Term]:
    """Return the phrases in quotation marks."""
    phrases = re.findall(_QUOTED, text) if '"' in text else []
    return [_phrase(phrase) for phrase in phrases if len(_WORD.findall(phrase)) > 1]


def _terms(text: str, names: set[str], keep_stop_words: bool) -> Iterator[Term]:
    """Yield the terms of a folded text, the least specific ones last."""
    tokens = _NAME.findall(text)
    words = _WORD.findall(" ".join(tokens))
    wanted = names.union(words if keep_stop_words else remove_stop_words(words))
    single: list[str] = []
    for token in tokens:
        parts = [token]
        if not token.isalnum():
            yield _phrase(token)
            # Of a version or an address, only the parts that are words are also searched alone.
            parts = [part for part in _WORD.findall(token) if part.isalpha() and len(part) > 2]
        for part in parts:
            if part in wanted:
                yield from _word_terms(part, keep_stop_words, single)
    yield from [Term(character, character) for character in single]


def _word_terms(word: str, keep_stop_words: bool, single: list[str]) -> Iterator[Term]:
    """Yield the terms of a word in any script; single Han characters are added to `single`."""
    if word.isascii():
        yield Term(word, word)
        return
    for script, letters in groupby(word, _kind):
        run = "".join(letters)
        if script == HAN:
            for part in [run] if keep_stop_words else split_at_stop_words(run):
                yield from [
                    _piece(piece)
                    for piece in _pieces(part, 2)
                    if keep_stop_words or not are_stop_words(piece)
                ]
                single += [
                    c
                    for c in part
                    if script_of(ord(c)) == HAN and (keep_stop_words or not are_stop_words(c))
                ]
        elif script == HANGUL:
            stem = korean_stem(run)
            if keep_stop_words or remove_stop_words([stem]):
                yield from map(_piece, _pieces(stem, 2))
        elif script == UNSPACED:
            yield from map(_piece, _pieces(run, 3))
        else:
            yield _phrase(run)


def _kind(letter: str) -> str:
    script = script_of(ord(letter))
    return HAN if script == KANA else script  # Japanese words often mix both


def _pieces(run: str, size: int) -> list[str]:
    """Return every `size` neighbouring characters, or the run itself if it is shorter."""
    return [run[start : start + size] for start in range(max(1, len(run) - size + 1))]


def _piece(characters: str) -> Term:
    """Return a term for neighbouring characters, which the index holds as single words."""
    return Term(characters, " ".join(characters))


def _phrase(text: str) -> Term:
    words = " ".join(index_words(text).replace('"', " ").split())
    return Term(unfold(text), words)
