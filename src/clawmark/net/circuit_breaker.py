"""Remembers that a provider failed, so that a dead one costs one timeout a minute and not one a
query.

In: the failures and successes of calls, from any thread and process. Out: a refusal while the
provider is left alone; when the minute is over, exactly one caller is let through to see. The state
is a small file, so the next process knows too. It is only a saving: a file that is damaged or
cannot be written means that everybody is let through, and is never an error.

A provider whose answers cannot be used with the present settings is refused for good. The file is
named after these settings, so other settings begin with a file of their own."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable
from typing import NamedTuple

from clawmark.model.errors import EmbeddingMismatch, EmbeddingUnavailable
from clawmark.model.values import Degraded
from clawmark.system import shared_json as statefile
from clawmark.system.backoff import Backoff

OPEN_SECONDS = 60.0
PROBE_SECONDS = 60.0
"""How long the one who was let through has for an answer: as long as the longest call may take."""
LONGEST_SECONDS = 600.0
"""A server may ask for an hour of rest; ten minutes later we look whether it means it."""
LOCK_SECONDS = 0.2

_MOST_REASON = 300
_MOST_HINT = 600


class _State(NamedTuple):
    failures: int = 0
    since: float = 0.0
    until: float = 0.0
    """Nobody is let through before; 0 when the provider works."""
    reason: str = ""
    hint: str = ""
    """Set when the provider is refused for good, for `reason`."""


class Breaker:
    """Closed while the provider works, open after `failures` failures in a row, half open when
    `seconds` are over.
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

    def check(self, who: str) -> None:
        """Let a call to the provider `who` through, or raise EmbeddingUnavailable or
        EmbeddingMismatch.
        """
        state = self._load()
        if refusal := self.refusal():
            raise EmbeddingMismatch(refusal.reason, provider=who, hint=refusal.fix)
        if not state.until:
            return
        if self._clock() < state.until:
            raise self._refusal(who, state)
        # Half open: whoever gets the lock first takes the probe, and the others see that it is
        # taken.
        try:
            with statefile.locked(self.path, LOCK_SECONDS) as is_held:
                state = self._load()
                now = self._clock()
                if not state.until:
                    return
                if not is_held or now < state.until:
                    raise self._refusal(who, state)
                self._save(state._replace(until=now + self._probe_seconds))
        except OSError:
            return

    def reason(self) -> str:
        """Why calls are refused now; empty when they are not. Takes nobody's turn to probe."""
        state = self._load()
        return state.reason if state.hint or self._clock() < state.until else ""

    def refusal(self) -> Degraded | None:
        """Why the provider is refused for good, and what to change; None when it is not."""
        state = self._load()
        return Degraded(state.reason, state.hint, needs_change=True) if state.hint else None

    def refuse(self, reason: str, hint: str) -> None:
        """Let no further call through: with these settings no response can be used."""
        try:
            with statefile.locked(self.path, LOCK_SECONDS):
                self._save(
                    _State(
                        since=self._clock(), reason=reason[:_MOST_REASON], hint=hint[:_MOST_HINT]
                    )
                )
        except OSError:
            return

    def failed(self, reason: str, retry_after: float = 0.0) -> None:
        """Remember a failure; `reason` is the sentence that refused calls repeat, so it holds no
        key.
        """
        backoff = Backoff(first=self._seconds, longest=self._seconds)
        pause = backoff.wait(1, at_least=min(retry_after, LONGEST_SECONDS))
        try:
            with statefile.locked(self.path, LOCK_SECONDS) as is_held:
                if not is_held:
                    return
                state, now = self._load(), self._clock()
                failures = state.failures + 1
                until = max(state.until, now + pause) if failures >= self._failures else state.until
                self._save(_State(failures, now, until, reason[:_MOST_REASON]))
        except OSError:
            return

    def succeeded(self) -> None:
        """Remember that the provider works: everybody is let through again."""
        if not os.path.exists(self.path):
            return
        try:
            with statefile.locked(self.path, LOCK_SECONDS):
                os.unlink(self.path)
        except OSError:
            return

    def _load(self) -> _State:
        """The state, or the one of a provider that works when the file says nothing sensible."""
        try:
            found = statefile.load(self.path) or {}
        except (OSError, ValueError):
            return _State()
        numbers = [found.get(name) for name in ("failures", "since", "until")]
        reason = found.get("reason")
        if not all(
            isinstance(number, int | float) and math.isfinite(number) for number in numbers
        ) or not isinstance(reason, str):
            return _State()
        failures, since, until = (float(number) for number in numbers)  # type: ignore[arg-type]
        # A clock that was set back must not leave the provider alone for years.
        if until > self._clock() + max(self._seconds, self._probe_seconds, LONGEST_SECONDS):
            return _State()
        hint = found.get("hint")
        return _State(
            int(failures),
            since,
            until,
            reason[:_MOST_REASON],
            hint if isinstance(hint, str) else "",
        )

    def _save(self, state: _State) -> None:
        statefile.save(self.path, dict(state._asdict()))

    def _refusal(self, who: str, state: _State) -> EmbeddingUnavailable:
        now = self._clock()
        ago, rest = max(0.0, now - state.since), max(0.0, state.until - now)
        reason = state.reason.rstrip(".") or "it failed"
        return EmbeddingUnavailable(
            f"The embedding provider failed {ago:.0f} s ago ({reason}) and is asked again in "
            f"{max(1.0, rest):.0f} s.",
            provider=who,
            hint="Keywords answer until then. `clawmark doctor` says more.",
        )
