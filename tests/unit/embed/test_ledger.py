"""The ledger: what is counted, by how many at once, and where the daily budget stops embedding."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from clawmark.embed.services.ledger import (
    KEPT_DAYS,
    MAX_MODELS,
    OTHERS,
    RESERVED_SECONDS,
    Ledger,
    ModelUse,
)
from clawmark.model.errors import EmbeddingUnavailable

NOON = 1_790_000_000.0
DAY = 86400.0

COUNTING = """
import sys
from clawmark.embed.services.ledger import Ledger
ledger = Ledger(sys.argv[1])
for _ in range(int(sys.argv[2])):
    ledger.record("openai", "small", 1, 3, 70)
    ledger.flush()
"""


class Clock:
    """A time that moves only when told to."""

    def __init__(self, now: float = NOON) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "ledger.json"


def used(path: Path) -> tuple[int, int]:
    found = Ledger(str(path)).summary()
    return found.total_calls, found.total_tokens


def test_calls_texts_and_tokens_are_summed_by_model(path: Path, clock: Clock) -> None:
    ledger = Ledger(str(path), clock=clock)
    ledger.record("openai", "small", 1, 10, 400)
    ledger.record("openai", "small", 2, 5, 100)
    ledger.record("deepinfra", "BAAI/bge-m3", 1, 1, 7)
    assert ledger.summary() == (
        4,
        507,
        4,
        507,
        (
            ModelUse(provider="deepinfra", model="BAAI/bge-m3", calls=1, texts=1, tokens=7),
            ModelUse(provider="openai", model="small", calls=3, texts=15, tokens=500),
        ),
        0,
    )


def test_a_new_day_starts_at_nothing_and_the_total_goes_on(path: Path, clock: Clock) -> None:
    ledger = Ledger(str(path), clock=clock)
    ledger.record("openai", "small", 1, 10, 400)
    clock.now += DAY
    ledger.record("openai", "small", 1, 1, 50)
    found = ledger.summary()
    assert (found.today_calls, found.today_tokens, found.total_calls, found.total_tokens) == (
        1,
        50,
        2,
        450,
    )


def test_an_absent_file_is_an_empty_ledger_and_asking_makes_none(path: Path) -> None:
    assert Ledger(str(path)).summary() == (0, 0, 0, 0, (), 0)
    assert not path.parent.exists()


def test_only_its_owner_can_read_the_file(path: Path, clock: Clock) -> None:
    Ledger(str(path), clock=clock).record("openai", "small", 1, 1, 1)
    assert path.stat().st_mode & 0o777 == 0o600


def test_the_file_is_written_twice_a_second_at_the_most(path: Path, clock: Clock) -> None:
    ledger = Ledger(str(path), clock=clock)
    ledger.record("openai", "small", 1, 1, 1)
    for _ in range(10):
        clock.now += 0.04
        ledger.record("openai", "small", 1, 1, 1)
    assert used(path) == (1, 1)
    assert ledger.summary().total_calls == 11
    clock.now += 0.2
    ledger.record("openai", "small", 1, 1, 1)
    assert used(path) == (12, 12)


def test_flush_writes_what_was_gathered(path: Path, clock: Clock) -> None:
    ledger = Ledger(str(path), clock=clock)
    ledger.record("openai", "small", 1, 1, 5)
    ledger.record("openai", "small", 1, 1, 6)
    ledger.flush()
    ledger.flush()
    assert used(path) == (2, 11)


def test_days_older_than_ninety_are_summed_up(path: Path, clock: Clock) -> None:
    ledger = Ledger(str(path), clock=clock)
    for _ in range(60):
        ledger.record("openai", "small", 1, 1, 10)
        clock.now += 4 * DAY
    days = json.loads(path.read_text())["days"]
    assert KEPT_DAYS // 4 <= len(days) <= KEPT_DAYS // 4 + 3
    assert ledger.summary().total_tokens == 600


def test_a_clock_that_ran_ahead_leaves_a_bounded_file(path: Path, clock: Clock) -> None:
    days = {f"2{year:03}-01-01": {"openai/small": [1, 1, 10]} for year in range(600)}
    path.parent.mkdir()
    path.write_text(json.dumps({"version": 1, "days": days}))
    ledger = Ledger(str(path), clock=clock)
    ledger.record("openai", "small", 1, 1, 10)
    assert len(json.loads(path.read_text())["days"]) <= 2 * KEPT_DAYS + 1
    assert ledger.summary().total_calls == 601


def test_too_many_models_share_one_name(path: Path, clock: Clock) -> None:
    ledger = Ledger(str(path), clock=clock)
    for number in range(MAX_MODELS + 20):
        ledger.record("openai", f"model-{number}", 1, 1, 1)
    ledger.flush()
    found = Ledger(str(path), clock=clock).summary()
    assert found.total_calls == MAX_MODELS + 20
    assert len(found.by_model) == MAX_MODELS + 1
    assert "/".join(found.by_model[-1][:2]) == OTHERS


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\0\0\0",
        b"{",
        b"[]",
        b"[" * 200_000,
        b'{"version":2,"days":{}}',
        b'{"version":1,"days":[]}',
        b'{"version":1,"days":{"2026-01-01":[1]}}',
        b'{"version":1,"days":{"2026-01-01":{"a/b":[1,2]}}}',
        b'{"version":1,"days":{"2026-01-01":{"a/b":[1,2,NaN]}}}',
        b'{"version":1,"days":{"2026-01-01":{"a/b":[1,2,-3]}}}',
        b'{"version":1,"days":{"2026-01-01":{"ab":[1,2,3]}}}',
        b"\xff\xfe",
    ],
)
def test_damaged_file_is_renamed_and_counting_restarts(
    path: Path, clock: Clock, content: bytes
) -> None:
    path.parent.mkdir()
    path.write_bytes(content)
    ledger = Ledger(str(path), daily_tokens=100, clock=clock)
    assert ledger.summary().total_calls == 0
    ledger.allow(10)
    ledger.record("openai", "small", 1, 1, 10)
    assert used(path) == (1, 10)
    assert path.with_name("ledger.json.damaged").read_bytes() == content


def _folder(path: Path) -> None:
    path.mkdir(parents=True)


def _link(path: Path) -> None:
    path.parent.mkdir()
    path.with_name("elsewhere").write_text("not ours")
    path.symlink_to("elsewhere")


def _pipe(path: Path) -> None:
    path.parent.mkdir()
    os.mkfifo(path)


@pytest.mark.parametrize("make", [_folder, _link, _pipe])
def test_folder_or_link_in_place_of_the_file_is_renamed(
    path: Path, clock: Clock, make: Callable[[Path], None]
) -> None:
    make(path)
    ledger = Ledger(str(path), clock=clock)
    ledger.record("openai", "small", 1, 1, 10)
    assert used(path) == (1, 10)
    assert path.is_file() and not path.is_symlink()


def test_counts_stay_in_memory_without_a_folder(tmp_path: Path, clock: Clock) -> None:
    (tmp_path / "file").write_text("in the way")
    ledger = Ledger(str(tmp_path / "file" / "ledger.json"), daily_tokens=25, clock=clock)
    ledger.record("openai", "small", 1, 1, 10)
    ledger.record("openai", "small", 1, 1, 10)
    ledger.flush()
    assert ledger.summary().today_tokens == 20
    with pytest.raises(EmbeddingUnavailable):
        ledger.allow(10)


def test_without_a_budget_everything_is_allowed(path: Path) -> None:
    ledger = Ledger(str(path))
    ledger.allow(10**12)
    ledger.allow(10**12)
    assert not path.exists(), "nothing is counted before a call"


def test_the_budget_stops_the_call_that_would_pass_it(path: Path, clock: Clock) -> None:
    ledger = Ledger(str(path), daily_tokens=100_000, clock=clock)
    ledger.allow(60_000)
    ledger.record("openai", "small", 1, 100, 60_000)
    with pytest.raises(EmbeddingUnavailable) as caught:
        ledger.allow(40_001)
    assert caught.value.message == "Today's embedding budget of 100,000 tokens is used up."
    assert "memorySearch.remote.dailyTokens" in caught.value.hint
    ledger.allow(40_000)


def test_budget_is_renewed_every_day(path: Path, clock: Clock) -> None:
    ledger = Ledger(str(path), daily_tokens=100, clock=clock)
    ledger.record("openai", "small", 1, 1, 100)
    with pytest.raises(EmbeddingUnavailable):
        ledger.allow(1)
    clock.now += DAY
    ledger.allow(100)


def test_calls_on_their_way_count_towards_the_budget(path: Path, clock: Clock) -> None:
    ledger = Ledger(str(path), daily_tokens=100, clock=clock)
    ledger.allow(50)
    ledger.allow(50)
    with pytest.raises(EmbeddingUnavailable):
        ledger.allow(1)
    ledger.record("openai", "small", 1, 1, 45)
    ledger.allow(5)


def test_an_allowed_call_that_failed_is_forgotten_after_a_minute(path: Path, clock: Clock) -> None:
    ledger = Ledger(str(path), daily_tokens=100, clock=clock)
    ledger.allow(100)
    with pytest.raises(EmbeddingUnavailable):
        ledger.allow(1)
    clock.now += RESERVED_SECONDS
    ledger.allow(100)


def test_what_another_process_spent_counts_at_once_when_there_is_a_budget(
    path: Path, clock: Clock
) -> None:
    mine, theirs = (Ledger(str(path), daily_tokens=100, clock=clock) for _ in range(2))
    theirs.record("openai", "small", 1, 1, 30)
    theirs.record("openai", "small", 1, 1, 30)
    mine.allow(40)
    with pytest.raises(EmbeddingUnavailable):
        mine.allow(41)


def test_counts_of_four_processes_add_up(path: Path) -> None:
    children = [
        subprocess.Popen([sys.executable, "-c", COUNTING, str(path), "100"]) for _ in range(4)
    ]
    assert [child.wait() for child in children] == [0] * 4
    assert Ledger(str(path)).summary().by_model == (
        ModelUse(provider="openai", model="small", calls=400, texts=1200, tokens=28_000),
    )


def test_a_killed_process_leaves_a_whole_file(path: Path) -> None:
    child = subprocess.Popen([sys.executable, "-c", COUNTING, str(path), "1000000"])
    while not path.exists() and child.poll() is None:
        pass
    child.kill()
    child.wait()
    before = used(path)[0]
    ledger = Ledger(str(path))
    ledger.record("openai", "small", 1, 3, 70)
    assert used(path)[0] == before + 1 >= 2
    assert not path.with_name("ledger.json.damaged").exists()


def test_counts_of_eight_threads_add_up(path: Path) -> None:
    ledger = Ledger(str(path))
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: ledger.record("openai", "small", 1, 1, 2), range(400)))
    ledger.flush()
    assert used(path) == (400, 800)


def test_a_stuck_process_that_keeps_the_lock_delays_nothing_but_the_writing(
    path: Path, clock: Clock
) -> None:
    from clawmark.embed.services import ledger as module
    from clawmark.system.shared_json import locked

    ledger = Ledger(str(path), clock=clock)
    with pytest.MonkeyPatch.context() as patch, locked(str(path), 1) as is_held:
        patch.setattr(module, "LOCK_SECONDS", 0.0)
        assert is_held
        ledger.record("openai", "small", 1, 1, 10)
        assert not path.exists()
        assert ledger.summary().total_tokens == 10
    ledger.flush()
    assert used(path) == (1, 10)
