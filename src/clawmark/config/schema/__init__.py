"""Every setting that a search reads: its type and its default.

`field_keys` has the description, limits and choices of those that a configuration file may set;
other settings are in the modules of their subjects. `keys` derives the table of keys from these
classes. Defaults are those of OpenClaw's configuration tables."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

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
    from clawmark.config.schema.serve import ServeOptions
    from clawmark.config.schema.team import TeamOptions
    from clawmark.config.schema.tools import Sandbox, ToolPolicy


class Local(NamedTuple):
    """The embedder that runs in this process."""

    model_path: str = ""


class VectorStore(NamedTuple):
    enabled: bool = True
    engine: str = "blocks"


class Store(NamedTuple):
    """Where the index is and how it keeps vectors."""

    driver: str = "sqlite"
    path: str = ""
    uri: object = ""
    owner: str = ""
    fallback: str = "none"
    vector: VectorStore = VectorStore()


CHUNKER_VERSIONS = {"markdown": 1, "lines": 1, "lines-v5": 1}
"""Increased when a chunker cuts the same text differently, which rebuilds the index; all of them
when transcripts are cut differently."""


class Chunking(NamedTuple):
    mode: str = "markdown"
    tokens: int = 400
    overlap: int = 80

    @property
    def name(self) -> str:
        """How an index was cut, as it is recorded in the index: `markdown-1:400/80`."""
        return f"{self.mode}-{CHUNKER_VERSIONS[self.mode]}:{self.tokens}/{self.overlap}"


class SessionDeltas(NamedTuple):
    delta_bytes: int = 100_000
    delta_messages: int = 50
    post_compaction_force: bool = True


class SyncOptions(NamedTuple):
    """When the index is brought up to date."""

    on_session_start: bool = True
    on_search: bool = True
    watch: bool = True
    watch_debounce_ms: int = 1500
    interval_minutes: int = 0
    sessions: SessionDeltas = SessionDeltas()


class Mmr(NamedTuple):
    enabled: bool = False
    lambda_: float = 0.7


class TemporalDecay(NamedTuple):
    enabled: bool = False
    half_life_days: int = 30


class Hybrid(NamedTuple):
    """How the two legs of a search are weighed against each other."""

    enabled: bool = True
    vector_weight: float = 0.7
    text_weight: float = 0.3
    fusion: str = "calibrated"
    candidate_multiplier: int = 4
    mmr: Mmr = Mmr()
    temporal_decay: TemporalDecay = TemporalDecay()


class RerankOptions(NamedTuple):
    """The reranker; `none` switches it off."""

    provider: str = "none"
    model: str = ""
    base_url: str = ""
    api_key: object = ""
    top_k: int = 20
    timeout_ms: int = 2000


class QueryOptions(NamedTuple):
    max_results: int = 6
    min_score: float = 0.35
    hybrid: Hybrid = Hybrid()
    rerank: RerankOptions = RerankOptions()


class CacheOptions(NamedTuple):
    enabled: bool = True
    max_entries: int = 50_000


class SessionOptions(NamedTuple):
    """Folders of transcripts besides the agent's own."""

    paths: tuple[str, ...] = ()


class Experimental(NamedTuple):
    session_memory: bool = True


class RemoteBatch(NamedTuple):
    enabled: bool = False
    wait: bool = True
    concurrency: int = 2
    poll_interval_ms: int = 2000
    timeout_minutes: int = 60


class Remote(NamedTuple):
    """`memorySearch.remote`."""

    base_url: str = ""
    api_key: object = ""
    daily_tokens: int = 0
    proxy: str = ""
    query_input_type: str = ""
    document_input_type: str = ""
    region: str = ""
    headers: Mapping[str, str] = {}
    batch: RemoteBatch = RemoteBatch()


class MemorySearch(NamedTuple):
    """`memorySearch.*`: what is indexed, with what, and how it is searched."""

    enabled: bool = True
    sources: tuple[str, ...] = ("memory",)
    experimental: Experimental = Experimental()
    sessions: SessionOptions = SessionOptions()
    extra_paths: tuple[str, ...] = ()
    extra_patterns: Mapping[str, tuple[str, ...]] = {}
    """The patterns of each extra path; a path that is not here is searched as a whole."""
    provider: str = "auto"
    provider_entries: Mapping[str, Mapping[str, object]] = {}
    """`models.providers` as written: addresses and keys of services by provider name."""
    model: str = ""
    fallback: tuple[str, ...] = ()
    local: Local = Local()
    store: Store = Store()
    chunking: Chunking = Chunking()
    cache: CacheOptions = CacheOptions()
    sync: SyncOptions = SyncOptions()
    query: QueryOptions = QueryOptions()
    output_dimensionality: int = 0
    remote: Remote = Remote()
    multimodal: Multimodal = Multimodal()


class DailyLogOptions(NamedTuple):
    """`memory.dailyLog`."""

    times: bool = True


class MemoryOptions(NamedTuple):
    """`memory.*`: the backend, citations, and which sessions may search."""

    backend: str = "builtin"
    citations: str = "auto"
    shared_sessions: tuple[str, ...] = ()
    trusted_paths: tuple[str, ...] = ()
    log: str = "info"
    daily_log: DailyLogOptions = DailyLogOptions()


class Settings(NamedTuple):
    """Every setting, complete with defaults.

    What a search does without is loaded when it is first read."""

    memory_search: MemorySearch = MemorySearch()
    memory: MemoryOptions = MemoryOptions()
    workspace: str = ""
    user_timezone: str = ""
    bootstrap_max_chars: int = 20_000
    bootstrap_total_max_chars: int = 150_000
    model: str = ""
    context_tokens: int = 0
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
    def team(self) -> "TeamOptions":
        return self.of_agents.team

    @property
    def serve(self) -> "ServeOptions":
        return self.of_agents.serve

    @property
    def has_team(self) -> bool:
        """Whether shared spaces are configured; costs a search without them nothing."""
        given: AgentSettings | None = self.given_to_agents
        if given is None:
            return False
        return bool(given.team.uri or (given.team.spaces and self.memory_search.store.uri))

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
