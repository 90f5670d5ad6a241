"""Remote embedders against a real server on loopback that speaks every provider's language."""

from __future__ import annotations

import json
import struct
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from embeddings import EmbeddingServer
from test_wire_shapes import KEYS, make

from clawmark.embed.services import ollama
from clawmark.embed.services.ledger import Ledger
from clawmark.embed.services.remote import RemoteEmbedder
from clawmark.embed.services.wire import Provider, RemoteOptions
from clawmark.model.errors import (
    EmbeddingError,
    EmbeddingOverloaded,
    EmbeddingRejected,
    EmbeddingUnavailable,
)
from clawmark.model.values import Vector
from clawmark.net.circuit_breaker import Breaker
from clawmark.net.client import HttpError
from clawmark.testing import embedder_contract
from clawmark.text.chunking.tokens import estimate_tokens

DIMS = {
    "openai": 1536,
    "voyage": 1024,
    "mistral": 1024,
    "gemini": 3072,
    "ollama": 768,
    "bedrock": 1024,
}
TEXTS = [f"note number {number} about subject {number % 7}" for number in range(40)]


@pytest.fixture
def server() -> Iterator[EmbeddingServer]:
    with EmbeddingServer(dims=1536) as made:
        yield made


@pytest.fixture
def embedder(server: EmbeddingServer) -> Iterator[Callable[..., RemoteEmbedder]]:
    """Makes embedders that speak to the server and never really sleep; they are closed when the
    test is over.
    """
    made: list[RemoteEmbedder] = []

    def build(name: str = "openai", **options: Any) -> RemoteEmbedder:
        kept = {key: options.pop(key) for key in ("breaker", "ledger") if key in options}
        pauses = options.pop("pauses", [])
        change = options.pop("change", lambda provider: provider)
        environ = options.pop("environ", KEYS)
        addresses = {"gemini": server.gemini_url, "ollama": server.root, "bedrock": server.root}
        provider: Provider = change(
            make(name, environ, base_url=addresses.get(name, server.url), **options)
        )
        made.append(RemoteEmbedder(provider, sleep=pauses.append, **kept))
        return made[-1]

    yield build
    for one in made:
        one.close()


def limited(**limits: int) -> Callable[[Provider], Provider]:
    def change(provider: Provider) -> Provider:
        return provider._replace(
            wire=provider.wire._replace(limits=provider.wire.limits._replace(**limits))
        )

    return change


def sizes(server: EmbeddingServer) -> list[int]:
    return [len(record.texts) for record in server.tally.log]


@pytest.mark.parametrize("name", DIMS)
def test_every_provider_keeps_the_contract(
    name: str, server: EmbeddingServer, embedder: Any
) -> None:
    server.dims = DIMS[name]
    server.key = {
        "openai": "sk-openai",
        "voyage": "pa-voyage",
        "mistral": "m-mistral",
        "gemini": "g-one",
    }.get(name, "")
    server.aws = ("AKIDEXAMPLE", "secret-secret")
    embedder_contract(lambda: embedder(name))
    assert server.tally.unauthorised == server.tally.keys_in_url == 0


def test_cohere_keeps_the_contract_with_a_signature(server: EmbeddingServer, embedder: Any) -> None:
    server.dims, server.aws = 1024, ("AKIDEXAMPLE", "secret-secret")
    embedder_contract(lambda: embedder("bedrock", model="cohere.embed-english-v3"))
    server.dims = 1536
    embedder_contract(lambda: embedder("bedrock", model="us.cohere.embed-v4:0"))
    assert server.tally.unauthorised == 0


def test_a_signature_with_another_secret_is_refused(server: EmbeddingServer, embedder: Any) -> None:
    server.dims, server.aws = 1024, ("AKIDEXAMPLE", "another")
    with pytest.raises(EmbeddingUnavailable, match="key was refused"):
        embedder("bedrock").embed_query("hello")


def test_base64_gives_the_same_vectors(embedder: Any) -> None:
    plain, packed = (
        embedder().embed_texts(TEXTS[:3]),
        embedder(encoding="base64").embed_texts(TEXTS[:3]),
    )
    for one, other in zip(plain, packed, strict=True):
        assert memoryview(one).cast("f").tolist() == pytest.approx(
            memoryview(other).cast("f").tolist(), abs=1e-6
        )


