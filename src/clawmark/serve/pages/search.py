"""Search: hits of all spaces with their evidence, their space and their author."""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import urlencode

from starlette.responses import Response

from clawmark.model.values import Found, Hit, NothingFound
from clawmark.serve.pages.view import Viewer, page, redirect
from clawmark.serve.problems import RequestFailed, invalid
from clawmark.serve.rest.bodies import MAX_QUERY, SearchRequest
from clawmark.web.markdown import file_address
from clawmark.web.pages.evidence import Line, lines_of
from clawmark.web.pages.search import MODES
from clawmark.web.render import plural

NEXT_STEPS = {
    "empty-index": "Append a first entry, or publish a file: `clawmark index` does it for the "
    "files that the configuration names.",
    "no-such-words": "Try other words, or fewer.",
    "filtered-out": "Remove a filter.",
}


class Asked(NamedTuple):
    """What the address of a search asks for."""

    q: str = ""
    space: str = ""
    since: str = ""
    until: str = ""
    path: str = ""

    def address(self, view: str = "/search", **changes: str) -> str:
        """Return the address of this search, with some fields changed."""
        fields = {**self._asdict(), **changes}
        return f"{view}?" + urlencode({name: value for name, value in fields.items() if value})


class ShownHit(NamedTuple):
    """A hit as the page shows it."""

    rank: int
    citation: str
    address: str
    score: float
    words: float
    meaning: float
    lines: tuple[Line, ...]
    space: str
    author: str
    date: str


class SearchPage(NamedTuple):
    """The model of the search page."""

    asked: Asked
    spaces: tuple[str, ...]
    hits: tuple[ShownHit, ...] = ()
    nothing: NothingFound | None = None
    next_step: str = ""
    degraded: str = ""
    summary: str = ""


def show_search(viewer: Viewer) -> Response:
    given = viewer.request.query_params
    asked = Asked(**{name: given.get(name, "") for name in Asked._fields})
    model = search_page(viewer, asked)
    name = "team_results.html" if given.get("part") == "results" else "team_search.html"
    return page(viewer.request, name, model)


def search_for_note(viewer: Viewer) -> Response:
    """Lead a wikilink, which names a note without its folder, to the search for that name."""
    return redirect("/search?" + urlencode({"q": viewer.request.path_params["name"]}))


def search_page(viewer: Viewer, asked: Asked) -> SearchPage:
    """Search, and describe the answer; without a query, only the form is shown."""
    spaces = tuple(one.name for one in viewer.spaces.spaces())
    if not asked.q.strip():
        return SearchPage(asked, spaces)
    if any("\0" in value for value in asked) or len(asked.q) > MAX_QUERY:
        raise RequestFailed(invalid("The search is too long, or contains the character NUL."))
    request = SearchRequest(
        query=asked.q,
        since=asked.since or None,
        until=asked.until or None,
        path=asked.path or None,
    )
    found = viewer.spaces.search(
        viewer.service.options.make_query(request), [asked.space] if asked.space else []
    )
    viewer.service.metrics.add("clawmark_searches_total")
    return SearchPage(
        asked=asked,
        spaces=spaces,
        hits=tuple(_shown(number, hit, asked.q) for number, hit in enumerate(found.hits, 1)),
        nothing=found.nothing,
        next_step=NEXT_STEPS.get(found.nothing.code, "") if found.nothing else "",
        degraded=found.degraded.reason if found.degraded else "",
        summary=summary(found),
    )


def summary(found: Found) -> str:
    """Format as `3 hits · hybrid (granite) · 14 ms`."""
    model = f" ({found.model})" if found.model and found.mode != "fts-only" else ""
    parts = [plural(len(found.hits), "hit"), MODES[found.mode] + model]
    parts.append(f"{found.milliseconds:.0f} ms")
    if found.due_vectors:
        parts.append(f"{plural(found.due_vectors, 'better vector')} due")
    return " · ".join(parts)


def _shown(rank: int, hit: Hit, query: str) -> ShownHit:
    return ShownHit(
        rank=rank,
        citation=hit.citation,
        address=file_address(hit.path, hit.start_line),
        score=hit.score,
        words=min(1.0, hit.text_score),
        meaning=hit.vector_score,
        lines=lines_of(hit, query),
        space=hit.space,
        author=hit.author,
        date=hit.date,
    )
