"""Measure how well a memory answers questions whose answers are known.

A question expects a file, some lines of it, or a text. Recall counts hits that overlap the expected
lines or contain the expected text. `seen` counts what the snippets show of it: eight words in a
row, or all of them when there are fewer."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from clawmark.model.documents import Excerpt
from clawmark.model.errors import QuestionError, WorkspaceError
from clawmark.model.reports import Evaluation, Judged
from clawmark.model.values import Found, Hit, parse_citation

_WORD = re.compile(r"\w+")
DEPTH = 6
RUN = 8
MOST_MISSING = 20
_HINT = (
    'Write {"question": "…", "path": "memory/2026-02-24.md#L3-L5"} '
    'or {"question": "…", "text": "…"}, one a line.'
)


class Expected(NamedTuple):
    """One thing a question should find: a path, a text, or both."""

    path: str
    start: int
    end: int
    """The last line; both are 0 for any line of the file."""
    text: str

    @property
    def name(self) -> str:
        lines = f"#L{self.start}" if self.start else ""
        lines += f"-L{self.end}" if self.end > self.start else ""
        return f"{self.path}{lines}" if self.path else self.text


class Question(NamedTuple):
    """A question with what it should find."""

    text: str
    expected: tuple[Expected, ...]


def read_questions(lines: Iterable[str], name: str = "the questions") -> list[Question]:
    """Parse a JSON lines file; blank lines are skipped.

    `QuestionError` names the first line that is wrong.
    """
    questions = []
    for number, line in enumerate(lines, 1):
        if not line.strip().strip("\ufeff"):
            continue
        try:
            given = json.loads(line.strip().strip("\ufeff"))
        except (ValueError, RecursionError):
            raise QuestionError(f"Line {number} of {name} is not JSON.", hint=_HINT) from None
        questions.append(as_question(given, f"Line {number} of {name}"))
    if not questions:
        raise QuestionError(f"There are no questions in {name}.", hint=_HINT)
    return questions


def as_questions(given: Iterable[Mapping[str, object] | Question]) -> list[Question]:
    """Turn objects into questions; questions are kept."""
    return [
        one if isinstance(one, Question) else as_question(one, f"Question {number}")
        for number, one in enumerate(given, 1)
    ]


def as_question(given: object, where: str) -> Question:
    """Turn an object with `question` and `path`, `text` or both into a question."""
    if not isinstance(given, Mapping):
        raise QuestionError(f"{where} is not an object.", hint=_HINT)
    text = given.get("question")
    if not isinstance(text, str) or not text.strip():
        raise QuestionError(f"{where} has no question.", hint=_HINT)
    paths, texts = _texts(given, "path", where), _texts(given, "text", where)
    if not paths and not texts:
        raise QuestionError(f"{where} does not say what the question should find.", hint=_HINT)
    if not paths:
        return Question(text, tuple(Expected(path="", start=0, end=0, text=one) for one in texts))
    evidence = texts[0] if len(texts) == 1 and len(paths) == 1 else ""
    return Question(text, tuple(_at(path, evidence) for path in paths))


def evaluate(
    questions: Sequence[Question],
    search: Callable[[str], Found],
    read: Callable[[str], Excerpt],
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Evaluation:
    """Ask every question and judge the answers."""
    judged, degraded = [], ""
    passages = _Passages(read)
    for number, question in enumerate(questions, 1):
        found = search(question.text)
        degraded = degraded or (found.degraded.reason if found.degraded else "")
        judged.append(_judge(question, found.hits[:DEPTH], passages))
        progress(number, len(questions))
    paths = dict.fromkeys(
        one.path for question in questions for one in question.expected if one.path
    )
    missing = tuple(path for path in paths if not passages.exists(path))[:MOST_MISSING]
    return Evaluation(
        recall_1=_mean([one.recall_1 for one in judged]),
        recall_3=_mean([one.recall_3 for one in judged]),
        recall_6=_mean([one.recall_6 for one in judged]),
        mrr=_mean([1 / one.rank if one.rank else 0.0 for one in judged]),
        seen=_mean([one.seen for one in judged]),
        questions=tuple(judged),
        missing=missing,
        degraded=degraded,
    )


def changed(before: Evaluation, after: Evaluation) -> list[tuple[Judged, Judged]]:
    """Return the questions whose rank, recall or visible text differ between two evaluations."""
    pairs = zip(before.questions, after.questions, strict=True)
    return [(one, two) for one, two in pairs if (one.rank, *one[3:7]) != (two.rank, *two[3:7])]


def _judge(question: Question, hits: Sequence[Hit], passages: _Passages) -> Judged:
    ranks = [_rank(expected, hits, passages) for expected in question.expected]
    found = [rank for rank in ranks if rank]
    shown = _words(" \n ".join(hit.snippet for hit in hits))
    seen = [
        _is_seen(expected, rank, shown, passages)
        for expected, rank in zip(question.expected, ranks, strict=True)
    ]
    return Judged(
        question=question.text,
        expected=tuple(expected.name for expected in question.expected),
        rank=min(found, default=0),
        recall_1=_mean([float(0 < rank <= 1) for rank in ranks]),
        recall_3=_mean([float(0 < rank <= 3) for rank in ranks]),
        recall_6=_mean([float(0 < rank <= DEPTH) for rank in ranks]),
        seen=_mean(seen),
        found=tuple(hit.citation for hit in hits),
    )


def _rank(expected: Expected, hits: Sequence[Hit], passages: _Passages) -> int:
    """Return the rank of the first hit with what is expected; 0 for none."""
    for rank, hit in enumerate(hits, 1):
        if expected.path:
            is_there = hit.start_line <= expected.end and hit.end_line >= expected.start
            if hit.path == expected.path and (is_there or not expected.start):
                return rank
        elif _holds(_words(passages.of_hit(hit)), expected.text):
            return rank
    return 0


def _is_seen(expected: Expected, rank: int, shown: str, passages: _Passages) -> float:
    evidence = expected.text or (passages.text(expected.name) if expected.start else "")
    # Without lines or a text, any part of the file is what was asked for.
    return float(_holds(shown, evidence) if evidence.strip() else rank > 0)


def _holds(words: str, evidence: str) -> bool:
    """Return whether eight words of the evidence, or all of fewer, occur in a row."""
    wanted = _WORD.findall(evidence.lower())
    runs = [" ".join(wanted[at : at + RUN]) for at in range(max(1, len(wanted) - RUN + 1))]
    return any(f" {run} " in words for run in runs)


class _Passages:
    """Texts of files and citations, each read once."""

    def __init__(self, read: Callable[[str], Excerpt]) -> None:
        self._read = read
        self._kept: dict[str, Excerpt | None] = {}

    def text(self, citation: str) -> str:
        excerpt = self._get(citation)
        return excerpt.text if excerpt else ""

    def of_hit(self, hit: Hit) -> str:
        return f"{self.text(hit.citation)} \n {hit.snippet}"

    def exists(self, path: str) -> bool:
        excerpt = self._get(path)
        return excerpt is not None and excerpt.total_lines > 0

    def _get(self, citation: str) -> Excerpt | None:
        if citation not in self._kept:
            try:
                self._kept[citation] = self._read(citation)
            except WorkspaceError:
                self._kept[citation] = None
        return self._kept[citation]


def _texts(given: Mapping[object, object], name: str, where: str) -> list[str]:
    value = given.get(name)
    values = value if isinstance(value, list) else [] if value is None else [value]
    if not all(isinstance(one, str) and one.strip() for one in values):
        raise QuestionError(
            f"{name} of {where[:1].lower()}{where[1:]} must be text, or a list of texts.",
            hint=_HINT,
        )
    return [str(one) for one in values]


def _at(path: str, evidence: str) -> Expected:
    named = parse_citation(path)
    has_lines = named.path != path
    last = named.start + (named.lines or 1) - 1
    return Expected(
        path=named.path.removeprefix("./"),
        start=named.start if has_lines else 0,
        end=last if has_lines else 0,
        text=evidence,
    )


def _words(text: str) -> str:
    """Return the words of a text in lower case, with a space around each."""
    return " " + " ".join(_WORD.findall(text.lower())) + " "


def _mean(values: Sequence[float]) -> float:
    return round(sum(values) / len(values), 4) if values else 0.0