def test_identity_is_known_before_the_first_request(server: EmbeddingServer, embedder: Any) -> None:
    one = embedder()
    assert one.identity[:2] == ("openai", "text-embedding-3-small")
    assert one.identity.dims == 1536
    assert one.traits.label == "text-embedding-3-small (openai)"
    assert (one.traits.floor, one.traits.ceiling, one.traits.at_once) == (0.10, 0.60, 5)
    assert one.covers("数") and one.covers("7") and not one.covers("--- * ---")
    assert server.tally.log == []


def test_an_unknown_size_is_learned_once_and_holds(server: EmbeddingServer, embedder: Any) -> None:
    server.dims = 24
    one = embedder(model="my-model")
    assert one.identity.dims == 0
    one.embed_texts(["first"])
    assert one.identity.dims == 24
    assert sizes(server) == [1]
    server.dims = 12
    with pytest.raises(EmbeddingUnavailable, match="have 12 numbers instead of 24"):
        one.embed_texts(["a"])


def test_known_size_is_not_changed_by_a_wrong_response(
    server: EmbeddingServer, embedder: Any
) -> None:
    server.spoil("half-dims")
    one = embedder()
    with pytest.raises(EmbeddingUnavailable, match="have 768 numbers instead of 1536"):
        one.embed_texts(TEXTS)
    server.heal()
    assert len(one.embed_texts(TEXTS)) == 40


def test_texts_are_packed_by_what_the_service_takes(server: EmbeddingServer, embedder: Any) -> None:
    one = embedder(change=limited(texts=16))
    assert len(one.embed_texts(TEXTS)) == 40
    assert sizes(server) == [16, 16, 8]
    assert one.traits.most_texts == 16


def test_a_text_that_stands_twice_is_sent_once(server: EmbeddingServer, embedder: Any) -> None:
    first, second, third = embedder().embed_texts(["a b", "c d", "a b"])
    assert first == third != second
    assert sizes(server) == [2]


def test_what_is_too_large_is_halved_and_the_size_remembered(
    server: EmbeddingServer, embedder: Any
) -> None:
    server.spoil("413-over-16-inputs")
    one = embedder()
    vectors = one.embed_texts(TEXTS)
    assert sizes(server) == [40, 20, 10, 10, 10, 10]
    assert server.tally.repeated == []
    one.embed_texts([f"more {text}" for text in TEXTS])
    assert sizes(server)[6:] == [10, 10, 10, 10]
    server.heal()
    assert embedder().embed_texts(TEXTS) == vectors


def test_one_long_text_does_not_make_all_later_requests_small(
    server: EmbeddingServer, embedder: Any
) -> None:
    one = embedder(change=limited(text_tokens=12_000))
    one.embed_texts([*TEXTS[:15], "word " * 9000])
    one.embed_texts(TEXTS[15:])
    assert sizes(server)[-1] == 25


def test_limit_in_unusual_words_is_understood(server: EmbeddingServer, embedder: Any) -> None:
    server.spoil("400-too-many-inputs-worded-otherwise")
    assert len(embedder().embed_texts(TEXTS)) == 40
    assert server.tally.repeated == []


def test_one_text_that_is_too_long_is_cut_to_half_once(
    server: EmbeddingServer, embedder: Any
) -> None:
    one = embedder(change=limited(text_tokens=12_000))
    long = "word " * 9000  # 11,250 tokens where the server takes 8192
    vectors = one.embed_texts([long, "short"])
    assert [len(vector) for vector in vectors] == [6144, 6144]
    with pytest.raises(EmbeddingRejected, match="too large"):
        embedder(change=limited(text_tokens=0)).embed_texts(["word " * 16_000])


