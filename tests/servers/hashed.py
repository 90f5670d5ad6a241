"""Vectors without a model: a hashed bag of words, the same in every run, in which texts that share
words are near.

A text comes in; a unit vector goes out as the JSON numbers it is sent as. Numbers come from a table
of 16,384 steps, so that a server in plain Python writes a million of them in a tenth of a second.
Where their meaning does not matter, `dense` gives rows that are as long as real ones and written
beforehand."""

from __future__ import annotations

import math
import random
import re
import zlib
from array import array
from functools import cache

STEPS = 16_384
DENSE_ROWS = 64
_NUMBERS = [repr(round(step / STEPS, 6)) for step in range(STEPS + 1)]
_NUMBERS += [
    repr(round(step / STEPS, 6)) for step in range(-STEPS, 0)
]  # negative steps count from the end of the list

_WORD = re.compile(r"[^\W_]+")
_STOP = frozenset(
    _WORD.findall(
        "a an and are as at be but by did do does for from had has have he her his how i if in "
        "is it its me my no not of on "
        "or our she so than that the their them then there they this to was we were what when "
        "where which who why will with "
        "would you your"
    )
)
_STOP_WEIGHT = 0.1

_places: dict[tuple[str, int], tuple[tuple[int, float], ...]] = {}


def numbers(text: str, dims: int) -> list[str]:
    """The vector of a text as JSON numbers; a text without words points along the first axis."""
    row = ["0.0"] * dims
    for place, step in _steps(text, dims):
        row[place] = _NUMBERS[step]
    return row


def packed(text: str, dims: int) -> bytes:
    """The same vector as float32 numbers."""
    row = array("f", bytes(4 * dims))
    for place, step in _steps(text, dims):
        row[place] = float(_NUMBERS[step])
    return row.tobytes()


def dense(text: str, dims: int) -> str:
    """One of a few vectors without zeros, written with nine digits as services do it, whole: it
    costs nothing to send.
    """
    rows = _dense_rows(dims)
    return rows[zlib.crc32(text.encode("utf-8", "replace")) % len(rows)]


@cache
def _dense_rows(dims: int) -> list[str]:
    chance = random.Random(dims)
    rows = []
    for _ in range(DENSE_ROWS):
        row = [chance.gauss(0.0, 1.0) for _ in range(dims)]
        length = math.hypot(*row)
        rows.append(f"[{','.join([f'{number / length:.9g}' for number in row])}]")
    return rows


def _steps(text: str, dims: int) -> list[tuple[int, int]]:
    """Where the vector is not 0, and how many steps of the table it goes there."""
    sums: dict[int, float] = {}
    for word in _WORD.findall(text.lower()):
        for place, weight in _places.get((word, dims)) or _place(word, dims):
            sums[place] = sums.get(place, 0.0) + weight
    length = math.hypot(*sums.values())
    if length < 1e-9:
        return [(0, STEPS)]
    scale = STEPS / length
    return [(place, int(weight * scale)) for place, weight in sums.items()]


def _place(word: str, dims: int) -> tuple[tuple[int, float], ...]:
    """Where a word counts: at its own places, and at those of its first five letters (`database`,
    `databases`).
    """
    weight = _STOP_WEIGHT if word in _STOP else 1.0
    found: dict[int, float] = {}
    for feature, share in ((word, weight), (word[:5] + "*", weight * 0.7)):
        for salt in ("", "'"):
            number = (
                zlib.crc32((feature + salt).encode("utf-8", "replace")) * 0x9E3779B1 & 0xFFFFFFFF
            )
            place = (number >> 8) % dims
            found[place] = found.get(place, 0.0) + (share if number & 1 else -share)
    kept = _places[word, dims] = tuple(found.items())
    return kept
