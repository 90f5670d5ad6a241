"""How the cost of a memory grows with its files: 1,000, 5,000, 20,000 and, on demand, 200,000.

    python bench/growth.py --work DIR [--sizes 1000,5000,20000] [--providers none,static]
                           [--before PYTHON]

Input: the corpora of the shared `corpus.py` and their questions. Each is indexed once per
interpreter and provider; then the interpreters take turns. Times are CPU times: of a whole process
for commands, of the thread for searches in one process (the least of three turns for each
question). `--sizes 200000` adds a million passages: about 5 GB, and ten minutes.
Output: a table, and `bench/results/growth.json`, where sizes that were not measured this time are
kept from before."""

from __future__ import annotations

import argparse
import json
import math
import sys
import tempfile
from pathlib import Path
from typing import Any

from harness import (
    RESULTS,
    Run,
    clawmark_command,
    clean_environment,
    code_version,
    must,
    run,
    settings_file,
    shared_folder,
    table,
    write_result,
)

ASKING = """
import json, resource, sys, time
from clawmark import Memory
from clawmark.engine.sync.scan import look
from clawmark.model.errors import ClawmarkError
workspace, state, config, questions, rounds = sys.argv[1:]
asked = [question["q"] for question in json.load(open(questions, encoding="utf-8"))]
with Memory.open(workspace, state_dir=state, config=config, background=False) as memory:
    best = [float("inf")] * len(asked)
    stopped = 0
    for turn in range(int(rounds) + 1):
        for number, text in enumerate(asked):
            began = time.thread_time()
            try:
                memory.search(text)
            except ClawmarkError:  # a query of the index took longer than its limit
                stopped += 1
                continue
            best[number] = min(best[number], time.thread_time() - began) if turn else best[number]
    looks = []
    for _ in range(3):
        began = time.thread_time()
        look(memory._parts.sync)
        looks.append(time.thread_time() - began)
best = sorted(one for one in best if one != float("inf"))
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps({
    "warm_ms": best[len(best) // 2] * 1000,
    "warm_p95_ms": best[len(best) * 95 // 100] * 1000,
    "stopped": stopped,
    "look_s": min(looks),
    "peak_mb": peak / 1024 if sys.platform == "linux" else peak / 1024 / 1024,
}))
"""
MEASURES = ("index_s", "noop_s", "cold_s", "first_s", "warm_ms", "look_s", "peak_mb")
QUESTION = "Which tool did we pick for the rate limiter and why?"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--work", type=Path, required=True, help="folder for corpora and indexes")
    parser.add_argument("--sizes", default="1000,5000,20000", help="numbers of files")
    parser.add_argument("--providers", default="none,static")
    parser.add_argument("--rounds", type=int, default=3, help="turns of each question")
    parser.add_argument("--before", default="", help="interpreter of an older Clawmark")
    parser.add_argument("--python", default=sys.executable, help="interpreter to measure")
    given = parser.parse_args()
    pythons = {"now": given.python} | ({"before": given.before} if given.before else {})
    rows = stored_rows()
    for size in map(int, given.sizes.split(",")):
        corpus = corpus_of(given.work.resolve(), size)
        for provider in given.providers.split(","):
            for column, python in pythons.items():
                place = given.work.resolve() / f"state-{size}-{provider}-{column}"
                found = measure(python, corpus, place, provider, given.rounds)
                name = f"{size} {provider} {column}"
                rows[name] = rows.get(name, {}) | {
                    "files": size,
                    "provider": provider,
                    "column": column,
                    "code": code_version(python),
                    **{name: round(value, 3) for name, value in found.items()},
                }
                print(f"{name}: {found}", flush=True)
    print(table([("", *MEASURES), *(shown(name, row) for name, row in rows.items())]))
    command = "python bench/growth.py --work DIR --before PYTHON"
    body = {"rows": rows, "exponents": exponents(list(rows.values()))}
    write_result("growth", command, given.python, body)
    return 0


def stored_rows() -> dict[str, dict[str, Any]]:
    """Return the rows of the result file, which this run replaces one by one."""
    try:
        stored = json.loads((RESULTS / "growth.json").read_text(encoding="utf-8"))["rows"]
    except (OSError, ValueError, KeyError):
        return {}
    return dict(stored)


def corpus_of(work: Path, size: int) -> Path:
    """Return the corpus of a size, made at the first call."""
    corpus = work / f"corpus-{size}"
    if not corpus.with_name(f"{corpus.name}.info.json").is_file():
        maker = shared_folder() / "bench" / "corpus.py"
        must(run([sys.executable, str(maker), str(corpus), "--files", str(size)]), "the corpus")
    return corpus


def measure(python: str, corpus: Path, state: Path, provider: str, rounds: int) -> dict[str, float]:
    """Return what each operation costs with one corpus."""
    env = clean_environment(state.parent / "home")
    config = settings_file(state.parent, provider)[-1]

    def clawmark(command: str, folder: Path, *more: str) -> Run:
        flags = ["--workspace", str(corpus), "--state-dir", str(folder), "--config", config]
        argv = [*clawmark_command(python), command, *more, *flags, "--json"]
        return must(run(argv, env, cwd=state.parent / "home"), command)

    found: dict[str, float] = {}
    if not state.is_dir():
        found["index_s"] = clawmark("index", state).cpu
    clawmark("index", state)  # files that had just changed are read again once
    found["noop_s"] = min(clawmark("index", state).cpu for _ in range(3))
    found["cold_s"] = min(clawmark("search", state, QUESTION).cpu for _ in range(3))
    with tempfile.TemporaryDirectory(dir=state.parent) as empty:
        found["first_s"] = clawmark("search", Path(empty) / "state", QUESTION).cpu
    questions = corpus.with_name(f"{corpus.name}.queries.json")
    asking = [python, "-c", ASKING, str(corpus), str(state), config, str(questions), str(rounds)]
    found |= json.loads(must(run(asking, env), "the searches").out)
    return found


def shown(name: str, row: dict[str, Any]) -> tuple[str, ...]:
    return (name, *(f"{row[key]:,.3g}" if key in row else "" for key in MEASURES))


def exponents(rows: list[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """Return how fast each cost grows from one size to the next: 1 is in proportion to the
    files."""
    found: dict[str, dict[str, float]] = {}
    for one in rows:
        alike = [
            row
            for row in rows
            if (row["provider"], row["column"]) == (one["provider"], one["column"])
            and row["files"] > one["files"]
        ]
        if alike:
            two = min(alike, key=lambda row: int(row["files"]))
            grown = math.log(two["files"] / one["files"])
            name = f"{one['provider']} {one['column']}, {one['files']} to {two['files']}"
            found[name] = {
                key: round(math.log(two[key] / one[key]) / grown, 2)
                for key in MEASURES
                if one.get(key) and two.get(key)
            }
    return found


if __name__ == "__main__":
    sys.exit(main())
