"""Search: hits with their evidence and two bars for the score, and how the answer was found."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from clawmark.backends.watching import Watching
from clawmark.memory import Memory
from clawmark.model.errors import ClawmarkError
from clawmark.model.explanation import CandidateStory, Step
from clawmark.model.provenance import Provenance, Trust
from clawmark.model.values import Found, Hit, NothingFound, added_source
from clawmark.web.markdown import file_address
from clawmark.web.pages.evidence import Line, Sum, lines_of, origin_in_words, sum_up
from clawmark.web.pages.sessions import session_address
from clawmark.web.render import page, plural

if TYPE_CHECKING:
    from clawmark.web.app import Site

MODES = {"hybrid": "hybrid", "fts-only": "keywords only", "vector-only": "vectors only"}
NEXT_STEPS = {
    "empty-index": 'Write a first note: `clawmark remember "…"`, or add a folder of Markdown: '
    "`clawmark add ~/notes`.",
    "still-indexing": "What is indexed already can be found; this page says when the rest is done.",
    "no-such-words": "Try other words, or fewer.",
    "filtered-out": "Remove a filter.",
}
NEAREST = 3
"""Passages below the threshold that are shown when nothing reaches it."""


class Asked(NamedTuple):
    """What the address of a search asks for."""

    q: str = ""
    since: str = ""
    until: str = ""
    path: str = ""
    source: str = ""
    explain: bool = False

    def address(self, view: str = "/search", **changes: str) -> str:
        """Return the address of this search, with some fields changed."""
        fields = {**self._asdict(), "explain": "1" if self.explain else "", **changes}
        return f"{view}?" + urlencode({name: value for name, value in fields.items() if value})


class ShownHit(NamedTuple):
    """A hit as the page shows it."""

    rank: int
    citation: str
    address: str
    forget: str
    """The address that plans to forget it; empty if it is not text of the memory's own files."""
    score: float
    words: float
    meaning: float
    lines: tuple[Line, ...]
    origin: str
    trust: Trust | None
    """How far it is trusted; None if it is not known."""
    date: str
    sum: Sum | None = None
    terms: str = ""


class SearchPage(NamedTuple):
    """The model of the search page."""

    asked: Asked
    sources: tuple[str, ...] = ()
    hits: tuple[ShownHit, ...] = ()
    nothing: NothingFound | None = None
    next_step: str = ""
    nearest: tuple[ShownHit, ...] = ()
    degraded: str = ""
    summary: str = ""
    start: str = ""
    """What to do first, without a query: there are no notes yet, or the index is being built."""
    is_checked: bool = True
    """Whether the disk was looked at first."""
    steps: tuple[Step, ...] = ()
    dropped: tuple[CandidateStory, ...] = ()


def search_page(memory: Memory, asked: Asked, *, freshen: bool = True) -> SearchPage:
    """Search, and describe the answer; without a query, only the form is shown.

    Without `freshen`, the disk is not looked at first: the page asks again when typing stops."""
    sources = ("memory", "sessions", *(one.name for one in memory.workspace.sources()))
    if not asked.q.strip():
        return SearchPage(asked, sources)
    found = _search(memory, asked, freshen=freshen)
    explanation = found.explanation
    nearest = _nearest(memory, asked) if _is_below(found.nothing) else ()
    return SearchPage(
        asked=asked,
        sources=sources,
        hits=shown_hits(memory, found, asked.q),
        nothing=found.nothing,
        next_step=NEXT_STEPS.get(found.nothing.code, "") if found.nothing else "",
        nearest=nearest,
        degraded=f"{found.degraded.reason} {found.degraded.fix}" if found.degraded else "",
        summary=summary(found),
        is_checked=freshen,
        steps=explanation.steps if explanation else (),
        dropped=_dropped(explanation.candidates) if explanation else (),
    )


def _search(memory: Memory, asked: Asked, *, freshen: bool = True, **settings: float) -> Found:
    return memory.search(
        asked.q,
        since=asked.since or None,
        until=asked.until or None,
        path=asked.path or None,
        source=asked.source or None,
        explain=asked.explain,
        freshen=freshen,
        **settings,  # type: ignore[arg-type]
    )


def _is_below(nothing: NothingFound | None) -> bool:
    return nothing is not None and nothing.code == "below-threshold"


def _nearest(memory: Memory, asked: Asked) -> tuple[ShownHit, ...]:
    """Return the passages that come closest, when none reaches the threshold."""
    found = _search(memory, asked._replace(explain=False), min_score=0.0, max_results=NEAREST)
    return shown_hits(memory, found, asked.q)


