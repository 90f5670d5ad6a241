"""Does the keyword stage find the best passages without ranking every one, and what does it cost?

    python bench/keywords.py --work DIR [--sizes 1000,5000,20000] [--unseen 5000,20000]
                             [--sets notes,locomo]

Input: the corpus of the shared `corpus.py` in several sizes, and data sets with questions, each
indexed without vectors by the command line. Every question is answered twice, in this process:
by FTS5 ranking all passages with any of its words, as Clawmark did before, and by the keyword stage
as it is. Output: by corpus, the share of the questions with the same best 24 scores, the share of
those scores reached, the CPU milliseconds of both, and `bench/results/keywords.json`. A size that
is not measured keeps its figures from an earlier run.

The limits of the keyword stage were chosen on the corpora of `--sizes` and their 50 questions.
Those of `--unseen` have another seed and 200 questions each, on which nothing was chosen."""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from exam import Code, build_set, groups_of
from harness import (
    RESULTS,
    clawmark_command,
    clean_environment,
    code_version,
    must,
    run,
    settings_file,
    shared_folder,
    table,
    verdict,
    write_result,
)
from ranking import KEYWORDS

from clawmark.model.values import KeywordQuery
from clawmark.store.sqlite.keywords.reader import KeywordReader, Limits
from clawmark.store.sqlite.snapshot import SqliteSnapshot
from clawmark.store.sqlite.store import SqliteStore
from clawmark.text.keywords.query import query_terms

BEST, CANDIDATES = 24, 100
"""How many of the best scores must be the same, and how many passages a search asks for."""
SAME_FLOOR = 0.98
ROUNDS = 3
UNSEEN_SEED = 4711
COMMON = 10
NEARLY = 1e-9
EVERYTHING = Limits(few_rows=10**12, rows_per_lookup=10**12)


class Answer(NamedTuple):
    """How one question was answered by both ways."""

    reached: float
    """The share of the best scores that the keyword stage found too."""
    before: float
    first: float
    now: float
    """CPU seconds of ranking everything, of the keyword stage when nothing was counted yet, and of
    the stage in an open process."""
    ranked: int
    """How many passages the keyword stage ranked one by one."""


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--work", type=Path, required=True, help="folder for corpora and indexes")
    parser.add_argument("--sizes", default="1000,5000,20000", help="files, comma-separated")
    parser.add_argument("--unseen", default="5000,20000", help="the same, with another seed")
    parser.add_argument("--sets", default="notes,locomo,longmemeval,musique", help="data sets")
    given = parser.parse_args()
    work = given.work.resolve()
    rows: dict[str, dict[str, Any]] = earlier()
    for size in filter(None, given.sizes.split(",")):
        index, questions = corpus(work, int(size))
        rows[f"{size} files"] = figures(answers(index, questions))
    for size in filter(None, given.unseen.split(",")):
        index, questions = corpus(work, int(size), unseen=True)
        rows[f"{size} files, unseen"] = figures(answers(index, questions))
    for name in filter(None, given.sets.split(",")):
        found = [
            one for index, questions in data_set(work, name) for one in answers(index, questions)
        ]
        rows[name] = figures(found)
    report(rows)
    return 0 if all(row["same"] >= SAME_FLOOR for row in rows.values()) else 1


def earlier() -> dict[str, dict[str, Any]]:
    path = RESULTS / "keywords.json"
    return dict(json.loads(path.read_text(encoding="utf-8"))["corpora"]) if path.is_file() else {}


def corpus(work: Path, files: int, *, unseen: bool = False) -> tuple[Path, list[str]]:
    """Make and index the corpus of a size; return the index and the questions."""
    name, seed, count = (
        (f"unseen-{files}", UNSEEN_SEED, 200) if unseen else (f"corpus-{files}", 7, 50)
    )
    folder, questions = work / name, work / f"{name}.queries.json"
    if not questions.is_file():  # written last
        making = (
            "import sys, pathlib, corpus; "
            f"corpus.build(pathlib.Path(sys.argv[1]), {files}, {seed}, queries={count})"
        )
        env = {**os.environ, "PYTHONPATH": str(shared_folder() / "bench")}
        must(run([sys.executable, "-c", making, str(folder)], env), "the corpus")
    rows = json.loads(questions.read_text(encoding="utf-8"))
    return indexed(work, folder, work / f"state-{name}"), [row["q"] for row in rows]


def data_set(work: Path, name: str) -> Iterator[tuple[Path, list[str]]]:
    """Make and index the workspaces of a data set; yield each index with its questions."""
    code = Code("now", sys.executable, code_version(sys.executable))
    for group in groups_of(work, build_set(work, name), KEYWORDS, code):
        lines = group.questions.read_text(encoding="utf-8").splitlines()
        questions = [json.loads(line)["query"] for line in lines]
        yield indexed(work, group.workspace, group.state), questions


