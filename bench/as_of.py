"""Searches of earlier days: are their answers those of a new index of that day's files?

    python bench/as_of.py [--work DIR]

A made-up workspace lives through thirty days (`tests/servers/as_of_scene.py`); each evening is
recorded. Then 200 questions are asked, each about one of the days, in two ways: with `as_of`, and
in a memory of a copy of that evening's files with an index of its own. Path, lines, scores and
snippet must be equal, and so must the order. Once with keywords alone, once with the static
vectors, once with the transformer. The texts that the searches of earlier days embed are counted:
the cache of the main index has all of them. Output: a table, and `bench/results/as-of.json`."""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from harness import ROOT, table, verdict, write_result

from clawmark.embed.base import Embedder
from clawmark.model.values import Vector

sys.path.insert(0, str(ROOT / "tests" / "servers"))
from as_of_scene import Day, Scene, answers, live_a_month, open_copy, questions

PROVIDERS = ("none", "static", "local")
QUESTIONS = 200


class Counter:
    """Counts the texts that the embedders of a memory are given."""

    def __init__(self, embedders: Sequence[Embedder]) -> None:
        self.texts = 0
        for embedder in embedders:
            self._watch(embedder)

    def _watch(self, embedder: Any) -> None:
        whole = embedder.embed_texts

        def embed_texts(texts: Sequence[str]) -> list[Vector]:
            self.texts += len(texts)
            embedded: list[Vector] = whole(texts)
            return embedded

        embedder.embed_texts = embed_texts


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--work", type=Path, help="a folder for the workspaces")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=args.work) as folder:
        results = {name: measure(Path(folder) / name, name) for name in PROVIDERS}
    rows = [("provider", "equal", "embedded", "first search", "next searches")]
    for name, result in results.items():
        rows.append(
            (
                name,
                f"{result['equal']} of {result['questions']}",
                str(result["embedded"]),
                f"{result['first_ms']:.0f} ms",
                f"{result['next_ms']:.0f} ms",
            )
        )
    print(table(rows))
    equal = min(result["equal"] for result in results.values())
    embedded = max(result["embedded"] for result in results.values())
    met = {
        "equal": verdict(equal, QUESTIONS, at_least=True),
        "embedded": verdict(embedded, 0, at_least=False),
    }
    write_result("as-of", "bench/as_of.py", sys.executable, {"results": results, "limits": met})
    print(met)
    return 0 if equal == QUESTIONS and not embedded else 1


def measure(folder: Path, provider: str) -> dict[str, Any]:
    """Ask every question in both ways, and time the first and the later searches of a day."""
    scene = Scene(folder, provider=provider)
    days: list[Day] = []
    for day in live_a_month(scene):
        scene.memory.sync()  # as after every change: each text gets its vector once
        days.append(day)
    counter = Counter(scene.memory.choice.embedders)
    asked = questions(QUESTIONS)
    share = QUESTIONS // len(days[4::5])
    first, later, equal = list[float](), list[float](), 0
    for number, day in enumerate(days[4::5]):
        found = list[Any]()
        mine = asked[number * share : (number + 1) * share]
        if day is days[4::5][-1]:
            mine = asked[number * share :]
        for question in mine:
            began = time.perf_counter()
            found.append(answers(scene.memory, question, day.day))
            (later if len(found) > 1 else first).append((time.perf_counter() - began) * 1000)
        with open_copy(day, folder / "fresh" / day.day, provider) as fresh:
            fresh.sync()
            for question, answer in zip(mine, found, strict=True):
                equal += bool(answer) and answers(fresh, question) == answer
    chunks = scene.memory.status().chunks
    scene.close()
    return {
        "questions": QUESTIONS,
        "days": len(days[4::5]),
        "chunks": chunks,
        "equal": equal,
        "embedded": counter.texts,
        "first_ms": round(statistics.median(first), 1),
        "next_ms": round(statistics.median(later), 1),
    }


if __name__ == "__main__":
    sys.exit(main())
