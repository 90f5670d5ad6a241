"""A reranker for tests, and the contract suite of the `Reranker` protocol.

`reranker_contract` tests any implementation, also third-party ones. `OverlapReranker` needs no
model: it scores by the share of the query's words that a text has."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence

from clawmark.embed.rerank.base import Reranker
from clawmark.model.errors import RerankError
from clawmark.testing.embedders import OTHER, PASSAGE, QUESTION, must

SECONDS = 30.0
ODD_TEXTS = (
    "",
    " \n\t ",
    "***",
    "😀 👩‍👩‍👧",
    "请问数据库",
    "a\x00b",
    "\ud800",
    "x" * 5_000,
    "word " * 5_000,
)


class OverlapReranker:
    """Scores by shared words, or raises `error` if it is set."""

    label = "overlap (testing)"

    def __init__(self, error: RerankError | None = None) -> None:
        self.error = error
        self.asked: list[tuple[str, tuple[str, ...]]] = []

    def rerank(self, query: str, texts: Sequence[str], *, seconds: float) -> list[float]:
        self.asked.append((query, tuple(texts)))
        if self.error is not None:
            raise self.error
        if texts and seconds <= 0:
            raise RerankError("No time is left.")
        return [overlap(query, text) for text in texts]


def overlap(query: str, text: str) -> float:
    """Return the share of the query's words that a text has."""
    wanted = _words(query)
    return len(wanted & _words(text)) / len(wanted) if wanted else 0.0


def reranker_contract(make: Callable[[], Reranker]) -> None:
    """Check the contract of `Reranker` on fresh instances; raise AssertionError if it is broken."""
    for check in CHECKS:
        check(make)


def _has_a_label(make: Callable[[], Reranker]) -> None:
    must(bool(make().label), "it has a label")


def _returns_one_score_per_text(make: Callable[[], Reranker]) -> None:
    reranker = make()
    must(reranker.rerank(QUESTION, [], seconds=SECONDS) == [], "no texts give no scores")
    texts = [OTHER, PASSAGE, OTHER, "short"]
    scores = reranker.rerank(QUESTION, texts, seconds=SECONDS)
    must(len(scores) == len(texts), "every text has a score")
    must(
        all(math.isfinite(score) and 0 <= score <= 1 for score in scores),
        "scores are numbers from 0 to 1",
    )
    must(abs(scores[0] - scores[2]) < 1e-6, "equal texts have equal scores")


def _ranks_the_answer_first(make: Callable[[], Reranker]) -> None:
    for texts in ([OTHER, PASSAGE], [PASSAGE, OTHER]):
        scores = dict(zip(texts, make().rerank(QUESTION, texts, seconds=SECONDS), strict=True))
        must(
            scores[PASSAGE] > scores[OTHER],
            "the answer has a higher score than another text, in any order",
        )


def _accepts_odd_texts(make: Callable[[], Reranker]) -> None:
    reranker = make()
    scores = reranker.rerank(QUESTION, ODD_TEXTS, seconds=SECONDS)
    must(
        len(scores) == len(ODD_TEXTS) and all(0 <= score <= 1 for score in scores),
        "odd texts have scores too",
    )
    for query in ODD_TEXTS[:-1]:
        must(
            len(reranker.rerank(query, [PASSAGE], seconds=SECONDS)) == 1,
            "odd questions are answered too",
        )


def _respects_the_deadline(make: Callable[[], Reranker]) -> None:
    try:
        make().rerank(QUESTION, [PASSAGE, OTHER], seconds=0.0)
    except RerankError:
        return
    raise AssertionError("contract broken: without time left it raises RerankError")


def _is_thread_safe(make: Callable[[], Reranker]) -> None:
    reranker = make()
    texts = [f"{PASSAGE} Number {number}." for number in range(6)]
    found: dict[str, list[float]] = {}

    def run(name: str) -> None:
        found[name] = reranker.rerank(QUESTION, texts, seconds=SECONDS)

    threads = [threading.Thread(target=run, args=(name,)) for name in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    expected = make().rerank(QUESTION, texts, seconds=SECONDS)
    for name in "ab":
        close = [abs(one - two) < 1e-4 for one, two in zip(found[name], expected, strict=True)]
        must(all(close), "two threads at once get the same scores as one")


CHECKS = (
    _has_a_label,
    _returns_one_score_per_text,
    _ranks_the_answer_first,
    _accepts_odd_texts,
    _respects_the_deadline,
    _is_thread_safe,
)


def _words(text: str) -> set[str]:
    return set("".join(letter if letter.isalnum() else " " for letter in text.lower()).split())
