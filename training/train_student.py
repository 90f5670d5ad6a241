"""Trains the student and saves it, rounded, as `student.npz`.

    python -m training.train_student --weights FILE --work FOLDER --out student.npz

With `--dev FILE` it also prints recall@6 by vectors alone; `--seconds` trains by the clock.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from training import evaluate, model, prepare, quantise, student, vocabulary

LAYERS = (0, 2, 5)
TABLE_BITS, MATRIX_BITS = 4, 8


def save(made: model.Encoder, out: Path) -> None:
    """Matrices as whole steps (`.q`) and factors (`.f`), the rest as plain numbers."""
    arrays: dict[str, Any] = {"layers": np.array(len(made.shape.layers))}
    for name, value in made.state_dict().items():
        bits = made.shape.table_bits if name == "words" else made.shape.matrix_bits
        if value.dim() == 2 and name != "positions":
            numbers, factors = quantise.steps(value, bits)
            arrays[name + ".q"] = numbers.to(torch.int8).cpu().numpy()
            arrays[name + ".f"] = factors.half().cpu().numpy()
        else:
            kind = np.float16 if name == "positions" else np.float32
            arrays[name] = value.float().cpu().numpy().astype(kind)
    np.savez_compressed(out, **arrays)


def dev_scores(
    made: model.Encoder, merges: vocabulary.Merges, sets: dict[str, list[evaluate.Group]]
) -> dict[str, float]:
    def embed(texts: Sequence[str]) -> NDArray[np.float32]:
        given = prepare.bags(*merges.encode(list(texts))).to(made.words.device.type)
        vectors: NDArray[np.float32] = prepare.embed(made, given).float().cpu().numpy()
        return vectors

    return evaluate.score(sets, embed)


def start(weights: Path, kept: Tensor, table_bits: int, matrix_bits: int) -> model.Encoder:
    """The untrained student: layers and words of the teacher."""
    teacher = model.teacher_of(prepare.open_teacher(weights))
    shape = model.Shape(
        layers=LAYERS, words=len(kept), table_bits=table_bits, matrix_bits=matrix_bits
    )
    return model.student_of(teacher, shape, kept)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--weights", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--dev", type=Path, help="the dev sets, to print scores at the end")
    parser.add_argument("--steps", type=int, default=student.Settings().steps)
    parser.add_argument("--batch", type=int, default=student.Settings().batch)
    parser.add_argument("--seconds", type=float, default=0.0)
    parser.add_argument("--rate", type=float, default=student.Settings().rate)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    device = prepare.device()
    prepare.reserve(0.4)
    data = torch.load(given.work / "tokens.pt", weights_only=False)
    vectors = torch.load(given.work / "vectors.pt").to(device).float()
    made = start(given.weights, data["kept"], TABLE_BITS, MATRIX_BITS).to(device)
    settings = student.Settings(
        steps=given.steps,
        batch=given.batch,
        rate=given.rate,
        seconds=given.seconds,
        seed=given.seed,
    )
    steps = student.train(made, data["bags"].to(device), vectors, settings)
    made.eval()
    save(made, given.out)
    print(f"{steps} steps", flush=True)
    if given.dev:
        merges = vocabulary.Merges(data["vocabulary"], data["merges"])
        sets = evaluate.load(given.dev)
        for bits in ((TABLE_BITS, MATRIX_BITS), (0, 0), (4, 4)):
            quantise.set_bits(made, *bits)
            print("student", json.dumps({"bits": bits, **dev_scores(made, merges, sets)}))


if __name__ == "__main__":
    main()
