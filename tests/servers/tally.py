"""What a server counts: requests, texts, texts sent again after they had been answered, and how
long it was busy.

Everything may be called from any thread. `answered` is said only of a right answer that a client
that was still there could read; a text that comes back after that has been paid for twice. It is
counted before the answer is written and taken back when that fails, so that whoever has read an
answer finds it counted."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence


class Record:
    """One request for vectors; times are of `time.monotonic`."""

    __slots__ = ("answered", "api", "began", "ended", "number", "promised", "texts")

    def __init__(self, number: int, api: str, texts: tuple[str, ...], began: float) -> None:
        self.number = number
        self.api = api
        self.texts = texts
        self.began = began
        self.ended = 0.0
        self.answered = False
        self.promised: set[str] = set()
        """Its texts that count as answered, though the answer may not have been written yet."""


class Tally:
    """The counters of one server."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.reset()

    def reset(self) -> None:
        """Forget everything."""
        with self._lock:
            self.log: list[Record] = []
            self.calls: dict[str, int] = {}
            """How often each API was called, embedding or not."""
            self.repeated: list[str] = []
            self.unauthorised = 0
            self.keys_in_url = 0
            self.most_in_flight = 0
            self.busy_seconds = 0.0
            self.busy_wall_seconds = 0.0
            self._answered: set[str] = set()
            self._in_flight = 0
            self._since = 0.0

    def called(self, api: str) -> None:
        with self._lock:
            self.calls[api] = self.calls.get(api, 0) + 1

    def began(self, api: str, texts: Sequence[str]) -> Record:
        """A request is here in full."""
        now = time.monotonic()
        with self._lock:
            record = Record(number=len(self.log), api=api, texts=tuple(texts), began=now)
            self.log.append(record)
            self.repeated += [text for text in texts if text in self._answered]
            if not self._in_flight:
                self._since = now
            self._in_flight += 1
            self.most_in_flight = max(self.most_in_flight, self._in_flight)
        return record

    def answering(self, record: Record) -> None:
        """Its right answer is about to be written."""
        with self._lock:
            record.promised = set(record.texts) - self._answered
            self._answered |= record.promised

    def ended(self, record: Record, *, answered: bool) -> None:
        """Its answer is written, or will never be."""
        now = time.monotonic()
        with self._lock:
            record.ended, record.answered = now, answered
            if answered:
                self._answered.update(record.texts)
            else:
                self._answered -= record.promised
            self.busy_seconds += now - record.began
            self._in_flight -= 1
            if not self._in_flight:
                self.busy_wall_seconds += now - self._since

    def bumped(self, counter: str) -> None:
        """Add one to `unauthorised` or `keys_in_url`."""
        with self._lock:
            setattr(self, counter, getattr(self, counter) + 1)

    def times_sent(self, text: str) -> int:
        """How often a text came in."""
        with self._lock:
            return sum(record.texts.count(text) for record in self.log)

    def has_answered(self, text: str) -> bool:
        with self._lock:
            return text in self._answered

    def snapshot(self) -> dict[str, object]:
        """The counters by name, for `/stats`."""
        with self._lock:
            texts = [text for record in self.log for text in record.texts]
            return {
                "requests": len(self.log),
                "texts": len(texts),
                "distinct_texts": len(set(texts)),
                "answered_texts": len(self._answered),
                "repeated_texts": len(self.repeated),
                "largest_request": max((len(record.texts) for record in self.log), default=0),
                "most_in_flight": self.most_in_flight,
                "busy_seconds": round(self.busy_seconds, 6),
                "busy_wall_seconds": round(self.busy_wall_seconds, 6),
                "unauthorised": self.unauthorised,
                "keys_in_url": self.keys_in_url,
                "calls": dict(sorted(self.calls.items())),
            }
