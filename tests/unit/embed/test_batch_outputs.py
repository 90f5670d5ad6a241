"""Outputs of batch jobs that are not what they should be: a bad line costs its own text and nothing
else.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from batch_desk import DIMS, KEY, Runs, make_texts
from embeddings import EmbeddingServer

TEXTS = make_texts(30)
HASHES = tuple(TEXTS)


@pytest.fixture
def server() -> Iterator[EmbeddingServer]:
    with EmbeddingServer(key=KEY, dims=DIMS) as server:
        yield server


@pytest.fixture
def runs(server: EmbeddingServer, tmp_path: Path) -> Runs:
    return Runs(server, tmp_path)


# --- outputs that are not what they should be


@pytest.mark.parametrize(
    "value",
    [
        "[]",
        "[0.0" + ",0.0" * (DIMS - 1) + "]",
        "[1.0]",
        "[1.0" + ",0.5" * DIMS + "]",
        "[NaN" + ",0.5" * (DIMS - 1) + "]",
        "[1e400" + ",0.5" * (DIMS - 1) + "]",
        "[1e39" + ",0.5" * (DIMS - 1) + "]",
        '["1.0"' + ",0.5" * (DIMS - 1) + "]",
        "[true" + ",0.5" * (DIMS - 1) + "]",
        "null",
        '"AAAA"',
        "{}",
        "[" * 5000,
    ],
)
def test_text_with_an_invalid_vector_is_left_to_a_plain_request(runs: Runs, value: str) -> None:
    bad = HASHES[3]

    def spoil(data: bytes) -> bytes:
        body = f'{{"data":[{{"embedding":{value}}}]}}'
        line = f'{{"custom_id":"{bad}","response":{{"status_code":200,"body":{body}}}}}'
        return (
            line.encode()
            + b"\n"
            + b"".join(row + b"\n" for row in data.splitlines() if bad.encode() not in row)
        )

    runs.desk.output = spoil
    runs.provider = runs.provider._replace(dims=DIMS)
    outcome = runs(TEXTS)
    if value.startswith("[1e39"):  # large, but it has a direction
        assert outcome.failed == ()
    else:
        assert outcome.failed == (bad,)
        assert len(runs.stored) == 29


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"null",
        b"[]",
        b"{",
        b"\xff\xfe",
        b'{"custom_id":7}',
        b'{"custom_id":"somebody else","response":{"body":{"data":[{"embedding":[1.0]}]}}}',
        b'{"error":{"message":"x"}}',
        b"x" * 2_000_000,
    ],
)
def test_broken_line_does_not_affect_other_lines(runs: Runs, line: bytes) -> None:
    runs.desk.output = lambda data: line + b"\n" + data.replace(b"\n", b"\n" + line + b"\n", 2)
    outcome = runs(TEXTS)
    assert outcome.vectors.keys() == TEXTS.keys()


def test_repeated_line_keeps_the_first_vector(runs: Runs) -> None:
    first = runs(TEXTS).vectors
    second = make_texts(30)
    runs.desk.output = lambda data: data + re_signed(data)
    assert runs(second).vectors == first


def re_signed(data: bytes) -> bytes:
    """The same lines with other vectors."""
    rows = [json.loads(line) for line in data.splitlines()]
    for row in rows:
        row["response"]["body"]["data"][0]["embedding"] = [1.0] * DIMS
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def test_the_size_of_the_vectors_is_learned_from_the_first(runs: Runs) -> None:
    runs.provider = runs.provider._replace(dims=0)
    assert {len(vector) for vector in runs(TEXTS).vectors.values()} == {4 * DIMS}


def test_a_download_that_breaks_is_begun_again(runs: Runs) -> None:
    runs.server.script(["close-before-content-length", "chunked-cut"], where="/content")
    outcome = runs(TEXTS)
    assert outcome.vectors.keys() == TEXTS.keys() == runs.stored.keys()


def test_an_output_that_cannot_be_read_now_is_read_by_the_next_run(runs: Runs) -> None:
    runs.server.script(["close-before-content-length"] * 3, where="/content")
    outcome = runs(TEXTS)
    assert (outcome.failed, outcome.waiting) == ((), HASHES)
    assert "could not be read" in outcome.reason
    runs.server.heal()
    assert runs(TEXTS).vectors.keys() == TEXTS.keys()
    assert len(runs.desk.jobs) == 1


def test_an_output_that_is_gone_is_left_to_plain_calls(runs: Runs) -> None:
    runs.server.script([404] * 3, where="/content")
    outcome = runs(TEXTS)
    assert (outcome.failed, outcome.waiting) == (HASHES, ())
    assert runs.state == []


def test_job_without_an_id_is_not_ordered_again(
    runs: Runs,
) -> None:
    from behaviours import Behaviour

    runs.server.script([Behaviour(body=b'{"id":"../../etc"}')], where="/v1/batches")
    outcome = runs(TEXTS)
    assert outcome.failed == HASHES
    assert outcome.reason == "openai answered without the id of a batch job."
