"""Ask QMD a question, and turn the rows it prints into hits.

A row names a document and about four lines of it. The file is read again through the workspace, so
that a hit shows what the file holds now, and nothing outside the memory is ever read."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

from clawmark.backends.qmd.collections import Collection
from clawmark.backends.qmd.process import MOST_OUTPUT, Output, QmdProcess, failed
from clawmark.backends.qmd.transcript_export import export_name, lines_in_transcript
from clawmark.engine.search.snippet import Spotter, make_spotter
from clawmark.model.errors import BackendMisbehaved, BackendUnavailable, WorkspaceError
from clawmark.model.explanation import CandidateStory
from clawmark.model.values import Filters, Hit, SourceName, Term
from clawmark.text.dates import date_of
from clawmark.text.globs import path_matcher
from clawmark.text.keywords.query import query_terms
from clawmark.workspace import Workspace

SPARE_ROWS = 10
"""How many rows are requested for each wanted hit: they are ordered again, and some are outdated.
"""
MOST_ROWS = 200
"""The most rows that are requested, and their number when filters may drop most of them."""
MOST_TERMS = 12
PAIRED_TERMS = 6
"""The first words of a question are also sent in pairs; `bench/qmd.py` shows what that finds."""
NEED_EMBEDDINGS = re.compile(r"need embeddings")
CUT_MARK = "..."
"""QMD adds it to a passage of which it shows only the first 300 characters."""
_HUNK = re.compile(r"@@ -(\d+),(\d+) @@[^\n]*\n?")
_NOT_FOUND = re.compile(r"^no results found\.?\s*$", re.IGNORECASE | re.MULTILINE)


class Row(NamedTuple):
    """One row of QMD's answer."""

    collection: str
    path: str
    score: float
    start: int
    size: int
    """How many lines the passage has."""
    lines: tuple[str, ...]
    """What QMD shows of them: at most 300 characters."""
    is_cut: bool
    """Whether the last shown line is only the beginning of a line."""


class Passage(NamedTuple):
    """Lines of a memory file that QMD has found, as the file has them now."""

    path: str
    source: SourceName
    start: int
    end: int
    text: str
    first_day: str
    last_day: str


def search_words(text: str) -> list[Term]:
    """Return the words to look for, without stop words, quotes and operators."""
    terms = [term for term in query_terms(text) if re.search(r"\w", term.text)]
    return terms[:MOST_TERMS]


def search_arguments(mode: str, text: str, terms: Sequence[Term], rows: int) -> tuple[str, ...]:
    """Return the arguments of `qmd` for a question.

    QMD finds only documents that have all words, so several words are sent as one structured
    query: all of them together, in pairs, and each one alone."""
    options = ("--json", "-n", str(rows))
    words = [_plain(term.text) for term in terms]
    if mode == "search" and len(words) > 1:
        pairs = [" ".join(pair) for pair in combinations(words[:PAIRED_TERMS], 2)]
        lines = dict.fromkeys([" ".join(words), *pairs, *words])
        return ("query", "\n".join(f"lex: {line}" for line in lines), "--no-rerank", *options)
    if mode == "search":
        return ("search", words[0], *options)
    return (mode, _plain(text), *options)


def _plain(text: str) -> str:
    """Remove what QMD reads as an operator or an option."""
    return " ".join(text.replace('"', " ").split()).lstrip("-").strip()


def ask(process: QmdProcess, arguments: Sequence[str], seconds: float) -> list[Row]:
    """Run a search and return its rows, in QMD's order.

    Raises BackendUnavailable or BackendMisbehaved if there is no answer that can be used."""
    done = process.run(arguments, seconds, most_output=MOST_OUTPUT)
    if done.code != 0:
        raise failed(done, arguments)
    rows = parse_rows(done, arguments[0])
    if not rows and arguments[0] == "vsearch" and NEED_EMBEDDINGS.search(done.err):
        raise BackendUnavailable(
            "QMD has no vectors yet, so `qmd vsearch` finds nothing.",
            backend="qmd",
            hint='Run `qmd embed`, or set memory.qmd.searchMode to "search".',
        )
    return rows


