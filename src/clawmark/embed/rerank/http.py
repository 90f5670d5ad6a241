"""Reranking services: Cohere, Jina and Voyage, and servers with one of their protocols.

One request holds the question and all passages; the response is a list of indexes with scores. It
is used only when it has exactly one finite score for every passage. After a failure the circuit
breaker refuses calls for a minute."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence

from clawmark.model.errors import EmbeddingError, EmbeddingUnavailable, RerankError
from clawmark.model.providers import rerank_facts
from clawmark.net.circuit_breaker import Breaker
from clawmark.net.client import HttpClient
from clawmark.net.headers import as_json, bearer, secrets_of
from clawmark.net.retry import Policy, send_with_retries
from clawmark.text.chunking.tokens import well_formed
from clawmark.text.secrets.redact import Redactor

MAX_TEXT = 8000
"""Characters of a passage that are sent; chunks are shorter."""


class HttpReranker:
    """Reranks with one model of one service."""

    def __init__(
        self,
        provider: str,
        model: str,
        base_url: str,
        key: str,
        *,
        breaker: Breaker | None = None,
        proxy: str = "",
    ) -> None:
        self._provider = provider
        self._facts = rerank_facts(provider)
        self._model = model
        self._secrets = secrets_of([key], {})
        self._breaker = breaker
        self._http = HttpClient(base_url, bearer(key), secrets=self._secrets, proxy=proxy)

    @property
    def label(self) -> str:
        return f"{self._model} ({self._provider})"

    def rerank(self, query: str, texts: Sequence[str], *, seconds: float) -> list[float]:
        if not texts:
            return []
        if seconds <= 0:
            raise RerankError(f"There was no time left for the reranker {self.label}.")
        self._check()
        body = {
            "model": self._model,
            "query": well_formed(query),
            "documents": [well_formed(text)[:MAX_TEXT] or " " for text in texts],
            self._facts.count_field: len(texts),
        }
        try:
            response = send_with_retries(
                lambda left: self._http.send("POST", "/rerank", as_json(body), seconds=left),
                Policy(attempts=1, total=seconds, each=seconds),
                provider=self._provider,
                model=self._model,
                redact=Redactor(self._secrets).clean,
            )
            scores = read_scores(response.body, self._facts.results_field, len(texts))
        except EmbeddingError as error:
            raise self._failed(error.message) from None
        except ValueError as error:
            raise self._failed(
                f"{self._provider} gave a response that cannot be used: {error}."
            ) from None
        if self._breaker is not None:
            self._breaker.succeeded()
        return scores

    def close(self) -> None:
        self._http.close()

    def abort(self) -> None:
        self._http.abort()

    def _check(self) -> None:
        if self._breaker is None:
            return
        try:
            self._breaker.check(self._provider)
        except EmbeddingUnavailable:
            reason = self._breaker.reason().rstrip(".") or "it failed"
            raise RerankError(
                f"The reranker {self.label} failed a moment ago and is not used for a minute: "
                f"{reason}.",
                hint=_HINT,
            ) from None

    def _failed(self, message: str) -> RerankError:
        if self._breaker is not None:
            self._breaker.failed(message)
        return RerankError(message, hint=_HINT)


_HINT = (
    "Hits are in the order of the search itself. Check "
    "memorySearch.query.rerank, its key and its timeoutMs."
)


def read_scores(body: bytes, field: str, count: int) -> list[float]:
    """Return the scores in the order of the texts; raise ValueError unless each text has one."""
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError):
        raise ValueError("it is not JSON") from None
    results = answer.get(field) if isinstance(answer, dict) else None
    if not isinstance(results, list):
        raise ValueError(f'it has no list "{field}"')
    if len(results) != count:
        raise ValueError(f"it has {len(results)} results for {count} passages")
    scores: dict[int, float] = {}
    for result in results:
        index = result.get("index") if isinstance(result, dict) else None
        score = result.get("relevance_score") if isinstance(result, dict) else None
        if (
            not isinstance(index, int)
            or isinstance(index, bool)
            or not 0 <= index < count
            or index in scores
        ):
            raise ValueError("an index in it is missing, out of range or there twice")
        if (
            isinstance(score, bool)
            or not isinstance(score, int | float)
            or not math.isfinite(score)
        ):
            raise ValueError("a score in it is not a finite number")
        scores[index] = min(1.0, max(0.0, float(score)))
    return [scores[number] for number in range(count)]
