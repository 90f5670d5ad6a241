"""Find the days that chunks are about, in the file name or in the headings above them.

Dates in the text are not used: a passage mentions them, but was not necessarily written then."""

from __future__ import annotations

import re
from bisect import bisect_right

from clawmark.model.documents import Chunk
from clawmark.text.chunking.outline import outline
from clawmark.text.dates import MONTHS, date_of, is_day

_NAME = "|".join(f"{month[:3]}(?:{month[3:]})?" for month in MONTHS).replace("|sep(", "|sept?(")
_DATE = re.compile(
    r"(?<![\d-])(?P<year>\d{4})-(?P<month>\d\d)-(?P<day>\d\d)(?![\d-])"
    rf"|(?<!\d)(?P<day2>\d{{1,2}})(?:st|nd|rd|th)?\.? (?P<name>{_NAME})\.?,? "
    rf"(?P<year2>\d{{4}})(?!\d)"
    rf"|\b(?P<name2>{_NAME})\.? (?P<day3>\d{{1,2}})(?:st|nd|rd|th)?,? (?P<year3>\d{{4}})(?!\d)",
    re.ASCII | re.IGNORECASE,
)
_MAY_HOLD_DATE = re.compile(r"(?:19|20|21)\d\d", re.ASCII)


def with_days(chunks: list[Chunk], path: str, text: str) -> list[Chunk]:
    """Return the chunks of a memory file with the days they are about.

    A day in the file's name applies to the whole file. In a file without one, a dated heading
    applies to its section; a chunk across several sections gets their first and last day."""
    named = date_of(path)
    if named:
        return [chunk._replace(first_day=named, last_day=named) for chunk in chunks]
    if not _MAY_HOLD_DATE.search(text):
        return chunks
    sections = _dated_sections(text)
    starts = [start for start, _ in sections]

    def dated(chunk: Chunk) -> Chunk:
        first = max(0, bisect_right(starts, chunk.start_line) - 1)
        days = sorted(
            day for _, day in sections[first : bisect_right(starts, chunk.end_line)] if day
        )
        return chunk._replace(first_day=days[0], last_day=days[-1]) if days else chunk

    return [dated(chunk) for chunk in chunks]


def day_in(heading: str) -> str:
    """Return the first full date in a heading as YYYY-MM-DD, or an empty string.

    Recognises `2026-02-24`, `24 February 2026` and `February 24th, 2026`."""
    for match in _DATE.finditer(heading):
        year = match["year"] or match["year2"] or match["year3"]
        month = match["month"] or str(_month(match["name"] or match["name2"]))
        day = match["day"] or match["day2"] or match["day3"]
        if is_day(int(year), int(month), int(day)):
            return f"{year}-{int(month):02}-{int(day):02}"
    return ""


def _month(name: str) -> int:
    return 1 + [month[:3] for month in MONTHS].index(name[:3].lower())


def _dated_sections(text: str) -> list[tuple[int, str]]:
    """Return the first line of each section with the day of its innermost dated heading."""
    found = []
    line, at = 1, 0
    for section in outline(text).sections:
        line += text.count("\n", at, section.start)
        at = section.start
        found.append((line, next(filter(None, map(day_in, reversed(section.path))), "")))
    return found
