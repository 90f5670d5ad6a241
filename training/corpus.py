"""Reads the gathered texts and adds what search also meets: single sentences, long passages, and
texts about people and places with other names.
"""

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
NAME = re.compile(r"(?<=[a-z,;:] )[A-Z][a-z]{2,}\b|^[A-Z][a-z]{2,}(?= [A-Z])", re.MULTILINE)
"""A capitalised word inside a sentence, or before another at the start of a line."""


ENDINGS = ("", "", "", "", "", "", "son", "ville", "berg", "ton", "ina", "ov", "ez", "ia")


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


def enriched(
    texts: list[Text], seed: int, names: list[str] | None = None, share: float = 0.25
) -> list[str]:
    """The texts, passages made of several of a kind, single sentences, and, with `names`, twice as
    many texts whose names are replaced by some of them.
    """
    draw = random.Random(seed)
    count = int(len(texts) * share)
    plain = [text.text for text in texts]
    made = [*plain, *_joined(texts, count, draw), *_sentences(plain, count, draw)]
    return [*made, *_renamed(plain, 2 * count, names, draw)] if names else made


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
    made: list[str] = []
    for text in draw.choices(texts, k=count * 2):
        parts = [part for part in SENTENCE.split(text) if len(part) >= 12]
        if len(parts) > 1 and len(made) < count:
            made.append(draw.choice(parts))
    return made


def _renamed(texts: list[str], count: int, names: list[str], draw: random.Random) -> list[str]:
    """Texts in which every name is another one: it teaches names that the texts do not have."""
    made: list[str] = []
    for text in draw.sample(texts, len(texts)):
        if len(made) == count:
            break
        other: dict[str, str] = {}
        for name in NAME.findall(text):
            other.setdefault(name, draw.choice(names) + draw.choice(ENDINGS))
        if other:
            made.append(NAME.sub(lambda found: other[found.group()], text))  # noqa: B023
    return made
