"""Decides which hits of a search are worth recalling for a message that did not ask for them.

Takes the answer of a search, with its explanation; gives the hits to recall, often none. A search
ranks, and its best hit may still have nothing to do with the message. The larger the memory, the
more passages fit a message by chance, unless they share rare words with it. So the odds that the
search gives a hit are lowered by the size of the memory, less so for every rare word.

`bench/recall.py` measures it; `bench/results/recall.json` has the numbers.
"""

from __future__ import annotations

from functools import cache
from math import e, exp, log

from clawmark.agent.session.transcript_reader import is_command
from clawmark.engine.search.scoring import BIAS, bias_of
from clawmark.model.values import Found, Hit
from clawmark.text.keywords.query import query_terms

BAR = 0.5
"""The least confidence that a hit is about the message."""
ABOUT = 0.2
"""What the log-odds gain: a passage is more likely to be about a message than to answer it."""
RARE, MOST_RARE = 0.4, 2.0
"""How much less the size of the memory counts for each rare word, and how many of them count."""
MOST_SCORE = 0.99
"""A higher score says no more about a message that is not a question."""
FEWEST_LETTERS = 5
""""Do it" is about nothing that was written down."""
_NODS = """
    alright awesome continue cool correct done exactly excellent fine good great hello hey hi looks nice nope ok okay perfect
    proceed right sorry sounds stop sure thank thanks wait works wrong yeah yep yes
    accord bien danke genau gracias jawohl merci nein parfait passt perfecto perfekt prima super vale weiter
    好 好的 对 对的 可以 可 以 感谢 感 谢谢 谢 继续 继 续
"""
"""Words to nod or to shake one's head with; a message of nothing else is not about anything either.
"""


def says_something(message: str) -> bool:
    """Whether a message can be about something at all: no command to the host, and more than a nod."""
    telling = [word for word in _words(message) if word not in small_talk()]
    return not is_command(message) and sum(map(_letters, telling)) >= FEWEST_LETTERS


@cache
def small_talk() -> frozenset[str]:
    """The words to agree, to refuse and to greet with, in lower case."""
    return frozenset(_NODS.split())


def worth_recalling(found: Found, bar: float = BAR) -> list[Hit]:
    """The hits of an explained search that are about the message it was made from, best first."""
    if found.explanation is None:
        return []
    passages = found.explanation.passages
    bm25 = {story.outcome: story.bm25 for story in found.explanation.candidates}
    return [
        hit
        for rank, hit in enumerate(found.hits, 1)
        if confidence(hit.score, bm25.get(f"hit {rank}", 0.0), passages) >= bar
    ]


def confidence(score: float, bm25: float, passages: int) -> float:
    """How sure it is that a hit is about the message, in a memory of so many passages.

    BM25 divided by the most that a word's rarity gives is a number of rare words.
    """
    score = min(max(score, 1.0 - MOST_SCORE), MOST_SCORE)
    rare = min(MOST_RARE, bm25 / log(passages + e))
    small = (
        bias_of(passages) - BIAS
    )  # what a search allows a small memory, where anything may be asked for
    log_odds = (
        log(score / (1.0 - score)) + ABOUT - (1.0 - RARE * rare) * log(max(1, passages)) - small
    )
    return 1.0 / (1.0 + exp(-log_odds))


def _words(message: str) -> list[str]:
    return [term.text for term in query_terms(message)]


def _letters(word: str) -> int:
    """How much a word says: a character of Chinese says as much as a short word."""
    return len(word) if word.isascii() else 4 * len(word)
