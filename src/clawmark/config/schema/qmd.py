"""The settings of the QMD backend, `memory.qmd.*`. Defaults are those of OpenClaw 2026.3."""

from collections.abc import Mapping
from typing import Annotated, NamedTuple

from clawmark.config.schema.key import Key

DIRECT_ONLY: Mapping[str, object] = {
    "default": "deny",
    "rules": [{"action": "allow", "match": {"chatType": "direct"}}],
}
"""The default of `memory.qmd.scope`; `backends.qmd.scope` reads it."""


class QmdSessions(NamedTuple):
    enabled: Annotated[
        bool, Key("Whether transcripts are exported and searched; adds `sessions` to the sources.")
    ] = False
    export_dir: Annotated[
        str, Key("The folder of the exported transcripts; empty for one in the state folder.")
    ] = ""
    retention_days: Annotated[
        int, Key("Transcripts that are older are not exported; 0 for no limit.", high=36_500)
    ] = 0


class QmdUpdate(NamedTuple):
    """When QMD's index is updated, and how long its commands may take."""

    interval: Annotated[
        float,
        Key("How often a long-running process updates QMD's index; 0 for never.", kind="duration"),
    ] = 5.0
    debounce_ms: Annotated[
        int,
        Key(
            "The least time between two updates that no search asked for, in milliseconds.",
            high=3_600_000,
        ),
    ] = 15_000
    on_boot: Annotated[
        bool, Key("Whether a long-running process updates QMD's index when it starts.")
    ] = True
    wait_for_boot_sync: Annotated[
        bool, Key("Whether the first search waits until QMD's index is complete.")
    ] = False
    embed_interval: Annotated[
        float,
        Key(
            "How often `qmd embed` runs where the search mode needs vectors; 0 for never.",
            kind="duration",
        ),
    ] = 60.0
    command_timeout_ms: Annotated[
        int, Key("The time limit of a command about collections; 0 for the default.")
    ] = 30_000
    update_timeout_ms: Annotated[int, Key("The time limit of `qmd update`; 0 for the default.")] = (
        120_000
    )
    embed_timeout_ms: Annotated[int, Key("The time limit of `qmd embed`; 0 for the default.")] = (
        120_000
    )


class QmdLimits(NamedTuple):
    """The limits of an answer. 0 stands for the default."""

    max_results: Annotated[int, Key("The most hits of an answer.", high=1_000)] = 6
    max_snippet_chars: Annotated[int, Key("The most characters of one snippet.")] = 700
    max_injected_chars: Annotated[int, Key("The most characters of all snippets together.")] = 4000
    timeout_ms: Annotated[
        int, Key("The time limit of one QMD search; then the built-in backend answers.")
    ] = 4000


class QmdOptions(NamedTuple):
    """`memory.qmd.*`."""

    command: Annotated[str, Key("The `qmd` command; only its first word is used.")] = "qmd"
    search_mode: Annotated[
        str,
        Key(
            "`search` is keywords; `vsearch` (vectors) and `query` (expansion and reranking) need "
            "models that QMD downloads.",
            choices=("search", "vsearch", "query"),
        ),
    ] = "search"
    include_default_memory: Annotated[
        bool, Key("Whether MEMORY.md and the folder memory are searched.")
    ] = True
    paths: Annotated[
        tuple[Mapping[str, str], ...],
        Key('More folders to search: `{ path: "~/wiki", name: "wiki" }`.', kind="collections"),
    ] = ()
    sessions: QmdSessions = QmdSessions()
    update: QmdUpdate = QmdUpdate()
    limits: QmdLimits = QmdLimits()
    scope: Annotated[
        Mapping[str, object],
        Key(
            "Which sessions may search, by rules with `channel`, `chatType`, `keyPrefix` and "
            "`rawKeyPrefix`.",
            kind="scope",
        ),
    ] = DIRECT_ONLY


class QmdSearchOptions(NamedTuple):
    """`memorySearch.qmd`."""

    extra_collections: Annotated[
        tuple[Mapping[str, str], ...],
        Key("More folders for QMD to search, as in `memory.qmd.paths`.", kind="collections"),
    ] = ()
