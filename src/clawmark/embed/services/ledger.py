"""What embedding cost: calls, texts and tokens per day and model, in one small file; and the daily
budget.

In: every call that was answered. Out: sums for `status`, and a refusal when a call would pass the
budget of the day. The file only counts: losing it loses history and nothing else, so no trouble
with it ever reaches the caller. Prices are left to `prices`; what happens when the budget is used
up (keywords answer) is left to sync and search."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from clawmark.model.errors import EmbeddingUnavailable
from clawmark.system import shared_json as statefile

BUDGET_KEY = "memorySearch.remote.dailyTokens"
"""The setting that `daily_tokens` comes from, for the hint."""
KEPT_DAYS = 90
MOST_MODELS = 64
"""More names than anybody uses; a day with more keeps the rest under one name, so that the file
stays small.
"""
OTHERS = "other/models"
WRITE_SECONDS = 0.5
PROMISE_SECONDS = 60.0
"""How long an allowed call may be on its way; one that was never recorded has failed by then."""
LOCK_SECONDS = 1.0

_VERSION = 1
_OLDER = "older"


class OverBudget(EmbeddingUnavailable):
    """More tokens than are left today: fewer texts may still pass."""


class Used(NamedTuple):
    """A sum of calls."""

    calls: int
    texts: int
    tokens: int


class ModelUse(NamedTuple):
    """Everything one model was ever used for."""

    provider: str
    model: str
    calls: int
    texts: int
    tokens: int


class LedgerSummary(NamedTuple):
    """What `status` shows."""

    today_calls: int
    today_tokens: int
    total_calls: int
    total_tokens: int
    by_model: tuple[ModelUse, ...]
    daily_tokens: int
    """The budget; 0 when there is none."""


Book: TypeAlias = dict[str, dict[str, Used]]
"""Day (YYYY-MM-DD, or `older`) → provider/model → what was used."""


class Ledger:
    """Counts for every thread and process that shares the file; call `flush` when the work is done."""

    def __init__(
        self, path: str, *, daily_tokens: int = 0, clock: Callable[[], float] = time.time
    ) -> None:
        self.path = path
        self.daily_tokens = daily_tokens
        self._clock = clock
        self._lock = threading.Lock()
        self._pending: Book = {}
        self._written = float("-inf")
        self._promised: list[tuple[float, int]] = []
        """When, and how many tokens: calls that were allowed and are still on their way."""
        self._seen: tuple[object, Book] = (None, {})

    def allow(self, tokens: int) -> None:
        """Raise OverBudget when a call of so many tokens would pass the budget of the day."""
        if self.daily_tokens <= 0:
            return
        with self._lock:
            now = self._clock()
            self._promised = [
                (when, count) for when, count in self._promised if abs(now - when) < PROMISE_SECONDS
            ]
            day = _day(now)
            used = sum(
                one.tokens
                for book in (self._read(), self._pending)
                for one in book.get(day, {}).values()
            )
            if used + sum(count for _, count in self._promised) + tokens > self.daily_tokens:
                raise _used_up(self.daily_tokens)
            self._promised.append((now, tokens))

    def refused(self, tokens: int) -> None:
        """An allowed call was refused, so it cost nothing: its tokens are there for another one."""
        with self._lock:
            self._keep_promise(tokens)

    def record(self, provider: str, model: str, calls: int, texts: int, tokens: int) -> None:
        """Count calls that were answered; written down at most twice a second, and at once when
        there is a budget.
        """
        with self._lock:
            now = self._clock()
            self._keep_promise(tokens)
            # Names come from the configuration; a line of the file stays a line.
            name = f"{provider[:40]}/{model[:160]}"
            _add(self._pending, _day(now), name, Used(calls, texts, tokens))
            if self.daily_tokens > 0 or abs(now - self._written) >= WRITE_SECONDS:
                self._write(now)

    def flush(self) -> None:
        """Write down what was gathered."""
        with self._lock:
            if self._pending:
                self._write(self._clock())

    def summary(self) -> LedgerSummary:
        """The sums of today and of all time, every process's included."""
        with self._lock:
            book: Book = {}
            _merge(book, self._read())
            _merge(book, self._pending)
            today = book.get(_day(self._clock()), {}).values()
        models: dict[str, Used] = {}
        for day in book.values():
            for name, used in day.items():
                models[name] = _sum(models.get(name), used)
        rows = [
            ModelUse(name.partition("/")[0], name.partition("/")[2], *used)
            for name, used in sorted(models.items())
        ]
        return LedgerSummary(
            today_calls=sum(used.calls for used in today),
            today_tokens=sum(used.tokens for used in today),
            total_calls=sum(row.calls for row in rows),
            total_tokens=sum(row.tokens for row in rows),
            by_model=tuple(rows),
            daily_tokens=max(self.daily_tokens, 0),
        )

    def _keep_promise(self, tokens: int) -> None:
        """One call came back: the promise of its size goes, or the oldest when its size was
        estimated otherwise.
        """
        sizes = [count for _, count in self._promised]
        if sizes:
            del self._promised[sizes.index(tokens) if tokens in sizes else 0]

    def _write(self, now: float) -> None:
        self._written = now
        try:
            with statefile.locked(self.path, LOCK_SECONDS) as is_held:
                if not is_held:
                    return
                try:
                    book = _parsed(statefile.load(self.path))
                except ValueError:
                    statefile.set_aside(self.path)
                    book = {}
                _merge(book, self._pending)
                _fold(book, now)
                statefile.save(self.path, {"version": _VERSION, "days": book})
        except OSError:
            return  # kept in memory, and tried again with the next call
        self._pending = {}

    def _read(self) -> Book:
        """The book as it is on disk, read again only when somebody replaced it."""
        try:
            found = os.stat(self.path, follow_symlinks=False)
            mark = (found.st_mtime_ns, found.st_ino, found.st_size)
            if self._seen[0] != mark:
                self._seen = (mark, _parsed(statefile.load(self.path)))
        except (OSError, ValueError):
            return {}
        return self._seen[1]


