"""Over random histories of tokens: exactly one flush in every cycle, and never after the context
has overflowed.
"""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from clawmark.agent.flush.flush import (
    Flush,
    FlushSettings,
    SessionState,
    Usage,
    compaction_threshold,
    decide_flush,
    flush_threshold,
)
from clawmark.agent.session.session import SessionEntry

WINDOWS = st.one_of(
    st.integers(1, 200),
    st.integers(200, 90_000),
    st.sampled_from([8_192, 128_000, 200_000, 1_000_000]),
)
SHARES = st.floats(0, 0.4, allow_nan=False)
TURNS = st.lists(st.tuples(SHARES, SHARES, st.integers(0, 3 << 20)), min_size=1, max_size=60)
SETTINGS = st.builds(
    FlushSettings,
    enabled=st.just(True),
    reserve_tokens_floor=st.sampled_from([0, 1_000, 20_000, 200_000]),
    soft_threshold_tokens=st.sampled_from([0, 4_000, 50_000]),
    force_flush_transcript_bytes=st.sampled_from([0, 2 << 20]),
    prompt=st.just(""),
    system_prompt=st.just(""),
)


class History:
    """A session that lives through turns and compactions, and counts its flushes."""

    def __init__(self, window: int, chosen: FlushSettings) -> None:
        self.window, self.chosen = window, chosen
        self.entry = SessionEntry("agent:main:main", "s1")
        self.flushes: dict[int, int] = {}
        self.transcript = 0

    def flush_if_time(self, incoming: int, *, is_compacting: bool = False) -> None:
        usage = Usage(
            context_window=self.window,
            total_tokens=self.entry.total_tokens,
            incoming_tokens=incoming,
            transcript_bytes=self.transcript,
            is_compacting=is_compacting,
        )
        decision = decide_flush(usage, SessionState(self.entry), self.chosen)
        if isinstance(decision, Flush):
            cycle = self.entry.compaction_count
            self.flushes[cycle] = self.flushes.get(cycle, 0) + 1
            self.entry = self.entry._replace(
                memory_flush_compaction_count=cycle, memory_flush_bytes=self.transcript
            )

    def turn(self, incoming: int, answer: int, grown: int) -> None:
        self.transcript += grown
        self.flush_if_time(incoming)
        cycle, projected = self.entry.compaction_count, self.entry.total_tokens + incoming
        if projected >= flush_threshold(self.window, self.chosen) or projected >= self.window:
            assert self.flushes.get(cycle) == 1, (
                "a full context has been flushed, and not later than the overflow"
            )
        self.entry = self.entry._replace(total_tokens=projected + answer)
        if self.entry.total_tokens >= compaction_threshold(self.window, self.chosen):
            self.flush_if_time(0, is_compacting=True)
            assert self.flushes.get(cycle) == 1, "nothing is compacted unflushed"
            self.entry = self.entry._replace(
                compaction_count=cycle + 1, total_tokens=self.entry.total_tokens // 8
            )
        assert all(count == 1 for count in self.flushes.values())


@settings(max_examples=1000)
@given(WINDOWS, TURNS, SETTINGS)
def test_a_flush_fires_exactly_once_per_cycle_and_not_later_than_the_overflow(
    window: int, turns: list[tuple[float, float, int]], chosen: FlushSettings
) -> None:
    history = History(window, chosen)
    for asked, answered, grown in turns:
        history.turn(int(asked * window), int(answered * window), grown)
    assert set(range(history.entry.compaction_count)) <= set(history.flushes)
