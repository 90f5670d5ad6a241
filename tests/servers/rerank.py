"""A reranking service on loopback, in the languages of Cohere, Jina and Voyage, that scores by
shared words.

    with RerankServer("voyage", key="…") as server:
        ...  # server.url, server.requests; server.fault = "nan"

`fault` makes it misbehave: a status code as text (`401`), or one of the names in `_misbehave`.
"""

from __future__ import annotations

import json
import re
from types import TracebackType
from typing import Any

from loopback import Gone, Link, Loopback, Request, head

_FIELDS = {
    "cohere": ("top_n", "results"),
    "jina": ("top_n", "results"),
    "voyage": ("top_k", "data"),
}
FAULTS = (
    "short",
    "long",
    "twice",
    "negative",
    "range",
    "bool",
    "nan",
    "infinite",
    "text",
    "array",
    "html",
    "deep",
    "huge",
)
"""Answers that cannot be used; besides them there are `drip`, `hang`, `cut` and `reset`."""


class RerankServer:
    """One server; `key` is the only key it takes (any, when empty)."""

    def __init__(self, language: str, *, key: str = "") -> None:
        self.language = language
        self.key = key
        self.fault = ""
        self.requests: list[Request] = []
        self._loopback = Loopback(self._handle)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._loopback.port}/v1"

    def stop(self) -> None:
        """Refuse every connection from now on."""
        self._loopback.silence()

    def __enter__(self) -> RerankServer:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._loopback.close()

    def _handle(self, request: Request, link: Link) -> bool:
        self.requests.append(request)
        given = request.headers.get("authorization", "").removeprefix("Bearer ")
        if request.path != "/v1/rerank" or request.method != "POST":
            link.answer(404, b'{"message": "not found"}')
            return True
        if self.key and given != self.key:
            link.answer(401, json.dumps({"message": f"invalid api token {given}"}).encode())
            return True
        body = json.loads(request.body)
        limit, field = _FIELDS[self.language]
        if not {"model", "query", "documents", limit} <= body.keys() or body[limit] != len(
            body["documents"]
        ):
            link.answer(400, json.dumps({"message": f"bad request: {sorted(body)}"}).encode())
            return True
        if self.fault.isdigit():
            link.answer(int(self.fault), json.dumps({"message": f"refused for {given}"}).encode())
            return True
        scores = [_overlap(body["query"], text) for text in body["documents"]]
        results = [
            {"index": number, "relevance_score": score} for number, score in enumerate(scores)
        ]
        results.sort(key=lambda result: -result["relevance_score"])
        if self.fault:
            return _misbehave(self.fault, link, field, results)
        link.answer(200, json.dumps({"id": "1", field: results}).encode())
        return True


def _overlap(query: str, text: str) -> float:
    wanted, there = (set(re.findall(r"\w+", one.lower())) for one in (query, text))
    return len(wanted & there) / max(1, len(wanted))


def _misbehave(fault: str, link: Link, field: str, results: list[dict[str, Any]]) -> bool:
    body: bytes | None = None
    match fault:
        case "short":
            results = results[:-1]
        case "long":
            results = [*results, results[0]]
        case "twice":
            results[0] = {**results[0], "index": results[1]["index"]}
        case "negative" | "range":
            results[0] = {**results[0], "index": -1 if fault == "negative" else len(results)}
        case "bool":
            results[0] = {**results[0], "index": True}
        case "nan" | "infinite":
            body = json.dumps(
                {field: [*results[1:], {"index": results[0]["index"], "relevance_score": 0.5}]}
            ).encode()
            body = body.replace(b"0.5}]", b"NaN}]" if fault == "nan" else b"1e999}]")
        case "text":
            results[0] = {**results[0], "relevance_score": "0.9"}
        case "array":
            body = json.dumps(results).encode()
        case "html":
            body = b"<html>It works!</html>"
        case "deep":
            body = b"[" * 100_000
        case "huge":
            link.send(
                head(200, {"Content-Type": "application/json", "Content-Length": str(1 << 40)})
            )
            while True:
                link.send(b" " * (1 << 20))
        case "drip":
            link.send(head(200, {"Content-Type": "application/json", "Content-Length": "1000000"}))
            while True:
                link.send(b" ")
                link.wait(0.02)
        case "hang":
            link.wait(None)
            raise Gone
        case "cut":
            link.send(
                head(200, {"Content-Type": "application/json", "Content-Length": "500"})
                + b'{"results"'
            )
            return False
        case "reset":
            link.reset()
    link.answer(200, json.dumps({field: results}).encode() if body is None else body)
    return True
