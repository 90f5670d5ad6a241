"""Count the calls, texts and tokens of embedding per day and model, and enforce the daily budget.

All threads and processes share one small file. Losing it loses only history, so errors with it are
never raised."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from clawmark.model.errors import EmbeddingUnavailable
from clawmark.system import shared_json

BUDGET_KEY = "memorySearch.remote.dailyTokens"
"""The setting that `daily_tokens` comes from, for the hint."""
KEPT_DAYS = 90
MAX_MODELS = 64
"""Per day; more of them are counted under one name, so that the file stays small."""
OTHERS = "other/models"
WRITE_SECONDS = 0.5
RESERVED_SECONDS = 60.0
"""How long an allowed call may take; one that is not recorded by then has failed."""
LOCK_SECONDS = 1.0

_VERSION = 1
_OLDER = "older"


class OverBudget(EmbeddingUnavailable):
    """More tokens than are left today; fewer texts may still fit."""


class Used(NamedTuple):
    """A sum of calls."""

    calls: int
    texts: int
    tokens: int


class ModelUse(NamedTuple):
    """The sum of all calls of one model."""

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
    """The counts in one file; call `flush` at the end."""

    def __init__(
        self, path: str, *, daily_tokens: int = 0, clock: Callable[[], float] = time.time
    ) -> None:
        self.path = path
        self.daily_tokens = daily_tokens
        self._clock = clock
        self._lock = threading.Lock()
        self._pending: Book = {}
        self._written = float("-inf")
        self._reserved: list[tuple[float, int]] = []
        """Time and tokens of the calls that were allowed and have not ended."""
        self._seen: tuple[object, Book] = (None, {})

    def allow(self, tokens: int) -> None:
        """Reserve the tokens of a call; raise OverBudget when they exceed the day's budget."""
        if self.daily_tokens <= 0:
            return
        with self._lock:
            now = self._clock()
            self._reserved = [
                (when, count)
                for when, count in self._reserved
                if abs(now - when) < RESERVED_SECONDS
            ]
            day = _day(now)
            used = sum(
                one.tokens
                for book in (self._read(), self._pending)
                for one in book.get(day, {}).values()
            )
            if used + sum(count for _, count in self._reserved) + tokens > self.daily_tokens:
                raise _used_up(self.daily_tokens)
            self._reserved.append((now, tokens))

    def refused(self, tokens: int) -> None:
        """Release the tokens of a call that the service rejected, which costs nothing."""
        with self._lock:
            self._release(tokens)

    def record(self, provider: str, model: str, calls: int, texts: int, tokens: int) -> None:
        """Count successful calls; written at most twice a second, or at once with a budget."""
        with self._lock:
            now = self._clock()
            self._release(tokens)
            # Names come from the configuration and may be of any length.
            name = f"{provider[:40]}/{model[:160]}"
            _add(self._pending, _day(now), name, Used(calls, texts, tokens))
            if self.daily_tokens > 0 or abs(now - self._written) >= WRITE_SECONDS:
                self._write(now)

    def flush(self) -> None:
        """Write what was counted."""
        with self._lock:
            if self._pending:
                self._write(self._clock())

    def summary(self) -> LedgerSummary:
        """Return the sums of today and of all time, of all processes."""
        with self._lock:
            book: Book = {}
            _merge(book, self._read())
            _merge(book, self._pending)
            today = book.get(_day(self._clock()), {}).values()
        models: dict[str, Used] = {}
        for day in book.values():
            for name, used in day.items():
                models[name] = _sum(models.get(name), used)
        rows = [_model_use(name, used) for name, used in sorted(models.items())]
        return LedgerSummary(
            today_calls=sum(used.calls for used in today),
            today_tokens=sum(used.tokens for used in today),
            total_calls=sum(row.calls for row in rows),
            total_tokens=sum(row.tokens for row in rows),
            by_model=tuple(rows),
            daily_tokens=max(self.daily_tokens, 0),
        )

    def _release(self, tokens: int) -> None:
        """Remove the reservation of this size, or the oldest one when none has this size."""
        sizes = [count for _, count in self._reserved]
        if sizes:
            del self._reserved[sizes.index(tokens) if tokens in sizes else 0]

    def _write(self, now: float) -> None:
        self._written = now
        try:
            with shared_json.locked(self.path, LOCK_SECONDS) as is_held:
                if not is_held:
                    return
                try:
                    book = _parsed(shared_json.load(self.path))
                except ValueError:
                    shared_json.set_aside(self.path)
                    book = {}
                _merge(book, self._pending)
                _fold(book, now)
                shared_json.save(self.path, {"version": _VERSION, "days": book})
        except OSError:
            return  # kept in memory until the next write
        self._pending = {}

    def _read(self) -> Book:
        """Return the book on disk, read again only when the file changed."""
        try:
            found = os.stat(self.path, follow_symlinks=False)
            mark = (found.st_mtime_ns, found.st_ino, found.st_size)
            if self._seen[0] != mark:
                self._seen = (mark, _parsed(shared_json.load(self.path)))
        except (OSError, ValueError):
            return {}
        return self._seen[1]


def _model_use(name: str, used: Used) -> ModelUse:
    provider, _, model = name.partition("/")
    return ModelUse(
        provider=provider, model=model, calls=used.calls, texts=used.texts, tokens=used.tokens
    )


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
    if name not in models and len(models) >= MAX_MODELS:
        name = OTHERS
    models[name] = _sum(models.get(name), used)


def _merge(book: Book, other: Book) -> None:
    for day, models in other.items():
        for name, used in models.items():
            _add(book, day, name, used)


def _fold(book: Book, now: float) -> None:
    """Merge old days into one, also when a wrong clock has made too many."""
    first = _day(now - KEPT_DAYS * 86400)
    days = sorted(day for day in book if day != _OLDER)
    for day in [
        day for number, day in enumerate(days) if day < first or number < len(days) - 2 * KEPT_DAYS
    ]:
        _merge(book, {_OLDER: book.pop(day)})


def _parsed(value: dict[str, object] | None) -> Book:
    """Read the book from a file's JSON object; raise ValueError when it is damaged."""
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
        hint=f"Until tomorrow keywords answer; {BUDGET_KEY} raises or removes the budget.",
    )
