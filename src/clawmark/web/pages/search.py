"""Search: hits with their evidence and two bars for the score, and how the answer was found."""

from __future__ import annotations

import re
from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from clawmark.memory import Memory
from clawmark.model.values import Found, Hit, NothingFound
from clawmark.text.untrusted.origin_labels import without_comments
from clawmark.web.markdown import file_address
from clawmark.web.render import page, plural

MODES = {"hybrid": "hybrid", "fts-only": "keywords only", "vector-only": "vectors only"}


class Asked(NamedTuple):
    """What the address of a search asks for."""

    q: str = ""
    since: str = ""
    until: str = ""
    path: str = ""
    source: str = ""
    explain: bool = False


class Piece(NamedTuple):
    """A piece of a line, and whether it is a word of the query."""

    text: str
    is_match: bool


class Line(NamedTuple):
    """A line of evidence; its number is empty where it continues the one above."""

    number: str
    pieces: tuple[Piece, ...]


class ShownHit(NamedTuple):
    """A hit as the page shows it."""

    citation: str
    address: str
    score: float
    words: float
    meaning: float
    lines: tuple[Line, ...]
    origin: str
    date: str


class SearchPage(NamedTuple):
    """The model of the search page."""

    asked: Asked
    hits: tuple[ShownHit, ...] = ()
    nothing: NothingFound | None = None
    degraded: str = ""
    summary: str = ""


def search_page(memory: Memory, asked: Asked) -> SearchPage:
    """Search, and describe the answer; without a query, only the form is shown."""
    if not asked.q.strip():
        return SearchPage(asked)
    found = memory.search(
        asked.q,
        since=asked.since or None,
        until=asked.until or None,
        path=asked.path or None,
        source=asked.source or None,
        explain=asked.explain,
    )
    return SearchPage(
        asked=asked,
        hits=tuple(shown_hit(hit, asked.q) for hit in found.hits),
        nothing=found.nothing,
        degraded=f"{found.degraded.reason} {found.degraded.fix}" if found.degraded else "",
        summary=summary(found),
    )


def shown_hit(hit: Hit, query: str) -> ShownHit:
    """Describe one hit."""
    return ShownHit(
        citation=hit.citation,
        address=file_address(hit.path, hit.start_line),
        score=hit.score,
        words=hit.text_score,
        meaning=hit.vector_score,
        lines=tuple(evidence(hit, query)),
        origin="",
        date=hit.date,
    )


def evidence(hit: Hit, query: str) -> list[Line]:
    """Return the lines of a snippet, with their numbers where they are known."""
    parts = hit.snippet.split("\n…\n")
    ranges = hit.snippet_ranges if len(hit.snippet_ranges) == len(parts) else ()
    lines = list[Line]()
    for place, part in enumerate(parts):
        shown = without_comments(part).split("\n")
        number = f"L{ranges[place][0]}" if ranges else ""
        for line in shown:
            if line.strip():
                lines.append(Line(number, marked(line, query)))
                number = ""
    return lines


def marked(line: str, query: str) -> tuple[Piece, ...]:
    """Cut a line into pieces; the longer words of the query are matches."""
    wanted = sorted({word for word in re.findall(r"\w+", query) if len(word) > 2}, key=len)[:64]
    if not wanted:
        return (Piece(line, False),)
    pattern = rf"(?i)\b((?:{'|'.join(reversed(wanted))})\w{{0,3}})\b"
    pieces = re.split(pattern, line)
    return tuple(Piece(text, n % 2 == 1) for n, text in enumerate(pieces) if text)


def summary(found: Found) -> str:
    """Format as `3 hits · hybrid (granite) · 14 ms · 2 files due`."""
    model = f" ({found.model})" if found.model and found.mode != "fts-only" else ""
    parts = [plural(len(found.hits), "hit"), MODES[found.mode] + model]
    parts.append(f"{found.milliseconds:.0f} ms")
    if found.due_files:
        parts.append(f"{plural(found.due_files, 'file')} due")
    return " · ".join(parts)


def _search(request: Request) -> Response:
    memory: Memory = request.app.state.site.memory
    given = request.query_params
    asked = Asked(
        q=given.get("q", ""),
        since=given.get("since", ""),
        until=given.get("until", ""),
        path=given.get("path", ""),
        source=given.get("source", ""),
        explain=given.get("explain", "") not in ("", "0"),
    )
    name = "search_results.html" if given.get("part") == "results" else "search.html"
    return page(request, name, search_page(memory, asked))


routes = [Route("/search", _search)]