def shown_hits(memory: Memory, found: Found, query: str) -> tuple[ShownHit, ...]:
    """Describe the hits of an answer."""
    origins = [hit.origin for hit in found.hits]
    if found.explanation is None:
        origins = list(memory.origins(found.hits))
    stories = {
        story.outcome: story
        for story in (found.explanation.candidates if found.explanation else ())
    }
    return tuple(
        _shown_hit(number, hit, query, origin, stories.get(f"hit {number}"))
        for number, (hit, origin) in enumerate(zip(found.hits, origins, strict=True), 1)
    )


def _shown_hit(
    rank: int, hit: Hit, query: str, origin: Provenance | None, story: CandidateStory | None
) -> ShownHit:
    return ShownHit(
        rank=rank,
        citation=hit.citation,
        address=hit_address(hit),
        forget=forget_address(hit),
        score=hit.score,
        words=min(1.0, hit.text_score),
        meaning=hit.vector_score,
        lines=lines_of(hit, query),
        origin=shared_by(hit) if hit.space else origin_in_words(origin),
        trust="external" if hit.space else origin.trust if origin is not None else None,
        date=hit.date,
        sum=sum_up(story) if story is not None else None,
        terms=story.terms if story is not None else "",
    )


def shared_by(hit: Hit) -> str:
    """Return in which space a hit is, and by whom."""
    return f"shared in {hit.space} by {hit.author}" if hit.author else f"shared in {hit.space}"


def hit_address(hit: Hit) -> str:
    """Return where a hit can be read: at its line of a file, or at its message of a session."""
    if hit.source == "sessions":
        return session_address(hit.path, hit.start_line)
    return file_address(hit.path, 0 if hit.mime else hit.start_line)


def forget_address(hit: Hit) -> str:
    """Return the address of the plan to forget a hit; empty where nothing may be removed."""
    if hit.source == "sessions" or added_source(hit.path) or hit.space:
        return ""
    return "/forget?" + urlencode({"path" if hit.mime else "lines": hit.citation})


def _dropped(candidates: tuple[CandidateStory, ...], most: int = 20) -> tuple[CandidateStory, ...]:
    """Return the best candidates that are not hits."""
    return tuple(story for story in candidates if not story.outcome.startswith("hit"))[:most]


def summary(found: Found) -> str:
    """Format as `3 hits · hybrid (granite) · 14 ms · 2 files due`."""
    model = f" ({found.model})" if found.model and found.mode != "fts-only" else ""
    parts = [plural(len(found.hits), "hit"), MODES[found.mode] + model]
    parts.append(f"{found.milliseconds:.0f} ms")
    due = [plural(found.due_files, "file")] if found.due_files else []
    due += [plural(found.due_vectors, "better vector")] if found.due_vectors else []
    if due:
        parts.append(f"{' and '.join(due)} due")
    return " · ".join(parts)


def asked_of(request: Request) -> Asked:
    """Return what an address asks for."""
    given = request.query_params
    return Asked(
        q=given.get("q", ""),
        since=given.get("since", ""),
        until=given.get("until", ""),
        path=given.get("path", ""),
        source=given.get("source", ""),
        explain=given.get("explain", "") not in ("", "0"),
    )


def start_of(memory: Memory, watching: Watching | None) -> str:
    """Say what to do if the index holds nothing yet; empty if it can be searched."""
    try:
        if watching is None or watching.kept().files:
            return ""
    except ClawmarkError as error:  # an index that cannot be read: a search replaces it
        return f"{error.message} The next search rebuilds what can be rebuilt."
    if files := len(memory.files()):  # the disk is looked at only while the index is empty
        return f"The index is being built: {plural(files, 'file')}. Parts of it can be found soon."
    return f"There are no notes yet. {NEXT_STEPS['empty-index']}"


def _show(request: Request) -> Response:
    site: Site = request.app.state.site
    memory = site.memory
    given, asked = request.query_params, asked_of(request)
    if given.get("part") == "results":
        model = search_page(memory, asked, freshen="quick" not in given)
        return page(request, "search_results.html", model)
    # A page shows hits at once, and its script asks again after a look at the disk. "Nothing found"
    # is not said before that look.
    is_quick = site.is_watched and given.get("format") != "json"
    model = search_page(memory, asked, freshen=not is_quick)
    if is_quick and not model.hits:
        model = search_page(memory, asked)
    if not asked.q.strip():
        model = model._replace(start=start_of(memory, site.watching))
    return page(request, "search.html", model)


routes = [Route("/search", _show)]
