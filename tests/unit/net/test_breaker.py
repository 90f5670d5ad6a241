"""A provider that failed is left alone for a minute, by every process; then exactly one looks
whether it is back.
"""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from clawmark.model.errors import EmbeddingMismatch, EmbeddingUnavailable
from clawmark.net.circuit_breaker import Breaker

NOW = 1_790_000_000.0


class Clock:
    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def breaker(tmp_path: Path, clock: Clock) -> Breaker:
    return Breaker(str(tmp_path / "state" / "breaker.json"), clock=clock)


def is_open(breaker: Breaker) -> bool:
    try:
        breaker.check("openai")
    except EmbeddingUnavailable:
        return True
    return False


def test_calls_pass_and_nothing_is_written_before_the_first_failure(breaker: Breaker) -> None:
    breaker.check("openai")
    breaker.succeeded()
    assert not os.path.exists(os.path.dirname(breaker.path))


def test_calls_are_refused_for_a_minute_after_the_first_failure(
    breaker: Breaker, clock: Clock
) -> None:
    breaker.failed("openai cannot be used: no answer within 3 s.")
    assert is_open(breaker)
    clock.now += 59.9
    assert is_open(breaker)
    clock.now += 0.2
    assert not is_open(breaker)


def test_refusal_names_the_reason_and_the_time_left(breaker: Breaker, clock: Clock) -> None:
    breaker.failed("openai cannot be used: no answer within 3 s.")
    clock.now += 12
    with pytest.raises(EmbeddingUnavailable) as error:
        breaker.check("openai")
    assert "failed 12 s ago (openai cannot be used: no answer within 3 s)" in error.value.message
    assert "in 48 s" in error.value.message
    assert error.value.provider == "openai"
    assert error.value.hint


def test_after_a_minute_one_caller_probes_and_the_others_are_refused(
    breaker: Breaker, clock: Clock
) -> None:
    breaker.failed("no answer")
    clock.now += 61
    assert [is_open(breaker) for _ in range(4)] == [False, True, True, True]


def test_successful_probe_closes_the_breaker(breaker: Breaker, clock: Clock) -> None:
    breaker.failed("no answer")
    clock.now += 61
    breaker.check("openai")
    breaker.succeeded()
    assert [is_open(breaker) for _ in range(4)] == [False] * 4


def test_failed_probe_opens_the_breaker_for_another_minute(breaker: Breaker, clock: Clock) -> None:
    breaker.failed("no answer")
    clock.now += 61
    breaker.check("openai")
    breaker.failed("still no answer")
    clock.now += 59
    assert is_open(breaker)
    clock.now += 2
    assert not is_open(breaker)


def test_probe_of_a_dead_process_is_taken_over(breaker: Breaker, clock: Clock) -> None:
    breaker.failed("no answer")
    clock.now += 61
    assert not is_open(breaker)
    clock.now += 61
    assert not is_open(breaker)


def test_dead_provider_costs_one_call_per_minute(breaker: Breaker, clock: Clock) -> None:
    calls = 0
    for _ in range(3600):
        clock.now += 1
        if not is_open(breaker):
            calls += 1
            breaker.failed("no answer")
    assert calls == 60


def test_breakers_share_their_state_through_the_file(breaker: Breaker, clock: Clock) -> None:
    breaker.failed("no answer")
    other = Breaker(breaker.path, clock=clock)
    assert is_open(other)
    other.succeeded()
    assert not is_open(breaker)


def test_number_of_failures_and_pause_are_configurable(tmp_path: Path, clock: Clock) -> None:
    breaker = Breaker(str(tmp_path / "b"), clock=clock, failures=3, seconds=5)
    breaker.failed("one")
    breaker.failed("two")
    assert not is_open(breaker)
    breaker.succeeded()
    for reason in ("one", "two", "three"):
        breaker.failed(reason)
    assert is_open(breaker)
    clock.now += 5.1
    assert not is_open(breaker)


@pytest.mark.parametrize(("asked", "kept"), [(0, 60), (90, 90), (1e9, 600)])
def test_server_can_ask_for_a_pause_of_at_most_ten_minutes(
    breaker: Breaker, clock: Clock, asked: float, kept: float
) -> None:
    breaker.failed("busy", asked)
    clock.now += kept - 1
    assert is_open(breaker)
    clock.now += 2
    assert not is_open(breaker)


def test_success_reopens_the_way_at_once(breaker: Breaker) -> None:
    breaker.failed("no answer")
    breaker.succeeded()
    assert not is_open(breaker)


