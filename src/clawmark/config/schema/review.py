"""The setting of the review of what agents write."""

from typing import Annotated, TypeAlias

from clawmark.config.schema.key import Key

ReviewPolicy: TypeAlias = Annotated[
    str,
    Key(
        "What an agent writes only after the user has accepted it with `clawmark review`: "
        "`curated` for MEMORY.md, `all` for daily logs and session notes too, `off` for nothing.",
        choices=("off", "curated", "all"),
    ),
]
