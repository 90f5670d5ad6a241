"""Reads the gathered texts and adds what search also meets: single sentences and long passages."""

from __future__ import annotations

import json
import lzma
import random
import re
from pathlib import Path
from typing import NamedTuple

LONGEST = 1_900
"""Characters of a passage made of several texts; Clawmark's own have 1,600 at most."""
SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")


class Text(NamedTuple):
    text: str
    kind: str


def read(path: Path, limit: int = 0) -> list[Text]:
    """The texts of a file made by `training.gather`, at most `limit`."""
    texts = []
    with lzma.open(path, "rt", encoding="utf-8") as file:
        for line in file:
            row = json.loads(line)
            texts.append(Text(row["text"], row["kind"]))
            if len(texts) == limit:
                break
    return texts


def enriched(texts: list[Text], seed: int, share: float = 0.25) -> list[str]:
    """The texts, passages made of several of a kind, and single sentences."""
    draw = random.Random(seed)
    count = int(len(texts) * share)
    plain = [text.text for text in texts]
    return [*plain, *_joined(texts, count, draw), *_sentences(plain, count, draw)]


def _joined(texts: list[Text], count: int, draw: random.Random) -> list[str]:
    by_kind: dict[str, list[str]] = {}
    for text in texts:
        if text.kind != "query":
            by_kind.setdefault(text.kind, []).append(text.text)
    kinds = list(by_kind)
    weights = [len(by_kind[kind]) for kind in kinds]
    made = []
    for kind in draw.choices(kinds, weights, k=count if kinds else 0):
        wanted, gap = draw.randint(600, LONGEST), draw.choice(["\n", "\n\n"])
        parts: list[str] = []
        while sum(map(len, parts)) < wanted and len(parts) < 20:
            parts.append(draw.choice(by_kind[kind]))
        made.append(gap.join(parts)[:LONGEST])
    return made


def _sentences(texts: list[str], count: int, draw: random.Random) -> list[str]:
    made = []
    for text in draw.choices(texts, k=count * 2):
        parts = [part for part in SENTENCE.split(text) if len(part) >= 12]
        if len(parts) > 1 and len(made) < count:
            made.append(draw.choice(parts))
    return made
