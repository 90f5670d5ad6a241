"""The vocabularies: the teacher's byte-pair merges, trimmed for the student, and the words and
pieces of the static table.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from itertools import zip_longest
from typing import Any

import numpy as np
from numpy.typing import NDArray

SPECIAL = ("<s>", "<pad>", "</s>")
WORD_START = "\u2581"
SPACE = "\u0120"
"""How the teacher's vocabulary writes a space before a word."""


class Merges:
    """A byte-pair tokenizer as `tokenizers` runs it, without special tokens in the text."""

    def __init__(self, vocabulary: dict[str, int], merges: list[str]) -> None:
        # Imported late: only the machine that trains has it.
        from tokenizers import Tokenizer

        source: dict[str, Any] = {
            "version": "1.0",
            "truncation": None,
            "padding": None,
            "added_tokens": [],
            "normalizer": None,
            "pre_tokenizer": {
                "type": "ByteLevel",
                "add_prefix_space": False,
                "trim_offsets": True,
                "use_regex": True,
            },
            "post_processor": None,
            "decoder": None,
            "model": {"type": "BPE", "vocab": vocabulary, "merges": merges},
        }
        self._tokenizer = Tokenizer.from_str(json.dumps(source))
        self.vocabulary, self.merges = vocabulary, merges

    def encode(
        self, texts: list[str], limit: int = 512
    ) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """All ids in one array, each text between start and end, and where each text starts."""
        parts, starts, at = [], [0], 0
        for first in range(0, len(texts), 20_000):
            for found in self._tokenizer.encode_batch_fast(texts[first : first + 20_000]):
                ids = [0, *found.ids[: limit - 2], 2]
                parts.append(np.array(ids, np.int32))
                at += len(ids)
                starts.append(at)
        return np.concatenate(parts), np.array(starts)


def teacher_merges(tokenizer: bytes) -> Merges:
    model = json.loads(tokenizer)["model"]
    return Merges(model["vocab"], [as_line(pair) for pair in model["merges"]])


def names_of(full: Merges) -> list[str]:
    """The capitalised words of the teacher's vocabulary."""
    words = [piece[1:] for piece in full.vocabulary if piece.startswith(SPACE)]
    return sorted(word for word in words if word.isascii() and word.istitle() and len(word) > 3)


def as_line(pair: Any) -> str:
    return pair if isinstance(pair, str) else " ".join(pair)


def trimmed(
    full: Merges, counts: NDArray[np.int64], size: int, first: int
) -> tuple[Merges, list[int]]:
    """A smaller tokenizer: the first merges and those used most, with everything they are made of.

    Also the teacher's id of each of its ids.
    """
    made = {pair.replace(" ", ""): pair for pair in full.merges}
    base = [piece for piece in full.vocabulary if len(piece) == 1]
    kept: set[str] = set(base)

    def keep(piece: str) -> None:
        if piece not in kept:
            kept.add(piece)
            for part in made[piece].split(" "):
                keep(part)

    order = list(made)
    for piece in order[:first]:
        keep(piece)
    for piece in sorted(order[first:], key=lambda one: -int(counts[full.vocabulary[one]])):
        if len(kept) + len(SPECIAL) >= size:
            break
        keep(piece)
    pieces = [*SPECIAL, *sorted(kept, key=full.vocabulary.__getitem__)]
    merges = [pair for piece, pair in made.items() if piece in kept]
    vocabulary = {piece: number for number, piece in enumerate(pieces)}
    return Merges(vocabulary, merges), [full.vocabulary[piece] for piece in pieces]


def table_pieces(full: Merges, counts: Counter[str], size: int, inner: int) -> list[str]:
    """The pieces of the static table: words of the teacher's vocabulary and of the texts in turns,
    and pieces for the rest of a word.
    """
    ranked = sorted(full.vocabulary, key=full.vocabulary.__getitem__)
    plain = [piece.replace(SPACE, WORD_START) for piece in ranked]
    lower = [piece.lower() for piece in plain if piece.removeprefix(WORD_START).isascii()]
    known = [one for one in lower if one[:1] == WORD_START and is_word(one[1:])]
    common = [WORD_START + word for word, _ in counts.most_common() if is_word(word)]
    inside = [one for one in lower if is_word(one) and len(one) > 1]
    letters = "abcdefghijklmnopqrstuvwxyz0123456789_"
    rest = list(dict.fromkeys([*letters, *inside]))[:inner]
    words = dict.fromkeys([WORD_START, *(WORD_START + letter for letter in letters)])
    words |= dict.fromkeys(turns(known, common, size - inner - len(words)))
    return [*words, *rest]


def turns(one: Iterable[str], other: Iterable[str], count: int) -> list[str]:
    """The first of both lists, taken in turns, without doubles."""
    found: dict[str, None] = {}
    for pair in zip_longest(one, other):
        for item in pair:
            if item is not None:
                found.setdefault(item)
        if len(found) >= count:
            break
    return list(found)[:count]


def is_word(text: str) -> bool:
    return (
        bool(text) and len(text) <= 24 and text.replace("_", "a").isalnum() and text == text.lower()
    )
