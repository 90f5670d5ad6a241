"""A backend that misbehaves in every way that the fallback has to survive."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from clawmark.model.errors import BackendMisbehaved, BackendUnavailable
from clawmark.model.values import Found, Hit

if TYPE_CHECKING:
    from clawmark.model.documents import Excerpt

HIT = Hit(
    path="memory/2026-02-24.md",
    start_line=3,
    end_line=3,
    score=0.9,
    snippet="The heron nests by the old pier.",
    snippet_start=3,
    snippet_end=3,
    source="memory",
    vector_score=0.0,
    text_score=0.9,
    date="2026-02-24",
    snippet_ranges=((3, 3),),
)


def _found(*hits: Any) -> Found:
    return Found(
        hits=hits,
        nothing=None,
        mode="fts-only",
        provider="misbehaving",
        model="",
        degraded=None,
        due_files=0,
        milliseconds=0.0,
    )


def _raiser(error: BaseException) -> Callable[[], Any]:
    def answer() -> Any:
        raise error

    return answer


ANSWERS: dict[str, Any] = {
    "returns None": None,
    "returns text": "no hits today",
    "returns a dictionary": {"results": []},
    "returns a number": -1,
    "returns an empty answer without a reason": _found(),
    "returns hits that are texts": _found("memory/2026-02-24.md"),
    "cites a file outside of the workspace": _found(HIT._replace(path="../../../etc/passwd")),
    "cites an absolute path": _found(HIT._replace(path="/etc/passwd")),
    "cites a file that is not memory": _found(HIT._replace(path="AGENTS.md")),
    "cites a path with a NUL": _found(HIT._replace(path="memory/\0.md")),
    "cites a file that does not exist": _found(HIT._replace(path="memory/absent.md")),
    "cites lines after the end": _found(HIT._replace(start_line=900, end_line=901)),
    "cites line 0": _found(HIT._replace(start_line=0)),
    "cites lines in reverse": _found(HIT._replace(start_line=3, end_line=2)),
    "cites lines that are texts": _found(HIT._replace(start_line="3")),  # type: ignore[arg-type]
    "scores NaN": _found(HIT._replace(score=float("nan"))),
    "scores infinity": _found(HIT._replace(score=float("inf"))),
    "has a snippet that is not text": _found(HIT._replace(snippet=b"x")),  # type: ignore[arg-type]
}
"""What the misbehaving backend answers to every call."""

ACTIONS: dict[str, Callable[[], Any]] = {
    "raises an exception": _raiser(RuntimeError("out of order")),
    "raises an exception without a text": _raiser(KeyError()),
    "ends the thread": _raiser(SystemExit(3)),
    "is unavailable": _raiser(BackendUnavailable("It is away.", backend="misbehaving")),
    "reports that it misbehaves": _raiser(BackendMisbehaved("Not again.", backend="misbehaving")),
    "runs out of memory": _raiser(MemoryError()),
    "recurses without end": _raiser(RecursionError("too deep")),
}

HANGS = "hangs"
CLOSES_ITSELF = "closes itself"
RAISES_IN_CLOSE = "raises when it is closed"
MISBEHAVIOURS = (*ANSWERS, *ACTIONS, HANGS, CLOSES_ITSELF, RAISES_IN_CLOSE)
"""Every way in which a `MisbehavingBackend` can misbehave."""


class MisbehavingBackend:
    """A `MemoryBackend` that misbehaves in one way, in every method."""

    def __init__(self, how: str) -> None:
        self._how = how
        self._released = threading.Event()
        self.calls = 0
        self.is_closed = False

    def search(self, query: Any, *, freshen: bool = True) -> Any:
        return self._misbehave()

    def read(
        self, path: str, start: int | None = None, lines: int | None = None, max_chars: int = 12_000
    ) -> Excerpt:
        answer: Excerpt = self._misbehave()
        return answer

    def sync(self, **_: Any) -> Any:
        return self._misbehave()

    def refresh(self, reason: str, *, deltas: bool = False) -> Any:
        return self._misbehave()

    def status(self) -> Any:
        return self._misbehave()

    def probe(self) -> Any:
        return self._misbehave()

    def close(self) -> None:
        """Release hanging calls."""
        self.is_closed = True
        self._released.set()
        if self._how == RAISES_IN_CLOSE:
            raise OSError("it does not want to close")

    def _misbehave(self) -> Any:
        self.calls += 1
        if self._how in ACTIONS:
            return ACTIONS[self._how]()
        if self._how == HANGS:
            self._released.wait()
            return None
        if self._how == CLOSES_ITSELF:
            self.close()
            raise RuntimeError("the backend is closed")
        return ANSWERS.get(self._how)
