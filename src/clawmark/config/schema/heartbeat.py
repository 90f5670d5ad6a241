"""The settings of heartbeats."""

from typing import Annotated, NamedTuple

from clawmark.config.schema.key import Key


class Heartbeat(NamedTuple):
    """`agents.defaults.heartbeat`: what `clawmark heartbeat` does."""

    every: Annotated[
        float,
        Key(
            "How long after a heartbeat the next one may ask the model, in minutes or as `1h`; a "
            "scheduler runs `clawmark heartbeat`, and 0 makes each run count.",
            kind="duration",
        ),
    ] = 0
    model: Annotated[
        str, Key("A separate model for heartbeats; empty for the usual one.", kind="model")
    ] = ""
    prompt: Annotated[
        str,
        Key("What the model is asked to do; empty for the default.", kind="words"),
    ] = ""
    ack_max_chars: Annotated[
        int,
        Key("How long a text next to HEARTBEAT_OK is not shown.", high=100_000),
    ] = 300
    curation: Annotated[
        str,
        Key(
            "What a heartbeat does with MEMORY.md: `propose` shows changes and keeps them until "
            "they are accepted, `apply` writes them, `off` leaves the file alone.",
            choices=("off", "propose", "apply"),
        ),
    ] = "propose"