def parse_rows(output: Output, command: str) -> list[Row]:
    """Read the JSON array that a search prints; other lines before and after it are ignored."""
    text = output.out
    for found in re.finditer(r"^\[", text, re.MULTILINE):
        try:
            value, _ = json.JSONDecoder().raw_decode(text, found.start())
        except (ValueError, RecursionError):
            continue
        if isinstance(value, list) and all(isinstance(item, dict) for item in value):
            return [_row(item, command) for item in value]
    if _NOT_FOUND.search(text):
        return []
    raise BackendMisbehaved(
        f"`qmd {command}` printed no JSON array of results.",
        backend="qmd",
        hint="Clawmark supports QMD 2.8; `qmd --version` shows yours.",
    )


def _row(item: Mapping[str, object], command: str) -> Row:
    file, score, snippet = item.get("file"), item.get("score"), item.get("snippet", "")
    hunk = _HUNK.match(snippet) if isinstance(snippet, str) else None
    if (
        not isinstance(file, str)
        or not file.startswith("qmd://")
        or not isinstance(score, int | float)
        or not math.isfinite(score)
        or hunk is None
    ):
        raise BackendMisbehaved(
            f"`qmd {command}` printed a result that cannot be read.",
            backend="qmd",
            hint="Clawmark supports QMD 2.8; `qmd --version` shows yours.",
        )
    collection, _, path = file.removeprefix("qmd://").partition("/")
    shown = hunk.string[hunk.end() :]
    is_cut = shown.endswith(CUT_MARK)
    shown = shown.removesuffix(CUT_MARK)
    return Row(
        collection=collection,
        path=path,
        score=min(1.0, max(0.0, float(score))),
        start=int(hunk[1]),
        size=int(hunk[2]),
        lines=tuple(shown.replace("\r\n", "\n").split("\n")[: int(hunk[2])]),
        is_cut=is_cut,
    )


class PassageReader:
    """Finds the lines of a row in the memory's files."""

    def __init__(
        self,
        workspace: Workspace,
        collections: Sequence[Collection],
        known: Mapping[str, SourceName],
    ) -> None:
        self._workspace = workspace
        self._collections = {one.name: one for one in collections}
        self._known = known
        """The files of the memory by cited path; other files are not read."""
        self._exported = {
            export_name(path): path for path, source in known.items() if source == "sessions"
        }

    def cited(self, row: Row) -> str:
        """Return the cited path of a row; empty if it is not a file of the memory."""
        collection = self._collections.get(row.collection)
        if collection is None:
            return ""
        if collection.source == "sessions":
            return self._exported.get(row.path, "")
        path = collection.lead + row.path
        return path if path in self._known else ""

    def read(self, row: Row) -> Passage | None:
        """Return the lines of a row as the file has them now; None if they are gone."""
        path = self.cited(row)
        if not path:
            return None
        try:
            if self._known[path] == "sessions":
                return self._read_transcript(path, row)
            state = self._workspace.state_of(path)
            text = self._workspace.read_document(state).text if state is not None else None
        except (OSError, WorkspaceError):
            return None
        return _locate(path, row, text) if text is not None else None

    def _read_transcript(self, path: str, row: Row) -> Passage | None:
        transcripts = self._workspace.sessions
        if transcripts is None:
            return None
        found = lines_in_transcript(transcripts, path, row.start, row.size, row.lines)
        if found is None:
            return None
        count = found.last.line - found.first.line + 1
        excerpt = self._workspace.read_lines(path, found.first.line, count)
        return Passage(
            path=path,
            source="sessions",
            start=found.first.line,
            end=found.last.line,
            text=excerpt.text,
            first_day=found.first.time[:10],
            last_day=found.last.time[:10],
        )


