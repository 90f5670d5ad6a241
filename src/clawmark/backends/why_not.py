"""Say why a search does not return a passage, and what brings it up."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from clawmark.backends.builtin import BuiltinBackend
from clawmark.engine.search.why_not import (
    Judged,
    Judging,
    failing_filter,
    judge,
    rarest_words,
    settings_for,
)
from clawmark.model.errors import FileMissing
from clawmark.model.values import ChunkRow, Found, Query, citation
from clawmark.model.why_not import LegRank, Remedy, WhyNot
from clawmark.store.base import Snapshot

Search = Callable[..., Found]
"""`Memory.search`."""


def explain_absence(
    backend: BuiltinBackend, search: Search, query: Query, path: str, line: int | None
) -> WhyNot:
    """Find the passage and return what a search does with it."""
    workspace = backend.parts.workspace
    workspace.absolute(path)  # PathDenied for what is not memory
    state = workspace.state_of(path)
    if state is None:
        raise FileMissing(
            f"There is no memory file {path}.", hint="`clawmark ls` lists the memory files."
        )
    path = state.path

    def select(reader: Snapshot) -> Sequence[ChunkRow]:
        rows = reader.chunks_of(path)
        return [row for row in rows if line is None or row.start_line <= line <= row.end_line]

    found = backend.judge_passage(query, select, lambda judging: _examine(search, judging))
    return found if found is not None else _without_passage(backend, query, path, line)


def _examine(search: Search, judging: Judging) -> WhyNot:
    query = judging.query
    judged = judge(query, judging.rows, judging.snapshot, judging.asked, judging.run)
    steps = judged.found.explanation.steps if judged.found.explanation is not None else ()
    return WhyNot(
        query=query.text,
        citation=judged.story.citation,
        outcome=judged.outcome,
        step=judged.step,
        sentence=sentence(judged, query),
        rank=judged.rank,
        score=round(judged.story.score, 4),
        min_score=query.min_score,
        words=judged.words,
        meaning=judged.meaning,
        story=judged.story,
        steps=steps,
        remedies=tuple(_remedies(search, judging, judged)),
    )


def sentence(judged: Judged, query: Query) -> str:
    """Return the answer in one sentence."""
    how = _how_found(judged.words, judged.meaning)
    score = f"{judged.story.score:.2f}"
    match judged.outcome:
        case "hit":
            return f"It is hit {judged.reason}, with a score of {score}."
        case "part-of-hit":
            return f"It is shown as a part of hit {judged.reason}."
        case "below-threshold":
            return f"{how}, dropped by the threshold: {score} of {query.min_score:g}."
        case "after-the-last":
            return (
                f"{how}, ranked {judged.rank} with a score of {score}, but only the first "
                f"{query.max_results} are returned."
            )
        case "filtered-out":
            return f"The filter {judged.reason} leaves it out ({query.filters.summary})."
        case "not-merged":
            return f"{how}, but other passages have more evidence; it scores {score}."
        case _:
            return (
                f"Neither leg finds it among its first {judged.words.limit}: it has "
                f"{'few' if judged.words.rank else 'none'} of the words of the query, and "
                f"{_by_meaning(judged.meaning)}; it scores {score}."
            )


def _how_found(words: LegRank, meaning: LegRank) -> str:
    legs = [
        f"by {name} at rank {leg.rank:,}"
        for name, leg in (("words", words), ("meaning", meaning))
        if leg.is_taken
    ]
    return f"Found {' and '.join(legs)}" if legs else "Found by a rare term"


def _by_meaning(meaning: LegRank) -> str:
    return (
        f"its meaning is at rank {meaning.rank:,} of {meaning.found:,}"
        if meaning.rank
        else "its meaning was not compared"
    )


def _remedies(search: Search, judging: Judging, judged: Judged) -> list[Remedy]:
    """Return what brings the passage up; every change was tried."""
    query = judging.query
    if judged.outcome in ("hit", "part-of-hit"):
        return []
    if judged.outcome == "filtered-out":
        return _without_filters(judging, judged)
    remedies = list[Remedy]()
    needed = settings_for(query, judged, judging.run)
    if needed is not None:
        lower, more = needed.min_score < query.min_score, needed.max_results > query.max_results
        parts = [f"a minimum score of {needed.min_score:g}"] if lower else []
        parts += [f"{needed.max_results} results"] if more else []
        flags = [f"--min-score {needed.min_score:g}"] if lower else []
        flags += [f"--max-results {needed.max_results}"] if more else []
        if parts:
            what = f"It is returned with {' and '.join(parts)}."
            remedies.append(Remedy(what=what, flags=" ".join(flags), query=query.text))
    words = rarest_words(judged.row, query, judging.snapshot)
    return [*remedies, *_with_words(search, query, judged.row, words)]


def _without_filters(judging: Judging, judged: Judged) -> list[Remedy]:
    """Remove the filters that the passage does not pass, and try whether that is enough."""
    query, removed = judging.query, list[str]()
    while failing := failing_filter(judged.row, query.filters):
        removed.append(failing)
        query = query._replace(filters=query.filters._replace(**{failing: ""}))
    found = judging.run(query, ())
    if not any(_shows(hit.path, hit.start_line, hit.end_line, judged.row) for hit in found.hits):
        return []
    what = f"It is returned without the filter{'s' if removed[1:] else ''} {', '.join(removed)}."
    return [Remedy(what=what, flags="", query=query.text, removed=tuple(removed))]


def _with_words(search: Search, query: Query, row: ChunkRow, words: Sequence[str]) -> list[Remedy]:
    """Add rare words of the passage to the query, as few as are enough."""
    filters = query.filters
    for count in range(1, len(words) + 1):
        text = f"{query.text} {' '.join(words[:count])}"
        found = search(
            text,
            max_results=query.max_results,
            min_score=query.min_score,
            since=filters.since,
            until=filters.until,
            path=filters.path,
            source=filters.source,
        )
        if any(_shows(hit.path, hit.start_line, hit.end_line, row) for hit in found.hits):
            named = " and ".join(f'"{word}"' for word in words[:count])
            what = f"It is returned if the query also has {named}."
            return [Remedy(what=what, flags="", query=text)]
    return []


def _shows(path: str, start: int, end: int, row: ChunkRow) -> bool:
    return path == row.path and start <= row.start_line <= end


def _without_passage(backend: BuiltinBackend, query: Query, path: str, line: int | None) -> WhyNot:
    """Say why a file or a line has no passage in the index."""
    where = path if line is None else citation(path, line, line)
    with backend.parts.store.snapshot() as reader:
        is_indexed = bool(reader.files([path]))
    if is_indexed and line is not None:
        what = f"Line {line} is not in any passage: it is blank, or after the end of the file."
        return WhyNot(query=query.text, citation=where, outcome="no-passage", step=0, sentence=what)
    if is_indexed:
        return WhyNot(
            query=query.text,
            citation=where,
            outcome="no-passage",
            step=0,
            sentence="The file has no text that could be found.",
        )
    skipped = [one.reason for one in backend.parts.workspace.scan().skipped if one.path == path]
    reason = f"it is skipped, because {skipped[0]}" if skipped else "it is not indexed yet"
    remedy = Remedy(what="`clawmark index` indexes it.", flags="", query=query.text)
    return WhyNot(
        query=query.text,
        citation=where,
        outcome="not-indexed",
        step=2,
        sentence=f"The file cannot be found: {reason}.",
        remedies=() if skipped else (remedy,),
    )
