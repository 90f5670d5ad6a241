"""The settings of a team's shared spaces."""

from collections.abc import Mapping
from typing import Annotated, NamedTuple

from clawmark.config.schema.key import Key


class TeamOptions(NamedTuple):
    """`team`: where the shared spaces are, which ones are used, and what is published there."""

    uri: Annotated[
        object,
        Key(
            "Where the shared spaces are: `https://…` for a Clawmark server, `postgresql://…` for "
            "its database; `${NAME}` takes it from the environment. Empty for "
            "`memorySearch.store.uri`.",
            kind="secret",
        ),
    ] = ""
    token: Annotated[
        object,
        Key(
            "The token for a Clawmark server, made with `clawmark token create`; `${NAME}` takes "
            "it from the environment.",
            kind="secret",
        ),
    ] = ""
    name: Annotated[
        str,
        Key(
            "Who uses the spaces in a database, as `clawmark space grant` names them; a server "
            "knows it by the token.",
        ),
    ] = ""
    spaces: Annotated[
        tuple[str, ...],
        Key("The shared spaces that are searched and pulled.", kind="spaces"),
    ] = ()
    publish: Annotated[
        Mapping[str, tuple[str, ...]],
        Key(
            "Patterns of the files that are published, for each space: "
            '`{ team: ["memory/team/**"] }`. A space that is not named publishes '
            "`memory/SPACE/**`; an empty list publishes nothing.",
            kind="publish",
        ),
    ] = {}
    pull: Annotated[
        bool, Key("Whether a process that watches the files also pulls the spaces, once a minute.")
    ] = True
    shared_sessions: Annotated[
        tuple[str, ...],
        Key(
            "Kinds of sessions, besides private ones, that may search and read the spaces; "
            "`memory.sharedSessions` has to list them too.",
            choices=("group", "channel", "subagent", "cron", "heartbeat", "unknown"),
        ),
    ] = ()
