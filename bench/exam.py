"""Takes the retrieval exam of the shared folder through the command line; the library of
`ranking.py` and `fit_ranking.py`.

An exam is a folder made by the shared `exam.py`: `questions.jsonl`, and one workspace for each
group of questions. Every workspace is indexed by `clawmark index` and asked by `clawmark search
--batch`; the shared `exam.py` scores the answers. Workspaces and indexes stay in the work folder,
and `clawmark index` does only what is due, so a stopped run can go on."""

from __future__ import annotations

import base64
import json
import os
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from harness import Run, clawmark_command, clean_environment, must, run, shared_folder

MOST_RESULTS = 10
METRICS = ("recall@6", "all@6", "mrr", "ndcg@10", "seen@2000")


class Code(NamedTuple):
    """A version of Clawmark to measure."""

    column: str
    """Where its figures and its indexes belong: `now` or `before`."""
    python: str
    commit: str


class Mode(NamedTuple):
    """A configuration to search with."""

    name: str
    index: str
    """Modes with the same index share one; their settings differ only in how they search."""
    settings: dict[str, Any]
    options: tuple[str, ...] = ("--min-score", "0")


class Group(NamedTuple):
    """One workspace of an exam, and the files of one version's index and answers."""

    name: str
    workspace: Path
    state: Path
    questions: Path
    answers: Path


def question_sets() -> list[str]:
    """The names of the data sets that come with questions and answers."""
    data = shared_folder() / "data"
    return sorted(folder.name for folder in data.iterdir() if (folder / "qrels.tsv").is_file())


def build_set(work: Path, name: str, *, echo: bool = False) -> Path:
    """Make the workspaces of a data set; with `echo` also notes in which the questions were asked
    and not answered.
    """
    folder = work / "exam" / (f"{name}-echo" if echo else name)
    if not (folder / "questions.jsonl").is_file():  # written last
        folder.mkdir(parents=True, exist_ok=True)
        maker = [
            str(shared_folder() / "exam" / "exam.py"),
            "build",
            str(shared_folder() / "data" / name),
            str(folder),
        ]
        must(
            run([sys.executable, *maker, *(["--echo"] if echo else [])]), f"building {folder.name}"
        )
    return folder


def build_growth(work: Path, files: int) -> Path:
    """Make a corpus of so many files and its exam, in which the whole file is the answer."""
    folder, corpus = work / "exam" / f"growth-{files}", work / "corpus" / f"c{files}"
    if not (folder / "questions.jsonl").is_file():
        corpus.parent.mkdir(parents=True, exist_ok=True)
        if not corpus.with_name(f"{corpus.name}.queries.json").is_file():  # written last
            maker = [
                str(shared_folder() / "bench" / "corpus.py"),
                str(corpus),
                "--files",
                str(files),
            ]
            must(run([sys.executable, *maker]), f"making a corpus of {files} files")
        maker = [str(shared_folder() / "exam" / "exam.py"), "files", str(corpus), str(folder)]
        must(run([sys.executable, *maker]), f"building {folder.name}")
    return folder


def build_hostile(work: Path, seed: int) -> Path:
    """Make a hostile workspace and its exam: each question is the marker of a file that must be
    found.
    """
    folder, made = work / "exam" / f"hostile-{seed}", work / "hostile" / str(seed)
    if (folder / "questions.jsonl").is_file():
        return folder
    if not (made / "manifest.json").is_file():  # written last
        maker = str(shared_folder() / "hostile" / "make_hostile_workspace.py")
        must(
            run([sys.executable, maker, str(made), "--seed", str(seed)]),
            f"making hostile workspace {seed}",
        )
    (folder / "all").mkdir(parents=True, exist_ok=True)
    (folder / "all" / "workspace").symlink_to(made / "workspace", target_is_directory=True)
    manifest = json.loads((made / "manifest.json").read_text(encoding="utf-8"))
    paths = {
        item["marker"]: os.fsdecode(base64.b64decode(item["path_b64"])).removeprefix("workspace/")
        for item in manifest["items"]
        if item["expect"] == "index" and item["path"].startswith("workspace/")
    }
    rows = [
        {
            "id": marker,
            "group": "all",
            "query": marker,
            "category": "",
            "gold": [{"path": path, "from": 1, "to": 1_000_000_000, "text": marker}],
        }
        for marker, path in paths.items()
    ]
    (folder / "questions.jsonl").write_text(
        "".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8"
    )
    return folder


def questions_of(folder: Path) -> list[dict[str, Any]]:
    """The questions of an exam with the lines that answer them."""
    return [
        json.loads(line)
        for line in (folder / "questions.jsonl").read_text(encoding="utf-8").splitlines()
    ]


