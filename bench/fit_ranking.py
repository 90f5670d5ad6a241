"""Fits the weights of `clawmark.engine.search.scoring` on the dev sets, by the candidates that a
search explains.

    python bench/fit_ranking.py --work DIR [--sets notes,locomo,longmemeval,musique]
                                [--tiers default,static] [--most 300]

Every question is asked with `explain`, and each candidate is labelled by the lines that answer the
question. The weights minimise the cross-entropy between the softmax of the candidates' evidence and
the right candidates of each question; every set and tier weighs the same. The bias is then set so
that 95 % of the right candidates among the first six reach the default threshold. Questions of the
other sets show how often a question about something else reaches it.

Output: the weights next to those in the code; recall@6 of candidates, before neighbours are
joined, with the weights in the code, the fitted ones, and those fitted on the other sets; and
`bench/results/ranking-fit.json`. Nothing in the code changes. Workspaces and indexes in DIR are
those of `ranking.py`. It needs numpy and runs in this process."""

from __future__ import annotations

import argparse
import math
import random
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from exam import Code, build_set, questions_of, state_folder
from harness import table, write_result
from numpy.typing import NDArray
from ranking import TIERS

from clawmark import Memory
from clawmark.config.schema import QueryOptions
from clawmark.engine.search import pipeline, scoring, statements
from clawmark.model.explanation import CandidateStory

SETS = ("notes", "locomo", "longmemeval", "musique")
FEATURES = ("TEXT", "NAME", "INSTANT_MEANING", "MODEL_MEANING", "LINE", "USER")
FIRST = 6
FOREIGN = 15
"""So many questions of each other set are asked of a workspace."""
REACH = 0.95
THRESHOLD = QueryOptions().min_score
STEPS, RATE, L2 = 400, 0.1, 1e-3
EVERY_CANDIDATE = 10_000

Array = NDArray[np.float64]


class Asked(NamedTuple):
    """One question with what the search knows about its candidates."""

    data_set: str
    tier: str
    evidence: Array
    """A row for each candidate, a column for each feature."""
    is_right: NDArray[np.bool_]
    """A row for each candidate, a column for each unit that answers; no column for a question about
    something else.
    """


class Recall(NamedTuple):
    """The recall@6 of one set in one tier, with three kinds of weights."""

    data_set: str
    tier: str
    questions: int
    code: float
    fitted: float
    left_out: float
    """With weights fitted on the other sets."""


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--work",
        type=Path,
        required=True,
        help="folder for workspaces and indexes; kept between runs",
    )
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--tiers", default="default,static")
    parser.add_argument(
        "--most", type=int, default=300, help="the most questions of a set, drawn by chance"
    )
    given = parser.parse_args()
    sets, tiers = given.sets.split(","), given.tiers.split(",")
    # A search reads only its best candidates, chosen by the weights that are to be fitted. Here it
    # reads all of them.
    pipeline.READ = statements.BATCH = EVERY_CANDIDATE
    asked = [one for tier in tiers for one in ask_all(given.work.resolve(), sets, tier, given.most)]
    own = [one for one in asked if one.is_right.shape[1]]
    foreign = [one for one in asked if not one.is_right.shape[1]]
    code = np.array([getattr(scoring, name) for name in FEATURES])
    fitted = fit(own)
    biases = {"code": scoring.BIAS, "fitted": bias(own, fitted)}
    weights = {"code": named(code), "fitted": named(fitted)}
    reach = {
        name: {
            "right": reached(own, values, biases[name]),
            "off_topic": reached(foreign, values, biases[name]),
        }
        for name, values in (("code", code), ("fitted", fitted))
    }
    recalls = compare(own, code, fitted)
    print(show(weights, biases, reach, recalls))
    body = {
        "weights": weights,
        "biases": biases,
        "reach_threshold": reach,
        "recall@6": [one._asdict() for one in recalls],
    }
    write_result(
        "ranking-fit",
        f"python bench/fit_ranking.py --work DIR --most {given.most}",
        sys.executable,
        body,
    )
    return 0


def ask_all(work: Path, sets: Sequence[str], tier: str, most: int) -> Iterator[Asked]:
    """Ask every workspace its own questions and some of the other sets."""
    questions = {name: questions_of(build_set(work, name)) for name in sets}
    mode = TIERS[tier][0]
    for name in sets:
        chance = random.Random(name)
        own = chance.sample(questions[name], min(most, len(questions[name])))
        others = [
            row
            for other in sets
            if other != name
            for row in chance.sample(questions[other], FOREIGN)
        ]
        for group in sorted({row["group"] for row in questions[name]}):
            state = state_folder(work, name, mode, Code("now", sys.executable, "")) / group
            workspace = work / "exam" / name / group / "workspace"
            with Memory.open(
                workspace, provider=mode.index, state_dir=state, background=False
            ) as memory:
                memory.sync()
                print(f"{name}/{group}, {tier}", flush=True)
                for row in own:
                    if row["group"] == group:
                        yield ask(memory, name, tier, row["query"], row["gold"])
                for row in others:
                    yield ask(memory, name, tier, row["query"], [])


def ask(
    memory: Memory, data_set: str, tier: str, question: str, gold: list[dict[str, Any]]
) -> Asked:
    found = memory.search(question, max_results=10, min_score=0.0, explain=True, freshen=False)
    candidates = found.explanation.candidates if found.explanation else ()
    right = [[overlaps(candidate.citation, unit) for unit in gold] for candidate in candidates]
    return Asked(
        data_set=data_set,
        tier=tier,
        evidence=np.array([features(candidate) for candidate in candidates]).reshape(
            len(candidates), len(FEATURES)
        ),
        is_right=np.array(right, dtype=bool).reshape(len(candidates), len(gold)),
    )


