"""Every setting: its key, type, default, allowed values and description.

A field annotated with `Key` may be set by a configuration file; `keys` derives the table of keys
from these classes. Defaults are those of OpenClaw's configuration tables."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from clawmark.config.schema.key import Key
from clawmark.config.schema.media import Multimodal
from clawmark.config.schema.plugins import PluginOptions

if TYPE_CHECKING:
    from clawmark.config.schema.agent import (
        AgentSettings,
        Compaction,
        Hooks,
        SessionReset,
        StartupContext,
    )
    from clawmark.config.schema.consolidation import ConsolidationOptions
    from clawmark.config.schema.heartbeat import Heartbeat
    from clawmark.config.schema.history import HistoryOptions
    from clawmark.config.schema.qmd import QmdOptions, QmdSearchOptions
    from clawmark.config.schema.tools import Sandbox, ToolPolicy


class Local(NamedTuple):
    """The embedder that runs in this process."""

    model_path: Annotated[
        str, Key("A local model file to use instead of the installed weights.")
    ] = ""


class VectorStore(NamedTuple):
    enabled: Annotated[bool, Key("Whether the index keeps vectors.")] = True
    engine: Annotated[
        str, Key("How vectors are kept and scored.", choices=("blocks", "sqlite-vec"))
    ] = "blocks"


class Store(NamedTuple):
    """Where the index is and how it keeps vectors."""

    driver: Annotated[str, Key("The database of the index.", choices=("sqlite",))] = "sqlite"
    path: Annotated[
        str,
        Key(
            "The path of the index, with `{agentId}` and `~` filled in; empty for the state folder."
        ),
    ] = ""
    uri: Annotated[
        object,
        Key(
            "The address of a PostgreSQL database that holds the index instead of SQLite: "
            "`postgresql://USER:PASSWORD@HOST/DATABASE`; `${NAME}` takes it from the environment.",
            kind="secret",
        ),
    ] = ""
    owner: Annotated[
        str,
        Key(
            "The name of this agent's index in that database, with `{agentId}` filled in; it must "
            "not be shared by two workspaces. Empty for a name made of agent, machine and folder."
        ),
    ] = ""
    vector: VectorStore = VectorStore()


CHUNKER_VERSIONS = {"markdown": 1, "lines": 1, "lines-v5": 1}
"""Increased when a chunker cuts the same text differently, which rebuilds the index; all of them
when transcripts are cut differently."""


class Chunking(NamedTuple):
    mode: Annotated[
        str,
        Key(
            "`markdown` cuts passages at headings, lists and fences; `lines` cuts as OpenClaw "
            "2026.3 does and `lines-v5` as OpenClaw 2026.9 does (`chunkingVersion` 5), to the "
            "byte.",
            choices=("markdown", "lines", "lines-v5"),
        ),
    ] = "markdown"
    tokens: Annotated[
        int,
        Key("The size of a passage in tokens; less than 16 is taken as 16.", low=1, high=100_000),
    ] = 400
    overlap: Annotated[
        int, Key("How many tokens neighbours share; kept below the size.", high=100_000)
    ] = 80

    @property
    def name(self) -> str:
        """How an index was cut, as it is recorded in the index: `markdown-1:400/80`."""
        return f"{self.mode}-{CHUNKER_VERSIONS[self.mode]}:{self.tokens}/{self.overlap}"


class SessionDeltas(NamedTuple):
    delta_bytes: Annotated[
        int,
        Key("How many bytes a transcript grows before the watcher indexes it again; 0 for any."),
    ] = 100_000
    delta_messages: Annotated[int, Key("The same in messages; whichever comes first.")] = 50
    post_compaction_force: Annotated[
        bool, Key("Whether a transcript is indexed after a compaction however little it grew.")
    ] = True


class SyncOptions(NamedTuple):
    """When the index is brought up to date."""

    on_session_start: Annotated[
        bool, Key("Whether the index is brought up to date when a session starts.")
    ] = True
    on_search: Annotated[bool, Key("Whether a search first brings the index up to date.")] = True
    watch: Annotated[bool, Key("Whether a long-running process watches the files.")] = True
    watch_debounce_ms: Annotated[
        int,
        Key(
            "How long the watcher waits for changes to stop, in milliseconds; at most five "
            "times as long.",
            high=3_600_000,
        ),
    ] = 1500
    interval_minutes: Annotated[
        int, Key("How often a long-running process syncs by itself; 0 for never.", high=525_600)
    ] = 0
    sessions: SessionDeltas = SessionDeltas()


class Mmr(NamedTuple):
    enabled: Annotated[bool, Key("Whether hits that repeat each other are replaced by others.")] = (
        False
    )
    lambda_: Annotated[
        float, Key("1 asks for the best hits, 0 for the most different ones.", high=1)
    ] = 0.7


class TemporalDecay(NamedTuple):
    enabled: Annotated[bool, Key("Whether old daily logs count less; MEMORY.md never ages.")] = (
        False
    )
    half_life_days: Annotated[
        int, Key("The age at which a log counts half.", low=1, high=36_500)
    ] = 30


class Hybrid(NamedTuple):
    """How the two legs of a search are weighed against each other."""

    enabled: Annotated[bool, Key("Whether keywords are used together with vectors.")] = True
    vector_weight: Annotated[
        float, Key("The weight of meaning; the two weights are scaled to sum 1.", high=1)
    ] = 0.7
    text_weight: Annotated[
        float, Key("The weight of words; the two weights are scaled to sum 1.", high=1)
    ] = 0.3
    fusion: Annotated[
        str,
        Key(
            "How the two scores are combined: calibrated evidence that adds up, or the weighted "
            "sum that OpenClaw publishes.",
            choices=("calibrated", "weighted"),
        ),
    ] = "calibrated"
    candidate_multiplier: Annotated[
        int,
        Key(
            "How many candidates each leg contributes per result, at least 100 in all; more "
            "than 20 is taken as 20.",
            low=1,
        ),
    ] = 4
    mmr: Mmr = Mmr()
    temporal_decay: TemporalDecay = TemporalDecay()


class RerankOptions(NamedTuple):
    """The reranker; `none` switches it off."""

    provider: Annotated[
        str,
        Key(
            "What reranks the best candidates; a service is sent the question and their passages.",
            choices=("none", "onnx", "cohere", "jina", "voyage"),
        ),
    ] = "none"
    model: Annotated[
        str, Key("The reranker's model: a name, or for onnx the folder of a cross-encoder.")
    ] = ""
    base_url: Annotated[
        str, Key("The address of the service, if it is not the provider's own.", kind="url")
    ] = ""
    api_key: Annotated[
        object, Key("The reranker's key; `${NAME}` takes it from the environment.", kind="secret")
    ] = ""
    top_k: Annotated[int, Key("How many candidates are reranked.", low=2, high=100)] = 20
    timeout_ms: Annotated[
        int,
        Key("How long reranking may take; after that, hits keep their order.", low=50, high=60_000),
    ] = 2000


class QueryOptions(NamedTuple):
    max_results: Annotated[int, Key("How many hits a search returns.", low=1, high=10_000)] = 6
    min_score: Annotated[float, Key("The minimum score of a hit.", high=1)] = 0.35
    hybrid: Hybrid = Hybrid()
    rerank: RerankOptions = RerankOptions()


class CacheOptions(NamedTuple):
    enabled: Annotated[
        bool, Key("Whether vectors of removed text are kept in case it comes back.")
    ] = True
    max_entries: Annotated[
        int, Key("How many vectors are kept; the least recently used go first.", low=1)
    ] = 50_000


class SessionOptions(NamedTuple):
    """Folders of transcripts besides the agent's own."""

    paths: Annotated[
        tuple[str, ...],
        Key(
            "More folders of transcripts, of Claude Code or Codex, for the source `sessions`.",
            kind="paths",
        ),
    ] = ()