@pytest.mark.parametrize(
    ("fault", "why"),
    [
        ("one-fewer", "39 vectors for 40 texts"),
        ("one-more", "41 vectors for 40 texts"),
        ("empty-list", "0 vectors for 40 texts"),
        ("mixed-dims", "mixes vectors"),
        ("zero-dims", "empty vector"),
        ("one-nan", "NaN where a number"),
        ("one-infinity", "Infinity where a number"),
        ("one-null", "not a number"),
        ("one-string", "not a number"),
        ("one-bool", "not a number"),
        ("nested-lists", "not a number"),
        ("all-zero", "zeros"),
        ("1e308-values", "far too large"),
        ("duplicate-index", "each once"),
        ("index-out-of-range", "each once"),
        ("negative-index", "each once"),
        ("null-vector", "something else"),
        ("data-is-object", "no list of vectors"),
    ],
)
def test_wrong_response_is_refused_with_the_reason(
    server: EmbeddingServer, embedder: Any, fault: str, why: str, tmp_path: Path
) -> None:
    server.spoil(fault)
    with pytest.raises(
        EmbeddingUnavailable, match=f"openai gave a response that cannot be used: .*{why}"
    ):
        embedder(breaker=Breaker(str(tmp_path / "breaker"))).embed_texts(TEXTS)
    assert len(server.tally.log) == 1


def test_vectors_that_come_in_another_order_find_their_texts(
    server: EmbeddingServer, embedder: Any
) -> None:
    expected = embedder().embed_texts(TEXTS)
    server.spoil("reverse-order")
    assert embedder().embed_texts(TEXTS) == expected


def test_what_was_paid_before_another_request_failed_is_not_paid_again(
    server: EmbeddingServer, embedder: Any
) -> None:
    one = embedder(change=limited(texts=10))
    server.script([200, 200, 400])
    with pytest.raises(EmbeddingRejected):
        one.embed_texts(TEXTS)
    assert len(one.embed_texts(TEXTS)) == 40
    assert server.tally.repeated == []
    one.embed_texts(TEXTS[:10])
    assert server.tally.repeated == TEXTS[:10]  # kept for one call, not for ever


def test_passages_are_retried_more_often_than_queries(
    server: EmbeddingServer, embedder: Any
) -> None:
    pauses: list[float] = []
    one = embedder(pauses=pauses)
    server.script([500, 429, 503])
    assert len(one.embed_texts(["a"])) == 1
    assert len(pauses) == 3
    server.script([500, 503])
    with pytest.raises(EmbeddingOverloaded):
        one.embed_query("a")
    assert len(pauses) == 4


def test_the_next_key_is_tried_when_the_quota_of_one_is_used_up(
    server: EmbeddingServer, embedder: Any
) -> None:
    server.dims = 3072
    environ = {"GEMINI_API_KEYS": "key-one key-two key-three"}
    one = embedder("gemini", environ=environ)
    server.script(
        [429, {"status": 403, "headers": {}, "body": '{"error":{"message":"daily quota"}}'}]
    )
    one.embed_query("hello")
    one.embed_query("hello again")
    sent = [request.headers["x-goog-api-key"] for request in server.requests]
    assert sent == ["key-one", "key-two", "key-three", "key-three"]


def test_exhausted_quota_of_every_key_is_reported(server: EmbeddingServer, embedder: Any) -> None:
    pauses: list[float] = []
    server.spoil(429)
    with pytest.raises(EmbeddingOverloaded, match="status 429"):
        embedder(
            "gemini", environ={"GEMINI_API_KEYS": "key-one key-two"}, pauses=pauses
        ).embed_query("hello")
    assert len(server.requests) == 4
    assert len(pauses) == 1


def test_dead_provider_gets_one_request_per_minute(
    server: EmbeddingServer, embedder: Any, tmp_path: Path
) -> None:
    now = [1000.0]
    breaker = Breaker(str(tmp_path / "breaker"), clock=lambda: now[0])
    one = embedder(breaker=breaker)
    server.spoil("nothing-listens")
    with pytest.raises(EmbeddingUnavailable, match="cannot be used"):
        one.embed_query("a")
    server.heal()
    with pytest.raises(EmbeddingUnavailable, match="is asked again in"):
        one.embed_query("a")
    assert server.requests == []
    now[0] += 61
    one.embed_query("a")
    one.embed_query("b")
    assert sizes(server) == [1, 1]


def test_a_refused_request_does_not_count_as_a_dead_provider(
    server: EmbeddingServer, embedder: Any, tmp_path: Path
) -> None:
    one = embedder(breaker=Breaker(str(tmp_path / "breaker")))
    server.script([400])
    with pytest.raises(EmbeddingRejected):
        one.embed_query("a")
    one.embed_query("a")


