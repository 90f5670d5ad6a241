"""Batch jobs that take long, and what a later run makes of them."""

from __future__ import annotations

import json
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from batch_desk import DIMS, KEY, Runs, limit_jobs, make_texts
from embeddings import EmbeddingServer

from clawmark.embed.batch.run import LOST_SECONDS
from clawmark.embed.services.ledger import Ledger
from clawmark.system.shared_json import locked

TEXTS = make_texts(30)
HASHES = tuple(TEXTS)


@pytest.fixture
def server() -> Iterator[EmbeddingServer]:
    with EmbeddingServer(key=KEY, dims=DIMS) as server:
        yield server


@pytest.fixture
def runs(server: EmbeddingServer, tmp_path: Path) -> Runs:
    return Runs(server, tmp_path)


# --- jobs that take long


def test_a_job_that_takes_too_long_stays_and_is_not_paid_twice(runs: Runs) -> None:
    runs.desk.script(["never-ends"])
    outcome = runs(TEXTS, poll_ms=60_000, timeout_minutes=10)
    assert (outcome.failed, outcome.waiting) == ((), HASHES)
    assert (
        outcome.reason
        == "A batch job was not done within 10 minutes; the next sync takes it up again."
    )
    assert 600 <= sum(runs.slept) <= 720
    next(iter(runs.desk.jobs.values())).outcome = "completed"
    assert runs(TEXTS).vectors.keys() == TEXTS.keys()
    assert len(runs.desk.jobs) == 1


def test_without_waiting_a_run_hands_in_and_a_later_one_collects(
    runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit_jobs(monkeypatch, requests=8)
    runs.desk._looks = 3
    outcome = runs(TEXTS, wait=False)
    assert (outcome.failed, outcome.waiting, runs.slept) == ((), HASHES, [])
    assert len(runs.desk.jobs) == 4
    runs(TEXTS, wait=False)
    outcome = runs(TEXTS, wait=False)
    assert outcome.vectors.keys() == TEXTS.keys()
    assert len(runs.desk.jobs) == 4


def test_a_job_that_runs_for_two_days_is_given_up(runs: Runs) -> None:
    runs.desk.script(["never-ends"])
    runs(TEXTS, wait=False)
    outcome = runs(TEXTS, now=1_790_000_000.0 + LOST_SECONDS + 1)
    assert (outcome.failed, outcome.waiting) == (HASHES, ())
    assert runs.state == []


def test_a_job_that_is_gone_is_left_to_plain_calls(runs: Runs) -> None:
    runs(TEXTS, wait=False)
    runs.desk.jobs.clear()
    outcome = runs(TEXTS)
    assert outcome.failed == HASHES
    assert runs.state == []


def test_three_failed_polls_in_a_row_end_the_wait(runs: Runs) -> None:
    runs.desk._looks = 3
    runs(TEXTS, wait=False)
    runs.server.spoil(500)
    outcome = runs(TEXTS)
    assert (outcome.failed, outcome.waiting) == ((), HASHES)
    assert outcome.reason.startswith(
        "Batch jobs are off for this run: openai is overloaded or failing (status 500)"
    )
    runs.server.heal()
    assert runs(TEXTS).vectors.keys() == TEXTS.keys()


# --- what an earlier run left


def test_jobs_under_way_are_collected_even_when_batch_jobs_are_off_now(runs: Runs) -> None:
    runs(TEXTS, wait=False)
    more = {**TEXTS, **make_texts(5, 100)}
    outcome = runs(more, enabled=False)
    assert outcome.vectors.keys() == TEXTS.keys()
    assert set(outcome.failed) == more.keys() - TEXTS.keys()
    assert len(runs.desk.jobs) == 1


def test_texts_that_came_since_go_into_a_job_of_their_own(runs: Runs) -> None:
    runs(TEXTS, wait=False)
    more = {**TEXTS, **make_texts(10, 100)}
    assert runs(more).vectors.keys() == more.keys()
    assert [len(job.lines) for job in runs.desk.jobs.values()] == [30, 10]


def test_texts_that_went_since_are_stored_all_the_same_because_they_are_paid(runs: Runs) -> None:
    runs(TEXTS, wait=False)
    few = dict(list(TEXTS.items())[:10])
    assert runs(few).vectors.keys() == few.keys()
    assert runs.stored.keys() == TEXTS.keys()


def test_job_of_other_texts_is_not_collected(runs: Runs) -> None:
    runs(TEXTS, wait=False)
    others = make_texts(10, 100)
    assert runs(others).vectors.keys() == others.keys()
    assert runs(TEXTS).vectors.keys() == TEXTS.keys()
    assert [len(job.lines) for job in runs.desk.jobs.values()] == [30, 10]


def test_job_of_another_model_is_not_resumed(runs: Runs) -> None:
    runs(TEXTS, wait=False)
    first, runs.provider = (
        runs.provider,
        runs.provider._replace(key_facts={**runs.provider.key_facts, "model": "other"}),
    )
    assert runs(TEXTS).vectors.keys() == TEXTS.keys()
    runs.provider = first
    assert runs(TEXTS).vectors.keys() == TEXTS.keys()
    assert len(runs.desk.jobs) == 2


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b'{"version":1}', b"\0" * 50, b'{"version":1,"identity":[],"jobs":[]}'],
)
def test_a_damaged_state_file_is_set_aside(runs: Runs, content: bytes) -> None:
    runs(TEXTS, wait=False)
    (state,) = runs.state
    state.write_bytes(content)
    assert runs(TEXTS).vectors.keys() == TEXTS.keys()
    assert [path.name for path in runs.state] == [f"{state.name}.damaged"]
    assert runs.state[0].read_bytes() == content


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("hashes", []),
        ("hashes", ["x"]),
        ("hashes", 7),
        ("since", "today"),
        ("job", "../../v1/files"),
        ("upload", 7),
        ("extra", 1),
    ],
)
def test_a_state_file_with_false_values_is_set_aside(runs: Runs, field: str, value: object) -> None:
    runs(TEXTS, wait=False)
    (state,) = runs.state
    content = json.loads(state.read_text())
    content["jobs"][0][field] = value
    state.write_text(json.dumps(content))
    assert runs(TEXTS).vectors.keys() == TEXTS.keys()
    assert [path.suffix for path in runs.state] == [".damaged"]


