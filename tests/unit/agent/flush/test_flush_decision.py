"""When it is time to flush: the rule, its scaling, and every reason not to."""

from __future__ import annotations

import pytest

from clawmark.agent.flush.flush import (
    ABANDONED_MS,
    Flush,
    FlushSettings,
    SessionState,
    SkipFlush,
    Usage,
    compaction_threshold,
    decide_flush,
    flush_threshold,
)
from clawmark.agent.session.session import SessionEntry

ENTRY = SessionEntry("agent:main:main", "s1")
DEFAULTS = FlushSettings()
MIB = 1 << 20


def decide(
    usage: Usage, entry: SessionEntry = ENTRY, settings: FlushSettings = DEFAULTS, **more: bool
) -> Flush | SkipFlush:
    return decide_flush(usage, SessionState(entry, **more), settings)


def test_the_threshold_is_the_window_without_the_reserve_and_the_soft_threshold() -> None:
    assert flush_threshold(200_000, DEFAULTS) == 176_000
    assert compaction_threshold(200_000, DEFAULTS) == 180_000
    assert decide(Usage(200_000, 175_999)) == SkipFlush("below-threshold")
    assert decide(Usage(200_000, 176_000)) == Flush("tokens", 176_000, 176_000)


def test_the_message_that_is_about_to_come_counts() -> None:
    assert decide(Usage(200_000, 170_000, 5_999)) == SkipFlush("below-threshold")
    assert decide(Usage(200_000, 170_000, 6_000)) == Flush("tokens", 176_000, 176_000)
    assert decide(Usage(200_000, 0, 900_000)) == Flush("tokens", 900_000, 176_000)


@pytest.mark.parametrize(
    ("window", "threshold"),
    [(80_000, 56_000), (32_768, 22_938), (24_000, 16_800), (8_192, 5_735), (10, 7)],
)
def test_a_small_window_is_flushed_at_seventy_percent(window: int, threshold: int) -> None:
    assert flush_threshold(window, DEFAULTS) == pytest.approx(threshold, abs=2)
    assert flush_threshold(window, DEFAULTS) < window


def test_the_threshold_grows_with_the_window_and_stays_inside_it() -> None:
    windows = [*range(2, 3000), *range(3000, 300_000, 997)]
    thresholds = [flush_threshold(window, DEFAULTS) for window in windows]
    assert thresholds == sorted(thresholds)
    assert all(0 < one < window for one, window in zip(thresholds, windows, strict=True))
    assert all(
        one <= compaction_threshold(window, DEFAULTS) <= window
        for one, window in zip(thresholds, windows, strict=True)
    )


@pytest.mark.parametrize("reserve", [60_000, 128_000, 10**9])
def test_what_is_configured_counts_down_to_a_quarter_of_the_window(reserve: int) -> None:
    settings = DEFAULTS._replace(reserve_tokens_floor=reserve)
    assert flush_threshold(128_000, settings) == max(32_000, 124_000 - reserve)
    assert flush_threshold(1, settings) == 1


def test_a_transcript_that_grew_by_two_mebibytes_is_flushed() -> None:
    assert decide(
        Usage(
            context_window=200_000, total_tokens=10, incoming_tokens=0, transcript_bytes=2 * MIB - 1
        )
    ) == SkipFlush("below-threshold")
    assert decide(
        Usage(context_window=200_000, total_tokens=10, incoming_tokens=0, transcript_bytes=2 * MIB)
    ) == Flush("transcript", 10, 176_000)
    flushed = ENTRY._replace(
        compaction_count=1, memory_flush_compaction_count=0, memory_flush_bytes=2 * MIB
    )
    assert decide(
        Usage(context_window=200_000, total_tokens=10, incoming_tokens=0, transcript_bytes=3 * MIB),
        flushed,
    ) == SkipFlush("below-threshold")
    assert decide(
        Usage(context_window=200_000, total_tokens=10, incoming_tokens=0, transcript_bytes=4 * MIB),
        flushed,
    ) == Flush("transcript", 10, 176_000)


def test_a_transcript_that_became_shorter_is_another_one() -> None:
    flushed = ENTRY._replace(
        compaction_count=1, memory_flush_compaction_count=0, memory_flush_bytes=9 * MIB
    )
    assert decide(
        Usage(context_window=200_000, total_tokens=10, incoming_tokens=0, transcript_bytes=2 * MIB),
        flushed,
    ) == Flush("transcript", 10, 176_000)


def test_zero_bytes_switch_that_rule_off() -> None:
    settings = DEFAULTS._replace(force_flush_transcript_bytes=0)
    assert decide(
        Usage(
            context_window=200_000, total_tokens=10, incoming_tokens=0, transcript_bytes=90 * MIB
        ),
        settings=settings,
    ) == SkipFlush("below-threshold")


def test_a_cycle_that_was_flushed_is_not_flushed_again_and_the_next_one_is() -> None:
    full = Usage(200_000, 190_000)
    flushed = ENTRY._replace(memory_flush_compaction_count=0)
    assert decide(full, flushed) == SkipFlush("already-flushed")
    assert decide(full._replace(is_compacting=True), flushed) == SkipFlush("already-flushed")
    assert isinstance(decide(full, flushed._replace(compaction_count=1)), Flush)


@pytest.mark.parametrize("because", ["heartbeat", "read-only", "sandboxed", "cli-backed"])
def test_a_session_that_may_not_write_is_skipped(because: str) -> None:
    full = Usage(200_000, 190_000, is_compacting=True)
    assert decide(full, **{because.replace("-", "_"): True}) == SkipFlush(because)  # type: ignore[arg-type]


def test_a_session_that_never_was_and_a_switched_off_flush_are_skipped() -> None:
    full = Usage(200_000, 190_000)
    assert decide(full, SessionEntry("x")) == SkipFlush("no-session")
    assert decide(full, settings=DEFAULTS._replace(enabled=False)) == SkipFlush("disabled")


def test_after_failures_it_waits_longer_each_time_but_not_before_a_compaction() -> None:
    for failures, pause in ((1, 60_000), (2, 120_000), (50, 3_600_000), (5000, 3_600_000)):
        failed = ENTRY._replace(memory_flush_failures=failures, memory_flush_failed_at=1_000)
        full = Usage(200_000, 190_000, now_ms=1_000 + pause - 1)
        assert decide(full, failed) == SkipFlush("backing-off")
        assert isinstance(decide(full._replace(now_ms=1_000 + pause), failed), Flush)
        assert decide(full._replace(is_compacting=True), failed) == Flush(
            "compaction", 190_000, 176_000
        )


def test_running_flush_blocks_others_until_it_counts_as_dead() -> None:
    running = ENTRY._replace(memory_flush_started_at=1_000)
    full = Usage(200_000, 190_000, now_ms=2_000)
    assert decide(full, running) == SkipFlush("in-progress")
    assert isinstance(decide(full._replace(now_ms=1_000 + ABANDONED_MS), running), Flush)
    assert isinstance(decide(full._replace(now_ms=500), running), Flush), "the clock was set back"
