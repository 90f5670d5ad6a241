"""The loopback embedding server: each provider's language, the counters, and the ways it fails."""

from __future__ import annotations

import base64
import hashlib
import hmac
import http.client
import json
import math
import socket
import struct
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from behaviours import ACTS, MAKES, TRIES, behaviour
from embeddings import EmbeddingServer

BEARER = {"Authorization": "Bearer sk-test"}
GOOGLE = {"x-goog-api-key": "sk-test"}


@pytest.fixture
def server() -> Iterator[EmbeddingServer]:
    with EmbeddingServer(dims=64, key="sk-test", aws=("AKTEST", "hush"), second=0.01) as made:
        yield made


def ask(
    server: EmbeddingServer,
    path: str,
    body: object = None,
    headers: dict[str, str] | None = None,
    *,
    method: str = "",
    seconds: float = 5.0,
) -> tuple[int, bytes]:
    """One request on a connection of its own."""
    line = http.client.HTTPConnection("127.0.0.1", server.port, timeout=seconds)
    try:
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        line.request(
            method or ("GET" if body is None else "POST"),
            path,
            data,
            BEARER if headers is None else headers,
        )
        answer = line.getresponse()
        return answer.status, answer.read()
    finally:
        line.close()


def ask_json(
    server: EmbeddingServer, path: str, body: object = None, headers: dict[str, str] | None = None
) -> Any:
    status, data = ask(server, path, body, headers)
    assert status == 200, data
    return json.loads(data)


def embed(server: EmbeddingServer, *texts: str, **more: object) -> Any:
    answer = ask_json(
        server, "/v1/embeddings", {"model": "text-embedding-3-small", "input": texts, **more}
    )
    settle(server)
    return answer


def settle(server: EmbeddingServer) -> None:
    """Wait until the server has counted what it answered: it counts after the last byte, which a
    client may have first.
    """
    while not all(record.ended for record in server.tally.log):
        time.sleep(0.001)


def cosine(one: list[float], other: list[float]) -> float:
    return sum(a * b for a, b in zip(one, other, strict=True))


# --- languages ------------------------------------------------------------------------------------


def test_related_texts_are_near_and_unrelated_ones_are_not(server: EmbeddingServer) -> None:
    server.dims = 1536  # fewer dimensions make strangers meet
    rows = embed(
        server,
        "We chose the database PostgreSQL",
        "which databases were chosen",
        "tea at the harbour",
    )["data"]
    first, second, third = (row["embedding"] for row in rows)
    assert [row["index"] for row in rows] == [0, 1, 2]
    assert math.hypot(*first) == pytest.approx(1, abs=0.01)
    assert cosine(first, second) > 0.25 > cosine(first, third)
    assert embed(server, "We chose the database PostgreSQL")["data"][0]["embedding"] == first


def test_openai_gives_base64_and_fewer_dimensions_when_asked(server: EmbeddingServer) -> None:
    row = embed(server, "tea", encoding_format="base64", dimensions=32)["data"][0]
    numbers = struct.unpack("<32f", base64.b64decode(row["embedding"]))
    assert math.hypot(*numbers) == pytest.approx(1, abs=0.01)


def test_gemini_embeds_one_content_or_many(server: EmbeddingServer) -> None:
    path = "/v1beta/models/gemini-embedding-001"
    content = {
        "content": {"parts": [{"text": "tea"}]},
        "taskType": "RETRIEVAL_QUERY",
        "outputDimensionality": 16,
    }
    one = ask_json(server, f"{path}:embedContent", content, GOOGLE)
    assert len(one["embedding"]["values"]) == 16
    many = {"requests": [{**content, "model": "models/gemini-embedding-001"}] * 2}
    assert len(ask_json(server, f"{path}:batchEmbedContents", many, GOOGLE)["embeddings"]) == 2
    assert ask(server, f"{path}:batchEmbedContents", {"requests": [content]}, GOOGLE)[0] == 400