def indexed(work: Path, workspace: Path, state: Path) -> Path:
    places = ["--workspace", str(workspace), "--state-dir", str(state)]
    command = [*clawmark_command(sys.executable), "index", *places]
    env = clean_environment(work / "home")
    must(run([*command, *settings_file(work, "none"), "--json"], env), f"the index of {workspace}")
    (found,) = (state / "memory").glob("*.sqlite")
    return found


def answers(path: Path, questions: Sequence[str]) -> list[Answer]:
    index = SqliteStore(str(path))
    found = []
    try:
        with index.snapshot() as snapshot:
            for question in questions:
                terms = tuple(term.phrase for term in query_terms(question))
                if terms:
                    found.append(answer(snapshot, terms))
    finally:
        index.close()
    return found


def answer(snapshot: SqliteSnapshot, terms: tuple[str, ...]) -> Answer:
    before, best = least(lambda: rank_everything(snapshot, terms))
    began = time.thread_time()
    keyword_stage(KeywordReader(snapshot.db, snapshot.words_state(), {}), terms)
    first = time.thread_time() - began
    now, (found, ranked) = least(lambda: in_open_process(snapshot, terms))
    best, found = best[:BEST], found[:BEST]
    bar = best[-1][1] - NEARLY if best else 0.0
    reached = sum(score >= bar for _, score in found) / len(best) if best else 1.0
    return Answer(reached=reached, before=before, first=first, now=now, ranked=ranked)


def least(ask: Any) -> tuple[float, Any]:
    """The least CPU seconds of some rounds, and what was found."""
    seconds = []
    for _ in range(ROUNDS):
        began = time.thread_time()
        found = ask()
        seconds.append(time.thread_time() - began)
    return min(seconds), found


def in_open_process(
    snapshot: SqliteSnapshot, terms: tuple[str, ...]
) -> tuple[list[tuple[int, float]], int]:
    reader = KeywordReader(snapshot.db, snapshot.words_state(), snapshot.db.kept_counts)
    return keyword_stage(reader, terms), reader.ranked


def keyword_stage(reader: KeywordReader, terms: tuple[str, ...]) -> list[tuple[int, float]]:
    """What a search asks of the store: candidates, how rare each term is, the scores by term."""
    found = reader.search(KeywordQuery(terms), CANDIDATES)
    judge(reader, terms, [key for key, _ in found])
    return found


def rank_everything(snapshot: SqliteSnapshot, terms: tuple[str, ...]) -> list[tuple[int, float]]:
    """The same as before, by FTS5's own ranking of every match."""
    reader = KeywordReader(snapshot.db, snapshot.words_state(), {}, EVERYTHING)
    table_name = snapshot.words
    quoted = " OR ".join('"' + term.replace('"', " ") + '"' for term in terms)
    found: list[tuple[int, float]] = snapshot.db.rows(
        f"SELECT rowid, -bm25({table_name}, 1.0, 1.0, 0.3) AS score FROM {table_name} "
        f"WHERE {table_name} MATCH ? ORDER BY score DESC, rowid LIMIT ?",
        (quoted, CANDIDATES),
        patient=True,
    )
    judge(reader, terms, [key for key, _ in found])
    return found


def judge(reader: KeywordReader, terms: tuple[str, ...], keys: Sequence[int]) -> None:
    total = reader.counts.rows()
    queries = [KeywordQuery((term,), stated_only=True) for term in terms]
    counts = [reader.counts.of_query(query) for query in queries]
    pairs = zip(pairwise(terms), pairwise(counts), strict=True)
    near = tuple(pair for pair, rows in pairs if min(rows) * COMMON <= total)
    reader.score([*queries, KeywordQuery(pairs=near, stated_only=True)], keys)


def figures(found: Sequence[Answer]) -> dict[str, Any]:
    return {
        "commit": code_version(sys.executable),
        "questions": len(found),
        "same": round(statistics.mean(one.reached >= 1.0 for one in found), 4),
        "reached": round(statistics.mean(one.reached for one in found), 4),
        **{
            f"{name}_cpu_ms": {
                "median": round(1000 * statistics.median(seconds), 2),
                "most": round(1000 * max(seconds), 2),
            }
            for name, seconds in (
                ("before", [one.before for one in found]),
                ("first", [one.first for one in found]),
                ("now", [one.now for one in found]),
            )
        },
        "ranked": {
            "median": statistics.median(one.ranked for one in found),
            "most": max(one.ranked for one in found),
        },
    }


def report(rows: dict[str, dict[str, Any]]) -> None:
    heading = ("", "same best 24", "scores reached", "before ms", "first ms", "now ms", "")
    lines = [
        (
            name,
            f"{row['same']:.3f}",
            f"{row['reached']:.4f}",
            *(f"{row[f'{way}_cpu_ms']['median']:.2f}" for way in ("before", "first", "now")),
            verdict(row["same"], SAME_FLOOR, at_least=True),
        )
        for name, row in rows.items()
    ]
    print(table([heading, *lines]))
    command = "python bench/keywords.py --work DIR"
    write_result("keywords", command, sys.executable, {"floor": SAME_FLOOR, "corpora": rows})


if __name__ == "__main__":
    sys.exit(main())
