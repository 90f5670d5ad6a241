"""The settings of what agents and writes use: prompt, flush, session notes, sessions, history."""

from typing import Annotated, NamedTuple

from clawmark.config.schema.consolidation import ConsolidationOptions
from clawmark.config.schema.heartbeat import Heartbeat
from clawmark.config.schema.history import HistoryOptions
from clawmark.config.schema.key import Key
from clawmark.config.schema.qmd import QmdOptions, QmdSearchOptions
from clawmark.config.schema.review import ReviewPolicy
from clawmark.config.schema.serve import ServeOptions
from clawmark.config.schema.team import TeamOptions
from clawmark.config.schema.tools import Sandbox, ToolPolicy


class StartupContext(NamedTuple):
    """How much of the last days' logs a session sees without asking."""

    enabled: Annotated[bool, Key("Whether the logs of the last days are in the prompt.")] = True
    daily_memory_days: Annotated[
        int, Key("The number of days; 2 is today and yesterday.", low=1, high=14)
    ] = 2
    max_file_chars: Annotated[int, Key("How many characters of one log.", low=1, high=100_000)] = (
        4000
    )
    max_total_chars: Annotated[
        int, Key("How many characters of all of them.", low=1, high=500_000)
    ] = 12_000


class MemoryFlush(NamedTuple):
    enabled: Annotated[
        bool, Key("Whether important facts are written to today's log before a compaction.")
    ] = True
    soft_threshold_tokens: Annotated[
        int, Key("How many tokens before the compaction the flush happens.")
    ] = 4000
    force_flush_transcript_bytes: Annotated[
        int,
        Key("How much a transcript grows before a flush happens anyway; 0 for never.", kind="size"),
    ] = 2 << 20
    model: Annotated[str, Key("A separate model for the flush.", kind="model")] = ""
    prompt: Annotated[
        str,
        Key(
            "The prompt of the flush, with YYYY-MM-DD for the day; empty for the default.",
            kind="words",
        ),
    ] = ""
    system_prompt: Annotated[
        str, Key("The system prompt of the flush; empty for the default.", kind="words")
    ] = ""


class Compaction(NamedTuple):
    reserve_tokens_floor: Annotated[int, Key("How many tokens a compaction leaves free.")] = 20_000
    memory_flush: MemoryFlush = MemoryFlush()


class SessionNote(NamedTuple):
    """`hooks.internal.entries.session-memory`."""

    enabled: Annotated[bool, Key("The same, for this hook alone.")] = True
    messages: Annotated[
        int, Key("How many of the last messages are in the note.", low=1, high=1_000)
    ] = 15
    llm_slug: Annotated[bool, Key("Whether the model, if there is one, names the note.")] = True


class Hooks(NamedTuple):
    """`hooks.internal`."""

    enabled: Annotated[bool, Key("Whether a note is written at the end of a session.")] = True
    note: SessionNote = SessionNote()


class SessionReset(NamedTuple):
    """`session.reset`."""

    mode: Annotated[
        str,
        Key(
            "What ends a session by itself: `daily` the hour and inactivity, `idle` inactivity "
            "only, `none` neither.",
            choices=("daily", "idle", "none"),
        ),
    ] = "daily"
    at_hour: Annotated[
        int, Key("The hour, in the user's time zone, at which the day's session ends.", high=23)
    ] = 4
    idle_minutes: Annotated[
        int, Key("The minutes of inactivity that end a session; 0 for never.")
    ] = 0


class AgentSettings(NamedTuple):
    """The settings that only agents, writes and the QMD backend use; a search does without them."""

    tools: ToolPolicy = ToolPolicy()
    startup_context: StartupContext = StartupContext()
    compaction: Compaction = Compaction()
    heartbeat: Heartbeat = Heartbeat()
    sandbox: Sandbox = Sandbox()
    hooks: Hooks = Hooks()
    session_reset: SessionReset = SessionReset()
    consolidation: ConsolidationOptions = ConsolidationOptions()
    history: HistoryOptions = HistoryOptions()
    review: ReviewPolicy = "curated"
    qmd: QmdOptions = QmdOptions()
    qmd_search: QmdSearchOptions = QmdSearchOptions()
    team: TeamOptions = TeamOptions()
    serve: ServeOptions = ServeOptions()