def features(candidate: CandidateStory) -> list[float]:
    is_instant = candidate.vector_space.endswith("(static)")
    return [
        candidate.text,
        candidate.name,
        candidate.vector if is_instant else 0.0,
        0.0 if is_instant else candidate.vector,
        candidate.line,
        candidate.user,
    ]


def overlaps(citation: str, unit: dict[str, Any]) -> bool:
    path, _, lines = citation.rpartition("#L")
    first, _, last = lines.partition("-L")
    return bool(
        path == unit["path"] and int(first) <= unit["to"] and int(last or first) >= unit["from"]
    )


def shares(asked: Sequence[Asked]) -> Array:
    """What each question weighs: the same in all for every set and tier."""
    counts = Counter((one.data_set, one.tier) for one in asked)
    return np.array([1.0 / (counts[one.data_set, one.tier] * len(counts)) for one in asked])


def fit(asked: Sequence[Asked]) -> Array:
    """The weights with the least mean cross-entropy, by Adam over all questions at once."""
    useful = [one for one in asked if one.is_right.any()]
    evidence = np.concatenate([one.evidence for one in useful])
    sizes = np.array([len(one.evidence) for one in useful])
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    right = np.concatenate(
        [one.is_right.any(axis=1) / one.is_right.any(axis=1).sum() for one in useful]
    )
    each = np.repeat(shares(useful), sizes)
    weights, first, second = (np.zeros(len(FEATURES)) for _ in range(3))
    for step in range(1, STEPS + 1):
        scores = evidence @ weights
        scores = np.exp(scores - np.repeat(np.maximum.reduceat(scores, starts), sizes))
        chance = scores / np.repeat(np.add.reduceat(scores, starts), sizes)
        gradient = evidence.T @ (each * (chance - right)) + L2 * weights
        first = 0.9 * first + 0.1 * gradient
        second = 0.999 * second + 0.001 * gradient**2
        weights = weights - RATE * (first / (1 - 0.9**step)) / (
            np.sqrt(second / (1 - 0.999**step)) + 1e-8
        )
    return weights


def bias(asked: Sequence[Asked], weights: Array) -> float:
    """The bias with which `REACH` of the right candidates among the first reach the threshold."""
    right: list[tuple[float, float]] = []
    for one, share in zip(asked, shares(asked), strict=True):
        scores = one.evidence @ weights
        best = np.argsort(-scores, kind="stable")[:FIRST]
        right += [(float(scores[at]), float(share)) for at in best if one.is_right[at].any()]
    right.sort()
    before = np.cumsum([share for _, share in right]) / sum(share for _, share in right)
    lowest = right[int(np.searchsorted(before, 1 - REACH))][0]
    return round(math.log(THRESHOLD / (1 - THRESHOLD)) - lowest, 2)


def reached(asked: Sequence[Asked], weights: Array, at: float) -> float:
    """The share of the questions whose best candidate reaches the threshold."""
    best = np.array([float((one.evidence @ weights).max(initial=-math.inf)) for one in asked])
    return round(
        float(np.sum(shares(asked) * (best + at >= math.log(THRESHOLD / (1 - THRESHOLD))))), 3
    )


def compare(asked: Sequence[Asked], code: Array, fitted: Array) -> list[Recall]:
    rows = []
    for name in dict.fromkeys(one.data_set for one in asked):
        others = [one for one in asked if one.data_set != name]
        left_out = fit(others) if others else fitted
        for tier in dict.fromkeys(one.tier for one in asked):
            mine = [one for one in asked if (one.data_set, one.tier) == (name, tier)]
            figures = [
                round(float(np.mean([recall(one, weights) for one in mine])), 4)
                for weights in (code, fitted, left_out)
            ]
            rows.append(Recall(name, tier, len(mine), *figures))
    return rows


def recall(asked: Asked, weights: Array) -> float:
    """The share of the units that answer which the first candidates hold."""
    best = np.argsort(-(asked.evidence @ weights), kind="stable")[:FIRST]
    return float(asked.is_right[best].any(axis=0).mean())


def named(weights: Array) -> dict[str, float]:
    return {name: round(float(weight), 2) for name, weight in zip(FEATURES, weights, strict=True)}


def show(
    weights: dict[str, dict[str, float]],
    biases: dict[str, float],
    reach: dict[str, dict[str, float]],
    recalls: Sequence[Recall],
) -> str:
    kinds = ("code", "fitted")
    lines = [[name, *(f"{weights[kind][name]:.2f}" for kind in kinds)] for name in FEATURES]
    lines.append(["BIAS", *(f"{biases[kind]:.2f}" for kind in kinds)])
    lines += [
        [f"best hit reaches {THRESHOLD}: {what}", *(f"{reach[kind][what]:.3f}" for kind in kinds)]
        for what in reach["code"]
    ]
    figures = [
        [
            one.data_set,
            one.tier,
            str(one.questions),
            *(f"{value:.3f}" for value in (one.code, one.fitted, one.left_out)),
        ]
        for one in recalls
    ]
    heading = ["set", "tier", "questions", "code", "fitted", "fitted on the others"]
    return table([["weight", *kinds], *lines]) + "\n\n" + table([heading, *figures])


if __name__ == "__main__":
    sys.exit(main())
