"""File: a memory file with its line numbers, the passages of the index, and whose words it has."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import Response

from clawmark.memory import Memory
from clawmark.model.documents import Excerpt, IndexedFile, MemoryEntry, Passage
from clawmark.model.errors import ClawmarkError, FileMissing, HistoryDamaged
from clawmark.model.values import citation
from clawmark.text.entries import split_entries
from clawmark.text.untrusted.origin_labels import without_comments
from clawmark.web.blocks import Block, link_definitions, split_blocks
from clawmark.web.entries import ShownOrigin, minute_of, shown_origin, writers
from clawmark.web.file_routes import file_route
from clawmark.web.render import page

LINES_SHOWN = 400
CHARACTERS_SHOWN = 50_000
"""A longer file is shown in parts."""
_DAY = re.compile(r"memory/(?:[^/]+/)*([0-9]{4}-[0-9]{2}-[0-9]{2})[^/]*\.md\Z")


class Bracket(NamedTuple):
    """A passage of the index next to a row."""

    number: int
    """Counted from 1."""
    begins: bool
    ends: bool
    title: str


class Row(NamedTuple):
    """A block of the rendered file, or a line of the raw one."""

    start_line: int
    end_line: int
    text: str
    brackets: tuple[Bracket | None, ...]
    """One for each of the two tracks in the margin: neighbouring passages may overlap."""
    origin: ShownOrigin | None = None
    """Whose words it has; None for headings and the like, and below the first row of an entry."""
    entry: str = ""
    """The citation of the entry that begins here, to forget it; empty if none begins."""


class LineChange(NamedTuple):
    """A text that a line had."""

    text: str
    before: str
    when: str
    who: str
    version: str


class LineDetails(NamedTuple):
    """What is known about one line."""

    number: int
    citation: str
    entry: str
    """The citation of the entry that it belongs to; empty for a heading or a blank line."""
    origin: ShownOrigin | None
    changes: tuple[LineChange, ...]
    problem: str = ""
    """Why its history is not known."""


class FilePage(NamedTuple):
    """The model of the file page."""

    path: str
    view: str
    """`rendered` or `raw`."""
    rows: tuple[Row, ...]
    definitions: str
    first_line: int
    last_line: int
    total_lines: int
    next_line: int | None
    is_cut: bool
    """Whether a line is too long to be shown whole."""
    can_edit: bool
    sentence: str
    """Of an image or audio file, which is described only."""
    passages: int
    index_note: str
    """What is not right with the passages in the margin; empty if they fit."""
    line: LineDetails | None
    day: str = ""
    """The day that its name says."""
    lines_shown: int = LINES_SHOWN


def file_page(
    memory: Memory, path: str, view: str = "rendered", start: int = 1, line: int = 0
) -> FilePage:
    """Describe a part of a file; with `line`, the part that has it, and its history."""
    if line:
        start = (line - 1) // LINES_SHOWN * LINES_SHOWN + 1
    found = memory.read(path, start=start, lines=LINES_SHOWN, max_chars=CHARACTERS_SHOWN)
    if found.next_start is not None and line >= found.next_start:  # the lines before it are long
        found = memory.read(path, start=line, lines=LINES_SHOWN, max_chars=CHARACTERS_SHOWN)
    if found.missing:
        raise FileMissing(
            f"There is no memory file {path}.",
            hint="It may have been renamed or deleted: Search finds where its text is now.",
        )
    indexed, note = _indexed(memory, path)
    entries = [] if found.mime else _entries(found)
    origins = [shown_origin(one) for one in memory.entry_origins(entries)]
    known = {
        entry.start_line: (entry, origin) for entry, origin in zip(entries, origins, strict=True)
    }
    blocks = _lines(found) if view == "raw" else _blocks(found)
    last_line = min(found.start + found.lines - 1, max(found.total_lines, 1))
    return FilePage(
        path=found.path,
        view="raw" if view == "raw" else "rendered",
        rows=() if found.mime else tuple(_row(one, indexed.passages, known) for one in blocks),
        definitions=link_definitions(found.text),
        first_line=found.start,
        last_line=last_line,
        total_lines=found.total_lines,
        next_line=found.next_start,
        is_cut=len(found.text) >= CHARACTERS_SHOWN and found.lines == 1,
        can_edit=can_edit(memory, path),
        sentence=found.text if found.mime else "",
        passages=len(indexed.passages),
        index_note=note,
        line=_line_details(memory, path, line, known) if line and not found.mime else None,
        day=found_day[1] if (found_day := _DAY.match(path)) else "",
    )


def can_edit(memory: Memory, path: str) -> bool:
    """Whether a file is one of the memory's own, which the page may write."""
    try:
        return memory.workspace.read_bytes(path) is not None
    except ClawmarkError:
        return False


