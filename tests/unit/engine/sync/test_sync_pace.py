"""Progress includes the time left, from the rate of its own stage."""

from __future__ import annotations

from clawmark.engine.sync.time_left import with_time_left
from clawmark.model.reports import Progress


def timed(*moments: tuple[float, str, int, int]) -> list[float | None]:
    """The time left shown for moments of (second, stage, done, total)."""
    shown: list[float | None] = []
    times = iter([moment[0] for moment in moments])
    show = with_time_left(lambda progress: shown.append(progress.seconds_left), lambda: next(times))
    for _, stage, done, total in moments:
        show(
            Progress(
                stage="text" if stage == "text" else "vectors", done=done, total=total, label="x"
            )
        )
    return shown


def test_the_time_left_follows_the_rate() -> None:
    assert timed((0, "text", 10, 100), (2, "text", 30, 100), (4, "text", 50, 100)) == [
        None,
        7.0,
        5.0,
    ]


def test_no_time_is_estimated_right_after_the_start() -> None:
    assert timed((0, "text", 1, 100), (0.01, "text", 2, 100)) == [None, None]


def test_each_stage_and_space_is_measured_separately() -> None:
    assert timed(
        (0, "text", 1, 9), (1, "vectors", 10, 20), (2, "vectors", 15, 20), (3, "vectors", 2, 20)
    ) == [
        None,
        None,
        1.0,
        None,
    ]


def test_a_finished_stage_has_no_time_left() -> None:
    assert timed((0, "text", 5, 5)) == [0.0]
