"""Whether what a search found is worth putting before a model that did not ask for it.

In: the answer of a search, with its explanation, and the message it was made from. Out: the hits to recall, often none. A
search ranks, and always has a best; here nobody asked, so a passage has to be more than the best of many. Three things
count: how well it fits, how rare the message's words in it are, and how many chances there were for something to fit.

`bench/recall.py` measures it; `bench/results/recall.json` has the numbers.
"""

from __future__ import annotations

from functools import cache
from math import e, log

from clawmark.runtime.said import is_command
from clawmark.text.query import query_terms
from clawmark.types import Found, Hit

BAR = 0.33
"""The least confidence."""
RARE, MOST_RARE = 0.35, 3.0
"""What one rare word adds, and how many count: a pasted page meets something in any memory."""
CHANCE = 0.1
"""What is taken off each time there are e times as many chances."""
FEWEST_LETTERS = 5
""""Do it" is about nothing that was written down."""
_NODS = """
    alright awesome continue cool correct done exactly excellent fine good great hello hey hi looks nice nope ok okay perfect
    proceed right sorry sounds stop sure thank thanks wait works wrong yeah yep yes
    accord bien danke genau gracias jawohl merci nein parfait passt perfecto perfekt prima super vale weiter
    好 好的 对 对的 可以 可 以 感谢 感 谢谢 谢 继续 继 续
"""
"""Words to nod or to shake one's head with; a message of nothing else is not about anything either."""


def says_something(message: str) -> bool:
    """Whether a message can be about something at all: no command to the host, and more than a nod."""
    telling = [word for word in _words(message) if word not in small_talk()]
    return not is_command(message) and sum(map(_letters, telling)) >= FEWEST_LETTERS


@cache
def small_talk() -> frozenset[str]:
    """The words to agree, to refuse and to greet with, in lower case."""
    return frozenset(_NODS.split())


def worth_recalling(found: Found, message: str, bar: float = BAR) -> list[Hit]:
    """The hits of an explained search that are about the message, best first."""
    if found.explanation is None:
        return []
    passages, words = max(1, found.explanation.passages), max(1, len(_words(message)))
    bm25 = {story.outcome: story.bm25 for story in found.explanation.candidates}
    sure = [confidence(hit, bm25.get(f"hit {rank}", 0.0), passages, words) for rank, hit in enumerate(found.hits, 1)]
    return [hit for hit, how_sure in zip(found.hits, sure, strict=True) if how_sure >= bar]


def confidence(hit: Hit, bm25: float, passages: int, words: int) -> float:
    """How sure it is that a passage is about a message of so many words, in a memory of so many passages.

    BM25 as it is, and not relative to the best match, tells a rare word from a common one; divided by what a word of one
    single passage gets (every word counts twice, see `keyword_leg`), it is a number of rare words.
    """
    fit = max(hit.score, (hit.vector_score + hit.text_score) / 2)
    rare = min(MOST_RARE, bm25 / (2 * log(passages + e - 1)))
    return fit + RARE * rare - CHANCE * log(passages * words)


def _words(message: str) -> list[str]:
    return [term.text for term in query_terms(message)]


def _letters(word: str) -> int:
    """How much a word says: a character of Chinese says as much as a short word."""
    return len(word) if word.isascii() else 4 * len(word)
