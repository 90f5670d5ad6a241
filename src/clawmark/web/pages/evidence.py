"""What the search views show of a hit: its lines with the words of the query marked, where it came
from, and the factors that add up to its score."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from clawmark.engine.search.explain import score_of, sum_of
from clawmark.model.explanation import CandidateStory, Factor
from clawmark.model.provenance import Provenance
from clawmark.model.values import Hit
from clawmark.model.why_not import FACTOR_NAMES
from clawmark.text.keywords.query import query_terms
from clawmark.text.untrusted.origin_labels import without_comments
from clawmark.web.entries import TRUST_WORDS, how_written

MOST_MARKED = 40
MOST_WAYS = 2
"""Ways in which the entries of a passage were written that are named."""
_ENDINGS = re.compile(r"(?:ing|ed|es|e|s)$")
_BEGINS_LINE = re.compile(r"\s*(?:[-*+>|#]|[0-9]+[.)] |={3}|:{3})")
"""How a line begins that does not continue the one above: items, quotes, tables, headings."""
_STANDS_ALONE = re.compile(r"\s*(?:[|#]|.*  $)")
"""How a line looks that the one below does not continue."""
_CODE = re.compile(r"(?m)^\s*(?:```|~~~)|\A---$")
"""Code and front matter, whose lines stay as they are."""


class Piece(NamedTuple):
    """A piece of a line, and whether it is a word of the query."""

    text: str
    is_match: bool


class Line(NamedTuple):
    """A line of evidence; its number is empty where it continues the one above."""

    number: str
    pieces: tuple[Piece, ...]


class Sum(NamedTuple):
    """The factors of a candidate, what they add up to, and what changes that afterwards."""

    factors: tuple[Factor, ...]
    total: float
    is_confidence: bool
    """Whether the total becomes a confidence from 0 to 1; otherwise it is the score itself."""
    confidence: float
    after: tuple[str, ...]
    score: float


def lines_of(hit: Hit, query: str) -> tuple[Line, ...]:
    """Return the lines of a snippet, with their numbers where they are known."""
    parts = hit.snippet.split("\n…\n")
    ranges = hit.snippet_ranges if len(hit.snippet_ranges) == len(parts) else ()
    pattern = mark_pattern(query)
    lines = list[Line]()
    for place, part in enumerate(parts):
        number = f"L{ranges[place][0]}" if ranges else ""
        text = without_comments(part)
        is_prose = hit.source != "sessions" and not _CODE.search(text)
        for line in joined(text) if is_prose else text.split("\n"):
            if line.strip():
                lines.append(Line(number, marked(line, pattern)))
                number = ""
    return tuple(lines)


def joined(text: str) -> Sequence[str]:
    """Return the lines of a Markdown text, with paragraphs that were wrapped as one line each."""
    lines = list[str]()
    for line in text.split("\n"):
        above = lines[-1] if lines else ""
        is_new = not above.strip() or not line.strip() or _BEGINS_LINE.match(line)
        if is_new or _STANDS_ALONE.match(above):
            lines.append(line)
        else:
            lines[-1] = f"{above} {line.strip()}"
    return lines


def mark_pattern(query: str) -> re.Pattern[str] | None:
    """Return a pattern for the words that a search looks for, with other endings; None without."""
    words = {word for term in query_terms(query) for word in re.findall(r"\w+", term.text)}
    stems = {_ENDINGS.sub("", word) if len(word) > 4 else word for word in words}
    wanted = sorted((stem for stem in stems if len(stem) > 1), key=len, reverse=True)[:MOST_MARKED]
    if not wanted:
        return None
    return re.compile(rf"(?i)\b((?:{'|'.join(map(re.escape, wanted))})\w{{0,4}})\b")


def marked(line: str, pattern: re.Pattern[str] | None) -> tuple[Piece, ...]:
    """Cut a line into pieces; those that the pattern matches are words of the query."""
    pieces = pattern.split(line) if pattern is not None else [line]
    return tuple(Piece(text, number % 2 == 1) for number, text in enumerate(pieces) if text)


def origin_in_words(origin: Provenance | None) -> str:
    """Return whose words a passage has and how they were written: `yours, remembered`.

    If several wrote it, it says who is trusted least: `partly from outside, from a web page`."""
    if origin is None:
        return ""
    records = [one.origin for one in origin.origins]
    ways = dict.fromkeys(how_written(one) for one in records if one.trust == origin.trust)
    is_part = any(one.trust != origin.trust for one in records)
    whose = f"partly {TRUST_WORDS[origin.trust]}" if is_part else TRUST_WORDS[origin.trust]
    return ", ".join((whose, *list(ways)[:MOST_WAYS]))


def sum_up(story: CandidateStory) -> Sum:
    """Return the table of a candidate's score."""
    factors = tuple(
        factor._replace(name=FACTOR_NAMES.get(factor.name, factor.name))
        for factor in story.factors
        if factor.points or factor.name == "base"
    )
    is_confidence = any(factor.name == "base" for factor in story.factors)
    plain = story._replace(when=0.0, decay=1.0)
    return Sum(
        factors=factors,
        total=sum_of(story.factors),
        is_confidence=is_confidence,
        confidence=score_of(plain),
        after=tuple(_after(story)),
        score=story.score,
    )


def _after(story: CandidateStory) -> Sequence[str]:
    """Say what changes a score after its evidence has been added up."""
    changes = list[str]()
    if story.when:
        raised = score_of(story._replace(decay=1.0)) - score_of(story._replace(when=0.0, decay=1.0))
        changes.append(f"the question names its time: +{raised:.2f}")
    if story.decay != 1.0:
        changes.append(f"age: × {story.decay:.2f}")
    if story.rerank is not None:
        changes.append(f"the reranker gives {story.rerank:.2f}; it takes the score of its place")
    if story.stated != 1.0:
        changes.append(f"only {story.stated:.0%} of it is stated, the rest is asked")
    return changes
