"""Dev sets as one file of passages and questions, and recall@6 by vectors alone.

    python -m training.evaluate build --out dev.json.xz      needs the folder CLAWMARK_SHARED

The passages are cut as Clawmark cuts them (400 tokens, overlap 80). The sets are only measured
with: no text of them is trained on.
"""

from __future__ import annotations

import argparse
import json
import lzma
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

SETS = ("notes", "locomo", "longmemeval", "musique")
FOUND = 6


class Group(NamedTuple):
    """One workspace: passages with their places, questions with the lines that answer them."""

    passages: list[str]
    places: list[tuple[str, int, int]]
    questions: list[str]
    gold: list[list[tuple[str, int, int]]]


def build(out: Path) -> None:
    from clawmark.text.chunking.chunks import chunk_text

    shared = Path(os.environ.get("CLAWMARK_SHARED", "../shared"))
    sets: dict[str, list[Group]] = {}
    for name in SETS:
        with tempfile.TemporaryDirectory() as folder:
            maker = [str(shared / "exam" / "exam.py"), "build", str(shared / "data" / name), folder]
            subprocess.run([sys.executable, *maker], check=True, stdout=subprocess.DEVNULL)
            sets[name] = list(groups(Path(folder), chunk_text))
    with lzma.open(out, "wt", encoding="utf-8", preset=9 | lzma.PRESET_EXTREME) as file:
        json.dump(sets, file, ensure_ascii=False)


def groups(folder: Path, chunk_text: Callable[..., Any]) -> Any:
    rows: dict[str, list[Any]] = {}
    for line in (folder / "questions.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        rows.setdefault(row["group"], []).append(row)
    for name, asked in sorted(rows.items()):
        passages, places = [], []
        workspace = folder / name / "workspace"
        for path in sorted(workspace.rglob("*.md")):
            relative = path.relative_to(workspace).as_posix()
            for chunk in chunk_text(
                path.read_text(encoding="utf-8"), "markdown", 400, 80, relative
            ):
                passages.append(chunk.text)
                places.append((relative, chunk.start_line, chunk.end_line))
        yield Group(
            passages=passages,
            places=places,
            questions=[row["query"] for row in asked],
            gold=[[(one["path"], one["from"], one["to"]) for one in row["gold"]] for row in asked],
        )


def load(path: Path) -> dict[str, list[Group]]:
    with lzma.open(path, "rt", encoding="utf-8") as file:
        return {name: [Group(*row) for row in rows] for name, rows in json.load(file).items()}


def recall(
    group: Group, passages: NDArray[np.float32], questions: NDArray[np.float32]
) -> list[float]:
    """For each question the share of its gold lines that the best six passages overlap."""
    found = []
    best = np.argsort(-(questions @ passages.T), axis=1, kind="stable")[:, :FOUND]
    for hits, gold in zip(best, group.gold, strict=True):
        places = [group.places[hit] for hit in hits]
        met = [
            any(path == at and start <= to and end >= first for path, start, end in places)
            for at, first, to in gold
        ]
        found.append(sum(met) / len(met))
    return found


def score(
    sets: dict[str, list[Group]], embed: Callable[[Sequence[str]], NDArray[np.float32]]
) -> dict[str, float]:
    """recall@6 of each set for a function from texts to unit vectors."""
    result = {}
    for name, rows in sets.items():
        vectors = embed([text for row in rows for text in (*row.passages, *row.questions)])
        found, at = [], 0
        for row in rows:
            middle, end = at + len(row.passages), at + len(row.passages) + len(row.questions)
            found += recall(row, vectors[at:middle], vectors[middle:end])
            at = end
        result[name] = round(sum(found) / len(found), 4)
    return result


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("command", choices=["build"])
    parser.add_argument("--out", type=Path, required=True)
    build(parser.parse_args().out)
