"""Compare the cost of a warm search with an older Clawmark, in turns.

    python bench/warm.py --work DIR --before PYTHON [--rounds 4]

Input: the corpus of 1,000 files and its questions, made by the shared `corpus.py`. Each
interpreter indexes it with static vectors into a state folder of its own. Then they take turns,
each asking every question several times in one process. What counts is the least CPU time of each
question. Output: a table, and `bench/results/warm.json`."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from harness import (
    clawmark_command,
    clean_environment,
    must,
    run,
    settings_file,
    shared_folder,
    table,
    verdict,
    write_result,
)

FLOOR = 1.1
ASKING = """
import json, sys, time
from clawmark import Memory
workspace, state, config, questions, rounds = sys.argv[1:]
asked = [question["q"] for question in json.load(open(questions, encoding="utf-8"))]
with Memory.open(workspace, state_dir=state, config=config) as memory:
    best = [float("inf")] * len(asked)
    for turn in range(int(rounds) + 1):
        for number, text in enumerate(asked):
            began = time.thread_time()
            memory.search(text)
            best[number] = min(best[number], time.thread_time() - began) if turn else best[number]
print(sum(best) / len(best) * 1000)
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--work",
        type=Path,
        required=True,
        help="folder for the corpus and the indexes; kept between runs",
    )
    parser.add_argument("--before", required=True, help="interpreter of an older Clawmark")
    parser.add_argument("--rounds", type=int, default=4, help="turns of each")
    parser.add_argument(
        "--python", default=sys.executable, help="interpreter of the Clawmark to measure"
    )
    given = parser.parse_args()
    work = given.work.resolve()
    corpus = work / "corpus-1000"
    if not corpus.is_dir():
        maker = shared_folder() / "bench" / "corpus.py"
        must(run([sys.executable, str(maker), str(corpus), "--files", "1000"]), "the corpus")
    times: dict[str, list[float]] = {"now": [], "before": []}
    for _ in range(given.rounds):
        for name, python in (("now", given.python), ("before", given.before)):
            times[name].append(ask(python, work, corpus, work / f"warm-{name}"))
    best = {name: min(values) for name, values in times.items()}
    ratio = best["now"] / best["before"]
    print(
        table([("", "CPU ms a search"), *((name, f"{value:.2f}") for name, value in best.items())])
    )
    print(f"ratio {ratio:.2f}, floor {FLOOR}: {verdict(ratio, FLOOR, at_least=False)}")
    command = "python bench/warm.py --work DIR --before PYTHON"
    body = {
        "cpu_ms": {name: round(value, 2) for name, value in best.items()},
        "ratio": round(ratio, 3),
        "floor": FLOOR,
    }
    write_result("warm", command, given.python, {**body, "all_rounds": times})
    return 1 if ratio > FLOOR else 0


def ask(python: str, work: Path, corpus: Path, state: Path) -> float:
    """The mean over the questions of the least CPU milliseconds of each."""
    env = clean_environment(work / "home")
    config = settings_file(work, "static")[-1]
    places = ["--workspace", str(corpus), "--state-dir", str(state), "--config", config, "--json"]
    must(run([*clawmark_command(python), "index", *places], env), "the index")
    questions = corpus.with_name(corpus.name + ".queries.json")
    asking = [python, "-c", ASKING, str(corpus), str(state), config, str(questions), "4"]
    return float(json.loads(must(run(asking, env), "the searches").out.strip()))


if __name__ == "__main__":
    sys.exit(main())