class Experimental(NamedTuple):
    session_memory: Annotated[
        bool,
        Key(
            "OpenClaw's second switch for transcripts: `false` removes `sessions` from the sources."
        ),
    ] = True


class RemoteBatch(NamedTuple):
    enabled: Annotated[bool, Key("Whether the service's batch interface is used.")] = False
    wait: Annotated[bool, Key("Whether a sync waits for its batches.")] = True
    concurrency: Annotated[int, Key("How many batches at once.", low=1, high=64)] = 2
    poll_interval_ms: Annotated[int, Key("How often the state of a batch is requested.")] = 2000
    timeout_minutes: Annotated[int, Key("How long a batch may take.", low=1)] = 60


class Remote(NamedTuple):
    """`memorySearch.remote`."""

    base_url: Annotated[str, Key("The address of an embedding service.", kind="url")] = ""
    api_key: Annotated[
        object,
        Key("The key of the service; `${NAME}` takes it from the environment.", kind="secret"),
    ] = ""
    daily_tokens: Annotated[
        int,
        Key(
            "A hard daily limit of embedded tokens; beyond it, searches use keywords and static "
            "vectors. 0 for no limit."
        ),
    ] = 0
    proxy: Annotated[
        str, Key("The proxy for the service; proxies of the environment are not used.")
    ] = ""
    query_input_type: Annotated[
        str, Key("The `input_type` of questions, where a service wants one.")
    ] = ""
    document_input_type: Annotated[str, Key("The `input_type` of passages.")] = ""
    region: Annotated[str, Key("The region of Amazon Bedrock.")] = ""
    headers: Annotated[
        Mapping[str, str], Key("Additional headers for the service.", kind="headers")
    ] = {}
    batch: RemoteBatch = RemoteBatch()


