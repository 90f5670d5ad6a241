"""Place a neighbourhood on a drawing: the centre, and the others in columns on both sides of it."""

from __future__ import annotations

from typing import NamedTuple

from clawmark.web.graph.network import Neighbourhood

WIDTH, HEIGHT = 1100, 720
NEAR = 130.0
"""How far the near notes are from the centre."""
FAR = 390.0
"""How far the notes behind them are; the labels of the near ones stand between."""
ROW, LOWEST = 40, 160
"""The height for a note if there is room for all, and the least height of a drawing."""


class Point(NamedTuple):
    """Where a note is drawn."""

    x: float
    y: float

    @property
    def is_left(self) -> bool:
        """Whether its label stands to the left of it."""
        return self.x < WIDTH / 2


def height_of(shown: Neighbourhood) -> int:
    """Return the height of the drawing: few notes need little."""
    behind = _behind(shown)
    most = max((len(others) for others in behind.values()), default=1)
    return max(LOWEST, min(HEIGHT, (len(shown.near) + 1) // 2 * most * ROW))


def place(shown: Neighbourhood) -> dict[str, Point]:
    """Return the point of each note; the same neighbourhood always looks the same."""
    height = height_of(shown)
    points = {shown.centre: Point(WIDTH / 2, height / 2)}
    behind = _behind(shown)
    # The strongest ties are at the top, alternating between the right and the left.
    for column, side in ((shown.near[0::2], 1), (shown.near[1::2], -1)):
        slot = height / max(1, len(column))
        for number, path in enumerate(column):
            top = number * slot
            points[path] = _at(side, NEAR, top + slot / 2)
            others = behind.get(path, [])
            for place_of, other in enumerate(others):
                points[other] = _at(side, FAR, top + slot * (place_of + 0.5) / len(others))
    return points


def _behind(shown: Neighbourhood) -> dict[str, list[str]]:
    behind = dict[str, list[str]]()
    for path, near in shown.far:
        behind.setdefault(near, []).append(path)
    return behind


def _at(side: int, distance: float, y: float) -> Point:
    return Point(round(WIDTH / 2 + side * distance, 1), round(y, 1))
