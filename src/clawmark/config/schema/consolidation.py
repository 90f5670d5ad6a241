"""The settings of consolidation."""

from typing import Annotated, NamedTuple

from clawmark.config.schema.key import Key


class ConsolidationOptions(NamedTuple):
    """`memory.consolidation`: what `clawmark consolidate` proposes, and how often."""

    every: Annotated[
        float,
        Key(
            "How long after a consolidation `clawmark heartbeat` runs the next one, in minutes or "
            "as `24h`; 0 leaves it to `clawmark consolidate`.",
            kind="duration",
        ),
    ] = 0
    days: Annotated[int, Key("How many days of logs are read.", low=1, high=365)] = 30
    min_days: Annotated[
        int,
        Key(
            "On how many days a statement must be said, or found by an agent, before it is "
            "proposed for MEMORY.md.",
            low=2,
            high=30,
        ),
    ] = 3
