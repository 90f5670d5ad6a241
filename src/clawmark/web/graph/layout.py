"""Place a neighbourhood on a drawing: the centre, a ring of near notes, and the others outside."""

from __future__ import annotations

import math
from typing import NamedTuple

from clawmark.web.graph.network import Neighbourhood

WIDTH, HEIGHT = 960, 720
NEAR_X, NEAR_Y = 215.0, 200.0
FAR_X, FAR_Y = 330.0, 325.0
SPREAD = 0.75
"""The share of the space between two near notes that the notes behind one of them use."""


class Point(NamedTuple):
    """Where a note is drawn."""

    x: float
    y: float

    @property
    def is_left(self) -> bool:
        """Whether its label stands to the left of it."""
        return self.x < WIDTH / 2 - 1


def place(shown: Neighbourhood) -> dict[str, Point]:
    """Return the point of each note; the same neighbourhood always looks the same."""
    points = {shown.centre: Point(WIDTH / 2, HEIGHT / 2)}
    step = 2 * math.pi / max(1, len(shown.near))
    behind = dict[str, list[str]]()
    for path, near in shown.far:
        behind.setdefault(near, []).append(path)
    for number, path in enumerate(shown.near):
        angle = -math.pi / 2 + number * step
        points[path] = _at(angle, NEAR_X, NEAR_Y)
        others = behind.get(path, [])
        width = min(step, math.pi / 3) * SPREAD
        for place_of, other in enumerate(others):
            share = (place_of + 0.5) / len(others) - 0.5
            points[other] = _at(angle + share * width, FAR_X, FAR_Y)
    return points


def _at(angle: float, across: float, down: float) -> Point:
    x, y = WIDTH / 2 + across * math.cos(angle), HEIGHT / 2 + down * math.sin(angle)
    return Point(round(x, 1), round(y, 1))
