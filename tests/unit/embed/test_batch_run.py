"""Batch jobs: what is handed in, what comes back, and what is left to plain calls."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path

import pytest
from batch_desk import DIMS, KEY, PROVIDERS, Runs, limit_jobs, make_texts
from embeddings import EmbeddingServer

from clawmark.embed.batch import collect as batch_collect
from clawmark.embed.batch.run import LOST_SECONDS, BatchOptions, run_batches
from clawmark.embed.services.ledger import Ledger
from clawmark.net.client import HttpClient

TEXTS = make_texts(30)
HASHES = tuple(TEXTS)


@pytest.fixture
def server() -> Iterator[EmbeddingServer]:
    with EmbeddingServer(key=KEY, dims=DIMS) as server:
        yield server


@pytest.fixture
def runs(server: EmbeddingServer, tmp_path: Path) -> Runs:
    return Runs(server, tmp_path)


# --- all goes well


@pytest.mark.parametrize("name", PROVIDERS)
def test_one_job_takes_the_whole_delta(server: EmbeddingServer, tmp_path: Path, name: str) -> None:
    runs = Runs(server, tmp_path, name)
    outcome = runs(TEXTS)
    assert (outcome.failed, outcome.reason, outcome.waiting) == ((), "", ())
    assert outcome.vectors.keys() == TEXTS.keys()
    assert outcome.vectors == runs.stored
    assert len(runs.desk.jobs) == 1
    assert server.tally.repeated == []


@pytest.mark.parametrize("name", PROVIDERS)
def test_a_vector_belongs_to_the_text_it_names_and_has_length_one(
    server: EmbeddingServer, tmp_path: Path, name: str
) -> None:
    from hashed import numbers

    runs = Runs(server, tmp_path, name)
    vectors = runs(TEXTS).vectors
    for hash_, text in TEXTS.items():
        found = memoryview(vectors[hash_]).cast("f").tolist()
        assert math.isclose(math.hypot(*found), 1.0, rel_tol=1e-5)
        assert found == pytest.approx([float(number) for number in numbers(text, DIMS)], abs=1e-3)


@pytest.mark.parametrize("name", PROVIDERS)
def test_the_key_is_in_the_headers_of_every_call_and_never_in_an_address(
    server: EmbeddingServer, tmp_path: Path, name: str
) -> None:
    Runs(server, tmp_path, name)(TEXTS)
    assert server.tally.unauthorised == server.tally.keys_in_url == 0
    where = "x-goog-api-key" if name == "gemini" else "authorization"
    assert all(KEY in request.headers[where] for request in server.requests)


@pytest.mark.parametrize("name", PROVIDERS)
def test_nothing_of_ours_stays_at_the_provider_or_on_disk(
    server: EmbeddingServer, tmp_path: Path, name: str
) -> None:
    runs = Runs(server, tmp_path, name)
    runs(TEXTS)
    assert runs.desk.files == {}
    assert runs.state == []


def test_job_is_polled_at_the_configured_interval_and_reports_progress(runs: Runs) -> None:
    runs.desk._looks = 4
    runs(TEXTS, poll_ms=1500)
    assert runs.slept == [1.5, 1.5, 1.5]
    assert runs.progress == [(0, 30), (30, 30)]


def test_more_texts_than_a_job_takes_make_more_jobs_two_at_a_time(
    runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit_jobs(monkeypatch, requests=8)
    outcome = runs(TEXTS)
    assert outcome.vectors.keys() == TEXTS.keys()
    assert [len(job.lines) for job in runs.desk.jobs.values()] == [8, 8, 8, 6]
    made = [
        request.method == "POST"
        for request in runs.server.requests
        if request.path == "/v1/batches" or "/batches/" in request.path
    ]
    assert made[:3] == [True, True, False]
    assert runs.progress[-1] == (30, 30)


def test_job_is_not_larger_than_the_provider_takes(
    runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit_jobs(monkeypatch, bytes=2000)
    assert runs(TEXTS).vectors.keys() == TEXTS.keys()
    sizes = [len(request.body) for request in runs.server.requests if request.path == "/v1/files"]
    assert len(sizes) == len(runs.desk.jobs) == 4
    assert max(sizes) < 2000 + 500  # the form around it


def test_vectors_are_stored_in_portions_as_they_arrive(runs: Runs) -> None:
    runs(make_texts(600))
    assert runs.portions == [256, 256, 88]


def test_an_output_beyond_32_mb_is_read_all_the_same(
    runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch_collect, "MAX_LINE_AVERAGE", 2 << 20)
    runs.desk.output = lambda data: b"\n".join([b" " * 1_000_000] * 40) + b"\n" + data
    assert runs(TEXTS).vectors.keys() == TEXTS.keys()


def test_an_output_that_never_ends_is_given_up_after_two_days(runs: Runs) -> None:
    runs.desk.output = lambda data: b"\n".join([b" " * 1_000_000] * 40)
    outcome = runs(TEXTS)
    assert (outcome.failed, outcome.waiting) == ((), HASHES)
    assert "the response is larger than 8 MB" in outcome.reason
    outcome = runs(TEXTS, now=1_790_000_000.0 + LOST_SECONDS + 1)
    assert (outcome.failed, outcome.waiting) == (HASHES, ())
    assert runs.state == []


# --- not worth it, not possible


def test_a_few_texts_are_left_to_plain_calls_and_nothing_is_sent(runs: Runs) -> None:
    outcome = runs(TEXTS, smallest=200)
    assert (outcome.vectors, outcome.failed, outcome.reason) == (
        {},
        HASHES,
        "30 texts are not worth a batch job.",
    )
    assert runs.server.requests == []
    assert not runs.folder.exists()


def test_batch_jobs_are_off_unless_configured(runs: Runs) -> None:
    outcome = runs(TEXTS, enabled=False)
    assert outcome.failed == HASHES
    assert "memorySearch.remote.batch.enabled" in outcome.reason
    assert runs.server.requests == []


def test_provider_without_batch_jobs_is_reported(runs: Runs) -> None:
    runs.provider = runs.provider._replace(name="mistral")
    assert runs(TEXTS)[1:3] == (HASHES, "mistral has no batch jobs.")


@pytest.mark.parametrize(
    ("name", "where"), [("openai", "/v1/files"), ("openai", "/v1/batches"), ("gemini", ":async")]
)
def test_an_address_without_batch_jobs_turns_them_off_at_once(
    server: EmbeddingServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, where: str
) -> None:
    limit_jobs(monkeypatch, requests=10)
    runs = Runs(server, tmp_path, name)
    server.script([404] * 9, where=where)
    outcome = runs(TEXTS)
    assert outcome.failed == HASHES
    assert (
        outcome.reason == f"Batch jobs are off for this run: {name} has no "
        f"batch jobs at this address (status 404)."
    )
    assert (
        sum(where in request.target for request in server.requests if request.method == "POST") == 1
    )
    assert runs.desk.uploads() == []


def test_a_folder_that_cannot_be_written_sends_nothing(runs: Runs) -> None:
    runs.folder.write_text("in the way")
    outcome = runs(TEXTS)
    assert outcome.failed == HASHES
    assert outcome.reason.startswith("The folder for batch jobs cannot be used")
    assert runs.server.requests == []


# --- jobs that fail


@pytest.mark.parametrize("name", PROVIDERS)
@pytest.mark.parametrize("state", ["failed", "expired", "cancelled"])
def test_a_job_that_ends_badly_is_left_to_plain_calls(
    server: EmbeddingServer, tmp_path: Path, name: str, state: str
) -> None:
    runs = Runs(server, tmp_path, name)
    runs.desk.script([state])
    outcome = runs(TEXTS)
    assert (outcome.vectors, outcome.failed, outcome.waiting) == ({}, HASHES, ())
    assert outcome.reason.startswith(f"A batch job of {name} failed ({state}")
    assert runs.state == []
    assert runs.desk.uploads() == []


def test_what_an_expired_job_did_before_is_kept(runs: Runs) -> None:
    runs.desk.script(["some-lines-missing"])
    runs.desk.ends_as = "expired"
    outcome = runs(TEXTS)
    assert len(outcome.vectors) == 20
    assert set(outcome.failed) == TEXTS.keys() - outcome.vectors.keys()
    assert "expired" in outcome.reason


@pytest.mark.parametrize("name", PROVIDERS)
@pytest.mark.parametrize("how", ["some-lines-fail", "some-lines-missing"])
def test_of_a_job_that_half_worked_the_good_half_is_kept(
    server: EmbeddingServer, tmp_path: Path, name: str, how: str
) -> None:
    runs = Runs(server, tmp_path, name)
    runs.desk.script([how])
    outcome = runs(TEXTS)
    assert outcome.vectors.keys() == {
        hash_ for number, hash_ in enumerate(HASHES) if number % 3 != 1
    }
    assert outcome.failed == HASHES[1::3]
    assert outcome.reason.startswith("10 of 30 texts came back from a batch job without a vector")
    assert runs.state == []


def test_job_without_any_vector_reports_the_reason(runs: Runs) -> None:
    def spoil(data: bytes) -> bytes:
        return b"".join(
            json.dumps(
                {
                    "custom_id": json.loads(line)["custom_id"],
                    "error": {"message": f"no such model {KEY}"},
                }
            ).encode()
            + b"\n"
            for line in data.splitlines()
        )

    runs.desk.output = spoil
    outcome = runs(TEXTS)
    assert outcome.failed == HASHES
    assert outcome.reason.startswith("A batch job of openai failed (no such model")
    assert KEY not in outcome.reason


def test_two_failures_in_a_row_turn_batch_jobs_off_for_the_run(
    runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit_jobs(monkeypatch, requests=5)
    runs.desk.script(["failed", "failed"])
    outcome = runs(TEXTS, concurrency=1)
    assert len(runs.desk.jobs) == 2
    assert outcome.failed == HASHES
    assert outcome.reason.startswith(
        "Batch jobs are off for this run: A batch job of openai failed (failed: the file"
    )


def test_a_success_between_two_failures_keeps_batch_jobs_on(
    runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit_jobs(monkeypatch, requests=5)
    runs.desk.script(["failed", "completed", "failed", "completed", "expired", "completed"])
    outcome = runs(TEXTS, concurrency=1)
    assert len(runs.desk.jobs) == 6
    assert len(outcome.vectors) == len(outcome.failed) == 15


def test_jobs_under_way_are_still_waited_for_when_others_failed_twice(
    runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit_jobs(monkeypatch, requests=10)
    runs.desk.script(["failed", "failed", "completed"])
    outcome = runs(TEXTS, concurrency=3)
    assert outcome.vectors.keys() == set(HASHES[20:])
    assert outcome.failed == HASHES[:20]


def test_an_upload_that_fails_twice_turns_batch_jobs_off(
    runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit_jobs(monkeypatch, requests=5)
    runs.server.script([400] * 9, where="/v1/files")
    outcome = runs(TEXTS)
    assert outcome.failed == HASHES
    assert runs.desk.jobs == {}
    assert outcome.reason.startswith(
        "Batch jobs are off for this run: openai refused the request (status 400)"
    )
    assert runs.state == []


def test_a_refused_key_is_named_without_the_key(runs: Runs) -> None:
    runs.server.key = "another"
    outcome = runs(TEXTS)
    assert outcome.failed == HASHES
    assert "the key was refused" in outcome.reason
    assert KEY not in outcome.reason


def test_busy_server_is_retried(runs: Runs) -> None:
    runs.server.script([503, 429], where="/v1/files")
    assert runs(TEXTS).vectors.keys() == TEXTS.keys()
    assert len(runs.desk.jobs) == 1


def test_lost_response_to_the_order_does_not_order_twice(runs: Runs) -> None:
    runs.server.script(["reset-after-headers"], where="/v1/batches")
    assert runs(TEXTS).vectors.keys() == TEXTS.keys()
    assert len(runs.desk.jobs) == 1


@pytest.mark.parametrize("name", PROVIDERS)
def test_an_order_that_was_refused_for_a_moment_is_given_again(
    server: EmbeddingServer, tmp_path: Path, name: str
) -> None:
    runs = Runs(server, tmp_path, name)
    server.script([503, 200, 503], where=":async" if name == "gemini" else "/v1/batches")
    assert runs(TEXTS).vectors.keys() == TEXTS.keys()
    assert len(runs.desk.jobs) == 1


def test_texts_of_a_possible_job_are_not_paid_again(
    runs: Runs,
) -> None:
    runs.server.script(["reset-after-headers", *[500] * 8], where="/v1/batches")
    outcome = runs(TEXTS)
    assert (outcome.failed, outcome.waiting) == ((), HASHES)
    assert len(runs.desk.jobs) == 1
    runs.server.heal()
    assert runs(TEXTS).vectors.keys() == TEXTS.keys()
    assert len(runs.desk.jobs) == 1


# --- the budget


def test_the_budget_reached_in_the_middle_stops_new_jobs_and_keeps_the_others(
    runs: Runs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit_jobs(monkeypatch, requests=10)
    ledger = Ledger(str(tmp_path / "ledger.json"), daily_tokens=200)
    outcome = runs(TEXTS, ledger)
    assert outcome.vectors.keys() == set(HASHES[:20])
    assert outcome.failed == HASHES[20:]
    assert (
        outcome.reason
        == "Batch jobs are off for this run: Today's embedding budget of 200 tokens is used up."
    )
    assert 0 < ledger.summary().today_tokens <= 200


def test_resumed_job_is_counted_once(runs: Runs, tmp_path: Path) -> None:
    ledger = Ledger(str(tmp_path / "ledger.json"))
    runs.desk._looks = 4
    for _ in range(3):
        runs(TEXTS, ledger, wait=False)
    runs(TEXTS, ledger)
    assert [tuple(row)[:4] for row in ledger.summary().by_model] == [
        ("openai", "text-embedding-3-small", 1, 30)
    ]


def test_what_store_raises_comes_through_and_the_job_is_not_lost(runs: Runs) -> None:
    def full(_: object) -> None:
        raise OSError("the disk is full")

    client = HttpClient(runs.provider.base_url, runs.provider.headers)
    try:
        with pytest.raises(OSError, match="the disk is full"):
            run_batches(
                runs.provider,
                TEXTS,
                BatchOptions(True, smallest=1),
                folder=str(runs.folder),
                client=client,
                store=full,
                progress=lambda done, total: None,
                sleep=lambda seconds: None,
            )
    finally:
        client.close()
    assert runs(TEXTS).vectors.keys() == TEXTS.keys()
    assert len(runs.desk.jobs) == 1