def test_ollama_lists_its_models_and_embeds_with_the_ones_it_has(server: EmbeddingServer) -> None:
    names = [model["name"] for model in ask_json(server, "/api/tags", headers={})["models"]]
    assert "nomic-embed-text:latest" in names
    found = ask_json(
        server, "/api/embed", {"model": "nomic-embed-text", "input": ["a cup", "of tea"]}, {}
    )
    assert [len(vector) for vector in found["embeddings"]] == [64, 64]
    assert ask(server, "/api/embed", {"model": "absent", "input": "tea"}, {})[0] == 404


def test_mistral_and_voyage_are_recognised_by_their_models(server: EmbeddingServer) -> None:
    ask_json(server, "/v1/embeddings", {"model": "mistral-embed", "input": ["tea"]})
    ask_json(
        server,
        "/v1/embeddings",
        {"model": "voyage-4-large", "input": ["tea"], "input_type": "query"},
    )
    assert server.tally.calls == {"mistral": 1, "voyage": 1}
    wrong = {"model": "voyage-4-large", "input": ["tea"], "input_type": "question"}
    assert ask(server, "/v1/embeddings", wrong)[0] == 400


def signed(server: EmbeddingServer, path: str, body: bytes, secret: str = "hush") -> dict[str, str]:
    """The headers of a signed request, made here with the letters of the specification and none of
    the server's code.
    """
    stamp, day = "20261115T120000Z", "20261115"
    host = f"127.0.0.1:{server.port}"
    names = "host;x-amz-date"
    uri = path.replace("%", "%25")
    canonical = (
        f"POST\n{uri}\n\nhost:{host}\nx-amz-date:{stamp}\n\n{names}\n"
        f"{hashlib.sha256(body).hexdigest()}"
    )
    scope = f"{day}/us-east-1/bedrock/aws4_request"
    text = f"AWS4-HMAC-SHA256\n{stamp}\n{scope}\n{hashlib.sha256(canonical.encode()).hexdigest()}"
    key = b"AWS4" + secret.encode()
    for part in scope.split("/"):
        key = hmac.digest(key, part.encode(), "sha256")
    signature = hmac.digest(key, text.encode(), "sha256").hex()
    credential = f"Credential=AKTEST/{scope}, SignedHeaders={names}, Signature={signature}"
    return {"Host": host, "X-Amz-Date": stamp, "Authorization": f"AWS4-HMAC-SHA256 {credential}"}


def test_bedrock_takes_right_signatures_only(server: EmbeddingServer) -> None:
    path = "/model/amazon.titan-embed-text-v2%3A0/invoke"
    body = json.dumps({"inputText": "tea", "dimensions": 256, "normalize": True}).encode()
    assert len(ask_json(server, path, body, signed(server, path, body))["embedding"]) == 256
    assert ask(server, path, body, signed(server, path, body, "guess"))[0] == 403
    assert ask(server, path, body + b" ", signed(server, path, body))[0] == 403
    path = "/model/cohere.embed-english-v3/invoke"
    body = json.dumps(
        {"texts": ["a", "b"], "input_type": "search_document", "truncate": "END"}
    ).encode()
    assert len(ask_json(server, path, body, signed(server, path, body))["embeddings"]) == 2
    body = json.dumps(
        {"texts": ["a"], "input_type": "search_query", "embedding_types": ["float"]}
    ).encode()
    assert len(ask_json(server, path, body, signed(server, path, body))["embeddings"]["float"]) == 1


def test_limits_are_the_providers_own(server: EmbeddingServer) -> None:
    def status(**body: object) -> int:
        return ask(server, "/v1/embeddings", {"model": "text-embedding-3-small", **body})[0]

    assert status(input=["x"] * 2048) == 200
    assert status(input=["x"] * 2049) == 400
    assert status(input=["x" * 40_000]) == 400
    assert status(input=["x" * 30_000] * 50) == 400
    assert status(input=[]) == status(input=["tea", " "]) == status(input=7) == 400
    assert ask(server, "/v1/embeddings", b"{")[0] == ask(server, "/v1/embeddings", b"[]")[0] == 400
    assert ask(server, "/nowhere")[0] == 404


# --- keys and counters ----------------------------------------------------------------------------


