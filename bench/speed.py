"""What indexing and a cold search cost, as ratios to `python -c pass` of the same interpreter in
the same run.

    python bench/speed.py --work DIR [--tiers none,static,auto] [--rounds 15] [--files 1000]
                          [--python PYTHON]

Comes in: the corpus of the shared `bench/corpus.py`. Each number is user + system CPU of a whole,
new process. The commands take turns inside every round and the least of the rounds counts, because
neighbours on a shared machine can only add to a measurement. A search's number is the mean over
several queries of each one's least. What embedding and recording the first version of the files
take is timed inside the very process whose cost it is taken off; the whole is a row of its own.
Every command runs in an empty home folder, with compiled modules. Goes out: a table, and
`bench/results/speed.json`.

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
# static tier and on what records the files in the history.
TIMED = """
import json, sys, time
from clawmark.cli import run
from clawmark.cli.process import end, prepare
from clawmark.backends.builtin import BuiltinBackend
from clawmark.embed.local.static import StaticEmbedder

spent = {"embed_texts": 0.0, "record": 0.0}

def watch(owner, name):
    plain = getattr(owner, name)

    def timed(*args, **named):
        start = time.process_time()
        value = plain(*args, **named)
        spent[name] += time.process_time() - start
        return value

    setattr(owner, name, timed)

watch(StaticEmbedder, "embed_texts")
watch(BuiltinBackend, "record")
prepare(sys.argv[1:])
code = run(sys.argv[1:])
print(json.dumps(spent), file=sys.stderr)
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
    rounds: dict[str, list[float]] = {}
    fresh = bench.work / "state-full"
    for _ in range(max(3, bench.rounds)):
        found = {"pass_cpu": nothing(bench)}
        for tier in ("none", "static"):
            shutil.rmtree(fresh, ignore_errors=True)
            ran = clawmark(bench, tier, ["index", "--json"], fresh, [bench.python, "-c", TIMED])
            spent = json.loads(ran.err)
            found[f"{tier}_cpu"] = ran.cpu
            found[f"{tier}_recording_cpu"] = spent["record"]
        found["embedding_cpu"] = spent["embed_texts"]
        found["keywords_cpu"] = found["none_cpu"] - found["none_recording_cpu"]
        found["whole_written_cpu"] = found["static_cpu"] - found["embedding_cpu"]
        found["written_cpu"] = found["whole_written_cpu"] - found["static_recording_cpu"]
        for what, cpu in found.items():
            rounds.setdefault(what, []).append(cpu)
    shutil.rmtree(fresh, ignore_errors=True)
    least = {what: min(costs) for what, costs in rounds.items()}
    return {
        "chunks": number(json.loads(ran.out), "chunks"),
        "pass_cpu": least["pass_cpu"],
        "keywords_cpu": least["keywords_cpu"],
        "written_cpu": least["written_cpu"],
        "recording_cpu": least["none_recording_cpu"],
        "whole_keywords_cpu": least["none_cpu"],
        "whole_written_cpu": least["whole_written_cpu"],
        "rounds": rounds,
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
    rows = [plain_entry("python -c pass", base)]
    for what, cpu in (
        ("full index without vectors, less recording, chunks/CPU s", full["keywords_cpu"]),
        (
            "full index with static vectors, less recording and embedding, chunks/CPU s",
            full["written_cpu"],
        ),
    ):
        rows.append(entry(what, cpu, full["chunks"] / cpu, CHUNKS_PER_CPU_SECOND, at_least=True))
    rows.append(plain_entry("recording the first version of the files", full["recording_cpu"]))
    for what, cpu in (
        ("full index without vectors, with recording, chunks/CPU s", full["whole_keywords_cpu"]),
        (
            "full index with static vectors, with recording, less embedding, chunks/CPU s",
            full["whole_written_cpu"],
        ),
    ):
        rows.append(plain_entry(what, cpu, full["chunks"] / cpu))
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


def plain_entry(what: str, cpu: float, value: float | None = None) -> dict[str, Any]:
    """A row without a floor."""
    row = {"what": what, "cpu_ms": round(cpu * 1000, 1)}
    if value is None:
        return {**row, "shown": [f"{cpu * 1000:.1f} ms", "", ""]}
    return {**row, "value": round(value, 2), "shown": [f"{value:,.0f}", "", ""]}


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
