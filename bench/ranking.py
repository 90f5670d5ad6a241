"""How well the ranking finds what is asked for: exams, growth, echoes, hostile files and a service
with low cosines.

    python bench/ranking.py --work DIR [--parts dev,growth,echo,hostile,mock] [--sets notes,locomo]
                            [--tiers default,static] [--jobs 2] [--before PYTHON] [--fresh]

Everything runs through the command line (see `exam.py`), ten results, minimum score 0 except where
the threshold matters.

- dev: every data set, in both tiers, and by each leg alone. Hybrid search may not be worse than the
  better of its legs.
- growth: the same 20 questions among 1,000, 5,000 and 20,000 files, with static vectors.
- echo: notes and locomo again, with session notes in which the questions were asked and not
  answered.
- hostile: each token that occurs in one file only must be among the first three hits.
- mock: an embedding service with low cosines, at the default threshold, against keywords alone.

Output: tables, and `bench/results/ranking.json`, written after every exam. An exam that the file
has for the same code is not taken again; `--fresh` takes it again, with new indexes. `--before`
measures an older Clawmark as well."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from exam import (
    Code,
    Mode,
    build_growth,
    build_hostile,
    build_set,
    forget_indexes,
    question_sets,
    questions_of,
    take,
)
from harness import RESULTS, code_version, shared_folder, table, write_result

PARTS = ("dev", "growth", "echo", "hostile", "mock")
GROWTH = (1000, 5000, 20_000)
ECHO = ("notes", "locomo")
SEEDS = (1, 2)


def settings(provider: str, **search: Any) -> dict[str, Any]:
    return {"memorySearch": {"provider": provider, **search}}


VECTORS_ONLY = {"query": {"hybrid": {"enabled": False}}}
DEFAULT = Mode("default", "auto", {})
STATIC = Mode("static", "static", settings("static"))
KEYWORDS = Mode("keywords", "none", settings("none"))
TIERS = {
    "default": (DEFAULT, Mode("default-vectors", "auto", {"memorySearch": VECTORS_ONLY})),
    "static": (STATIC, Mode("static-vectors", "static", settings("static", **VECTORS_ONLY))),
}
"""By tier: hybrid search and the vectors alone."""
KEYWORDS_AT_THRESHOLD = Mode("keywords-threshold", "none", settings("none"), options=())

FLOORS: dict[tuple[str, str], dict[str, float]] = {
    ("locomo", "default"): {"recall@6": 0.92, "seen@2000": 0.90},
    ("notes", "default"): {"recall@6": 0.92, "seen@2000": 0.93},
    ("longmemeval", "default"): {"recall@6": 0.70, "seen@2000": 0.76},
    ("musique", "static"): {"recall@6": 0.45, "seen@2000": 0.51},
    # What the language sets had before evidence was added up instead of weighed.
    ("jsquad", "default"): {"recall@6": 0.985},
    ("klue_mrc", "default"): {"recall@6": 0.99},
    ("xquad_ar", "default"): {"recall@6": 0.99},
    ("xquad_en", "default"): {"recall@6": 1.0},
    ("xquad_hi", "default"): {"recall@6": 0.98},
    ("xquad_ru", "default"): {"recall@6": 0.995},
    ("xquad_th", "default"): {"recall@6": 0.99},
    ("xquad_zh", "default"): {"recall@6": 0.98},
}
GROWTH_FLOOR = 0.95
BELOW_BETTER_LEG = 0.005
LOST_TO_ECHOES = {"recall@6": 0.01, "seen@2000": 0.01, "mrr": 0.05}

Rows = dict[str, dict[str, dict[str, dict[str, Any]]]]
"""By exam, mode and column (`now` or `before`)."""


class Check(NamedTuple):
    """A figure and the least it may be."""

    what: str
    value: float
    floor: float

    @property
    def is_met(self) -> bool:
        return self.value >= self.floor - 1e-9


def main() -> int:
    given = arguments()
    versions = [Code("now", given.python, code_version(given.python))]
    if given.before:
        versions.append(Code("before", given.before, code_version(given.before)))
    bench = Bench(given, versions)
    for part in given.parts.split(","):
        getattr(bench, part)()
    found = checks(bench.rows)
    print(show(bench.rows), show_checks(found), sep="\n\n")
    return 1 if any(not check.is_met for check in found) else 0


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--work",
        type=Path,
        required=True,
        help="folder for workspaces and indexes; kept between runs",
    )
    parser.add_argument("--parts", default=",".join(PARTS), help="comma-separated; all by default")
    parser.add_argument(
        "--sets", default="", help="the data sets of the part dev, comma-separated; all by default"
    )
    parser.add_argument(
        "--tiers", default="static,default", help="the default tier takes minutes to index"
    )
    parser.add_argument("--jobs", type=int, default=1, help="workspaces at a time")
    parser.add_argument(
        "--fresh", action="store_true", help="take all exams again, with new indexes"
    )
    parser.add_argument(
        "--python", default=sys.executable, help="interpreter of the Clawmark to measure"
    )
    parser.add_argument(
        "--before", default="", help="interpreter of an older Clawmark to compare with"
    )
    given = parser.parse_args()
    given.work = given.work.resolve()
    for name, allowed in (
        ("parts", PARTS),
        ("tiers", tuple(TIERS)),
        ("sets", tuple(question_sets())),
    ):
        unknown = [one for one in getattr(given, name).split(",") if one and one not in allowed]
        if unknown:
            parser.error(f"--{name}: {unknown[0]!r} is not one of {', '.join(allowed)}")
    return given


class Bench:
    """The parts of the benchmark; each takes its exams and files their figures."""

    def __init__(self, given: argparse.Namespace, versions: list[Code]) -> None:
        self.given = given
        self.versions = versions
        self.tiers = [TIERS[name] for name in given.tiers.split(",")]
        self.rows = earlier()

    def dev(self) -> None:
        for name in self.given.sets.split(",") if self.given.sets else question_sets():
            folder = build_set(self.given.work, name)
            for mode in (KEYWORDS, *(mode for tier in self.tiers for mode in tier)):
                self.take(folder, mode)

    def growth(self) -> None:
        for files in GROWTH:
            folder = build_growth(self.given.work, files)
            for mode in (KEYWORDS, STATIC):
                self.take(folder, mode)

    def echo(self) -> None:
        for name in ECHO:
            plain, echoed = (
                build_set(self.given.work, name),
                build_set(self.given.work, name, echo=True),
            )
            for hybrid, _ in self.tiers:
                self.take(plain, hybrid)
                self.take(echoed, hybrid)

    def hostile(self) -> None:
        for seed in SEEDS:
            folder = build_hostile(self.given.work, seed)
            for hybrid, _ in self.tiers:
                self.take(folder, hybrid)

    def mock(self) -> None:
        folder = build_growth(self.given.work, GROWTH[0])
        self.take(folder, KEYWORDS_AT_THRESHOLD)
        with mock_service() as address:
            remote = {"baseUrl": address, "apiKey": "not-needed"}
            mode = Mode("mock", "mock", settings("openai", model="mock", remote=remote), options=())
            for code in self.versions:
                forget_indexes(
                    self.given.work, folder.name, mode, code
                )  # the address is another one each time
            self.take(folder, mode)

    def take(self, folder: Path, mode: Mode) -> None:
        """Take one exam with every version, unless its figures for the same code are there."""
        for code in self.versions:
            row = self.rows.setdefault(folder.name, {}).setdefault(mode.name, {})
            if (
                not self.given.fresh
                and not code.commit.endswith("+")
                and row.get(code.column, {}).get("commit") == code.commit
            ):
                continue
            print(f"{folder.name}: {mode.name}, {code.column}", flush=True)
            if self.given.fresh and not mode.settings.get("memorySearch", {}).get("query"):
                forget_indexes(self.given.work, folder.name, mode, code)
            taken = take(self.given.work, folder, mode, code, self.given.jobs)
            answers = taken.pop("answers")
            if folder.name.startswith("hostile"):
                taken |= first_three(folder, answers)
            row[code.column] = taken
            self.write()

    def write(self) -> None:
        found = checks(self.rows)
        body = {
            "checks": [{**check._asdict(), "met": check.is_met} for check in found],
            "exams": self.rows,
        }
        write_result(
            "ranking", "python bench/ranking.py --work DIR --before PYTHON", self.given.python, body
        )


def earlier() -> Rows:
    """The figures that the result file has."""
    path = RESULTS / "ranking.json"
    if not path.is_file():
        return {}
    rows: Rows = json.loads(path.read_text(encoding="utf-8"))["exams"]
    return rows


def first_three(folder: Path, answers: Path) -> dict[str, Any]:
    """The share of the markers whose file is among the first three hits, and the markers of the
    other files.
    """
    given = [json.loads(line) for line in answers.read_text(encoding="utf-8").splitlines()]
    hits = {answer["id"]: answer["results"][:3] for answer in given}
    # A file with two names is found under one of them, so the marker itself counts like the path.
    lost = [
        question["id"]
        for question in questions_of(folder)
        if not any(
            hit["path"] == question["gold"][0]["path"] or question["id"] in hit["snippet"]
            for hit in hits[question["id"]]
        )
    ]
    return {"recall@3": round(1 - len(lost) / len(hits), 4), "not_in_first_three": lost}


@contextmanager
def mock_service() -> Iterator[str]:
    """Run the shared stand-in for an embedding service; the value is its address."""
    maker = [sys.executable, str(shared_folder() / "bench" / "mock_embeddings.py"), "--port", "0"]
    with subprocess.Popen(maker, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            yield next(
                word for word in server.stdout.readline().split() if word.startswith("http://")
            )
        finally:
            server.terminate()


def figures(rows: Rows, *wanted: tuple[str, str]) -> list[dict[str, Any]]:
    """The present figures of some exams and modes; nothing unless all of them are there."""
    found = [rows.get(exam, {}).get(mode, {}).get("now") for exam, mode in wanted]
    return [row for row in found if row] if all(found) else []


def checks(rows: Rows) -> list[Check]:
    """The floors for all figures that are there."""
    found = [
        Check(f"{exam}, {mode}: {metric}", row[metric], floor)
        for (exam, mode), floors in FLOORS.items()
        for row in figures(rows, (exam, mode))
        for metric, floor in floors.items()
    ]
    return [
        *found,
        *leg_checks(rows),
        *growth_checks(rows),
        *echo_checks(rows),
        *hostile_checks(rows),
        *mock_checks(rows),
    ]


def leg_checks(rows: Rows) -> Iterator[Check]:
    for exam in rows:
        for tier in TIERS:
            if taken := figures(rows, (exam, tier), (exam, "keywords"), (exam, f"{tier}-vectors")):
                hybrid, *legs = (row["recall@6"] for row in taken)
                yield Check(
                    f"{exam}, {tier}: recall@6 against its legs",
                    hybrid,
                    max(legs) - BELOW_BETTER_LEG,
                )


def growth_checks(rows: Rows) -> Iterator[Check]:
    for files in GROWTH:
        for row in figures(rows, (f"growth-{files}", "static")):
            value = row["categories"]["question"]["recall@6"]
            yield Check(f"growth-{files}, static: recall@6 of questions", value, GROWTH_FLOOR)


def echo_checks(rows: Rows) -> Iterator[Check]:
    for exam in ECHO:
        for tier in TIERS:
            if taken := figures(rows, (exam, tier), (f"{exam}-echo", tier)):
                plain, echoed = taken
                for metric, most in LOST_TO_ECHOES.items():
                    yield Check(
                        f"{exam}-echo, {tier}: {metric}", echoed[metric], plain[metric] - most
                    )


def hostile_checks(rows: Rows) -> Iterator[Check]:
    for seed in SEEDS:
        for tier in TIERS:
            for row in figures(rows, (f"hostile-{seed}", tier)):
                yield Check(f"hostile-{seed}, {tier}: recall@3", row["recall@3"], 1.0)


def mock_checks(rows: Rows) -> Iterator[Check]:
    exam = f"growth-{GROWTH[0]}"
    if taken := figures(rows, (exam, "mock"), (exam, KEYWORDS_AT_THRESHOLD.name)):
        mock, keywords = (row["recall@6"] for row in taken)
        yield Check("a service with low cosines, at the threshold: recall@6", mock, keywords)


def show(rows: Rows) -> str:
    """All figures, next to those of the older version."""
    lines = [
        [
            "exam",
            "mode",
            "questions",
            "recall@6",
            "before",
            "mrr",
            "before",
            "seen@2000",
            "before",
            "recall@3",
            "before",
        ]
    ]
    for exam, modes in rows.items():
        for mode, columns in modes.items():
            count = next((str(row["questions"]) for row in columns.values()), "")
            lines.append([exam, mode, count])
            for metric in ("recall@6", "mrr", "seen@2000", "recall@3"):
                for column in ("now", "before"):
                    value = columns.get(column, {}).get(metric)
                    lines[-1].append("" if value is None else f"{value:.3f}")
    return table(lines)


def show_checks(found: list[Check]) -> str:
    lines = [
        (check.what, f"{check.value:.3f}", f"{check.floor:.3f}", "ok" if check.is_met else "MISSED")
        for check in found
    ]
    return table([("check", "value", "floor", ""), *lines])


if __name__ == "__main__":
    sys.exit(main())