def test_only_its_owner_can_read_the_state(runs: Runs) -> None:
    runs(TEXTS, wait=False)
    (state,) = runs.state
    assert stat.S_IMODE(state.stat().st_mode) == 0o600
    assert KEY not in state.read_text()
    assert not any(text in state.read_text() for text in TEXTS.values())


def test_while_another_process_waits_its_texts_are_left_to_it(runs: Runs) -> None:
    runs(TEXTS, wait=False)
    (state,) = runs.state
    more = {**TEXTS, **make_texts(5, 100)}
    with locked(str(state), 0) as is_held:
        assert is_held
        outcome = runs(more)
    assert set(outcome.waiting) == TEXTS.keys()
    assert set(outcome.failed) == more.keys() - TEXTS.keys()
    assert outcome.reason == "Another process waits for batch jobs of this provider."


def test_an_upload_that_was_left_is_not_ordered_beyond_the_budget(
    runs: Runs, tmp_path: Path
) -> None:
    runs.server.script([503, 500, 500, 500, 500], where="/v1/batches")
    assert runs(TEXTS).waiting == HASHES
    runs.server.heal()
    outcome = runs(TEXTS, Ledger(str(tmp_path / "ledger.json"), daily_tokens=10))
    assert (outcome.failed, outcome.waiting) == (HASHES, ())
    assert "Today's embedding budget of 10 tokens is used up." in outcome.reason
    assert not runs.desk.jobs
    assert not runs.desk.files


def test_created_job_is_collected_regardless_of_the_budget(runs: Runs, tmp_path: Path) -> None:
    runs.server.script(["reset-after-headers", 500, 500, 500, 500], where="/v1/batches")
    assert runs(TEXTS).waiting == HASHES
    runs.server.heal()
    outcome = runs(TEXTS, Ledger(str(tmp_path / "ledger.json"), daily_tokens=10))
    assert outcome.vectors.keys() == TEXTS.keys()
