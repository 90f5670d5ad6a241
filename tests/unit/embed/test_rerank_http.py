"""Reranking services: three languages, one contract, and answers that cannot be trusted."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from rerank import FAULTS, RerankServer

from clawmark.config.schema import RerankOptions
from clawmark.embed.rerank.base import make_reranker
from clawmark.embed.rerank.http import HttpReranker
from clawmark.model.errors import RerankError
from clawmark.model.providers import PROVIDERS, rerank_facts
from clawmark.net.circuit_breaker import Breaker
from clawmark.testing import reranker_contract

KEY = "rk-test-4f9aXb21Qz77Lm03"
TEXTS = ["tea in the morning", "PostgreSQL for billing", "soup in the hut"]


@pytest.fixture(params=[name for name, row in PROVIDERS.items() if row.rerank])
def server(request: pytest.FixtureRequest) -> Iterator[RerankServer]:
    with RerankServer(request.param, key=KEY) as made:
        yield made


@pytest.fixture
def cohere() -> Iterator[RerankServer]:
    with RerankServer("cohere", key=KEY) as made:
        yield made


MADE: list[HttpReranker] = []


@pytest.fixture(autouse=True)
def close_rerankers() -> Iterator[None]:
    yield
    while MADE:
        MADE.pop().close()


def reranker(
    server: RerankServer, *, key: str = KEY, breaker: Breaker | None = None
) -> HttpReranker:
    made = HttpReranker(
        provider=server.language,
        model=rerank_facts(server.language).model,
        base_url=server.url,
        key=key,
        breaker=breaker,
    )
    MADE.append(made)
    return made


def test_each_service_keeps_the_contract(server: RerankServer) -> None:
    reranker_contract(lambda: reranker(server))


def test_scores_come_back_in_the_order_of_the_texts(server: RerankServer) -> None:
    scores = reranker(server).rerank("which database for billing", TEXTS, seconds=10.0)
    assert scores == pytest.approx([0.0, 0.5, 0.0])
    body = json.loads(server.requests[-1].body)
    assert (body["query"], body["documents"]) == ("which database for billing", TEXTS)
    assert body["model"] == rerank_facts(server.language).model


@pytest.mark.parametrize("fault", FAULTS)
def test_unusable_response_is_an_error(cohere: RerankServer, fault: str) -> None:
    cohere.fault = fault
    with pytest.raises(RerankError) as raised:
        reranker(cohere).rerank("tea", TEXTS, seconds=10.0)
    assert "cohere" in raised.value.message and "\n" not in raised.value.message


@pytest.mark.parametrize("fault", ["401", "403", "404", "429", "500", "503", "cut", "reset"])
def test_a_refusal_is_an_error_without_the_key(cohere: RerankServer, fault: str) -> None:
    cohere.fault = fault
    with pytest.raises(RerankError) as raised:
        reranker(cohere).rerank("tea", TEXTS, seconds=10.0)
    assert KEY not in raised.value.message + raised.value.hint
    assert len(cohere.requests) == 1


@pytest.mark.parametrize("fault", ["hang", "drip"])
def test_slow_response_is_aborted_at_the_deadline(cohere: RerankServer, fault: str) -> None:
    cohere.fault = fault
    with pytest.raises(RerankError):
        reranker(cohere).rerank("tea", TEXTS, seconds=0.2)


def test_a_wrong_key_is_not_repeated(cohere: RerankServer) -> None:
    wrong = "rk-wrong-000000000000"
    with pytest.raises(RerankError) as raised:
        reranker(cohere, key=wrong).rerank("tea", TEXTS, seconds=10.0)
    assert wrong not in raised.value.message


def test_failed_service_is_not_used_for_a_minute(cohere: RerankServer, tmp_path: Path) -> None:
    now = [1000.0]
    breaker = Breaker(str(tmp_path / "state.json"), clock=lambda: now[0])
    asked = reranker(cohere, breaker=breaker)
    cohere.fault = "500"
    for _ in range(3):
        with pytest.raises(RerankError):
            asked.rerank("tea", TEXTS, seconds=10.0)
    assert len(cohere.requests) == 1
    cohere.fault, now[0] = "", now[0] + 120
    assert len(asked.rerank("tea", TEXTS, seconds=10.0)) == 3


def options(**given: Any) -> RerankOptions:
    return RerankOptions()._replace(**given)


def test_the_key_comes_from_the_configuration_or_the_environment(
    cohere: RerankServer, tmp_path: Path
) -> None:
    given = options(provider="cohere", base_url=cohere.url)
    for api_key, environ in (
        (KEY, {}),
        ("${MY_KEY}", {"MY_KEY": KEY}),
        ({"source": "env", "id": "MY_KEY"}, {"MY_KEY": KEY}),
        ("", {"CO_API_KEY": KEY}),
    ):
        made = make_reranker(given._replace(api_key=api_key), environ, str(tmp_path))
        assert len(made.rerank("tea", TEXTS, seconds=10.0)) == 3


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (options(provider="jina"), "JINA_API_KEY is not set"),
        (options(provider="voyage", api_key="${NOT_SET}"), "NOT_SET, which is not set"),
        (options(provider="cohere", api_key="ключ"), "characters that no key has"),
        (options(provider="cohere", api_key="k", base_url="ftp://x"), "baseUrl is refused"),
        (options(provider="onnx"), "no model is named"),
    ],
)
def test_what_is_missing_is_named(given: RerankOptions, message: str, tmp_path: Path) -> None:
    with pytest.raises(RerankError, match=message):
        make_reranker(given, {}, str(tmp_path))
