"""The search pipeline: numbered steps from a query to cited hits, each with a summary.

    1 clean the query      2 freshen the index     3 keyword leg       4 vector leg       5 merge
    6 temporal decay       7 diversify (MMR)       8 neighbours, threshold, cut           9 snippets

The caller does steps 1 and 2 and embeds the query before it opens the snapshot. Nothing is written.
An empty answer always says why."""

from collections.abc import Sequence
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, NamedTuple

from clawmark.embed.base import Embedder
from clawmark.engine.search.legs import (
    NO_WORDS,
    Asked,
    KeywordLeg,
    VectorLeg,
    any_term,
    keyword_leg,
    noise_of,
    text_leg_matches,
    vector_leg,
)
from clawmark.engine.search.mmr import diversify
from clawmark.engine.search.neighbours import Passage, join_neighbours
from clawmark.engine.search.scoring import (
    BIAS,
    NO_TEXT,
    WITHOUT_VECTORS,
    Candidate,
    best_keys,
    bias_of,
    evidence_scale,
    merge,
    noise_of_query,
    raise_exact,
    rarity,
)
from clawmark.engine.search.snippet import (
    LIMIT,
    Shown,
    Snippet,
    Spotter,
    make_spotter,
    pick_evidence,
    pieces_to_show,
)
from clawmark.engine.search.statements import Nearness, weigh_statements
from clawmark.engine.search.time_preference import may_name_time, prefer_times
from clawmark.engine.search.trace import Trace
from clawmark.engine.search.weighted import merge_weighted
from clawmark.model.errors import EmbeddingError
from clawmark.model.values import (
    Found,
    Freshness,
    Hit,
    Mode,
    NothingFound,
    Query,
    Term,
    added_source,
    is_media,
)

if TYPE_CHECKING:
    from clawmark.engine.search.rerank import RerankStep
    from clawmark.store.base import SearchSnapshot

READ = 40
"""How many of the best passages are read; at least ten per requested result."""
_NO_WORDS = NothingFound("empty-query", "The query has no words to look for.", None)


class Legs(NamedTuple):
    """What both legs found, the passages to judge in any case, and the constant of the score."""

    words: KeywordLeg
    meaning: VectorLeg
    also: Sequence[int]
    bias: float


def search(
    query: Query,
    *,
    snapshot: "SearchSnapshot",
    asked: Asked,
    scout: Embedder | None,
    freshness: Freshness,
    rerank_with: "RerankStep | None" = None,
    also: Sequence[int] = (),
) -> Found:
    """Answer a cleaned query from one snapshot; `scout` is an embedder fast enough to pick
    sentences. The passages in `also` are judged even if no leg finds them."""
    trace = Trace()
    cleaned = query.text
    filters = query.filters.summary
    trace.step(
        1, "clean query", f"{cleaned[:80]!r}, filters: {filters}" if filters else repr(cleaned[:80])
    )
    trace.record(2, "freshen index", freshness.summary, freshness.milliseconds)
    if not cleaned:
        return _empty(query, _NO_WORDS, freshness, trace)
    if not snapshot.count_chunks():
        return _empty(query, _no_chunks(freshness), freshness, trace)
    whole = snapshot
    snapshot = whole.within(query.filters) if filters else whole
    words, meaning = _run_legs(query, snapshot, asked, trace, also)
    spotter, nearness = _spotter(words), _nearness(scout, query.text, snapshot)
    times = _named_times(query)
    reorders = bool(times) or rerank_with is not None
    reorders = reorders or query.half_life_days is not None or query.mmr_lambda is not None
    bias = bias_of(meaning.passages) if meaning.ran else BIAS + WITHOUT_VECTORS
    legs = Legs(words=words, meaning=meaning, also=also, bias=bias)
    candidates = _merged(query, snapshot, legs, spotter, nearness, judge_all=reorders)
    weights = _weights_in_words(query, words, meaning)
    trace.step(5, "merge", weights, passages=len(candidates))
    candidates = _weigh_time(query, candidates, times, trace)
    reranked = None
    if rerank_with is not None:
        # Imported late: only some configurations rerank.
        from clawmark.engine.search.rerank import rerank

        reranked = rerank(query.text, candidates, rerank_with)
        candidates = reranked.candidates
        trace.step(6, "rerank", reranked.summary)
    candidates = _diversify(query, candidates, trace)
    if query.fusion != "weighted":
        candidates = raise_exact(candidates, words.rare)
    passages, dropped = join_neighbours(candidates, query.max_results, query.min_score)
    kept = f"{len(passages)} of {len(candidates)} kept, minimum {query.min_score:g}"
    trace.step(8, "neighbours, threshold, cut", kept, passages=len(passages))
    hits = _hits(query, passages, spotter, nearness)
    trace.step(9, "snippets", f"{len(hits)} cut", passages=len(hits))
    nothing = None if hits else _why_nothing(query, candidates, freshness)
    if nothing is not None and filters and not candidates:
        nothing = _why_filtered(query, words.terms, whole, snapshot) or nothing
    explanation = None
    if query.explain:
        explain = _explain()
        stories = explain.stories(candidates, passages, dropped, words.terms, query, bias)
        explanation = explain.explanation(trace.steps, stories, whole.count_chunks())
    return Found(
        hits=hits,
        nothing=nothing,
        mode=_mode(words, meaning),
        provider=meaning.provider,
        model=meaning.model,
        degraded=meaning.degraded or (reranked.degraded if reranked else None),
        due_files=freshness.due_files,
        milliseconds=freshness.milliseconds + trace.milliseconds(),
        explanation=explanation,
    )


