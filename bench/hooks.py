"""What a coding agent's hooks cost and what they recall, on 1,000 files.

    python bench/hooks.py --work DIR [--rounds 60] [--files 1000] [--python PYTHON]

Input: the corpus of the shared `bench/corpus.py`, 50 questions with the file that answers each,
and the held-out half of the chatter in `prompts.py`, which is unrelated to it. Each cost is
user + system CPU of a whole new process that is sent an event as a host sends it; the hooks and
`python -c pass` take turns, and the ratio is the 95th percentile of a hook to the median of the
bare interpreter. Output: a table, and `bench/results/hooks.json`."""

from __future__ import annotations

import argparse
import json
import re
import statistics
import sys
from pathlib import Path
from typing import Any

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
from prompts import CHATTER, is_held_out

START_RATIO = 10.0
FOUND = 0.8
SECOND = 1.0
CHATTER_RECALLED = 0.1
SOURCE = re.compile(r"^\| \[[0-9]+\] .*source: ([^#\n]+)#", re.MULTILINE)


def main() -> int:
    given = arguments()
    corpus = given.work / f"corpus-{given.files}"
    if not Path(f"{corpus}.info.json").is_file():
        given.work.mkdir(parents=True, exist_ok=True)
        maker = str(shared_folder() / "bench" / "corpus.py")
        must(
            run([sys.executable, maker, str(corpus), "--files", str(given.files)]),
            "making the corpus",
        )
    env = clean_environment(given.work / "home")
    state = given.work / f"state-hooks-{corpus.name}"
    places = [
        "--workspace",
        str(corpus),
        "--state-dir",
        str(state),
        *settings_file(given.work, "static"),
    ]
    program = clawmark_command(given.python)
    must(run([*program, "index", *places], env), "indexing")
    rows = json.loads(Path(f"{corpus}.queries.json").read_text(encoding="utf-8"))
    costs = measure(given.python, program, places, env, rows[0]["q"], given.rounds)
    recalled = recall(program, places, env, rows)
    body = report(costs, recalled)
    print(table([("what", "value", "limit", ""), *(row.pop("shown") for row in body["rows"])]))
    info = json.loads(Path(f"{corpus}.info.json").read_text(encoding="utf-8"))
    write_result(
        "hooks",
        "python bench/hooks.py --work DIR",
        given.python,
        {"corpus": info, "rounds": given.rounds, **body},
    )
    return 1 if any(row["verdict"] == "MISSED" for row in body["rows"]) else 0


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--work", type=Path, required=True, help="folder for the corpus and the index; kept"
    )
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--files", type=int, default=1000)
    parser.add_argument(
        "--python", default=sys.executable, help="interpreter of the environment to measure"
    )
    given = parser.parse_args()
    given.work = given.work.resolve()
    return given


def measure(
    python: str,
    program: list[str],
    places: list[str],
    env: dict[str, str],
    prompt: str,
    rounds: int,
) -> dict[str, list[float]]:
    """The CPU seconds of each command, in the order they were run; the first round warms up and
    does not count.
    """
    hook = [*program, "hook", "claude-code"]
    commands = {
        "pass": ([python, "-c", "pass"], ""),
        "SessionStart": (
            [*hook, "SessionStart", *places],
            json.dumps({"session_id": "s", "source": "startup"}),
        ),
        "UserPromptSubmit": (
            [*hook, "UserPromptSubmit", *places],
            json.dumps({"session_id": "s", "prompt": prompt}),
        ),
    }
    costs: dict[str, list[float]] = {name: [] for name in commands}
    for number in range(rounds + 1):
        for name, (command, given) in commands.items():
            ran = must(run(command, env, stdin=given), name)
            if name != "pass" and "additionalContext" not in ran.out:
                sys.exit(f"{name} answered nothing: {ran.out} {ran.err}")
            if number:
                costs[name].append(ran.cpu)
    return costs


def recall(
    program: list[str], places: list[str], env: dict[str, str], rows: list[dict[str, str]]
) -> dict[str, int]:
    """How many questions are answered by what is recalled, how much else is recalled, and how often
    for no reason.
    """

    def sources(prompt: str) -> list[str]:
        command = [*program, "hook", "codex", "UserPromptSubmit", *places]
        answer = json.loads(
            must(run(command, env, stdin=json.dumps({"prompt": prompt})), "recall").out
        )
        return SOURCE.findall(answer.get("hookSpecificOutput", {}).get("additionalContext", ""))

    found = [(row["expect"], sources(row["q"])) for row in rows]
    chatter = [sources(prompt) for prompt in CHATTER if is_held_out(prompt)]
    return {
        "questions": len(found),
        "found": sum(expected in paths for expected, paths in found),
        "items": sum(len(paths) for _, paths in found),
        "chatter": len(chatter),
        "chatter_recalled": sum(bool(paths) for paths in chatter),
    }


def report(costs: dict[str, list[float]], recalled: dict[str, int]) -> dict[str, Any]:
    bare = statistics.median(costs["pass"])
    p95 = {
        name: statistics.quantiles(cpu, n=100, method="inclusive")[94]
        for name, cpu in costs.items()
    }
    share = recalled["found"] / recalled["questions"]
    noise = recalled["chatter_recalled"] / recalled["chatter"]
    rows = [
        row(
            "SessionStart p95, times python -c pass",
            p95["SessionStart"] / bare,
            START_RATIO,
            at_least=False,
        ),
        row("UserPromptSubmit p95, CPU seconds", p95["UserPromptSubmit"], SECOND, at_least=False),
        row("questions whose file is recalled", share, FOUND, at_least=True),
        row("chatter that recalls something", noise, CHATTER_RECALLED, at_least=False),
    ]
    milliseconds = {
        name: {"median": _ms(statistics.median(cpu)), "p95": _ms(p95[name])}
        for name, cpu in costs.items()
    }
    return {"rows": rows, "cpu_milliseconds": milliseconds, "recall": recalled}


def row(what: str, value: float, limit: float, *, at_least: bool) -> dict[str, Any]:
    judged = verdict(value, limit, at_least)
    shown = (what, f"{value:.2f}", f"{'≥' if at_least else '≤'} {limit:g}", judged)
    return {
        "what": what,
        "value": round(value, 3),
        "limit": limit,
        "verdict": judged,
        "shown": shown,
    }


def _ms(seconds: float) -> float:
    return round(1000 * seconds, 1)


if __name__ == "__main__":
    sys.exit(main())
