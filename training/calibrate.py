"""Measures the cosines that `calibration` in the source code is set from.

    python -m training.calibrate --dev work/dev.json.xz [--sets notes,locomo]

For each model and set: the median of random pairs of question and passage, and the cosine that one
in twenty of the right passages exceeds. The first is where a score begins, the second is near its
end.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from clawmark.embed.base import Embedder
from clawmark.embed.local.static import StaticEmbedder
from clawmark.embed.local.transformer import TransformerEmbedder
from training import evaluate

QUESTIONS, PASSAGES = 60, 150
"""At most this many of each, drawn by a fixed seed."""


def vectors(embedder: Embedder, texts: Sequence[str]) -> NDArray[np.float32]:
    return np.stack([np.frombuffer(one, "<f4") for one in embedder.embed_texts(texts)])


def right(group: evaluate.Group, question: int) -> list[int]:
    """The passages that overlap a gold line of a question."""
    return [
        number
        for number, (path, start, end) in enumerate(group.places)
        for at, first, last in group.gold[question]
        if path == at and start <= last and end >= first
    ]


def measure(embedder: Embedder, groups: list[evaluate.Group]) -> tuple[float, float]:
    draw = np.random.default_rng(1)
    random: list[float] = []
    rights: list[float] = []
    for number in draw.permutation(len(groups))[:4]:
        group = groups[number]
        asked = draw.permutation(len(group.questions))[:QUESTIONS]
        others = draw.permutation(len(group.passages))[:PASSAGES].tolist()
        answers = [right(group, question)[:2] for question in asked]
        needed = sorted({*others, *(one for found in answers for one in found)})
        place = {passage: at for at, passage in enumerate(needed)}
        passages = vectors(embedder, [group.passages[one] for one in needed])
        questions = vectors(embedder, [group.questions[one] for one in asked])
        cosines = questions @ passages.T
        random += cosines[:, [place[one] for one in others]].ravel().tolist()
        rights += [cosines[at, place[one]] for at, found in enumerate(answers) for one in found]
    return float(np.median(random)), float(np.quantile(rights, 0.95))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--dev", type=Path, required=True)
    parser.add_argument("--sets", default="notes,locomo")
    given = parser.parse_args()
    sets = evaluate.load(given.dev)
    for embedder in (StaticEmbedder(), TransformerEmbedder()):
        for name in given.sets.split(","):
            median, high = measure(embedder, sets[name])
            label = embedder.traits.label
            print(f"{label} {name}: random {median:.2f}, right {high:.2f}", flush=True)


if __name__ == "__main__":
    main()
