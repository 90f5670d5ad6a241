"""The retrieval exam on the shared data sets, taken through the command line, and its floors.

    python bench/exam.py --work DIR [--sets locomo,notes] [--provider auto|static|none] [--jobs 2] [--fresh]

Comes in: `data/<set>` of the shared folder. For each set its workspaces are built by the shared `exam.py`; each is
indexed by `clawmark index` and asked by `clawmark search --batch`, ten results, minimum score 0; the answers are
scored by the shared `exam.py`. Goes out: a table, and `bench/results/exam-<config>.json`.

It may be stopped and started again: workspaces and indexes stay in DIR, and `clawmark index` does only what is due.
With `--sets` the other sets keep the numbers that the result file has for them.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from harness import (
    RESULTS,
    Run,
    clawmark_command,
    clean_environment,
    commit,
    fingerprint,
    must,
    run,
    settings,
    settings_file,
    shared_folder,
    table,
    verdict,
    write_result,
)

NAMES = {"auto": "default", "static": "static", "none": "keywords"}
FLOORS: dict[str, dict[str, float]] = {
    "locomo": {"recall@6": 0.90, "seen@2000": 0.78},
    "notes": {"recall@6": 0.86},
    "longmemeval": {"recall@6": 0.60},
}
OTHER_LANGUAGES = {"recall@6": 0.93}


class Task(NamedTuple):
    """One workspace of one data set."""

    data_set: str
    group: str
    workspace: Path
    state: Path
    questions: Path
    answers: Path


class Taken(NamedTuple):
    """What asking one workspace cost."""

    data_set: str
    index_cpu: float
    search_cpu: float
    questions: int
    notes: str


def main() -> int:
    given = arguments()
    sets = given.sets.split(",") if given.sets else known_sets()
    built = [build(name, given.work) for name in sets]
    config = f"exam-{NAMES.get(given.provider, given.provider)}"
    tasks = [task for name, folder in zip(sets, built, strict=True) for task in tasks_of(name, folder, given)]
    with ThreadPoolExecutor(given.jobs) as pool:
        taken = list(pool.map(lambda task: take(task, given), tasks))
    scores = {name: score(name, folder, given) for name, folder in zip(sets, built, strict=True)}
    for name, row in scores.items():
        mine = [one for one in taken if one.data_set == name]
        row["index_cpu_seconds"] = round(sum(one.index_cpu for one in mine), 1)
        row["search_cpu_ms_per_question"] = round(
            1000 * sum(one.search_cpu for one in mine) / max(1, sum(one.questions for one in mine)), 1
        )
        row["commit"] = commit()
        row["notes"] = sorted({one.notes for one in mine if one.notes})
    scores = {**earlier(config), **scores}
    print(show(scores))
    command = f"python bench/exam.py --work DIR --provider {given.provider}"
    body = {"settings": settings(given.provider), "config_hash": fingerprint(settings(given.provider))}
    write_result(config, command, given.python, {**body, "sets": dict(sorted(scores.items()))})
    missed = [name for name, row in scores.items() if name in sets and row["missed"]]
    return 1 if missed and given.provider == "auto" else 0


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--work", type=Path, required=True, help="folder for workspaces and indexes; kept between runs")
    parser.add_argument("--sets", default="", help="comma-separated; all by default")
    parser.add_argument("--provider", default="auto", help="auto (the defaults), static, or none (keywords only)")
    parser.add_argument("--jobs", type=int, default=1, help="workspaces at a time")
    parser.add_argument("--fresh", action="store_true", help="forget earlier indexes of this configuration")
    parser.add_argument("--python", default=sys.executable, help="interpreter of the environment to measure")
    given = parser.parse_args()
    given.work = given.work.resolve()
    return given


def known_sets() -> list[str]:
    """Every data set that comes with questions and answers."""
    data = shared_folder() / "data"
    return sorted(folder.name for folder in data.iterdir() if (folder / "qrels.tsv").is_file())


def build(name: str, work: Path) -> Path:
    """Make the workspaces of a set, once; the question file is written last, so it says that the rest is whole."""
    shared, folder = shared_folder(), work / "exam" / name
    if not (folder / "questions.jsonl").is_file():
        folder.mkdir(parents=True, exist_ok=True)
        maker = [sys.executable, str(shared / "exam" / "exam.py"), "build", str(shared / "data" / name), str(folder)]
        print(f"{name}: {must(run(maker), f'building {name}').out.strip()}")
    return folder


def tasks_of(name: str, folder: Path, given: argparse.Namespace) -> list[Task]:
    rows: dict[str, list[str]] = {}
    for line in (folder / "questions.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        rows.setdefault(row["group"], []).append(json.dumps({"id": row["id"], "query": row["query"]}))
    place = given.work / f"state-{given.provider}" / name
    if given.fresh:
        shutil.rmtree(place, ignore_errors=True)
    tasks = []
    for group, lines in sorted(rows.items()):
        state = place / group
        state.mkdir(parents=True, exist_ok=True)
        questions, answers = state / "batch.jsonl", state / "answers.jsonl"
        questions.write_text("\n".join(lines) + "\n", encoding="utf-8")
        answers.unlink(missing_ok=True)
        tasks.append(Task(name, group, folder / group / "workspace", state, questions, answers))
    return tasks


def take(task: Task, given: argparse.Namespace) -> Taken:
    """Index one workspace and ask it every question of its group."""
    command, env = clawmark_command(given.python), clean_environment(given.work / "home")
    places = ["--workspace", str(task.workspace), "--state-dir", str(task.state), "--json"]
    places += settings_file(given.work, given.provider)
    sys.stdout.write(f"{task.data_set}/{task.group}: indexing\n")
    indexed = must(run([*command, "index", *places], env), f"index of {task.data_set}/{task.group}")
    batch = ["--batch", str(task.questions), "--max-results", "10", "--min-score", "0"]
    searched = must(run([*command, "search", *batch, *places], env), f"search of {task.data_set}/{task.group}")
    count = convert(searched, task)
    print(f"{task.data_set}/{task.group}: index {indexed.cpu:.1f} CPU s, {count} questions {searched.cpu:.1f} CPU s")
    return Taken(task.data_set, total_cost(task, indexed.cpu), searched.cpu, count, searched.err.strip()[:200])


def total_cost(task: Task, cpu: float) -> float:
    """What indexing has cost over all the runs it took, since a run may have been stopped."""
    path = task.state / "index-cpu-seconds"
    total = cpu + (float(path.read_text()) if path.is_file() else 0.0)
    path.write_text(f"{total:.2f}")
    return total


def convert(searched: Run, task: Task) -> int:
    """Turn the batch's answers into what the exam reads, and refuse a batch that lost or swapped a question."""
    asked = [json.loads(line)["id"] for line in task.questions.read_text(encoding="utf-8").splitlines()]
    answers = [json.loads(line) for line in searched.out.split("\n") if line.strip()]
    if [answer.get("id") for answer in answers] != asked:
        sys.exit(f"{task.data_set}/{task.group}: {len(asked)} questions, {len(answers)} answers, or in another order.")
    keys = ("path", "startLine", "endLine", "snippet", "score")
    with task.answers.open("w", encoding="utf-8") as file:
        for answer in answers:
            results = [{key: hit[key] for key in keys} for hit in answer["results"]]
            file.write(json.dumps({"id": answer["id"], "results": results}) + "\n")
    return len(answers)