def test_a_wrong_key_is_refused_and_one_in_the_url_is_counted(server: EmbeddingServer) -> None:
    body = {"model": "text-embedding-3-small", "input": ["tea"]}
    status, said = ask(server, "/v1/embeddings", body, {"Authorization": "Bearer sk-other"})
    assert (status, b"sk-other" in said) == (401, True)
    assert ask(server, "/v1/embeddings", body, GOOGLE)[0] == 200
    ask(server, "/v1/embeddings?key=sk-test", body)
    assert (server.tally.unauthorised, server.tally.keys_in_url) == (1, 1)


def test_only_texts_that_were_answered_rightly_count_as_repeated(server: EmbeddingServer) -> None:
    server.script([500, "one-nan", 200])
    ask(server, "/v1/embeddings", {"model": "text-embedding-3-small", "input": ["tea", "harbour"]})
    embed(server, "tea", "harbour")
    embed(server, "tea", "harbour")
    assert server.tally.repeated == []
    embed(server, "tea", "router")
    assert server.tally.repeated == ["tea"]
    assert server.tally.times_sent("tea") == 4
    stats = ask_json(server, "/stats")
    assert (
        stats["requests"],
        stats["texts"],
        stats["distinct_texts"],
        stats["repeated_texts"],
    ) == (4, 8, 3, 1)
    assert ask(server, "/reset", b"")[0] == 200
    assert ask_json(server, "/stats")["requests"] == 0


