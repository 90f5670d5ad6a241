"""`clawmark search --batch`: read one query per line and write one JSON line for each.

A line is the query itself or an object `{"id", "query", "since", "until", "path", "source",
"asOf", "space"}`; the default id is the line number. A filter on a line overrides the one on the
command line. An invalid line is answered with an error line. The index is updated once, before the
first query about the present."""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from collections.abc import Iterator
from typing import BinaryIO

from clawmark.cli.arguments import UsageError
from clawmark.cli.as_json import camel, error_as_json, found_as_json
from clawmark.cli.output import emit, flush
from clawmark.memory import Memory
from clawmark.model.errors import ClawmarkError
from clawmark.model.values import Filters

MAX_LINE = 1 << 20


def answer_batch(memory: Memory, args: Namespace) -> int:
    """Answer every line; the exit code is 0 even if some lines were invalid."""
    is_first = True
    with _open(args.batch) as file:
        for number, line in enumerate(_lines(file), start=1):
            if line is not None and not line.strip():
                continue
            identity: object = number
            try:
                identity, query, filters = read_line(line, number)
                found = memory.search(
                    query,
                    **{name: filters.get(name, getattr(args, name)) for name in Filters._fields},
                    max_results=args.max_results,
                    min_score=args.min_score,
                    explain=args.explain,
                    freshen=is_first,
                )
                is_first = is_first and found.as_of is not None
                if args.explain:
                    found = memory.with_replaced(found)
                emit({"id": identity, **found_as_json(found, memory.absolute_path)})
            except ClawmarkError as error:
                emit({"id": getattr(error, "id", identity), "error": error_as_json(error)})
            flush()
    return 0


class LineError(UsageError):
    """Raised for a line that has an id but is not a valid query."""

    def __init__(self, message: str, *, id: object, hint: str) -> None:  # noqa: A002
        super().__init__(message, hint=hint)
        self.id = id


def read_line(line: bytes | None, number: int) -> tuple[object, str, dict[str, str]]:
    """Return the id, the query and the filters of a line; raise `UsageError` if it is invalid."""
    if line is None:
        raise UsageError(f"Line {number} is longer than {MAX_LINE:,} bytes.")
    text = line.decode("utf-8", "replace").strip().removeprefix("\ufeff")
    if not text.startswith("{"):
        return number, text, {}
    try:
        given = json.loads(text)
    except (ValueError, RecursionError):
        raise UsageError(
            f"Line {number} is not valid JSON.", hint='Write {"id": …, "query": "…"}.'
        ) from None
    identity = given.get("id", number)
    if (
        not isinstance(identity, (str, int, float))
        or isinstance(identity, bool)
        or identity != identity
    ):
        raise UsageError(f"The id of line {number} must be a string or a number.")
    if not isinstance(given.get("query"), str):
        raise LineError(
            f"Line {number} has no query.", id=identity, hint='Write {"id": …, "query": "…"}.'
        )
    filters = {
        name: given[key] for name in Filters._fields if given.get(key := camel(name)) is not None
    }
    for name, value in filters.items():
        if not isinstance(value, str):
            raise LineError(
                f"{camel(name)} on line {number} must be a string.",
                id=identity,
                hint='Write "2026-02-24" or "memory/**".',
            )
    return identity, given["query"], filters


def _open(name: str) -> BinaryIO:
    if name == "-":
        return sys.stdin.buffer
    try:
        return open(name, "rb")
    except OSError as error:
        raise UsageError(f"{name} could not be read: {error.strerror}.") from None


def _lines(file: BinaryIO) -> Iterator[bytes | None]:
    """Yield every line; None for one that is too long, whose bytes are dropped."""
    while True:
        line = file.readline(MAX_LINE + 1)
        if not line:
            return
        if len(line) <= MAX_LINE:
            yield line
            continue
        while line and not line.endswith(b"\n"):
            line = file.readline(MAX_LINE)
        yield None