def _locate(path: str, row: Row, text: str) -> Passage | None:
    """Find the lines of a row in a text: where QMD saw them, or at their nearest occurrence."""
    lines = text.split("\n")
    seen = [line.rstrip().removeprefix("\ufeff") for line in row.lines]
    plain = [line.rstrip() for line in lines]
    if not any(seen):
        return None
    places = [at for at in range(len(plain)) if _fits(plain, at, seen, row)]
    at = min(places, key=lambda place: abs(place + 1 - row.start), default=None)
    if at is None:
        return None
    end = min(at + row.size, len(lines))
    while at < end - 1 and not plain[at]:
        at += 1
    while end > at + 1 and not plain[end - 1]:
        end -= 1
    day = date_of(path)
    return Passage(
        path=path,
        source="memory",
        start=at + 1,
        end=end,
        text="\n".join(lines[at:end]),
        first_day=day,
        last_day=day,
    )


def _fits(plain: Sequence[str], at: int, seen: Sequence[str], row: Row) -> bool:
    """Whether the lines from `at` on are those of a row. QMD may show only the end of the first one
    and only the beginning of the last one.
    """
    lines = list(plain[at : at + len(seen)])
    if len(lines) < len(seen):
        return False
    if row.is_cut:
        lines[-1] = lines[-1][: len(seen[-1])]
    if at + 1 == row.start and seen[0] in plain[at]:
        lines[0] = seen[0]
    return lines == list(seen)


def passes(filters: Filters, passage: Passage, matches: Callable[[str], bool] | None) -> bool:
    """Whether a passage may be in the answer; `matches` is the matcher of the path filter."""
    prefix = f"{filters.source.lower()}:"
    if filters.source not in ("", passage.source) and not passage.path.lower().startswith(prefix):
        return False
    if matches is not None and not matches(passage.path):
        return False
    if filters.since and not passage.last_day >= filters.since:
        return False
    return not filters.until or ("" < passage.first_day <= filters.until)


def path_filter(filters: Filters) -> Callable[[str], bool] | None:
    return path_matcher(filters.path) if filters.path else None


class Scorer:
    """Scores passages by the share of the question's words in them, then by QMD's order.

    QMD's own scores depend on the number of documents, or only on the rank, so they are used to
    order hits with the same words and never compared with a minimum. Without terms, for the modes
    that use models, QMD's score is the score."""

    def __init__(self, terms: Sequence[Term], best: float) -> None:
        self._spotters: list[Spotter] = [make_spotter([term], [1.0]) for term in terms]
        self._best = best

    def score(self, passage: Passage, qmd_score: float) -> float:
        """Return a score from 0 to 1."""
        if not self._spotters:
            return qmd_score
        found = sum(spotter.weight(passage.text) > 0 for spotter in self._spotters)
        # QMD compares stems and the whole file, so it may have found a word that is not found here.
        share = max(found, 0.5) / len(self._spotters)
        order = qmd_score / self._best if self._best > 0 else 1.0
        return round(share * (0.5 + 0.5 * order), 4)


class SnippetLimits(NamedTuple):
    """How many characters an answer may have."""

    one: int
    all: int


def as_hits(
    scored: Sequence[tuple[float, Passage]], most: int, limits: SnippetLimits
) -> tuple[Hit, ...]:
    """Return the best passages as hits within the limits; the hit that reaches the limit of all
    snippets is the last one.
    """
    hits, left = list[Hit](), limits.all
    for score, passage in scored[:most]:
        if left <= 0:
            break
        text = passage.text[: min(limits.one, left)].rstrip()
        left -= len(text)
        end = min(passage.end, passage.start + text.count("\n"))
        end = passage.end if passage.source == "sessions" else end
        hits.append(
            Hit(
                path=passage.path,
                start_line=passage.start,
                end_line=passage.end,
                score=score,
                snippet=text,
                snippet_start=passage.start,
                snippet_end=end,
                source=passage.source,
                vector_score=0.0,
                text_score=score,
                date=passage.last_day,
                snippet_ranges=((passage.start, end),),
            )
        )
    return tuple(hits)


def story_of(hit: Hit, rank: int) -> CandidateStory:
    """Return what `--explain` shows of a hit; QMD does not report other candidates."""
    return CandidateStory(
        citation=hit.citation,
        vector=0.0,
        vector_space="",
        text=hit.score,
        name=0.0,
        line=0.0,
        user=0.0,
        stated=0.0,
        bm25=0.0,
        terms="",
        decay=1.0,
        score=hit.score,
        outcome=f"hit {rank}",
    )
