"""What indexing and a cold search cost, as ratios to `python -c pass` of the same interpreter in
the same run.

    python bench/speed.py --work DIR [--tiers none,static,auto] [--rounds 15] [--files 1000]
                          [--python PYTHON]

Comes in: the corpus of the shared `bench/corpus.py`. Each number is user + system CPU of a whole,
new process. The commands take turns inside every round and the least of the rounds counts, because
neighbours on a shared machine can only add to a measurement. A search's number is the mean over
several queries of each one's least. What embedding takes is timed inside the very process whose
cost it is taken off. Every command runs in an empty home folder, with compiled modules. Goes out:
a table, and `bench/results/speed.json`.

The tiers: `none` is keywords only, `static` the instant vectors, `auto` the defaults with the
transformer, whose index takes about ten minutes to build; it stays in DIR."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from pathlib import Path
from typing import Any, NamedTuple

from harness import (
    Run,
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

CHUNKS_PER_CPU_SECOND = 10_000
NOOP = 6.0
SEARCH = {"none": 6.0, "static": 13.0, "auto": 40.0}
TIERS = {"none": "keyword-only", "static": "static", "auto": "transformer"}

# Run inside the measured interpreter: the command itself, with a watch on the embedder of the
# static tier.
TIMED = """
import sys, time
from clawmark.cli import run
from clawmark.cli.process import end, prepare
from clawmark.embed.local.static import StaticEmbedder

plain, spent = StaticEmbedder.embed_texts, []

def embed_texts(self, texts):
    start = time.process_time()
    vectors = plain(self, texts)
    spent.append(time.process_time() - start)
    return vectors

