"""OpenAI's batch interface on the wire: what goes up, what is ordered, how its words are
understood.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from batch_desk import DIMS, KEY, Runs, make_texts
from embeddings import EmbeddingServer

from clawmark.embed.batch.calls import Calls, count, is_id, jsonl, multipart, part, split
from clawmark.embed.batch.openai import dialect
from clawmark.net.client import HttpClient

TEXTS = make_texts(3)


@pytest.fixture
def server() -> Iterator[EmbeddingServer]:
    with EmbeddingServer(key=KEY, dims=DIMS) as server:
        yield server


@pytest.fixture
def runs(server: EmbeddingServer, tmp_path: Path) -> Runs:
    return Runs(server, tmp_path)


def sent(server: EmbeddingServer, method: str, path: str) -> Any:
    return next(
        request for request in server.requests if (request.method, request.path) == (method, path)
    )


def test_the_upload_is_a_form_with_the_purpose_and_a_file_of_lines(
    server: EmbeddingServer, runs: Runs
) -> None:
    runs(TEXTS)
    request = sent(server, "POST", "/v1/files")
    assert request.headers["content-type"].startswith("multipart/form-data; boundary=")
    purpose, file = request.body.split(b"\r\n--clawmark-")[:2]
    assert purpose.endswith(b'name="purpose"\r\n\r\nbatch')
    assert b'name="file"; filename="memory-embeddings.' in file
    lines = [json.loads(line) for line in file.partition(b"\r\n\r\n")[2].splitlines()]
    assert lines == [
        {
            "custom_id": hash_,
            "method": "POST",
            "url": "/v1/embeddings",
            "body": {"model": "text-embedding-3-small", "input": [text], "dimensions": DIMS},
        }
        for hash_, text in TEXTS.items()
    ]


def test_the_order_names_the_upload_and_a_day(server: EmbeddingServer, runs: Runs) -> None:
    runs(TEXTS)
    order = json.loads(sent(server, "POST", "/v1/batches").body)
    assert order == {
        "input_file_id": "file-1",
        "endpoint": "/v1/embeddings",
        "completion_window": "24h",
        "metadata": {"source": "clawmark-memory"},
    }


def test_upload_lines_are_ascii(runs: Runs) -> None:
    line = dialect(runs.provider).line("ab" * 32, "Größe \u2028 \x85 \U0001f600 \n end")
    assert line.isascii()
    assert len(line.splitlines()) == 1
    assert json.loads(line)["body"]["input"] == ["Größe \u2028 \x85 \U0001f600 \n end"]


def polled(runs: Runs, answer: dict[str, object]) -> Any:
    from behaviours import Behaviour

    runs.server.script([Behaviour(body=json.dumps(answer).encode())])
    client = HttpClient(runs.provider.base_url)
    try:
        return dialect(runs.provider).poll(
            Calls(
                provider=runs.provider, client=client, sleep=lambda seconds: None, clock=lambda: 0.0
            ),
            "batch_1",
        )
    finally:
        client.close()


@pytest.mark.parametrize(
    "status", ["validating", "in_progress", "finalizing", "cancelling", "something new", None]
)
def test_what_is_not_over_is_under_way(runs: Runs, status: object) -> None:
    counts = {"total": 9, "completed": 3, "failed": 1}
    job = polled(runs, {"status": status, "request_counts": counts})
    assert (job.state, job.done, job.total) == ("running", 4, 9)


@pytest.mark.parametrize("status", ["failed", "expired", "cancelled", "canceled"])
def test_failure_is_explained_in_one_line(runs: Runs, status: str) -> None:
    answer = {
        "status": status,
        "errors": {"data": [{"code": "c", "message": "Enqueued\ntoken limit"}]},
    }
    job = polled(runs, {**answer, "output_file_id": "file-9"})
    assert (job.state, job.output, job.reason) == (
        "failed",
        "file-9",
        f"{status}: Enqueued token limit",
    )
    assert polled(runs, {"status": status}).reason == status


def test_a_completed_job_names_its_files(runs: Runs) -> None:
    job = polled(
        runs, {"status": "completed", "output_file_id": "file-1", "error_file_id": "file-2"}
    )
    assert (job.state, job.output, job.errors) == ("done", "file-1", "file-2")
    assert polled(runs, {"status": "completed", "output_file_id": None}).output == ""


@pytest.mark.parametrize(
    "row", [{"response": {"status_code": 429, "body": {}}}, {"error": {"code": "batch_expired"}}]
)
def test_an_error_in_a_line_is_reported(runs: Runs, row: dict[str, object]) -> None:
    answer = dialect(runs.provider).read({"custom_id": "a", **row})
    assert answer.id == "a"
    assert answer.error


@pytest.mark.parametrize(
    "body",
    [None, [], {"data": []}, {"data": [{}, {}]}, {"data": [7]}, {"data": {"embedding": [1.0]}}],
)
def test_a_line_without_one_vector_has_none(runs: Runs, body: object) -> None:
    row: dict[str, object] = {"custom_id": "a", "response": {"status_code": 200, "body": body}}
    assert dialect(runs.provider).read(row) == ("a", None, "")


def test_a_vector_in_base64_is_taken_like_one_in_numbers(runs: Runs) -> None:
    import base64
    import struct

    def packed(data: bytes) -> bytes:
        rows = [json.loads(line) for line in data.splitlines()]
        for row in rows:
            (one,) = row["response"]["body"]["data"]
            one["embedding"] = base64.b64encode(
                struct.pack(f"<{DIMS}f", *one["embedding"])
            ).decode()
        return b"".join(jsonl(row) for row in rows)

    plain = runs(TEXTS).vectors
    runs.desk.output = packed
    for hash_, vector in runs(TEXTS).vectors.items():
        assert memoryview(vector).cast("f").tolist() == pytest.approx(
            memoryview(plain[hash_]).cast("f").tolist()
        )


# --- the parts all dialects share


@pytest.mark.parametrize("size", [1, 2, 3, 7, 100])
def test_lines_are_the_same_however_they_arrive(size: int) -> None:
    body = b"one\ntwo\n\n" + b"x" * 50 + b"\nfour\n" + b"y" * 60
    pieces = [body[start : start + size] for start in range(0, len(body), size)]
    assert list(split(pieces, 40)) == [b"one", b"two", b"", b"four"]
    assert list(split(pieces, 60)) == body.split(b"\n")


@pytest.mark.parametrize(
    "name", ["", "a/b", "..", "a..b", "a b", "a?x", "a#", "é", ".hidden", "x" * 201, 7, None]
)
def test_id_with_path_characters_is_refused(name: object) -> None:
    assert not is_id(name)
    assert is_id("file-abc_1.2:3")


def test_numbers_of_requests_are_taken_as_they_come(runs: Runs) -> None:
    assert [count(value) for value in (7, "7", -1, "x", None, True, 1.5, 10**12, "9" * 30)] == [
        7,
        7,
        0,
        0,
        0,
        0,
        0,
        0,
        0,
    ]


def test_what_is_missing_on_the_way_is_nothing() -> None:
    assert part({"a": {"b": 1}}, "a", "b") == 1
    assert part({"a": [1]}, "a", "b") is part(None, "a") is None


def test_two_forms_have_different_borders() -> None:
    assert multipart("related", [])[0] != multipart("related", [])[0]
