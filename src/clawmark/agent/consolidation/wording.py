"""Compare what two statements say by their words. Precise rather than eager.

Two statements say the same if they have the same content words, apart from inflection, order and
filler words. Numbers, names, negations and limits ("only", "until", "except") are never ignored:
one such word changes what a statement says."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from itertools import islice
from typing import NamedTuple

FEWEST_WORDS = 3
"""Words that a statement must have to be compared with another one."""

LONGEST_SENTENCE = 2_000
MOST_CLAUSES = 10
"""How far a sentence is divided: a line of data is not compared part by part."""

_TOKEN = re.compile(r"[^\W_]*\d[^\W_]*(?:[.,:/-]\d[^\W_]*)*|[^\W\d_]+")
_NOT = re.compile(r"(?<=\w)n['’]t\b", re.IGNORECASE)
_POSSESSIVE = re.compile(r"(?<=\w)['’]s?\b")
_CLAUSE_END = re.compile(r"[,;:–—(]|\s-\s|\b(?:because|so that|weil|da|damit)\b", re.IGNORECASE)
_SENTENCE_END = re.compile(
    r"(?<!\b[A-Z]\.)(?<!\b(?:Dr|Mr|Ms|St|vs|No|Nr|ca)\.)(?<!\b(?:Mrs|z\.B|bzw|usw|e\.g|i\.e)\.)"
    r"(?:(?<=[\w)\"'”`*\]%°]\.)|(?<=[!?]))\s+"
    r"(?!Jan|Feb|Mär|Apr|Mai|Jun|Jul|Aug|Sep|Okt|Nov|Dez|[a-zß-ÿ])"  # "am 3. März"
)
_RULE = re.compile(
    r"\A(?:rule|decision|decided|agreed|agreement|lesson|note|regel|entscheidung|beschlossen"
    r"|vereinbart|merke)\b[^:]{0,40}: ",
    re.IGNORECASE,
)
_BULLET = re.compile(r"\A(?:[-*+]|[0-9]{1,9}[.)])\s+(?:\[[ xX]\]\s+)?")
_TIME = re.compile(r"\A(?:[01]?[0-9]|2[0-3]):[0-5][0-9]\s+(?=\S)")

_FILLER_WORDS = """
    a an the this that these those is are was were be been being am do does did has have had will
    would can could shall should may might and or but so too also again still just really very
    quite rather of to in on at for with by from as it its he she they we i you his her their our
    my your there here then than now today please once etc
    der die das den dem des ein eine einen einem einer eines und oder aber auch wieder noch ist
    sind war waren sein wird werden hat haben hatte zu im in am an auf für mit von vom bei beim
    zum zur als es er sie wir ich ihr ihre seine unser unsere mein meine hier dort dann jetzt
    nun heute bitte sehr doch
"""
_NEGATION_WORDS = """
    no not never none nothing nobody without neither nor cannot
    kein keine keinen keiner nicht nie niemals nichts niemand ohne weder
"""
_LIMIT_WORDS = """
    only until till unless except if when before after since while during between
    nur bis außer wenn falls bevor nachdem seit während zwischen