def test_ledger_allows_before_and_records_after_a_request(
    server: EmbeddingServer, embedder: Any, tmp_path: Path
) -> None:
    ledger = Ledger(str(tmp_path / "ledger"), daily_tokens=500)
    one = embedder(ledger=ledger, change=limited(texts=10))
    one.embed_texts(TEXTS)
    found = ledger.summary()
    assert (found.today_calls, found.by_model[0].texts) == (4, 40)
    assert found.by_model[0].provider == "openai"
    with pytest.raises(EmbeddingUnavailable, match="budget"):
        one.embed_texts(["word " * 800])
    assert len(server.tally.log) == 4


def test_a_refused_request_takes_nothing_from_the_budget(
    server: EmbeddingServer, embedder: Any, tmp_path: Path
) -> None:
    ledger = Ledger(str(tmp_path / "ledger"), daily_tokens=sum(map(estimate_tokens, TEXTS)))
    one = embedder(ledger=ledger)
    server.script([413])
    assert len(one.embed_texts(TEXTS)) == 40


def test_keys_are_in_no_message(server: EmbeddingServer, embedder: Any) -> None:
    key = "sk-FAKE-planted-9f3c1e7ab2d84650"
    answers = [
        {
            "status": 200,
            "headers": {},
            "body": json.dumps({"error": {"message": f"bad {key} " + "x" * 300}}),
        },
        {"status": 200, "headers": {}, "body": json.dumps({"error": "x" * 225 + f" {key}"})},
        {
            "status": 401,
            "headers": {},
            "body": json.dumps({"error": f"Incorrect API key provided: {key}"}),
        },
        {
            "status": 400,
            "headers": {},
            "body": json.dumps({"error": f"Incorrect API key provided: {key}"}),
        },
    ]
    one = embedder(api_key=key)
    for answer in answers:
        server.script([answer])
        with pytest.raises(EmbeddingError) as caught:
            one.embed_query("a")
        for part in (key, key[:12]):
            assert part not in f"{caught.value!r} {caught.value.message} {caught.value.hint}"
    assert key not in repr(one) + repr(one.identity) + repr(one.traits)


def test_malformed_text_is_sent_well_formed(server: EmbeddingServer, embedder: Any) -> None:
    assert len(embedder().embed_texts(["", "  ", "a\ud800", "\ud83d"])) == 4
    for request in server.requests:
        request.body.decode("utf-8")
        assert b"\\ud8" not in request.body


def test_four_requests_and_a_query_run_at_the_same_time(
    server: EmbeddingServer, embedder: Any
) -> None:
    server.delay = 60.0
    one = embedder()
    found: dict[int, list[Vector]] = {}

    def run(number: int) -> None:
        found[number] = one.embed_texts([f"text {number}"])

    threads = [threading.Thread(target=run, args=(number,)) for number in range(7)]
    for thread in threads:
        thread.start()
    while server.tally.most_in_flight < 4:
        threads[0].join(0.01)
    server.delay = 0.0
    one.embed_query("who waits for whom?")
    assert (server.tally.most_in_flight, len(server.tally.log)) == (5, 5)
    server.release()
    for thread in threads:
        thread.join()
    assert found.keys() == set(range(7))
    assert server.tally.most_in_flight == 5


def test_a_closed_embedder_opens_again(embedder: Any) -> None:
    one = embedder()
    first = one.embed_query("a")
    one.close()
    assert one.embed_query("a") == first


def test_vectors_are_little_endian_floats_of_length_one(embedder: Any) -> None:
    vector = embedder().embed_query("hello there")
    assert sum(number * number for number in struct.unpack("<1536f", vector)) == pytest.approx(
        1.0, abs=1e-4
    )


def test_ollama_lists_its_models_that_embed(server: EmbeddingServer) -> None:
    options = RemoteOptions(base_url=server.url)
    assert ollama.list_models(options, {}) == ["nomic-embed-text:latest", "embeddinggemma:300m"]
    server.script([{"status": 200, "headers": {}, "body": '{"models":7}'}])
    with pytest.raises(ValueError, match="no list of models"):
        ollama.list_models(options, {})
    server.spoil("nothing-listens")
    with pytest.raises(HttpError):
        ollama.list_models(options, {})


def test_local_services_are_free_and_prices_hold_only_at_their_own_host(embedder: Any) -> None:
    assert embedder("ollama").price_per_million == 0
    assert embedder("openai").price_per_million is None
