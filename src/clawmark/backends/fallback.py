"""The fallback: if a backend fails, the built-in one answers within the same call and says so.

A backend fails if it cannot be opened, raises, takes too long or gives an answer that cannot be
used. It is closed then, and opened again for the first call after a pause."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import NamedTuple, TypeVar

from clawmark.backends.answer_check import AnswerCheck
from clawmark.backends.base import MemoryBackend, Plans
from clawmark.model.errors import (
    BackendError,
    BackendUnavailable,
    ClawmarkError,
    ConfigError,
    FilterError,
)
from clawmark.model.reports import Fallback, Probe, Status
from clawmark.model.sync_report import Progress, SyncReport
from clawmark.model.values import Degraded, Found, Query, Scan, SyncPlan
from clawmark.system.backoff import Backoff
from clawmark.system.cancellation import Cancelled
from clawmark.system.time_limit import TimeLimitExceeded, call_within

T = TypeVar("T")
PAUSE = Backoff(first=30.0, longest=1800.0)
"""The pause before a failed backend is tried again."""
CLOSE_SECONDS = 5.0
CALLERS_MISTAKES = (ConfigError, FilterError)
"""Errors that the built-in backend would raise as well."""


class TimeLimits(NamedTuple):
    """How long a backend may take, in seconds; its own limits should be shorter."""

    answer: float = 60.0
    sync: float = 1800.0


class FallbackBackend:
    """Asks one backend and, if it fails, the built-in one; a `MemoryBackend`."""

    def __init__(
        self,
        name: str,
        open_backend: Callable[[], MemoryBackend],
        builtin: MemoryBackend,
        check: AnswerCheck,
        *,
        limits: TimeLimits = TimeLimits(),  # noqa: B008 - a named tuple, never changed
        clean: Callable[[str], str] = str,
        on_fallback: Callable[[], object] = int,
        pause: Backoff = PAUSE,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.name = name
        self.builtin = builtin
        self.read = builtin.read
        self._open = open_backend
        self._check = check
        self._limits = limits
        self._clean = clean
        """Masks the secrets in the message of an error."""
        self._on_fallback = on_fallback
        """Called for each answer of the built-in backend."""
        self._pause = pause
        self._clock = clock
        self._lock = threading.Lock()
        self._backend: MemoryBackend | None = None
        self._failures = 0
        self._retry_at = 0.0
        self._failure: Fallback | None = None

    @property
    def primary(self) -> MemoryBackend:
        """Return the configured backend, which is opened at the first call."""
        with self._lock:
            if self._backend is None:
                self._backend = self._open()
            return self._backend

    def start(self) -> None:
        """Open the backend now, for one that works in the background."""
        self._try(lambda backend: backend, self._limits.answer)

    def search(self, query: Query, *, freshen: bool = True) -> Found:
        def ask(backend: MemoryBackend) -> Found:
            answer = backend.search(query, freshen=freshen)
            return self._check.found(answer, query.max_results)

        found = self._try(ask, self._limits.answer)
        if not isinstance(found, Fallback):
            return found
        self._on_fallback()
        answer = self.builtin.search(query, freshen=freshen)
        own = answer.degraded
        reason = f"{found.reason} {own.reason}" if own is not None else found.reason
        degraded = Degraded(reason, found.next_step or (own.fix if own is not None else ""))
        return answer._replace(fallback_from=self.name, degraded=degraded)

    def sync(
        self,
        *,
        force: bool = False,
        progress: Callable[[Progress], None] | None = None,
        instant_only: bool = False,
        seconds: float | None = None,
    ) -> SyncReport:
        def run(backend: MemoryBackend) -> SyncReport:
            return self._check.report(
                backend.sync(
                    force=force, progress=progress, instant_only=instant_only, seconds=seconds
                )
            )

        report = self._try(run, self._limits.sync, retry=force or seconds is None)
        if not isinstance(report, Fallback):
            return report
        done = self.builtin.sync(
            force=force, progress=progress, instant_only=instant_only, seconds=seconds
        )
        return done._replace(degraded=Degraded(report.reason, report.next_step))

    def refresh(self, reason: str, *, deltas: bool = False) -> bool:
        started = self._try(
            lambda backend: self._check.refreshed(backend.refresh(reason, deltas=deltas)),
            self._limits.answer,
        )
        if isinstance(started, Fallback):
            return self.builtin.refresh(reason, deltas=deltas)
        return started

    def status(self) -> Status:
        status = self._try(
            lambda backend: self._check.status(backend.status()), self._limits.answer
        )
        if not isinstance(status, Fallback):
            return status._replace(backend=self.name, fallback=None)
        return self.builtin.status()._replace(fallback=status)

    def plan(self) -> tuple[SyncPlan, Scan] | None:
        """Return what a sync would do; None if the backend cannot plan."""

        def ask(backend: MemoryBackend) -> tuple[SyncPlan, Scan] | None:
            return backend.plan() if isinstance(backend, Plans) else None

        planned = self._try(ask, self._limits.answer)
        return None if isinstance(planned, Fallback) else planned

    def probe(self) -> tuple[Probe, ...]:
        """Probe the configured backend, also during the pause after a failure."""
        probes = self._try(
            lambda backend: self._check.probes(backend.probe()), self._limits.answer, retry=True
        )
        if not isinstance(probes, Fallback):
            return probes
        failed = Probe(
            part="backend",
            state="failed",
            name=self.name,
            reason=probes.reason,
            next_step=probes.next_step,
        )
        return (failed,)

    def close(self) -> None:
        with self._lock:
            backend, self._backend = self._backend, None
        if backend is not None:
            _close(backend)
        self.builtin.close()

    def _try(
        self, call: Callable[[MemoryBackend], T], seconds: float, *, retry: bool = False
    ) -> T | Fallback:
        """Call the backend, or return why the built-in one has to answer.

        During the pause after a failure the backend is not called, except with `retry`."""
        if self._failure is not None and self._clock() < self._retry_at and not retry:
            return self._failure
        try:
            answer = _within(seconds, lambda: call(self.primary), self.name)
        except CALLERS_MISTAKES:
            raise
        except Exception as error:  # the boundary of a plugin call: the backend may do anything
            return self._note_failure(error)
        self._failures, self._failure = 0, None
        return answer

    def _note_failure(self, error: Exception) -> Fallback:
        hint = str(getattr(error, "hint", "") or "")
        failure = Fallback(self.name, self._clean(_reason(error, self.name)), self._clean(hint))
        with self._lock:
            backend, self._backend = self._backend, None
            self._failures += 1
            self._failure = failure
            self._retry_at = self._clock() + self._pause.wait(self._failures)
        if backend is not None:
            _close(backend)
        return failure


def _within(seconds: float, call: Callable[[], T], name: str) -> T:
    """Wait for a call of the backend for some seconds; raises Exception and Cancelled only."""
    try:
        return call_within(seconds, call, name)
    except TimeLimitExceeded as error:
        message = f"The backend {name} took longer than {seconds:g} s."
        raise BackendUnavailable(message, backend=name) from error
    except (Exception, Cancelled):
        raise
    except BaseException as error:  # the boundary of a plugin call: it may end the interpreter
        message = f"The backend {name} ended with {error!r}."
        raise BackendUnavailable(message, backend=name) from error


def _close(backend: MemoryBackend) -> None:
    """Close a backend that has failed or is no longer needed; its errors do not matter."""
    thread = threading.Thread(target=_close_quietly, args=(backend,), daemon=True)
    thread.start()
    thread.join(CLOSE_SECONDS)


def _close_quietly(backend: MemoryBackend) -> None:
    try:
        backend.close()
    except BaseException:  # the boundary of a thread and of a plugin call
        return


def _reason(error: Exception, name: str) -> str:
    """Describe a failure in one sentence for users."""
    if isinstance(error, BackendError):
        return error.message
    if isinstance(error, ClawmarkError):
        return f"The backend {name} failed: {error.message}"
    said = " ".join(f"{type(error).__name__}: {error}".split())[:200]
    return f"The backend {name} failed: {said.rstrip('.: ')}."
