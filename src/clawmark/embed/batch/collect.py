"""The output of a finished batch job: lines in as they arrive, checked unit vectors out, stored in
portions.

A line belongs to the text whose hash it names, whatever its place. What is missing, of another size
or without a direction is no vector; its text is left to plain calls. A connection that breaks costs
time and nothing else: what was stored stays, and the output is there to be read again."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator

from clawmark.embed.batch.calls import MOST_LINE, Answer, Calls, Dialect
from clawmark.embed.services.parsing import check_vectors, to_unit
from clawmark.model.errors import EmbeddingUnavailable
from clawmark.model.values import Vector

PORTION = 256
"""Vectors stored at a time: seldom enough for the index, often enough for a kill to cost no more
than a second.
"""
MOST_ANSWER = 256 << 10
"""Bytes of a line on average at the most; three times what the largest vectors need as text."""
DOWNLOADS = 3


class Collector:
    """Takes in one output after the other; `dims` is learned from the first vector where it is not
    known before.
    """

    def __init__(
        self, calls: Calls, dialect: Dialect, dims: int, store: Callable[[dict[str, Vector]], None]
    ) -> None:
        self.dims = dims
        self._calls = calls
        self._dialect = dialect
        self._store = store
        self._complaint = ""

    def collect(self, output: str, hashes: Collection[str]) -> tuple[dict[str, Vector], str]:
        """The vectors of these texts, all of them stored, and the first complaint; raises
        EmbeddingError.
        """
        found: dict[str, Vector] = {}
        self._complaint = ""
        for attempt in range(1, DOWNLOADS + 1):
            try:
                self._read(output, frozenset(hashes), found)
                break
            except EmbeddingUnavailable:
                if attempt == DOWNLOADS:
                    raise
        return found, self._complaint

    def first_complaint(self, errors: str) -> str:
        """What a file of errors says first; raises EmbeddingError."""
        return next(
            (answer.complaint for answer in self._answers(errors, MOST_LINE) if answer.complaint),
            "",
        )

    def _read(self, output: str, wanted: frozenset[str], found: dict[str, Vector]) -> None:
        fresh: dict[str, Vector] = {}
        try:
            for answer in self._answers(output, len(wanted) * MOST_ANSWER + MOST_LINE):
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
            if answer.complaint:
                raise ValueError(answer.complaint)
            vector = to_unit(check_vectors([answer.vector], 1)[0])
            self.dims = self.dims or len(vector) // 4
            if len(vector) != self.dims * 4:
                raise ValueError(
                    f"a vector has {len(vector) // 4} numbers where {self.dims} were due"
                )
        except (ValueError, OverflowError) as error:
            self._complaint = self._complaint or str(error)
            return None
        return vector
