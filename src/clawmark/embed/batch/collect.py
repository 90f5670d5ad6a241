"""Read the output of a finished batch job and store its checked unit vectors in portions.

A line belongs to the text whose hash it names. Texts whose vector is missing or invalid are left to
plain requests. When the connection breaks, the output is read again; what was stored stays."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator

from clawmark.embed.batch.calls import MAX_LINE, Answer, Calls, Dialect
from clawmark.embed.services.parsing import check_vectors, to_unit
from clawmark.model.errors import EmbeddingUnavailable
from clawmark.model.values import Vector

PORTION = 256
"""Vectors stored at a time; a killed process loses at most that many."""
MAX_LINE_AVERAGE = 256 << 10
"""Bytes per line on average; three times what the largest vectors need."""
DOWNLOADS = 3


class Collector:
    """Reads outputs; `dims` is learned from the first vector when it is 0."""

    def __init__(
        self, calls: Calls, dialect: Dialect, dims: int, store: Callable[[dict[str, Vector]], None]
    ) -> None:
        self.dims = dims
        self._calls = calls
        self._dialect = dialect
        self._store = store
        self._error = ""

    def collect(self, output: str, hashes: Collection[str]) -> tuple[dict[str, Vector], str]:
        """Store the vectors of these texts; return them and the first error message."""
        found: dict[str, Vector] = {}
        self._error = ""
        for attempt in range(1, DOWNLOADS + 1):
            try:
                self._read(output, frozenset(hashes), found)
                break
            except EmbeddingUnavailable:
                if attempt == DOWNLOADS:
                    raise
        return found, self._error

    def first_error(self, errors: str) -> str:
        """Return the first message in a file of errors."""
        return next(
            (answer.error for answer in self._answers(errors, MAX_LINE) if answer.error),
            "",
        )

    def _read(self, output: str, wanted: frozenset[str], found: dict[str, Vector]) -> None:
        fresh: dict[str, Vector] = {}
        try:
            for answer in self._answers(output, len(wanted) * MAX_LINE_AVERAGE + MAX_LINE):
                if answer.id not in wanted or answer.id in found:
                    continue
                vector = self._checked(answer)
                if vector is not None:
                    found[answer.id] = fresh[answer.id] = vector
                if len(fresh) >= PORTION:
                    self._store(fresh)
                    fresh = {}
        finally:
            if fresh:
                self._store(fresh)

    def _answers(self, file: str, most: int) -> Iterator[Answer]:
        for line in self._calls.lines(self._dialect.output(file), most):
            try:
                row = json.loads(line) if line.strip() else None
            except (ValueError, RecursionError):
                continue  # one broken line costs one text
            if isinstance(row, dict):
                yield self._dialect.read(row)

    def _checked(self, answer: Answer) -> Vector | None:
        try:
            if answer.error:
                raise ValueError(answer.error)
            vector = to_unit(check_vectors([answer.vector], 1)[0])
            self.dims = self.dims or len(vector) // 4
            if len(vector) != self.dims * 4:
                raise ValueError(f"a vector has {len(vector) // 4} numbers instead of {self.dims}")
        except (ValueError, OverflowError) as error:
            self._error = self._error or str(error)
            return None
        return vector