def test_requests_in_flight_and_busy_time_are_measured() -> None:
    with EmbeddingServer(dims=8, delay=0.5) as server:
        threads = [
            threading.Thread(target=embed, args=(server, f"text {number}")) for number in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert 1 < server.tally.most_in_flight <= 4
        assert 0 < server.tally.busy_wall_seconds <= server.tally.busy_seconds


def test_an_abandoned_answer_is_discarded() -> None:
    with EmbeddingServer(dims=8, delay=0.2) as server:
        with pytest.raises(TimeoutError):
            ask(server, "/v1/embeddings", {"model": "m", "input": ["tea"]}, seconds=0.05)
        while not (server.tally.log and server.tally.log[0].ended):
            time.sleep(0.01)
        assert not server.tally.has_answered("tea")


# --- faults ---------------------------------------------------------------------------------------

COMPLETE = {"ok-after-20-s", "content-length-too-small", "gzip-header-plain-body"}
"""Acts that look like a whole answer to a client that knows no better than `http.client`."""


@pytest.mark.parametrize("make", sorted(MAKES))
@pytest.mark.parametrize("count", [1, 3])
def test_every_spoiled_answer_is_json_and_differs_from_the_right_one(
    server: EmbeddingServer, make: str, count: int
) -> None:
    texts = [f"tea {number}" for number in range(count)]
    right = embed(server, *texts)
    server.spoil(make)
    spoiled = embed(server, *texts)
    alone = count == 1 and make in ("reverse-order", "all-the-same-vector")
    assert (json.dumps(spoiled) == json.dumps(right)) == (make == "ok" or alone)


@pytest.mark.parametrize("act", sorted({*ACTS, "never-accept", "nothing-listens"}))
def test_every_bad_connection_ends_badly_and_heals(server: EmbeddingServer, act: str) -> None:
    body = {"model": "text-embedding-3-small", "input": ["tea"]}
    server.spoil(act)
    if act in COMPLETE:
        ask(server, "/v1/embeddings", body)
    elif act == "one-byte-a-second":
        server.second = 60.0
        with pytest.raises(TimeoutError):
            ask(server, "/v1/embeddings", body, seconds=0.1)
    elif act in ("gzip-10-MB-to-10-GB", "endless-body", "1xx-for-ever"):
        assert first_bytes(server, 20_000)
    else:
        with pytest.raises((OSError, OverflowError, http.client.HTTPException)):
            ask(server, "/v1/embeddings", body, seconds=0.2)
    server.heal()
    assert embed(server, "tea")["data"]


def first_bytes(server: EmbeddingServer, count: int) -> bytes:
    """The start of an answer that does not end."""
    body = b'{"model":"m","input":["tea"]}'
    with socket.create_connection(("127.0.0.1", server.port), timeout=5) as line:
        head = (
            f"POST /v1/embeddings HTTP/1.1\r\nAuthorization: Bearer "
            f"sk-test\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        line.sendall(head.encode() + body)
        got = b""
        while len(got) < min(count, 5000):
            got += line.recv(4096)
    return got


def test_a_compressed_bomb_is_small_on_the_wire_and_large_behind_it(
    server: EmbeddingServer,
) -> None:
    import zlib

    server.spoil("gzip-10-MB-to-10-GB")
    body = first_bytes(server, 5000).partition(b"\r\n\r\n")[2]
    assert len(zlib.decompressobj(31).decompress(body)) > 100 * len(body)


def test_tries_depend_on_how_many_came_and_how_large_they_are(server: EmbeddingServer) -> None:
    def statuses(behave: str, *sizes: int) -> list[int]:
        server.spoil(behave)
        body = {"model": "text-embedding-3-small"}
        return [
            ask(server, "/v1/embeddings", {**body, "input": ["tea"] * size})[0] for size in sizes
        ]

    assert set(TRIES) == {
        "fails-every-third",
        "413-over-16-inputs",
        "400-too-many-inputs-worded-otherwise",
    }
    assert statuses("fails-every-third", 1, 1, 1, 1, 1, 1) == [200, 200, 500, 200, 200, 500]
    assert statuses("413-over-16-inputs", 16, 17) == [200, 413]
    assert statuses("400-too-many-inputs-worded-otherwise", 16, 17) == [200, 400]


def test_a_custom_answer_echoes_the_key_and_the_address(server: EmbeddingServer) -> None:
    server.spoil({"status": 401, "headers": {"Location": "{SELF}"}, "body": "wrong: {KEY}"})
    line = http.client.HTTPConnection("127.0.0.1", server.port, timeout=5)
    line.request("POST", "/v1/embeddings", b'{"model":"m","input":["tea"]}', BEARER)
    answer = line.getresponse()
    assert (answer.status, answer.read()) == (401, b"wrong: sk-test")
    assert answer.getheader("Location") == f"{server.url}/embeddings"
    line.close()


def test_an_unknown_behaviour_is_a_mistake_of_the_test() -> None:
    with pytest.raises(ValueError, match="no such behaviour"):
        behaviour("dance")


# --- batches --------------------------------------------------------------------------------------


def form(boundary: str, *parts: tuple[str, bytes]) -> bytes:
    lines = b"".join(
        f"--{boundary}\r\n{head}\r\n\r\n".encode() + body + b"\r\n" for head, body in parts
    )
    return lines + f"--{boundary}--\r\n".encode()


def upload(server: EmbeddingServer, lines: list[dict[str, Any]]) -> str:
    data = "\n".join(json.dumps(line) for line in lines).encode()
    purpose = ('Content-Disposition: form-data; name="purpose"', b"batch")
    file = (
        'Content-Disposition: form-data; name="file"; filename="a.jsonl"\r\nContent-Type: '
        "application/jsonl",
        data,
    )
    headers = {**BEARER, "Content-Type": "multipart/form-data; boundary=xyz"}
    return str(ask_json(server, "/v1/files", form("xyz", purpose, file), headers)["id"])


def openai_lines(count: int) -> list[dict[str, Any]]:
    body = {"model": "text-embedding-3-small"}
    shape = {"method": "POST", "url": "/v1/embeddings"}
    return [
        {"custom_id": str(at), **shape, "body": {**body, "input": f"text {at}"}}
        for at in range(count)
    ]


def finished(server: EmbeddingServer, path: str, headers: dict[str, str]) -> Any:
    """Ask after a job until it has ended."""
    for _ in range(10):
        job = ask_json(server, path, headers=headers)
        if job.get("status", "completed") not in (
            "validating",
            "in_progress",
            "finalizing",
        ) and job.get("done", True):
            return job
    raise AssertionError(f"the job never ended: {job}")


@pytest.mark.parametrize("provider", ["openai", "voyage"])
def test_a_batch_gives_every_line_its_vector(server: EmbeddingServer, provider: str) -> None:
    lines: list[dict[str, Any]] = openai_lines(5)
    given: dict[str, Any] = {"endpoint": "/v1/embeddings", "completion_window": "24h"}
    if provider == "voyage":
        lines = [
            {"custom_id": line["custom_id"], "body": {"input": [line["body"]["input"]]}}
            for line in lines
        ]
        params = {"model": "voyage-4-large", "input_type": "document"}
        given = {"endpoint": "/v1/embeddings", "completion_window": "12h", "request_params": params}
    job = ask_json(server, "/v1/batches", {**given, "input_file_id": upload(server, lines)})
    assert job["status"] == "validating"
    job = finished(server, f"/v1/batches/{job['id']}", BEARER)
    status, output = ask(server, f"/v1/files/{job['output_file_id']}/content")
    rows = [json.loads(line) for line in output.splitlines()]
    assert status == 200
    assert sorted(row["custom_id"] for row in rows) == ["0", "1", "2", "3", "4"]
    by_name = {row["custom_id"]: row["response"]["body"]["data"][0]["embedding"] for row in rows}
    assert by_name["3"] == embed(server, "text 3")["data"][0]["embedding"]
    assert server.tally.repeated == ["text 3"]


def test_a_gemini_batch_is_an_operation_with_a_file_of_responses(server: EmbeddingServer) -> None:
    request = {"content": {"parts": [{"text": "tea"}]}, "taskType": "RETRIEVAL_DOCUMENT"}
    lines = "\n".join(json.dumps({"key": str(at), "request": request}) for at in range(3)).encode()
    parts = (
        ("Content-Type: application/json", b'{"file":{}}'),
        ("Content-Type: application/jsonl", lines),
    )
    headers = {**GOOGLE, "Content-Type": "multipart/related; boundary=xyz"}
    file = ask_json(
        server, "/upload/v1beta/files?uploadType=multipart", form("xyz", *parts), headers
    )["file"]["name"]
    batch = {"batch": {"displayName": "x", "inputConfig": {"fileName": file}}}
    job = ask_json(
        server, "/v1beta/models/gemini-embedding-001:asyncBatchEmbedContent", batch, GOOGLE
    )
    assert job["metadata"]["state"] == "BATCH_STATE_PENDING"
    for _ in range(3):
        job = ask_json(server, f"/v1beta/{job['name']}", headers=GOOGLE)
    assert (job["done"], job["metadata"]["state"]) == (True, "BATCH_STATE_SUCCEEDED")
    output = ask(
        server,
        f"/v1beta/{job['metadata']['output']['responsesFile']}:download?alt=media",
        headers=GOOGLE,
    )[1]
    rows = [json.loads(line) for line in output.splitlines()]
    assert {row["key"] for row in rows} == {"0", "1", "2"}
    assert len(rows[0]["response"]["embedding"]["values"]) == 64


@pytest.mark.parametrize(
    "outcome", ["failed", "expired", "cancelled", "some-lines-fail", "some-lines-missing"]
)
def test_a_batch_can_end_in_every_other_way(server: EmbeddingServer, outcome: str) -> None:
    server.jobs.script([outcome])
    given = {
        "endpoint": "/v1/embeddings",
        "completion_window": "24h",
        "input_file_id": upload(server, openai_lines(5)),
    }
    job = finished(server, f"/v1/batches/{ask_json(server, '/v1/batches', given)['id']}", BEARER)
    if outcome.startswith("some"):
        rows = ask(server, f"/v1/files/{job['output_file_id']}/content")[1].splitlines()
        assert (job["status"], len(rows)) == ("completed", 3)
        assert bool(job["error_file_id"]) == (outcome == "some-lines-fail")
    else:
        assert (job["status"], job["output_file_id"]) == (outcome, None)
        assert server.tally.snapshot()["answered_texts"] == 0


def test_jobs_are_listed_newest_first_and_files_can_be_deleted(server: EmbeddingServer) -> None:
    file = upload(server, openai_lines(2))
    given = {"endpoint": "/v1/embeddings", "completion_window": "24h", "input_file_id": file}
    made = [ask_json(server, "/v1/batches", given)["id"] for _ in range(2)]
    assert [job["id"] for job in ask_json(server, "/v1/batches?limit=10")["data"]] == made[::-1]
    assert ask_json(server, "/v1beta/batches?pageSize=10", headers=GOOGLE) == {"operations": []}
    assert ask(server, f"/v1/files/{file}", method="DELETE")[0] == 200
    assert server.jobs.deleted == [file]
    assert ask(server, f"/v1/files/{file}/content")[0] == 404
