"""`clawmark search --batch`: one query a line in, one JSON line each out, in one warm process.

A line is the query itself or an object `{"id", "query", "since", "until", "path", "source"}`;
without an id it is known by its number. A filter on a line takes the place of the one on the
command line. A line that cannot be understood gets an error line of its own and the rest go on. The
index is brought up to date once, before the first."""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from collections.abc import Iterator
from typing import BinaryIO

from clawmark.cli.arguments import UsageError
from clawmark.cli.as_json import found_as_json
from clawmark.cli.output import emit, flush
from clawmark.memory import Memory
from clawmark.model.errors import ClawmarkError
from clawmark.model.values import Filters

MAX_LINE = 1024 * 1024


def answer_batch(memory: Memory, args: Namespace) -> int:
    """Answer every line; exit code 0 even when some lines were no queries, because each says so
    itself.
    """
    is_first = True
    with _opened(args.batch) as file:
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
                is_first = False
                emit({"id": identity, **found_as_json(found, memory.absolute_path)})
            except ClawmarkError as error:
                body = {"type": type(error).__name__, "message": error.message, "hint": error.hint}
                emit({"id": getattr(error, "id", identity), "error": body})
            flush()
    return 0


def read_line(line: bytes | None, number: int) -> tuple[object, str, dict[str, str]]:
    """The id, the query and the filters of a line; UsageError when it holds no query."""
    if line is None:
        raise UsageError(f"Line {number} is longer than {MAX_LINE:,} bytes.")
    text = line.decode("utf-8", "replace").strip().removeprefix("\ufeff")
    if not text.startswith("{"):
        return number, text, {}

    try:
        given = json.loads(text)
    except (ValueError, RecursionError):
        raise UsageError(
            f"Line {number} begins like JSON and is not.", hint='Write {"id": …, "query": "…"}.'
        ) from None
    identity = given.get("id", number)
    if (
        not isinstance(identity, (str, int, float))
        or isinstance(identity, bool)
        or identity != identity
    ):
        raise UsageError(f"The id of line {number} must be a text or a number.")
    if not isinstance(given.get("query"), str):
        error = UsageError(f"Line {number} has no query.", hint='Write {"id": …, "query": "…"}.')
        error.id = identity  # type: ignore[attr-defined]
        raise error
    filters = {name: given[name] for name in Filters._fields if given.get(name) is not None}
    for name, value in filters.items():
        if not isinstance(value, str):
            error = UsageError(
                f"{name} on line {number} must be text.", hint='Write "2026-02-24" or "memory/**".'
            )
            error.id = identity  # type: ignore[attr-defined]
            raise error
    return identity, given["query"], filters


def _opened(name: str) -> BinaryIO:
    if name == "-":
        return sys.stdin.buffer
    try:
        return open(name, "rb")
    except OSError as error:
        raise UsageError(f"{name} could not be read: {error.strerror}.") from None


def _lines(file: BinaryIO) -> Iterator[bytes | None]:
    """Every line; None for one that is too long to be a query, which is read past and not kept."""
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
