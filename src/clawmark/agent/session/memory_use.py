"""Find in a transcript what a session took from the memory: recalled, searched for, or read.

Three traces are read: blocks of recalled memory, calls of `memory_search` and `memory_get` with
their results, and the record that a `Conversation` writes when memory was recalled for a message.
What a host sends to its model without writing it down leaves no trace."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Literal, NamedTuple, TypeAlias

from clawmark.agent.notes.recalled_context import (
    CALLS,
    READING,
    ids_of,
    objects_in,
    parsed_json,
    strings_in,
)
from clawmark.agent.prompt.recall import parse_block
from clawmark.text.transcripts.records import parse_line, utc_time
from clawmark.text.untrusted.recalled_blocks import recalled_blocks

RECALLED_RECORD = "clawmark.recalled"
"""The `customType` of the record in a transcript that says what was recalled for a message."""

How: TypeAlias = Literal["recalled", "searched", "read"]
_BLOCK = "[recalled memory "
_MARKS = (*(name.encode() for name in READING), _BLOCK.encode(), RECALLED_RECORD.encode())


class MemoryUse(NamedTuple):
    """One time that text of the memory got into a session."""

    line: int
    """Line of the transcript, counted from 1."""
    time: str
    """In UTC; empty if the record has no time."""
    how: How
    """`recalled` without being asked for, or `searched` or `read` by the model."""
    query: str
    """What the model searched for."""
    citations: tuple[str, ...]


def recalled_record(block: str) -> dict[str, object]:
    """Return the fields of the record that says what a recalled block holds; never its text."""
    return {"customType": RECALLED_RECORD, "data": {"citations": list(_cited_in(block))}}


def find_memory_uses(lines: Iterable[tuple[int, bytes | None]]) -> Iterator[MemoryUse]:
    """Yield what a session took from the memory, from the numbered lines of its transcript."""
    waiting = dict[str, MemoryUse]()
    for number, data in lines:
        if data is None or not any(mark in data for mark in (*_MARKS, *map(str.encode, waiting))):
            continue
        record = parse_line(data.decode("utf-8", "replace"))
        time = utc_time(record.get("timestamp"))
        yield from _recalled(record, number, time)
        for one in objects_in(record):
            ids = ids_of(one)
            if one.get("type") in CALLS and (use := _called(one, number, time)) is not None:
                if ids:
                    waiting[ids[-1]] = use
                else:
                    yield use
            elif known := [name for name in ids if name in waiting]:
                yield _with_result(waiting.pop(known[0]), one)
    yield from waiting.values()


def _recalled(record: dict[str, Any], number: int, time: str) -> Iterator[MemoryUse]:
    """Yield what a record says was recalled without being asked for."""
    found = list[tuple[str, ...]]()
    if record.get("customType") == RECALLED_RECORD:
        data = record.get("data")
        named = data.get("citations") if isinstance(data, dict) else None
        found.append(tuple(one for one in named or () if isinstance(one, str)))
    else:
        texts = (text for text in strings_in(record) if _BLOCK in text)
        blocks = (block.strip() for text in texts for block in recalled_blocks(text))
        found += [_cited_in(block) for block in blocks if block.startswith(_BLOCK)]
    for citations in found:
        yield MemoryUse(line=number, time=time, how="recalled", query="", citations=citations)


def _cited_in(block: str) -> tuple[str, ...]:
    """Return the sources of a recalled block; nothing if it was changed on its way."""
    try:
        return tuple(item.citation for item in parse_block(block))
    except (ValueError, IndexError):
        return ()


def _called(call: dict[str, object], number: int, time: str) -> MemoryUse | None:
    """Return the use that a tool call is the beginning of; None for other tools."""
    name = str(call.get("name") or "")
    if not name.endswith(READING):
        return None
    given = next((call[key] for key in ("arguments", "input") if key in call), None)
    arguments = parsed_json(given) if isinstance(given, str) else given
    arguments = arguments if isinstance(arguments, dict) else {}
    is_search = name.endswith("memory_search")
    return MemoryUse(
        line=number,
        time=time,
        how="searched" if is_search else "read",
        query=str(arguments.get("query") or "") if is_search else "",
        citations=(),
    )


def _with_result(use: MemoryUse, result: dict[str, object]) -> MemoryUse:
    """Add the citations of a tool's result."""
    payloads = list(_objects(result))
    if use.how == "read":
        cited = [_citation(one, "from", _last_read(one)) for one in payloads if one.get("text")]
    else:
        lists = [found for one in payloads if isinstance(found := one.get("results"), list)]
        hits = [hit for found in lists for hit in found if isinstance(hit, dict)]
        cited = [_citation(hit, "startLine", hit.get("endLine")) for hit in hits]
    return use._replace(citations=tuple(dict.fromkeys(filter(None, cited))))


def _objects(value: object) -> Iterator[dict[str, object]]:
    """Yield every object inside a value, also inside a text that is JSON."""
    if isinstance(value, str):
        value = parsed_json(value)
    if isinstance(value, dict):
        yield value
        value = list(value.values())
    if isinstance(value, list):
        for one in value:
            yield from _objects(one)


def _citation(given: dict[str, object], first: str, last: object) -> str:
    """Return `path#L3-L5` for an object with a path and lines; empty without a path."""
    path, start = given.get("path"), given.get(first)
    if not isinstance(path, str) or not path:
        return ""
    if not isinstance(start, int):
        return path
    is_range = isinstance(last, int) and last > start
    return f"{path}#L{start}-L{last}" if is_range else f"{path}#L{start}"


def _last_read(given: dict[str, object]) -> object:
    first, lines = given.get("from"), given.get("lines")
    return first + lines - 1 if isinstance(first, int) and isinstance(lines, int) else None