class MemorySearch(NamedTuple):
    """`memorySearch.*`: what is indexed, with what, and how it is searched."""

    enabled: Annotated[
        bool,
        Key("Whether memory can be searched; if not, there are no search tools and no vectors."),
    ] = True
    sources: Annotated[
        tuple[str, ...],
        Key(
            "What is searched: `memory` is the Markdown files, `sessions` the transcripts.",
            choices=("memory", "sessions"),
        ),
    ] = ("memory",)
    experimental: Experimental = Experimental()
    sessions: SessionOptions = SessionOptions()
    extra_paths: Annotated[
        tuple[str, ...],
        Key(
            "More folders or Markdown files to index: absolute, from `~` or from the workspace; "
            '`{ path: "~/wiki", pattern: "public/**/*.md" }` for part of a folder.',
            kind="paths",
        ),
    ] = ()
    extra_patterns: Mapping[str, tuple[str, ...]] = {}
    """The patterns of each extra path; a path that is not here is searched as a whole."""
    provider: Annotated[
        str,
        Key(
            "The embedding provider: `auto` uses the first key it finds, else what is "
            "installed; `none` is keywords only.",
            kind="name",
        ),
    ] = "auto"
    provider_entries: Mapping[str, Mapping[str, object]] = {}
    """`models.providers` as written: addresses and keys of services by provider name."""
    model: Annotated[
        str, Key("The model of the provider; empty for the provider's own default.")
    ] = ""
    fallback: Annotated[
        tuple[str, ...],
        Key(
            "Providers to use, in this order, when the provider fails: a name, a list, or `none`.",
            kind="names",
        ),
    ] = ()
    local: Local = Local()
    store: Store = Store()
    chunking: Chunking = Chunking()
    cache: CacheOptions = CacheOptions()
    sync: SyncOptions = SyncOptions()
    query: QueryOptions = QueryOptions()
    output_dimensionality: Annotated[
        int,
        Key(
            "The size of the vectors, where the model offers a choice; 0 for its default.",
            high=65_536,
        ),
    ] = 0
    remote: Remote = Remote()
    multimodal: Multimodal = Multimodal()


class DailyLogOptions(NamedTuple):
    """`memory.dailyLog`."""

    times: Annotated[
        bool,
        Key("Whether entries of the daily log start with the time, as in `- 14:05 …`."),
    ] = True