def _indexed(memory: Memory, path: str) -> tuple[IndexedFile, str]:
    """Return the passages of a file, and a sentence if they do not fit it."""
    try:
        found = memory.passages(path)
    except ClawmarkError as error:  # the file can be read without its index
        return IndexedFile((), False), f"{error.message} {error.hint}".strip()
    if not found.passages:
        return found, "Not indexed yet: a search cannot find it. The next search indexes it."
    if not found.is_current:
        return found, "The file has changed since it was indexed; the brackets may be off."
    return found, ""


def _entries(found: Excerpt) -> list[MemoryEntry]:
    return [
        MemoryEntry(
            path=found.path,
            start_line=entry.start_line + found.start - 1,
            end_line=entry.end_line + found.start - 1,
            day="",
            is_dated=False,
            heading=entry.heading,
            text=entry.text,
        )
        for entry in split_entries(found.text)
    ]


def _blocks(found: Excerpt) -> list[Block]:
    return split_blocks(without_comments(found.text), found.start)


def _lines(found: Excerpt) -> list[Block]:
    lines = found.text.split("\n")[: max(0, found.total_lines - found.start + 1)]
    return [Block(number, number, line) for number, line in enumerate(lines, found.start)]


def _row(
    block: Block,
    passages: Sequence[Passage],
    known: dict[int, tuple[MemoryEntry, ShownOrigin]],
) -> Row:
    entry, origin = known.get(block.start_line, (None, None))
    return Row(
        start_line=block.start_line,
        end_line=block.end_line,
        text=block.text,
        brackets=brackets_of(block, passages),
        origin=origin,
        entry=entry.citation if entry is not None else "",
    )


def brackets_of(block: Block, passages: Sequence[Passage]) -> tuple[Bracket | None, ...]:
    """Return the passages that a row belongs to, in two tracks."""
    tracks: list[Bracket | None] = [None, None]
    for number, passage in enumerate(passages, 1):
        if passage.start_line <= block.end_line and passage.end_line >= block.start_line:
            lines = f"lines {passage.start_line} to {passage.end_line}"
            tracks[number % 2] = Bracket(
                number=number,
                begins=block.start_line <= passage.start_line,
                ends=block.end_line >= passage.end_line,
                title=f"Passage {number} of {len(passages)}: {lines}",
            )
    return tuple(tracks)


def _line_details(
    memory: Memory, path: str, number: int, known: dict[int, tuple[MemoryEntry, ShownOrigin]]
) -> LineDetails:
    entry, origin = next(
        (one for one in known.values() if one[0].start_line <= number <= one[0].end_line),
        (None, None),
    )
    changes, problem = _changes(memory, path, number)
    return LineDetails(
        number=number,
        citation=citation(path, number, number),
        entry=entry.citation if entry is not None else "",
        origin=origin,
        changes=changes,
        problem=problem,
    )


def _changes(memory: Memory, path: str, number: int) -> tuple[tuple[LineChange, ...], str]:
    if not memory.settings.history.enabled:
        return (), "No history is recorded: memory.history.enabled is false."
    try:
        found = memory.history.line(path, number)
    except HistoryDamaged as error:
        return (), f"{error.message} {error.hint}".strip()
    changes = tuple(
        LineChange(
            text=one.text,
            before=one.before,
            when=minute_of(one.since),
            who=writers(one.writers),
            version=one.version,
        )
        for one in found
    )
    return changes, "" if changes else "The history has no version of this line."


def line_number(text: str) -> int:
    """Return the line that an address names; 0 for none or a wrong one."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0


def _file(request: Request) -> Response:
    memory: Memory = request.app.state.site.memory
    given = request.query_params
    model = file_page(
        memory,
        request.path_params["path"],
        given.get("view", ""),
        max(1, line_number(given.get("from", ""))),
        line_number(given.get("line", "")),
    )
    return page(request, "file.html", model)


routes = [file_route("file", _file)]