"""
_GERMAN_WORDS = "der das dem ein eine und oder ist sind nicht kein keine keinen mit von bei zum zur"
FILLERS = frozenset(_FILLER_WORDS.split())
NEGATIONS = frozenset(_NEGATION_WORDS.split())
LIMITS = frozenset(_LIMIT_WORDS.split())


class Wording(NamedTuple):
    """The words of a statement that make a difference."""

    words: frozenset[str]
    """The stems of its content words, numbers and names included."""
    numbers: frozenset[str]
    negations: frozenset[str]
    limits: frozenset[str]

    @property
    def size(self) -> int:
        """How many different words it has; too few say nothing without their surroundings."""
        return len(self.words) + len(self.negations) + len(self.limits)


@lru_cache(maxsize=20_000)
def wording(text: str) -> Wording:
    """Return the words of a statement that make a difference."""
    tokens = tokens_of(bare(text))
    return Wording(
        words=frozenset(
            stem(token)
            for token in tokens
            if token not in FILLERS and token not in NEGATIONS and token not in LIMITS
        ),
        numbers=frozenset(token for token in tokens if any(map(str.isdigit, token))),
        negations=frozenset(token for token in tokens if token in NEGATIONS),
        limits=frozenset(token for token in tokens if token in LIMITS),
    )


def tokens_of(text: str) -> list[str]:
    """Return the words and numbers of a text in lower case."""
    plain = _POSSESSIVE.sub("", _NOT.sub(" not", unicodedata.normalize("NFKC", text)))
    return [token.casefold() for token in _TOKEN.findall(plain)]


def stem(word: str) -> str:
    """Remove the most frequent English and German endings; numbers are unchanged."""
    if len(word) < 4 or any(map(str.isdigit, word)):
        return word
    for ending in ("ing", "ed", "en", "es", "er", "em", "s", "e", "n"):
        if word.endswith(ending) and len(word) - len(ending) >= 3 and not word.endswith("ss"):
            word = word[: -len(ending)]
            break
    is_doubled = len(word) > 3 and word[-1] == word[-2] and word[-1] not in "aeiouls"
    return word[:-1] if is_doubled else word


_GERMAN = frozenset(map(stem, _GERMAN_WORDS.split()))


def says_the_same(one: str, other: str) -> bool:
    """Whether two statements have the same content words."""
    first, second = wording(one), wording(other)
    return first == second and first.size >= FEWEST_WORDS and has_same_order(one, other)


def has_same_order(one: str, other: str) -> bool:
    """Whether names and numbers that two statements share are in the same order.

    The order of other words makes no difference, but "Ravi reports to Ines" does not say what
    "Ines reports to Ravi" says."""
    first, second = _ordered(one), _ordered(other)
    shared = {word for word in first.names | second.names if word in first.words}
    shared &= second.words.keys()
    left = [word for word in first.words if word in shared]
    right = [word for word in second.words if word in shared]
    if left == right:
        return True
    if not _GERMAN & first.words.keys() & second.words.keys():
        return False
    # In German every noun has a capital letter, and the order is free after the first place.
    is_same_start = next(iter(first.words)) == next(iter(second.words))
    return is_same_start and _numbers(left) == _numbers(right)


def _numbers(words: list[str]) -> list[str]:
    return [word for word in words if any(map(str.isdigit, word))]


def covers(longer: str, shorter: str) -> bool:
    """Whether a statement says everything that another one says.

    It does if it says the same, or if one of its sentences or its first clauses do: what follows a
    comma adds something, and what follows directly may limit it."""
    wanted = wording(shorter)
    if wanted.size < FEWEST_WORDS:
        return False
    if not wanted.words <= wording(longer).words:
        return False
    return wanted in part_wordings(longer) and has_same_order(longer, shorter)


@lru_cache(maxsize=20_000)
def part_wordings(text: str) -> frozenset[Wording]:
    """Return the wording of a statement and of each of its parts that says something alone."""
    return frozenset(map(wording, _parts(text)))


class _Ordered(NamedTuple):
    words: dict[str, None]
    """The stems of its words, in the order in which they first occur."""
    names: frozenset[str]
    """Those with a capital letter inside a sentence, and the numbers."""


@lru_cache(maxsize=20_000)
def _ordered(text: str) -> _Ordered:
    plain = _POSSESSIVE.sub("", unicodedata.normalize("NFKC", bare(text)))
    words, names = dict[str, None](), set[str]()
    for found in _TOKEN.finditer(plain):
        word = stem(found[0].casefold())
        words.setdefault(word)
        before = plain[max(0, found.start() - 3) : found.start()].rstrip()[-1:]
        is_inside = before not in ("", ".", "!", "?", ":")
        if (is_inside and found[0][0].isupper()) or any(map(str.isdigit, word)):
            names.add(word)
    return _Ordered(words, frozenset(names))


def _parts(text: str) -> Iterator[str]:
    """Yield a text, its sentences, and the beginnings of each sentence that end with a clause."""
    yield text
    for sentence in sentences(text):
        yield sentence
        rule = _RULE.match(sentence)
        if rule:
            yield sentence[rule.end() :]
        for end in islice(_CLAUSE_END.finditer(sentence, 0, LONGEST_SENTENCE), MOST_CLAUSES):
            yield sentence[: end.start()]


def sentences(text: str) -> list[str]:
    """Return the sentences of an entry, without bullet, time of day and line breaks."""
    plain = " ".join(bare(text).split())
    return [part for part in _SENTENCE_END.split(plain) if part.strip()]


def bare(text: str) -> str:
    """Return an entry without its bullet, box and time."""
    return _TIME.sub("", _BULLET.sub("", text.strip()))
