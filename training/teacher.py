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

import numpy as np
import torch

from training import corpus, model, prepare, vocabulary

VOCABULARY, FIRST = 28_000, 18_000
"""Pieces of the student's vocabulary, and how many of the teacher's first merges it keeps."""


def texts_of(path: Path, weights: Path, seed: int, limit: int = 0) -> list[str]:
    pack = prepare.open_teacher(weights)
    names = vocabulary.names_of(vocabulary.teacher_merges(pack.tokenizer))
    return corpus.enriched(corpus.read(path, limit), seed, names)


def write_words(path: Path, weights: Path, seed: int, limit: int, out: Path) -> None:
    words = prepare.words_of(texts_of(path, weights, seed, limit))
    torch.save(words, out)


def prepare_all(texts_path: Path, weights: Path, work: Path, seed: int, limit: int) -> None:
    work.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()

    def say(what: str) -> None:
        print(f"{time.monotonic() - began:.0f} s: {what}", flush=True)

    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        words = pool.submit(write_words, texts_path, weights, seed, limit, work / "words.pt")
        texts = texts_of(texts_path, weights, seed, limit)
        say(f"{len(texts)} texts, {sum(map(len, texts)) / 1e6:.1f} million characters")
        pack = prepare.open_teacher(weights)
        full = vocabulary.teacher_merges(pack.tokenizer)
        ids = full.encode(texts)
        counts = np.bincount(ids[0], minlength=len(full.vocabulary))
        small, kept = vocabulary.trimmed(full, counts, VOCABULARY, FIRST)
        tokens = small.encode(texts)
        say(f"{len(ids[0]) / 1e6:.1f} million tokens, {len(tokens[0]) / 1e6:.1f} for the student")
        data = {
            "bags": prepare.bags(*tokens),
            "kept": torch.tensor(kept),
            "vocabulary": small.vocabulary,
            "merges": small.merges,
        }
        torch.save(data, work / "tokens.pt")
        device = prepare.device()
        teacher = model.teacher_of(pack).to(device).eval()
        vectors = prepare.embed(teacher, prepare.bags(*ids).to(device))
        torch.save(vectors.half().cpu(), work / "vectors.pt")
        say("the teacher's vectors are made")
        words.result()
    say("the words are counted")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--texts", type=Path, required=True)
    parser.add_argument("--weights", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--limit", type=int, default=0, help="use only the first texts")
    given = parser.parse_args()
    prepare_all(given.texts, given.weights, given.work, given.seed, given.limit)


if __name__ == "__main__":
    main()