def test_permanent_refusal_lasts_until_a_success(breaker: Breaker, clock: Clock) -> None:
    breaker.refuse("It sends 3 numbers.", "Set the size to 3.")
    clock.now += 1e9
    with pytest.raises(EmbeddingMismatch) as refused:
        breaker.check("openai")
    assert (refused.value.message, refused.value.hint) == (
        "It sends 3 numbers.",
        "Set the size to 3.",
    )
    assert refused.value.exit_code == 2
    breaker.succeeded()
    breaker.check("openai")


def test_clock_set_back_does_not_keep_the_breaker_open(breaker: Breaker, clock: Clock) -> None:
    breaker.failed("no answer")
    clock.now -= 86_400
    assert not is_open(breaker)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"null",
        b"[]",
        b"\xff\xfe",
        b'{"failures": 1}',
        b'{"failures": "1", "since": 0, "until": "soon", "reason": 7}',
        b'{"failures": 1, "since": NaN, "until": Infinity, "reason": ""}',
        b'{"failures": 1, "since": 0, "until": 1e400, "reason": ""}',
        b'{"failures": 1, "since": 0, "until": 99999999999999, "reason": ""}',
        b"[" * 100_000,
    ],
    ids=range(11),
)
def test_damaged_file_lets_calls_through_and_is_replaced_by_the_next_failure(
    tmp_path: Path, clock: Clock, content: bytes
) -> None:
    path = tmp_path / "breaker.json"
    path.write_bytes(content)
    breaker = Breaker(str(path), clock=clock)
    assert not is_open(breaker)
    breaker.failed("no answer")
    assert is_open(breaker)


def test_folder_in_place_of_the_file_is_not_an_error(tmp_path: Path, clock: Clock) -> None:
    (tmp_path / "breaker.json").mkdir()
    breaker = Breaker(str(tmp_path / "breaker.json"), clock=clock)
    breaker.failed("no answer")
    assert not is_open(breaker)
    breaker.succeeded()


def test_missing_state_folder_is_not_an_error(tmp_path: Path, clock: Clock) -> None:
    (tmp_path / "file").write_text("in the way")
    breaker = Breaker(str(tmp_path / "file" / "breaker.json"), clock=clock)
    breaker.failed("no answer")
    assert not is_open(breaker)
    breaker.succeeded()


def test_link_in_place_of_the_file_is_not_followed(tmp_path: Path, clock: Clock) -> None:
    state = {"failures": 1, "since": NOW, "until": NOW + 60, "reason": "planted"}
    (tmp_path / "elsewhere").write_text(json.dumps(state))
    (tmp_path / "breaker.json").symlink_to(tmp_path / "elsewhere")
    assert not is_open(Breaker(str(tmp_path / "breaker.json"), clock=clock))


@pytest.mark.skipif(os.name != "posix", reason="permissions of this kind are POSIX")
def test_state_file_is_readable_by_the_owner_only(breaker: Breaker) -> None:
    breaker.failed("no answer")
    assert stat.S_IMODE(os.stat(breaker.path).st_mode) == 0o600


def test_one_of_many_threads_probes(breaker: Breaker, clock: Clock) -> None:
    breaker.failed("no answer")
    clock.now += 61
    start = threading.Barrier(8)
    through = []

    def knock() -> None:
        start.wait()
        if not is_open(breaker):
            through.append(1)

    threads = [threading.Thread(target=knock) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert through == [1]


def test_one_of_many_processes_probes(breaker: Breaker) -> None:
    """The state is a minute old for all of them, and they knock at the same moment."""
    breaker.failed("no answer")
    code = (
        "import sys\n"
        "from clawmark.net.circuit_breaker import Breaker\n"
        "from clawmark.model.errors import EmbeddingUnavailable\n"
        f"breaker = Breaker({breaker.path!r}, clock=lambda: {NOW + 61})\n"
        "print('ready', flush=True); sys.stdin.readline()\n"
        "try:\n    breaker.check('openai')\n    print('through')\n"
        "except EmbeddingUnavailable:\n    print('refused')\n"
    )
    children = [
        subprocess.Popen(
            [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for _ in range(5)
    ]
    for child in children:
        assert child.stdout
        assert child.stdout.readline() == "ready\n"
    said = [child.communicate("go\n")[0] for child in children]
    assert sorted(said) == ["refused\n"] * 4 + ["through\n"]
