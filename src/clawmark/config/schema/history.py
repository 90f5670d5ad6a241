"""The settings of the history of a workspace."""

from typing import Annotated, NamedTuple

from clawmark.config.schema.key import Key


class HistoryOptions(NamedTuple):
    """`memory.history`: the versions of the memory files that are kept."""

    enabled: Annotated[
        bool,
        Key(
            "Whether changes of MEMORY.md and memory/ are recorded in the state folder, for "
            "`clawmark history`, `diff` and `restore`."
        ),
    ] = True
    max_days: Annotated[
        int, Key("For how many days versions are kept; 0 for no limit.", high=36_500)
    ] = 365
    max_mb: Annotated[
        int,
        Key(
            "How many megabytes the versions may take; above it, the older half is removed. 0 for "
            "no limit.",
            high=1_000_000,
        ),
    ] = 256
