"""Images and audio files sent to a real server on loopback that speaks Gemini's language."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from embeddings import EmbeddingServer
from test_wire_shapes import make

from clawmark.embed.base import check_vectors
from clawmark.embed.media_file import MediaFile
from clawmark.embed.services.ledger import Ledger, OverBudget
from clawmark.embed.services.packing import media_tokens
from clawmark.embed.services.remote import RemoteEmbedder
from clawmark.model.errors import (
    EmbeddingMismatch,
    EmbeddingOverloaded,
    EmbeddingRejected,
    EmbeddingUnavailable,
)
from clawmark.net.circuit_breaker import Breaker
from clawmark.net.retry import TooLarge

KEY = "AIza-FAKE-planted-9f3c1e7ab2d84650"
HERON = MediaFile("Image file: heron.png", "image/png", b"\x89PNG\r\n\x1a\n" + b"\0heron")
CALL = MediaFile("Audio file: call.wav", "audio/wav", b"RIFF\x24\0\0\0WAVEfmt " + b"\0invoice")


@pytest.fixture
def server() -> Iterator[EmbeddingServer]:
    with EmbeddingServer(dims=3072, key=KEY) as made:
        yield made


@pytest.fixture
def embedder(server: EmbeddingServer) -> Iterator[Callable[..., RemoteEmbedder]]:
    made: list[RemoteEmbedder] = []

    def build(model: str = "gemini-embedding-2", **kept: Any) -> RemoteEmbedder:
        provider = make("gemini", {}, base_url=server.gemini_url, model=model, api_key=KEY)
        made.append(RemoteEmbedder(provider, sleep=lambda _: None, **kept))
        return made[-1]

    yield build
    for one in made:
        one.close()


def test_one_request_holds_several_files_and_gives_a_unit_vector_for_each(
    server: EmbeddingServer, embedder: Callable[..., RemoteEmbedder]
) -> None:
    one = embedder()
    assert one.traits.media
    vectors = one.embed_media([HERON, CALL])
    check_vectors(vectors, 2, one.identity)
    (request,) = server.requests
    assert (request.method, request.path) == (
        "POST",
        "/v1beta/models/gemini-embedding-2:batchEmbedContents",
    )
    assert request.headers["x-goog-api-key"] == KEY and KEY not in request.target
    assert json.loads(request.body) == {
        "requests": [
            {
                "model": "models/gemini-embedding-2",
                "content": {
                    "parts": [
                        {"text": file.label},
                        {
                            "inlineData": {
                                "mimeType": file.mime,
                                "data": base64.b64encode(file.data).decode(),
                            }
                        },
                    ]
                },
                "outputDimensionality": 3072,
            }
            for file in (HERON, CALL)
        ]
    }


def test_a_model_for_text_only_refuses_files_without_a_request(
    server: EmbeddingServer, embedder: Callable[..., RemoteEmbedder]
) -> None:
    one = embedder("gemini-embedding-001")
    assert not one.traits.media
    with pytest.raises(EmbeddingRejected, match="does not embed images or audio"):
        one.embed_media([HERON])
    assert server.requests == []


def test_files_are_counted_and_kept_within_the_days_budget(
    server: EmbeddingServer, embedder: Callable[..., RemoteEmbedder], tmp_path: Path
) -> None:
    ledger = Ledger(str(tmp_path / "ledger.json"), daily_tokens=media_tokens(HERON) + 10)
    one = embedder(ledger=ledger)
    with pytest.raises(TooLarge):
        one.embed_media([HERON, HERON])
    one.embed_media([HERON])
    with pytest.raises(OverBudget):
        one.embed_media([HERON])
    summary = ledger.summary()
    assert (summary.today_calls, summary.today_tokens) == (1, media_tokens(HERON))
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (400, EmbeddingRejected),
        (401, EmbeddingUnavailable),
        (413, TooLarge),
        (429, EmbeddingOverloaded),
        (500, EmbeddingOverloaded),
    ],
)
def test_a_failure_is_an_embedding_error_without_the_key(
    server: EmbeddingServer,
    embedder: Callable[..., RemoteEmbedder],
    status: int,
    error: type[Exception],
) -> None:
    server.spoil(status)
    with pytest.raises(error) as caught:
        embedder().embed_media([HERON])
    assert KEY not in str(caught.value)


def test_a_busy_service_is_asked_again(
    server: EmbeddingServer, embedder: Callable[..., RemoteEmbedder]
) -> None:
    server.script([503, 429, 200])
    assert len(embedder().embed_media([HERON])) == 1
    assert len(server.requests) == 3


def test_vectors_of_another_size_are_refused(
    server: EmbeddingServer, embedder: Callable[..., RemoteEmbedder], tmp_path: Path
) -> None:
    server.spoil("half-dims")
    with pytest.raises(EmbeddingMismatch, match="1536"):
        embedder(breaker=Breaker(str(tmp_path / "breaker.json"))).embed_media([HERON])


@pytest.mark.parametrize(
    ("file", "tokens"),
    [
        (HERON, 270),
        (CALL, 32),
        (
            CALL._replace(data=b"RIFF\0\0\0\0WAVEfmt " + b"\0" * 12 + b"\x10\0\0\0" + b"x" * 128),
            352,
        ),
        (MediaFile("x", "audio/mpeg", b"ID3" + b"\0" * 160_000), 352),
        (MediaFile("x", "audio/wav", b"RIFF\0\0\0\0WAVEfmt " + b"\0" * 16), 32),
    ],
)
def test_tokens_of_a_file_are_estimated(file: MediaFile, tokens: int) -> None:
    assert tokens <= media_tokens(file) <= tokens + 10
