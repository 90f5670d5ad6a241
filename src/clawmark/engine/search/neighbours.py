"""Joins hits that overlap in one file, then applies the threshold and the limit.

Chunks share lines with their neighbours; as two hits they would show the same lines twice. The
better one keeps its rank and takes the other's lines, up to three chunks, so that a citation stays
readable."""

from collections.abc import Sequence
from typing import NamedTuple

from clawmark.engine.search.scoring import Candidate

MOST_CHUNKS = 3


class Passage(NamedTuple):
    """A hit before its snippet is cut: the best candidate and the lines of all that were joined to
    it."""

    best: Candidate
    start_line: int
    end_line: int
    text: str
    keys: tuple[int, ...]


def join_neighbours(
    candidates: Sequence[Candidate], max_results: int, min_score: float
) -> tuple[list[Passage], dict[int, str]]:
    """Return the passages to show, in order, and why each other candidate is not shown."""
    passages: list[Passage] = []
    of_path: dict[str, list[int]] = {}
    dropped: dict[int, str] = {}
    for candidate in candidates:
        key = candidate.row.key
        if candidate.score < min_score and not candidate.is_exact:
            dropped[key] = f"below the minimum {min_score:g}"
            continue
        if candidate.score <= 0.0:
            dropped[key] = "no leg found it"
            continue
        here = of_path.get(candidate.row.path, ())
        place = next((n for n in here if _overlaps(passages[n], candidate)), None)
        if place is not None:
            if len(passages[place].keys) < MOST_CHUNKS:
                passages[place] = _join(passages[place], candidate)
                dropped[key] = f"joined to hit {place + 1}"
            else:
                dropped[key] = f"lies in hit {place + 1}"
        elif len(passages) < max_results:
            of_path.setdefault(candidate.row.path, []).append(len(passages))
            passages.append(_passage(candidate))
        else:
            dropped[key] = f"after the first {max_results}"
    return passages, dropped


def _passage(candidate: Candidate) -> Passage:
    row = candidate.row
    return Passage(
        best=candidate,
        start_line=row.start_line,
        end_line=row.end_line,
        text=row.text,
        keys=(row.key,),
    )


def _overlaps(passage: Passage, candidate: Candidate) -> bool:
    """Return whether a candidate of the same file shares lines with a passage."""
    row = candidate.row
    return row.start_line <= passage.end_line and row.end_line >= passage.start_line


def _join(passage: Passage, candidate: Candidate) -> Passage:
    """Join two overlapping ranges of lines and their text, each line once."""
    row = candidate.row
    keys = (*passage.keys, row.key)
    if row.start_line >= passage.start_line and row.end_line <= passage.end_line:
        return passage._replace(keys=keys)
    first, second = (
        (passage.text, passage.start_line, passage.end_line),
        (row.text, row.start_line, row.end_line),
    )
    if second[1] < first[1]:
        first, second = second, first
    fresh = (
        _unsaid(first[0], second[0])
        if row.source == "sessions"
        else second[0].split("\n")[first[2] - second[1] + 1 :]
    )
    text = "\n".join([first[0], *fresh]) if fresh else first[0]
    return passage._replace(
        start_line=first[1], end_line=max(first[2], second[2]), text=text, keys=keys
    )


def _unsaid(first: str, second: str) -> list[str]:
    """The lines of the second part of a conversation that do not repeat the end of the first."""
    lines = second.split("\n")
    for count in range(len(lines), 0, -1):
        if f"\n{first}".endswith("\n" + "\n".join(lines[:count])):
            return lines[count:]
    return lines