def _day(now: float) -> str:
    return time.strftime("%Y-%m-%d", time.localtime(now))


def _sum(one: Used | None, other: Used) -> Used:
    return (
        other
        if one is None
        else Used(one.calls + other.calls, one.texts + other.texts, one.tokens + other.tokens)
    )


def _add(book: Book, day: str, name: str, used: Used) -> None:
    models = book.setdefault(day, {})
    if name not in models and len(models) >= MOST_MODELS:
        name = OTHERS
    models[name] = _sum(models.get(name), used)


def _merge(book: Book, other: Book) -> None:
    for day, models in other.items():
        for name, used in models.items():
            _add(book, day, name, used)


def _fold(book: Book, now: float) -> None:
    """Sum up the days that are too old, and the oldest ones when a wrong clock has made too many."""
    first = _day(now - KEPT_DAYS * 86400)
    days = sorted(day for day in book if day != _OLDER)
    for day in [
        day for number, day in enumerate(days) if day < first or number < len(days) - 2 * KEPT_DAYS
    ]:
        _merge(book, {_OLDER: book.pop(day)})


def _parsed(value: dict[str, object] | None) -> Book:
    """The book in a file's object; raises ValueError when it is not one of ours."""
    if value is None:
        return {}
    days = value.get("days") if value.get("version") == _VERSION else None
    if not isinstance(days, dict) or not all(isinstance(models, dict) for models in days.values()):
        raise ValueError("not a ledger")
    book: Book = {}
    for day, models in days.items():
        for name, used in models.items():
            if not (
                isinstance(used, list)
                and len(used) == 3
                and all(type(n) is int and n >= 0 for n in used)
                and "/" in name
            ):
                raise ValueError("not a sum")
            _add(book, day, name, Used(*used))
    return book


def _used_up(budget: int) -> OverBudget:
    return OverBudget(
        f"Today's embedding budget of {budget:,} tokens is used up.",
        provider="",
        hint=f"Keywords answer meanwhile, and embedding goes on tomorrow; "
        f"{BUDGET_KEY} raises or removes the budget.",
    )