def _run_legs(
    query: Query, snapshot: "SearchSnapshot", asked: Asked, trace: Trace, also: Sequence[int]
) -> tuple[KeywordLeg, VectorLeg]:
    words = keyword_leg(query, snapshot) if query.hybrid or not asked.vectors else NO_WORDS
    terms = ", ".join(term.text for term in words.terms[:12])
    trace.step(
        3, "keyword leg", f"candidates: {len(words.keys)} for {terms}", passages=len(words.keys)
    )
    meaning = vector_leg(query, snapshot, asked, [*words.keys, *also] if also else words.keys)
    found = f"candidates: {len(meaning.matches)} by {meaning.label}"
    summary = found if meaning.ran else meaning.why_not
    trace.step(4, "vector leg", summary, before=asked.milliseconds, passages=len(meaning.matches))
    return words, meaning


def _weigh_time(
    query: Query, candidates: list[Candidate], times: Sequence[tuple[str, str]], trace: Trace
) -> list[Candidate]:
    if times:
        candidates = prefer_times(candidates, times)
    if query.half_life_days is not None:
        # Imported late: it needs datetime, and decay is off by default.
        from clawmark.engine.search.decay import apply_decay

        candidates = apply_decay(candidates, query.half_life_days, query.today)
    decay = f"half-life {query.half_life_days:g} days" if query.half_life_days else "off"
    named = ", ".join(f"{first} to {last}" for first, last in times)
    trace.step(6, "temporal decay", f"{decay}; the question names {named}" if named else decay)
    return candidates


def _diversify(query: Query, candidates: list[Candidate], trace: Trace) -> list[Candidate]:
    weight = query.mmr_lambda
    if weight is not None:
        candidates = diversify(candidates, weight, lambda c: c.score, lambda c: c.row.text)
    trace.step(7, "diversify", f"MMR with lambda {weight:g}" if weight is not None else "off")
    return candidates


def _merged(
    query: Query,
    snapshot: "SearchSnapshot",
    legs: Legs,
    spotter: Spotter,
    nearness: Nearness | None,
    *,
    judge_all: bool,
) -> list[Candidate]:
    """Merge the candidates of both legs into one list with one score each, best first."""
    words, matches = legs.words, legs.meaning.matches
    keys = list(dict.fromkeys([*words.keys, *matches, *legs.also]))
    texts = text_leg_matches(words, snapshot, keys)
    if query.fusion == "weighted":
        return merge_weighted(query, snapshot.chunks(keys), texts, matches, len(words.terms))
    most = max(READ, 10 * query.max_results)
    always = [*words.rare_keys, *legs.also]
    texts = dict.fromkeys(legs.also, NO_TEXT) | texts
    scores = best_keys(query, texts, matches, most, always, legs.bias)
    candidates = merge(scores, snapshot.chunks(list(scores)), texts, matches, len(words.terms))
    return weigh_statements(query, candidates, spotter, nearness, legs.bias, judge_all=judge_all)


def _hits(
    query: Query, passages: Sequence[Passage], spotter: Spotter, nearness: Nearness | None
) -> tuple[Hit, ...]:
    shown = [Shown(passage.text, passage.start_line, passage.best.score) for passage in passages]
    if nearness is not None and not spotter.needles:
        # Without words, the meaning of every line decides. Otherwise the lines that were compared
        # with the query for the ranking are enough.
        nearness([piece for one in shown for piece in pieces_to_show(one.text)])
    near = nearness.known if nearness is not None else {}
    snippets = pick_evidence(shown, spotter, near, LIMIT * query.max_results)
    return tuple(
        _hit(passage, snippet) for passage, snippet in zip(passages, snippets, strict=True)
    )


def _hit(passage: Passage, snippet: Snippet) -> Hit:
    best, row = passage.best, passage.best.row
    ranges = snippet.ranges
    if row.source == "sessions":  # A message has one line in its file and any number in the text.
        ranges = ((passage.start_line, passage.end_line),)
    return Hit(
        path=row.path,
        start_line=passage.start_line,
        end_line=passage.end_line,
        score=round(best.score, 4),
        snippet=snippet.text,
        snippet_start=ranges[0][0],
        snippet_end=ranges[-1][1],
        source=row.source,
        vector_score=round(min(1.0, best.vector), 4),
        text_score=round(best.text, 4),
        date=row.last_day,
        snippet_ranges=ranges,
        mime=row.heading if row.source == "memory" and is_media(row.path) else "",
    )