class MemoryOptions(NamedTuple):
    """`memory.*`: the backend, citations, and which sessions may search."""

    backend: Annotated[
        str,
        Key(
            "The search backend: `builtin`, `qmd`, or the name of an installed one. If it fails, "
            "`builtin` answers.",
            kind="name",
        ),
    ] = "builtin"
    citations: Annotated[
        str, Key("Whether answers to an agent carry their source.", choices=("auto", "on", "off"))
    ] = "auto"
    shared_sessions: Annotated[
        tuple[str, ...],
        Key(
            "Kinds of sessions, besides private ones, that may search and read the memory.",
            choices=("group", "channel", "subagent", "cron", "heartbeat", "unknown"),
        ),
    ] = ()
    trusted_paths: Annotated[
        tuple[str, ...],
        Key(
            "Patterns of paths outside `MEMORY.md` and `memory/`, such as `notes:**`, whose text "
            "may be recalled unasked. Other added folders and extra paths are only searched.",
            kind="texts",
        ),
    ] = ()
    log: Annotated[
        str,
        Key(
            "What commands and servers write to `logs/clawmark.log` in the state folder: `info` "
            "for what ran too, `off` for nothing. Memory text and keys are never written.",
            choices=("off", "error", "warning", "info"),
        ),
    ] = "info"
    daily_log: DailyLogOptions = DailyLogOptions()


class Settings(NamedTuple):
    """Every setting, complete with defaults.

    What a search does without is loaded when it is first read."""

    memory_search: MemorySearch = MemorySearch()
    memory: MemoryOptions = MemoryOptions()
    workspace: Annotated[str, Key("The folder with the memory files.")] = ""
    user_timezone: Annotated[
        str, Key("The time zone of daily logs, such as `Europe/Berlin`; empty for the local one.")
    ] = ""
    bootstrap_max_chars: Annotated[
        int, Key("How many characters of one workspace file enter a prompt.", low=1, high=1_000_000)
    ] = 20_000
    bootstrap_total_max_chars: Annotated[
        int, Key("How many characters of all workspace files together.", low=1, high=10_000_000)
    ] = 150_000
    model: Annotated[
        str,
        Key(
            "The model for chat, flushes, names of notes and curation: `openai:…`, "
            "`anthropic:…`, `gemini:…`, `ollama:…`, or the address of a server like OpenAI's. "
            "CLAWMARK_MODEL takes precedence.",
            kind="model",
        ),
    ] = ""
    context_tokens: Annotated[
        int, Key("The context window of the model in tokens; 0 to take it from the model's name.")
    ] = 0
    plugins: PluginOptions = PluginOptions()
    # Not a quoted AgentSettings: a first quoted type takes Python 2 ms.
    given_to_agents: Any = None
    """None if no file sets what a search does without; the properties below have the defaults."""

    @property
    def tools(self) -> "ToolPolicy":
        return self.of_agents.tools

    @property
    def startup_context(self) -> "StartupContext":
        return self.of_agents.startup_context

    @property
    def compaction(self) -> "Compaction":
        return self.of_agents.compaction

    @property
    def heartbeat(self) -> "Heartbeat":
        return self.of_agents.heartbeat

    @property
    def sandbox(self) -> "Sandbox":
        return self.of_agents.sandbox

    @property
    def hooks(self) -> "Hooks":
        return self.of_agents.hooks

    @property
    def session_reset(self) -> "SessionReset":
        return self.of_agents.session_reset

    @property
    def consolidation(self) -> "ConsolidationOptions":
        return self.of_agents.consolidation

    @property
    def history(self) -> "HistoryOptions":
        return self.of_agents.history

    @property
    def review(self) -> str:
        return self.of_agents.review

    @property
    def qmd(self) -> "QmdOptions":
        return self.of_agents.qmd

    @property
    def qmd_search(self) -> "QmdSearchOptions":
        return self.of_agents.qmd_search

    @property
    def of_agents(self) -> "AgentSettings":
        """What only agents, writes and the QMD backend use, complete with defaults."""
        # Imported late: a search does without these classes.
        from clawmark.config.schema.agent import AgentSettings

        given: AgentSettings | None = self.given_to_agents
        return given or AgentSettings()


class Loaded(NamedTuple):
    """The settings, the origin of every value that is not the default, and the warnings."""

    settings: Settings
    origins: dict[str, str]
    warnings: tuple[str, ...]

    def origin(self, key: str) -> str:
        """`default`, `file <path>`, `workspace <path>` or `flag`."""
        return self.origins.get(key, "default")
