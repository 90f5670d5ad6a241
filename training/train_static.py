"""Trains the static table and saves it, rounded, as `static.npz`.

    python -m training.train_static --weights FILE --work FOLDER --out static.npz

With `--dev FILE` it also prints recall@6 by vectors alone.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from clawmark.embed.local.static_table import BYTES
from training import evaluate, model, prepare, static, vocabulary

SIZE, INNER = 40_000, 7_000
"""Pieces of the table, and how many of them stand inside a word."""


def pieces_alone(weights: Path, words: prepare.Words, size: int) -> tuple[list[str], Tensor]:
    """The pieces, and the teacher's vector of each row's text alone, small and capitalised."""
    pack = prepare.open_teacher(weights)
    full = vocabulary.teacher_merges(pack.tokenizer)
    teacher = model.teacher_of(pack).to(prepare.device()).eval()
    inner = INNER * size // SIZE
    pieces = vocabulary.table_pieces(full, words.counter(), size, inner)
    alone = [chr(byte) if byte < 128 else "" for byte in range(BYTES)]
    alone += [piece.removeprefix(vocabulary.WORD_START) for piece in pieces]

    def embed(texts: list[str]) -> Tensor:
        return prepare.embed(teacher, prepare.bags(*full.encode(texts)).to(prepare.device()))

    both = embed(alone) + embed([text[:1].upper() + text[1:] for text in alone])
    return pieces, functional.normalize(both, dim=1)


def dev_scores(
    rows: Tensor, numbers: dict[str, int], sets: dict[str, list[evaluate.Group]]
) -> dict[str, float]:
    def embed(texts: Sequence[str]) -> NDArray[np.float32]:
        given = static.pieces_of(prepare.words_of(list(texts)), numbers).to(rows.device.type)
        vectors: NDArray[np.float32] = static.embed(rows, given).float().cpu().numpy()
        return vectors

    return evaluate.score(sets, embed)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--weights", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--dev", type=Path, help="the dev sets, to print scores at the end")
    parser.add_argument("--size", type=int, default=SIZE)
    parser.add_argument("--epochs", type=int, default=static.Settings().epochs)
    parser.add_argument("--batch", type=int, default=static.Settings().batch)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    prepare.reserve(0.15)
    words = torch.load(given.work / "words.pt", weights_only=False)
    vectors = torch.load(given.work / "vectors.pt").to(prepare.device()).float()
    pieces, alone = pieces_alone(given.weights, words, given.size)
    numbers = {piece: BYTES + number for number, piece in enumerate(pieces)}
    texts = static.pieces_of(words, numbers).to(prepare.device())
    settings = static.Settings(epochs=given.epochs, batch=given.batch, seed=given.seed)
    rows = static.train(texts, vectors, alone, settings).weighted()
    static.save(rows, pieces, given.out)
    print(f"{len(pieces)} pieces", flush=True)
    if given.dev:
        scores = dev_scores(static.stored(rows), numbers, evaluate.load(given.dev))
        print("static", json.dumps(scores))


if __name__ == "__main__":
    main()