def _spotter(words: KeywordLeg) -> Spotter:
    rarities = [rarity(count, words.known.total) for count in words.known.counts] or [1.0] * len(
        words.terms
    )
    whole = sum(rarities) or 1.0
    return make_spotter(words.terms, [worth / whole for worth in rarities])


def _nearness(scout: Embedder | None, text: str, snapshot: "SearchSnapshot") -> Nearness | None:
    """Return what compares lines with the query, using an embedder that takes microseconds per
    line."""
    if scout is None or not scout.covers(text):
        return None
    try:
        query = scout.embed_query(text)
    except EmbeddingError:
        return None
    space = next((space for space in snapshot.spaces() if space.identity == scout.identity), None)
    noise = noise_of(snapshot, space) if space is not None else None
    evidence = evidence_scale(
        *noise_of_query(noise, query, scout.traits.floor, scout.traits.ceiling)
    )
    return Nearness(query, getattr(scout, "embed_lines", scout.embed_texts), evidence)


def _named_times(query: Query) -> Sequence[tuple[str, str]]:
    """The times the question names, as ranges of days."""
    if not query.today or not may_name_time(query.text):
        return ()
    # Imported late: most searches do not need it.
    from clawmark.text.time_expressions import time_expressions

    return time_expressions(query.text, query.today)


def _mode(words: KeywordLeg, meaning: VectorLeg) -> Mode:
    if not meaning.ran:
        return "fts-only"
    return "hybrid" if words.terms else "vector-only"


def _weights_in_words(query: Query, words: KeywordLeg, meaning: VectorLeg) -> str:
    if not meaning.ran:
        return "text only"
    if query.fusion == "weighted":
        return f"{query.vector_weight:.2g} * vector + {query.text_weight:.2g} * text"
    return (
        "evidence of words, names, meaning and statements, added up"
        if words.keys
        else "no passage has any of the words"
    )


def _no_chunks(freshness: Freshness) -> NothingFound:
    if due := freshness.due_files:
        what = "1 file is due" if due == 1 else f"{due} files are due"
        return NothingFound("still-indexing", f"Still indexing: {what}.", None)
    return NothingFound(
        "empty-index",
        "There is no memory yet: write MEMORY.md or memory/YYYY-MM-DD.md first.",
        None,
    )


def _why_nothing(
    query: Query, candidates: Sequence[Candidate], freshness: Freshness
) -> NothingFound:
    if candidates:
        best = max(candidate.score for candidate in candidates)
        message = (
            f"Nothing reaches the minimum score {query.min_score:g}; the best match has {best:.2f}."
        )
        return NothingFound("below-threshold", message, round(best, 4))
    if freshness.due_files:
        return NothingFound(
            "still-indexing", f"Nothing yet: {freshness.due_files} files are still due.", None
        )
    return NothingFound("no-such-words", "None of these words occur in the memory.", None)


def _why_filtered(
    query: Query, terms: Sequence[Term], whole: "SearchSnapshot", narrowed: "SearchSnapshot"
) -> NothingFound | None:
    """Explain why filters left nothing; None if the words do not occur outside of them either."""
    filters = query.filters
    selected = narrowed.count_chunks()
    if selected:
        if not terms or not whole.search_keywords(any_term(terms), 1):
            return None
        message = (
            f"The words occur in the memory, but not in the "
            f"{selected} passages that match the filters"
        )
        return NothingFound("filtered-out", f"{message} ({filters.summary}).", None)
    message = f"No passage matches the filters ({filters.summary})."
    sources = _sources(whole) if filters.source else []
    if filters.source and filters.source.lower() not in map(str.lower, sources):
        message += (
            f" No file of a source {filters.source!r} is indexed; there "
            f"are files of {', '.join(sources)}."
        )
    elif filters.since or filters.until:
        any_day = whole.within(filters._replace(since="", until=""))
        undated = any_day.count_chunks(undated=True)
        if undated:
            message += (
                f" since and until leave out passages without a date; there are {undated} of them."
            )
    return NothingFound("filtered-out", message, None)


def _sources(snapshot: "SearchSnapshot") -> list[str]:
    """The names of the sources that have files: kinds of memory first, then added folders."""
    files = snapshot.files()
    added = {added_source(path) for path in files}
    return [*sorted({row.source for row in files.values()}), *sorted(filter(None, added))]


def _explain() -> ModuleType:
    # Imported late: only an explained search needs it.
    return import_module("clawmark.engine.search.explain")


def _empty(query: Query, nothing: NothingFound, freshness: Freshness, trace: Trace) -> Found:
    explanation = _explain().explanation(trace.steps) if query.explain else None
    took = freshness.milliseconds + trace.milliseconds()
    return Found(
        hits=(),
        nothing=nothing,
        mode="fts-only",
        provider="none",
        model="fts-only",
        degraded=None,
        due_files=freshness.due_files,
        milliseconds=took,
        explanation=explanation,
    )