StaticEmbedder.embed_texts = embed_texts
prepare(sys.argv[1:])
code = run(sys.argv[1:])
print(sum(spent), file=sys.stderr)
end(code)
"""


class Bench(NamedTuple):
    """Everything a measurement needs to know."""

    python: str
    command: list[str]
    env: dict[str, str]
    work: Path
    corpus: Path
    queries: list[str]
    rounds: int


def main() -> int:
    given = arguments()
    bench = prepare(given)
    tiers = [tier for tier in TIERS if tier in given.tiers.split(",")]
    full = full_index(bench)
    for tier in tiers:
        fill(bench, tier)
    costs = cold(bench, tiers)
    body = report(full, costs, tiers)
    print(
        table(
            [
                ["what", "value", "floor", ""],
                *([row["what"], *row["shown"]] for row in body["rows"]),
            ]
        )
    )
    for row in body["rows"]:
        del row["shown"]
    info = json.loads(Path(f"{bench.corpus}.info.json").read_text(encoding="utf-8"))
    setup = {"corpus": info, "rounds": bench.rounds, "queries": bench.queries}
    write_result(
        "speed",
        f"python bench/speed.py --work DIR --tiers {','.join(tiers)}",
        bench.python,
        {**setup, **body},
    )
    return 1 if any(row.get("verdict") == "MISSED" for row in body["rows"]) else 0


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--work", type=Path, required=True, help="folder for the corpus and the indexes; kept"
    )
    parser.add_argument("--tiers", default="none,static,auto")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--files", type=int, default=1000)
    parser.add_argument("--queries", type=int, default=5)
    parser.add_argument(
        "--python", default=sys.executable, help="interpreter of the environment to measure"
    )
    given = parser.parse_args()
    given.work = given.work.resolve()
    return given


def prepare(given: argparse.Namespace) -> Bench:
    corpus = given.work / f"corpus-{given.files}"
    if not Path(f"{corpus}.info.json").is_file():
        given.work.mkdir(parents=True, exist_ok=True)
        maker = str(shared_folder() / "bench" / "corpus.py")
        must(
            run([sys.executable, maker, str(corpus), "--files", str(given.files)]),
            "making the corpus",
        )
    rows = json.loads(Path(f"{corpus}.queries.json").read_text(encoding="utf-8"))
    queries = [row["q"] for row in rows[: given.queries]]
    env = clean_environment(given.work / "home")
    return Bench(
        python=given.python,
        command=clawmark_command(given.python),
        env=env,
        work=given.work,
        corpus=corpus,
        queries=queries,
        rounds=given.rounds,
    )


def state_of(bench: Bench, tier: str) -> Path:
    return bench.work / f"state-{tier}-{bench.corpus.name}"


def clawmark(
    bench: Bench,
    tier: str,
    words: list[str],
    state: Path | None = None,
    command: list[str] | None = None,
) -> Run:
    places = ["--workspace", str(bench.corpus), "--state-dir", str(state or state_of(bench, tier))]
    chosen = settings_file(bench.work, tier)
    if words[0] == "search" and tier != "auto":
        chosen = [
            "--provider",
            tier,
        ]  # reading a configuration file is no part of a search with the defaults
    argv = [*(command or bench.command), *words, *places, *chosen]
    # In an empty folder: `index` looks for notes in the current one, which is no part of a sync.
    ran = run(argv, bench.env, Path(bench.env["HOME"]))
    return must(ran, f"clawmark {' '.join(words[:1])} ({TIERS[tier]})")


def full_index(bench: Bench) -> dict[str, Any]:
    """From nothing to a complete index, without and with the instant vectors; of every round what
    it cost.
    """
    costs: dict[str, list[float]] = {"pass": [], "none": [], "static": [], "embedding": []}
    fresh = bench.work / "state-full"
    for _ in range(max(3, bench.rounds)):
        costs["pass"].append(nothing(bench))
        for tier in ("none", "static"):
            shutil.rmtree(fresh, ignore_errors=True)
            ran = clawmark(bench, tier, ["index", "--json"], fresh, [bench.python, "-c", TIMED])
            costs[tier].append(ran.cpu)
        costs["embedding"].append(float(ran.err))
    shutil.rmtree(fresh, ignore_errors=True)
    written = [
        static - embedding
        for static, embedding in zip(costs["static"], costs["embedding"], strict=True)
    ]
    return {
        "chunks": number(json.loads(ran.out), "chunks"),
        "pass_cpu": min(costs["pass"]),
        "keywords_cpu": min(costs["none"]),
        "written_cpu": min(written),
        "rounds": {
            "pass_cpu": costs["pass"],
            "keywords_cpu": costs["none"],
            "static_cpu": costs["static"],
            "embedding_cpu": costs["embedding"],
            "written_cpu": written,
        },
    }


def number(report: dict[str, Any], key: str) -> float:
    """A count of the index report, wherever its envelope puts it."""
    for place in (report, *(value for value in report.values() if isinstance(value, dict))):
        if isinstance(place.get(key), int | float):
            return float(place[key])
    return sys.exit(f"The index report has no {key}: {json.dumps(report)[:300]}")


def nothing(bench: Bench) -> float:
    return run([bench.python, "-c", "pass"], bench.env).cpu


def fill(bench: Bench, tier: str) -> None:
    """A complete index of this tier; a second call proves that nothing is left due."""
    print(f"{TIERS[tier]}: completing its index", flush=True)
    for _ in range(2):
        report = json.loads(clawmark(bench, tier, ["index", "--json"]).out)
    if number(report, "due_vectors" if "due_vectors" in json.dumps(report) else "dueVectors"):
        sys.exit(f"The index of the tier {TIERS[tier]} is not complete: {json.dumps(report)[:300]}")


def cold(bench: Bench, tiers: list[str]) -> dict[str, Any]:
    """Least CPU seconds of each command over the rounds, all taking turns; one unmeasured round
    first.
    """
    costs: dict[tuple[str, str], list[float]] = {}
    for turn in range(bench.rounds + 1):
        found = {("pass", str(again)): nothing(bench) for again in range(3)}
        for tier in tiers:
            found[f"noop {tier}", ""] = clawmark(bench, tier, ["index"]).cpu
            for query in bench.queries:
                found[f"search {tier}", query] = clawmark(bench, tier, ["search", query]).cpu
        if turn:
            for key, cpu in found.items():
                costs.setdefault(key, []).append(cpu)
    least: dict[str, list[float]] = {}
    for (what, _), values in costs.items():
        least.setdefault(what, []).append(min(values))
    return {
        what: min(values) if what == "pass" else sum(values) / len(values)
        for what, values in least.items()
    }


def report(full: dict[str, Any], costs: dict[str, Any], tiers: list[str]) -> dict[str, Any]:
    base = costs["pass"]
    rows = [
        {
            "what": "python -c pass",
            "cpu_ms": round(base * 1000, 1),
            "shown": [f"{base * 1000:.1f} ms", "", ""],
        }
    ]
    for what, cpu in (
        ("full index without vectors, chunks/CPU s", full["keywords_cpu"]),
        ("full index with static vectors, less their embedding, chunks/CPU s", full["written_cpu"]),
    ):
        rows.append(entry(what, cpu, full["chunks"] / cpu, CHUNKS_PER_CPU_SECOND, at_least=True))
    for tier in tiers:
        cpu = costs[f"noop {tier}"]
        rows.append(entry(f"no-op index, {TIERS[tier]}", cpu, cpu / base, NOOP, at_least=False))
    for tier in tiers:
        cpu = costs[f"search {tier}"]
        rows.append(
            entry(f"cold search, {TIERS[tier]}", cpu, cpu / base, SEARCH[tier], at_least=False)
        )
    return {"full_index": rounded(full), "rows": rows}


def rounded(value: Any) -> Any:
    """Seconds to a tenth of a millisecond, however deep they lie."""
    if isinstance(value, dict):
        return {key: rounded(one) for key, one in value.items()}
    return [round(one, 4) for one in value] if isinstance(value, list) else round(value, 4)


def entry(what: str, cpu: float, value: float, floor: float, at_least: bool) -> dict[str, Any]:
    word = verdict(value, floor, at_least)
    unit = "" if at_least else " x"
    shown = [
        f"{value:,.0f}" if at_least else f"{value:.2f} x",
        f"{'>=' if at_least else '<='} {floor:,.0f}{unit}",
        word,
    ]
    row = {
        "what": what,
        "cpu_ms": round(cpu * 1000, 1),
        "value": round(value, 2),
        "floor": floor,
        "verdict": word,
    }
    return {**row, "shown": shown}


if __name__ == "__main__":
    sys.exit(main())
