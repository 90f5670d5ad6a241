"""Embeds all texts with the teacher and writes what both trainings read.

    python -m training.teacher --texts texts.jsonl.xz --weights FILE --work FOLDER

The folder gets `vectors.pt` (the teacher's vector of each text), `tokens.pt` (the student's
vocabulary and the texts in it) and `words.pt` (the texts as lower-case words).
"""

from __future__ import annotations

import argparse
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from training import corpus, model, prepare, vocabulary

VOCABULARY, FIRST = 28_000, 18_000
"""Pieces of the student's vocabulary, and how many of the teacher's first merges it keeps."""


def texts_of(path: Path, weights: Path, seed: int, limit: int = 0) -> list[str]:
    pack = prepare.open_teacher(weights)
    names = vocabulary.names_of(vocabulary.teacher_merges(pack.tokenizer))
    return corpus.enriched(corpus.read(path, limit), seed, names)


class Job(NamedTuple):
    """What is read, and where the results go."""

    texts: Path
    weights: Path
    work: Path
    seed: int
    limit: int


def texts_for(job: Job) -> list[str]:
    return texts_of(job.texts, job.weights, job.seed, job.limit)


def write_words(job: Job) -> None:
    torch.save(prepare.words_of(texts_for(job)), job.work / "words.pt")


def write_tokens(job: Job, counts: NDArray[np.int64]) -> int:
    """Write the texts in the student's vocabulary; returns the number of tokens."""
    full = vocabulary.teacher_merges(prepare.open_teacher(job.weights).tokenizer)
    small, kept = vocabulary.trimmed(full, counts, VOCABULARY, FIRST)
    tokens = small.encode(texts_for(job))
    data = {
        "bags": prepare.bags(*tokens),
        "kept": torch.tensor(kept),
        "vocabulary": small.vocabulary,
        "merges": small.merges,
    }
    torch.save(data, job.work / "tokens.pt")
    return len(tokens[0])


def prepare_all(job: Job) -> None:
    job.work.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()

    def say(what: str) -> None:
        print(f"{time.monotonic() - began:.0f} s: {what}", flush=True)

    with ProcessPoolExecutor(2, get_context("spawn")) as pool:
        words = pool.submit(write_words, job)
        texts = texts_for(job)
        say(f"{len(texts)} texts, {sum(map(len, texts)) / 1e6:.1f} million characters")
        pack = prepare.open_teacher(job.weights)
        full = vocabulary.teacher_merges(pack.tokenizer)
        ids = full.encode(texts)
        say(f"{len(ids[0]) / 1e6:.1f} million tokens")
        counts = np.bincount(ids[0], minlength=len(full.vocabulary))
        tokens = pool.submit(write_tokens, job, counts)
        prepare.reserve(0.4)
        teacher = model.teacher_of(pack).to(prepare.device()).eval()
        vectors = prepare.embed(teacher, prepare.bags(*ids).to(prepare.device()))
        torch.save(vectors.half().cpu(), job.work / "vectors.pt")
        say("the teacher's vectors are made")
        words.result()
        say(f"{tokens.result() / 1e6:.1f} million tokens for the student")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--texts", type=Path, required=True)
    parser.add_argument("--weights", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--limit", type=int, default=0, help="use only the first texts")
    given = parser.parse_args()
    job = Job(
        texts=given.texts,
        weights=given.weights,
        work=given.work,
        seed=given.seed,
        limit=given.limit,
    )
    prepare_all(job)


if __name__ == "__main__":
    main()