def score(name: str, folder: Path, given: argparse.Namespace) -> dict[str, Any]:
    """Put the groups' answers together and let the exam score them."""
    place = given.work / f"state-{given.provider}" / name
    together = place / "answers.jsonl"
    with together.open("w", encoding="utf-8") as file:
        for part in sorted(place.glob("*/answers.jsonl")):
            file.write(part.read_text(encoding="utf-8"))
    examiner = [sys.executable, str(shared_folder() / "exam" / "exam.py"), "score", str(folder), str(together)]
    report: dict[str, Any] = json.loads(must(run([*examiner, "--json", "--by-category"]), f"scoring {name}").out)
    whole = report.pop("all")
    head = {"questions": report.pop("questions"), "unanswered": report.pop("unanswered")}
    floors = FLOORS.get(name, OTHER_LANGUAGES)
    missed = [metric for metric, floor in floors.items() if whole[metric] < floor]
    return {**head, **whole, "floors": floors, "missed": missed, "categories": report}


def earlier(config: str) -> dict[str, Any]:
    """The sets that the result file already has."""
    path = RESULTS / f"{config}.json"
    if not path.is_file():
        return {}
    sets: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))["sets"]
    return sets


def show(scores: dict[str, Any]) -> str:
    heading = [
        "set",
        "questions",
        "recall@6",
        "floor",
        "",
        "seen@2000",
        "floor",
        "",
        "all@6",
        "mrr",
        "ndcg@10",
        "index",
    ]
    rows = [heading]
    for name, row in sorted(scores.items()):
        line = [name, str(row["questions"])]
        for metric in ("recall@6", "seen@2000"):
            floor = row["floors"].get(metric)
            line += [f"{row[metric]:.3f}", f"{floor:.2f}" if floor else "", ""]
            line[-1] = verdict(row[metric], floor, at_least=True) if floor else ""
        line += [f"{row['all@6']:.3f}", f"{row['mrr']:.3f}", f"{row['ndcg@10']:.3f}", f"{row['index_cpu_seconds']} s"]
        rows.append(line)
    return table(rows)


if __name__ == "__main__":
    sys.exit(main())
