"""Decide which hits of a search are worth recalling for a message that did not ask for them.

The best hit of a search may have nothing to do with the message. The larger the memory, the more
passages match a message by chance, unless they share rare words with it. So the odds of a hit are
lowered by the size of the memory, less so for each rare word.

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
"""Added to the log-odds: a passage is more likely to be about a message than to answer it."""
RARE, MOST_RARE = 0.4, 2.0
"""How much less the size of the memory counts for each rare word, and how many words count."""
MOST_SCORE = 0.99
"""Higher scores count as this."""
FEWEST_LETTERS = 5
"""A shorter message, such as "Do it", has no subject."""
_SMALL_TALK = """
    alright awesome continue cool correct done exactly excellent fine good great hello hey hi looks
    nice nope ok okay perfect proceed right sorry sounds stop sure thank thanks wait works wrong
    yeah yep yes
    accord bien danke genau gracias jawohl merci nein parfait passt perfecto perfekt prima super
    vale weiter
    好 好的 对 对的 可以 可 以 感谢 感 谢谢 谢 继续 继 续
"""


def says_something(message: str) -> bool:
    """Check whether a message has a subject: not a command, and more than small talk."""
    words = [term.text for term in query_terms(message) if term.text not in small_talk()]
    return not is_command(message) and sum(map(_letters, words)) >= FEWEST_LETTERS


@cache
def small_talk() -> frozenset[str]:
    """Return words to agree, refuse and greet, in lower case."""
    return frozenset(_SMALL_TALK.split())


def worth_recalling(found: Found, bar: float = BAR) -> list[Hit]:
    """Return the hits of an explained search that are about its message, best first."""
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
    """Return the confidence that a hit is about the message, in a memory of this many passages.

    BM25 divided by the weight of the rarest word is a number of rare words.
    """
    score = min(max(score, 1.0 - MOST_SCORE), MOST_SCORE)
    rare = min(MOST_RARE, bm25 / log(passages + e))
    bonus = bias_of(passages) - BIAS  # what a search adds to the scores of a small memory
    size = (1.0 - RARE * rare) * log(max(1, passages))
    log_odds = log(score / (1.0 - score)) + ABOUT - size - bonus
    return 1.0 / (1.0 + exp(-log_odds))


def _letters(word: str) -> int:
    """Count the letters of a word; a Chinese character counts as a short word."""
    return len(word) if word.isascii() else 4 * len(word)
