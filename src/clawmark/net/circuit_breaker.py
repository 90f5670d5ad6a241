"""A circuit breaker: a provider that failed costs one timeout per minute, not one per query.

The state is a small file that all processes share. After a failure, calls are refused for a minute;
then exactly one caller may probe the provider. A state file that is damaged or cannot be written is
not an error: calls are let through.

A provider whose responses cannot be used with the current settings is refused permanently. The file
is named after these settings, so other settings start with a file of their own."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable
from typing import NamedTuple

from clawmark.model.errors import EmbeddingMismatch, EmbeddingUnavailable
from clawmark.model.values import Degraded
from clawmark.system import shared_json
from clawmark.system.backoff import Backoff

OPEN_SECONDS = 60.0
PROBE_SECONDS = 60.0
"""How long a probe may take: as long as the longest call."""
LONGEST_SECONDS = 600.0
"""The longest pause that a server can ask for."""
LOCK_SECONDS = 0.2

_MAX_REASON = 300
_MAX_HINT = 600


class _State(NamedTuple):
    failures: int = 0
    since: float = 0.0
    until: float = 0.0
    """Calls are refused before this time; 0 when the provider works."""
    reason: str = ""
    hint: str = ""
    """Set when the provider is refused permanently."""


class Breaker:
    """Closed while the provider works, open for `seconds` after `failures` failures in a row, then
    half open.
    """

    def __init__(
        self,
        path: str,
        *,
        clock: Callable[[], float] = time.time,
        failures: int = 1,
        seconds: float = OPEN_SECONDS,
        probe_seconds: float = PROBE_SECONDS,
    ) -> None:
        self.path = path
        self._clock = clock
        self._failures = failures
        self._seconds = seconds
        self._probe_seconds = probe_seconds

    def check(self, provider: str) -> None:
        """Let a call through, or raise EmbeddingUnavailable or EmbeddingMismatch."""
        state = self._load()
        if refusal := self.refusal():
            raise EmbeddingMismatch(refusal.reason, provider=provider, hint=refusal.fix)
        if not state.until:
            return
        if self._clock() < state.until:
            raise self._refused(provider, state)
        # Half open: the first caller to get the lock probes, the others see that it does.
        try:
            with shared_json.locked(self.path, LOCK_SECONDS) as is_held:
                state = self._load()
                now = self._clock()
                if not state.until:
                    return
                if not is_held or now < state.until:
                    raise self._refused(provider, state)
                self._save(state._replace(until=now + self._probe_seconds))
        except OSError:
            return

    def reason(self) -> str:
        """Return why calls are refused now; empty when they are not. Never starts a probe."""
        state = self._load()
        return state.reason if state.hint or self._clock() < state.until else ""

    def refusal(self) -> Degraded | None:
        """Return why the provider is refused permanently and what to change, if it is."""
        state = self._load()
        return Degraded(state.reason, state.hint, needs_change=True) if state.hint else None

    def refuse(self, reason: str, hint: str) -> None:
        """Refuse all further calls: with these settings no response can be used."""
        try:
            with shared_json.locked(self.path, LOCK_SECONDS):
                self._save(
                    _State(since=self._clock(), reason=reason[:_MAX_REASON], hint=hint[:_MAX_HINT])
                )
        except OSError:
            return

    def failed(self, reason: str, retry_after: float = 0.0) -> None:
        """Record a failure; `reason` is repeated in errors, so it must not hold a key."""
        backoff = Backoff(first=self._seconds, longest=self._seconds)
        pause = backoff.wait(1, at_least=min(retry_after, LONGEST_SECONDS))
        try:
            with shared_json.locked(self.path, LOCK_SECONDS) as is_held:
                if not is_held:
                    return
                state, now = self._load(), self._clock()
                failures = state.failures + 1
                until = max(state.until, now + pause) if failures >= self._failures else state.until
                self._save(
                    _State(failures=failures, since=now, until=until, reason=reason[:_MAX_REASON])
                )
        except OSError:
            return

    def succeeded(self) -> None:
        """Record that the provider works: calls are let through again."""
        if not os.path.exists(self.path):
            return
        try:
            with shared_json.locked(self.path, LOCK_SECONDS):
                os.unlink(self.path)
        except OSError:
            return

    def _load(self) -> _State:
        """Read the state; that of a working provider when the file is missing or damaged."""
        try:
            found = shared_json.load(self.path) or {}
        except (OSError, ValueError):
            return _State()
        numbers = [found.get(name) for name in ("failures", "since", "until")]
        reason = found.get("reason")
        if not all(
            isinstance(number, int | float) and math.isfinite(number) for number in numbers
        ) or not isinstance(reason, str):
            return _State()
        failures, since, until = (float(number) for number in numbers)  # type: ignore[arg-type]
        # After the clock was set back, the time may lie years ahead.
        if until > self._clock() + max(self._seconds, self._probe_seconds, LONGEST_SECONDS):
            return _State()
        hint = found.get("hint")
        return _State(
            failures=int(failures),
            since=since,
            until=until,
            reason=reason[:_MAX_REASON],
            hint=hint if isinstance(hint, str) else "",
        )

    def _save(self, state: _State) -> None:
        shared_json.save(self.path, dict(state._asdict()))

    def _refused(self, provider: str, state: _State) -> EmbeddingUnavailable:
        now = self._clock()
        ago, rest = max(0.0, now - state.since), max(0.0, state.until - now)
        reason = state.reason.rstrip(".") or "it failed"
        return EmbeddingUnavailable(
            f"The embedding provider failed {ago:.0f} s ago ({reason}) and is asked again in "
            f"{max(1.0, rest):.0f} s.",
            provider=provider,
            hint="Keywords answer until then. `clawmark doctor` says more.",
        )
