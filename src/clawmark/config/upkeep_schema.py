"""The settings of the daily log and of heartbeats."""

from typing import Annotated, NamedTuple

from clawmark.config.check import Key


class DailyLogOptions(NamedTuple):
    """`memory.dailyLog`."""

    times: Annotated[
        bool,
        Key("Whether entries of the daily log start with the time, as in `- 14:05 …`."),
    ] = True
