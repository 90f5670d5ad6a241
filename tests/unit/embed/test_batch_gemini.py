"""Gemini's batch interface on the wire: where uploads go, how jobs are named, and in how many ways
they end.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from batch_desk import DIMS, KEY, Runs, make_texts
from embeddings import EmbeddingServer

from clawmark.embed.batch.calls import Calls
from clawmark.embed.batch.gemini import dialect, upload_base
from clawmark.net.client import HttpClient

TEXTS = make_texts(3)


@pytest.fixture
def runs(tmp_path: Path) -> Iterator[Runs]:
    with EmbeddingServer(key=KEY, dims=DIMS) as server:
        yield Runs(server, tmp_path, "gemini")


def test_uploads_have_an_address_of_their_own() -> None:
    google = "https://generativelanguage.googleapis.com"
    assert upload_base(f"{google}/v1beta") == f"{google}/upload/v1beta"
    assert upload_base("http://127.0.0.1:1/proxy/v1/") == "http://127.0.0.1:1/proxy/upload/v1"
    assert upload_base("http://127.0.0.1:1/gemini") == "http://127.0.0.1:1/gemini/upload"


def test_the_upload_has_a_part_about_the_file_and_a_part_of_requests(runs: Runs) -> None:
    runs(TEXTS)
    request = next(
        request for request in runs.server.requests if request.path == "/upload/v1beta/files"
    )
    assert request.query == "uploadType=multipart"
    assert request.headers["content-type"].startswith("multipart/related; boundary=")
    about, lines = (
        part.partition(b"\r\n\r\n")[2] for part in request.body.split(b"\r\n--clawmark-")[:2]
    )
    assert json.loads(about)["file"]["mimeType"] == "application/jsonl"
    assert [json.loads(line) for line in lines.splitlines()] == [
        {
            "key": hash_,
            "request": {
                "model": "models/gemini-embedding-001",
                "content": {"parts": [{"text": text}]},
                "taskType": "RETRIEVAL_DOCUMENT",
                "outputDimensionality": DIMS,
            },
        }
        for hash_, text in TEXTS.items()
    ]


def test_the_order_names_the_upload_and_the_output_is_downloaded_by_name(runs: Runs) -> None:
    runs(TEXTS)
    order = next(
        request for request in runs.server.requests if ":asyncBatchEmbedContent" in request.path
    )
    assert order.path == "/v1beta/models/gemini-embedding-001:asyncBatchEmbedContent"
    assert json.loads(order.body) == {
        "batch": {"displayName": "clawmark-memory-1", "inputConfig": {"file_name": "files/1"}}
    }
    assert any(
        request.target == "/v1beta/files/2:download?alt=media" for request in runs.server.requests
    )


def polled(runs: Runs, answer: dict[str, object]) -> Any:
    from behaviours import Behaviour

    runs.server.script([Behaviour(body=json.dumps(answer).encode())])
    client = HttpClient(runs.provider.base_url)
    try:
        return dialect(runs.provider).poll(
            Calls(
                provider=runs.provider, client=client, sleep=lambda seconds: None, clock=lambda: 0.0
            ),
            "1",
        )
    finally:
        client.close()


@pytest.mark.parametrize(
    "answer",
    [
        {"state": "SUCCEEDED", "outputConfig": {"file": "files/x"}},
        {"state": "COMPLETED", "outputConfig": {"fileId": "files/x"}},
        {
            "metadata": {"state": "BATCH_STATE_SUCCEEDED", "output": {"responsesFile": "files/x"}},
            "done": True,
        },
        {"metadata": {"state": "JOB_STATE_SUCCEEDED"}, "response": {"responsesFile": "files/x"}},
        {"done": True, "response": {"output": {"responsesFile": "files/x"}}},
        {"state": "DONE", "output": {"responsesFile": "x"}},
    ],
)
def test_the_output_is_found_wherever_it_is_named(runs: Runs, answer: dict[str, object]) -> None:
    job = polled(runs, answer)
    assert (job.state, job.output) == ("done", "x")


@pytest.mark.parametrize("state", ["FAILED", "CANCELLED", "CANCELED", "EXPIRED"])
def test_every_bad_end_is_known(runs: Runs, state: str) -> None:
    assert polled(runs, {"metadata": {"state": f"BATCH_STATE_{state}"}}).reason == state.lower()
    job = polled(
        runs, {"metadata": {"state": f"BATCH_STATE_{state}"}, "error": {"message": "quota"}}
    )
    assert (job.state, job.reason) == ("failed", f"{state.lower()}: quota")


def test_an_error_without_a_state_is_a_bad_end(runs: Runs) -> None:
    job = polled(runs, {"done": True, "error": {"code": 3, "message": "bad file"}})
    assert (job.state, job.reason) == ("failed", "failed: bad file")


def test_counts_in_quotes_are_counts(runs: Runs) -> None:
    stats = {
        "requestCount": "9",
        "successfulRequestCount": "4",
        "failedRequestCount": "1",
        "pendingRequestCount": "4",
    }
    job = polled(runs, {"metadata": {"state": "BATCH_STATE_RUNNING", "batchStats": stats}})
    assert (job.state, job.done, job.total) == ("running", 5, 9)


@pytest.mark.parametrize(
    "row",
    [
        {"key": "a", "embedding": {"values": [1.0]}},
        {"custom_id": "a", "response": {"embedding": {"values": [1.0]}}},
        {"request_id": "a", "response": {"embedding": {"values": [1.0]}}},
    ],
)
def test_a_line_is_known_by_any_of_its_names(runs: Runs, row: dict[str, object]) -> None:
    assert dialect(runs.provider).read(row) == ("a", [1.0], "")


@pytest.mark.parametrize(
    "row", [{"error": {"message": "no"}}, {"response": {"error": {"message": "no"}}}]
)
def test_an_error_in_a_line_is_reported(runs: Runs, row: dict[str, object]) -> None:
    assert dialect(runs.provider).read({"key": "a", **row}) == ("a", None, "no")


def test_batch_jobs_do_not_alternate_keys(runs: Runs) -> None:
    keys = ({"x-goog-api-key": "other"}, {"x-goog-api-key": "another"})
    runs.provider = runs.provider._replace(keys=keys)
    assert runs(TEXTS).vectors.keys() == TEXTS.keys()
    assert runs.server.tally.unauthorised == 0
