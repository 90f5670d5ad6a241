"""Say whether the next message of a session would cause a flush, without flushing it."""

from __future__ import annotations

from typing import NamedTuple

from clawmark.agent.flush.flush import (
    Flush,
    FlushParts,
    SessionState,
    SkipFlush,
    Usage,
    decide_flush,
    flush_threshold,
)
from clawmark.agent.session.transcript_reader import transcript_size


class FlushForecast(NamedTuple):
    """Whether the next message would cause a flush, and the numbers behind it."""

    decision: Flush | SkipFlush
    usage: Usage
    threshold: int


def forecast_flush(parts: FlushParts, state: SessionState) -> FlushForecast:
    """Decide about a session without flushing it."""
    usage = Usage(
        context_window=parts.context_window,
        total_tokens=state.entry.total_tokens,
        transcript_bytes=transcript_size(state.entry.session_file),
        now_ms=parts.now_ms(),
    )
    threshold = flush_threshold(parts.context_window, parts.settings)
    decision = decide_flush(usage, state, parts.settings, parts.policy)
    return FlushForecast(decision, usage, threshold)