def take(work: Path, folder: Path, mode: Mode, code: Code, jobs: int = 1) -> dict[str, Any]:
    """Ask all questions of an exam and score the answers; `answers` names the file they are in."""
    groups = groups_of(work, folder, mode, code)
    with ThreadPoolExecutor(jobs) as pool:
        costs = list(pool.map(lambda group: ask(work, group, mode, code), groups))
    answers = groups[0].state.parent / f"answers-{mode.name}.jsonl"
    answers.write_text(
        "".join(group.answers.read_text(encoding="utf-8") for group in groups), encoding="utf-8"
    )
    examiner = [
        str(shared_folder() / "exam" / "exam.py"),
        "score",
        str(folder),
        str(answers),
        "--json",
        "--by-category",
    ]
    report = json.loads(must(run([sys.executable, *examiner]), f"scoring {folder.name}").out)
    count = report.pop("questions")
    whole = report.pop("all")
    if report.pop("unanswered"):
        sys.exit(f"{folder.name}: some questions were not asked.")
    return {
        "commit": code.commit,
        "questions": count,
        **{metric: whole[metric] for metric in METRICS},
        "categories": {
            name: {metric: row[metric] for metric in METRICS} for name, row in report.items()
        },
        "search_cpu_ms_per_question": round(
            1000 * sum(cost for cost, _ in costs) / max(1, count), 1
        ),
        "warnings": sorted({warning for _, warning in costs if warning}),
        "answers": answers,
    }


def groups_of(work: Path, folder: Path, mode: Mode, code: Code) -> list[Group]:
    """The workspaces of an exam, with the questions written as a batch next to each index."""
    rows: dict[str, list[str]] = {}
    for row in questions_of(folder):
        rows.setdefault(row["group"], []).append(
            json.dumps({"id": row["id"], "query": row["query"]}) + "\n"
        )
    groups = []
    for name, lines in sorted(rows.items()):
        state = state_folder(work, folder.name, mode, code) / name
        state.mkdir(parents=True, exist_ok=True)
        group = Group(
            name=f"{folder.name}/{name}",
            workspace=folder / name / "workspace",
            state=state,
            questions=state / "batch.jsonl",
            answers=state / f"answers-{mode.name}.jsonl",
        )
        group.questions.write_text("".join(lines), encoding="utf-8")
        groups.append(group)
    return groups


def state_folder(work: Path, exam: str, mode: Mode, code: Code) -> Path:
    return work / code.column / f"state-{mode.index}" / exam


def forget_indexes(work: Path, exam: str, mode: Mode, code: Code) -> None:
    """Delete the indexes of an exam, so that they are made again."""
    shutil.rmtree(state_folder(work, exam, mode, code), ignore_errors=True)


def ask(work: Path, group: Group, mode: Mode, code: Code) -> tuple[float, str]:
    """Index one workspace and ask it its questions: the CPU seconds of the search, and what it
    warned about.
    """
    command, env = clawmark_command(code.python), clean_environment(work / "home")
    config = group.state / f"{mode.name}.json"
    config.write_text(json.dumps(mode.settings), encoding="utf-8")
    places = [
        "--workspace",
        str(group.workspace),
        "--state-dir",
        str(group.state),
        "--config",
        str(config),
        "--json",
    ]
    report = json.loads(must(run([*command, "index", *places], env), f"index of {group.name}").out)
    if report["degraded"] or report["dueVectors"]:
        sys.exit(
            f"index of {group.name}, {mode.name}: not complete, "
            f"{report['degraded'] or 'vectors are due'}"
        )
    batch = ["--batch", str(group.questions), "--max-results", str(MOST_RESULTS), *mode.options]
    searched = must(run([*command, "search", *batch, *places], env), f"search of {group.name}")
    write_answers(searched, group)
    return searched.cpu, searched.err.strip()[:200]


def write_answers(searched: Run, group: Group) -> None:
    """Write a batch's answers as the exam reads them; a batch that lost or swapped a question ends
    the run.
    """
    asked = [
        json.loads(line)["id"] for line in group.questions.read_text(encoding="utf-8").splitlines()
    ]
    answers = [json.loads(line) for line in searched.out.split("\n") if line.strip()]
    if [answer.get("id") for answer in answers] != asked:
        sys.exit(
            f"{group.name}: {len(asked)} questions, {len(answers)} answers, or in another order."
        )
    if degraded := [answer["degraded"] for answer in answers if answer.get("degraded")]:
        sys.exit(
            f"{group.name}: {len(degraded)} of {len(answers)} searches were degraded: {degraded[0]}"
        )
    keys = ("path", "startLine", "endLine", "snippet", "score")
    with group.answers.open("w", encoding="utf-8") as file:
        for answer in answers:
            results = [{key: hit[key] for key in keys} for hit in answer["results"]]
            file.write(json.dumps({"id": answer["id"], "results": results}) + "\n")
