"""The settings as the code sees them: nested groups in snake_case, every one with its default.

Nothing comes in and nothing is checked here: `load` fills these from the files, `keys` says what
each key may hold. Two published defaults disagree with each other in places; these are the ones of
the configuration tables."""

from collections.abc import Mapping
from typing import NamedTuple


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
    vector: VectorStore = VectorStore()


CHUNKER_VERSIONS = {"markdown": 1, "lines": 1, "lines-v5": 1}
"""Raised when a chunker would cut the same text differently: an index made by another version is
rebuilt. Transcripts are cut the same in every mode; when that changes, all are raised."""


class Chunking(NamedTuple):
    mode: str = "markdown"
    tokens: int = 400
    overlap: int = 80

    @property
    def name(self) -> str:
        """What an index remembers about how its text was cut: `markdown-1:400/80`."""
        return f"{self.mode}-{CHUNKER_VERSIONS[self.mode]}:{self.tokens}/{self.overlap}"


class SessionDeltas(NamedTuple):
    """How much a transcript grows before the watcher has it indexed again."""

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
    """A text, or OpenClaw's reference to a variable."""
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
    """Where transcripts lie beside the agent's own."""

    paths: tuple[str, ...] = ()


class Experimental(NamedTuple):
    session_memory: bool = True


class MemorySearch(NamedTuple):
    """`memorySearch.*`: what is indexed, with what, and how it is searched."""

    enabled: bool = True
    sources: tuple[str, ...] = ("memory",)
    extra_paths: tuple[str, ...] = ()
    extra_patterns: Mapping[str, tuple[str, ...]] = {}
    """Which files of an extra path are meant, by that path; one that is not here is meant whole."""
    sessions: SessionOptions = SessionOptions()
    experimental: Experimental = Experimental()
    provider: str = "auto"
    provider_entries: Mapping[str, Mapping[str, object]] = {}
    """`models.providers` as given: addresses and keys of services, by a name that `provider` may
    be.
    """
    model: str = ""
    output_dimensionality: int = 0
    fallback: tuple[str, ...] = ()
    remote: Mapping[str, object] = {}
    """`memorySearch.remote.*` as given, by the part after `remote.`; read by `embed.choose` when a
    provider needs it.
    """
    local: Local = Local()
    store: Store = Store()
    chunking: Chunking = Chunking()
    sync: SyncOptions = SyncOptions()
    query: QueryOptions = QueryOptions()
    cache: CacheOptions = CacheOptions()


NO_QMD = 'memory.backend is "qmd", which is not supported yet; the built-in backend answers.'


class MemoryOptions(NamedTuple):
    """`memory.*`: which backend answers, whether answers carry citations, and who else may search."""

    backend: str = "builtin"
    citations: str = "auto"
    shared_sessions: tuple[str, ...] = ()


class ToolPolicy(NamedTuple):
    """Which tools an agent may have."""

    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    denied: frozenset[str] = frozenset()
    """The memory tools that these lists, and those of the agent's own entry, leave out."""


class StartupContext(NamedTuple):
    """How much of the last days' logs a session sees without asking."""

    enabled: bool = True
    daily_memory_days: int = 2
    max_file_chars: int = 4000
    max_total_chars: int = 12_000


class Settings(NamedTuple):
    """Everything that is configured, complete: nothing below asks whether a value was given."""

    memory_search: MemorySearch = MemorySearch()
    memory: MemoryOptions = MemoryOptions()
    tools: ToolPolicy = ToolPolicy()
    workspace: str = ""
    user_timezone: str = ""
    bootstrap_max_chars: int = 20_000
    bootstrap_total_max_chars: int = 150_000
    startup_context: StartupContext = StartupContext()
    runtime: Mapping[str, object] = {}
    """What only a conversation needs, as given, by its key; `memory` fills in what the table of
    keys has built in.
    """


class Loaded(NamedTuple):
    """The settings, the origin of every value that is not the built-in one, and what to tell the
    user.
    """

    settings: Settings
    origins: dict[str, str]
    warnings: tuple[str, ...]

    def origin(self, key: str) -> str:
        """`default`, `file <path>`, `workspace <path>` or `flag`."""
        return self.origins.get(key, "default")


REMOTE = "memorySearch.remote."
RUNTIME = (
    "agents.defaults.compaction.",
    "agents.defaults.contextTokens",
    "agents.defaults.model",
    "hooks.internal.",
    "session.reset.",
)


def attribute_path(key: str) -> tuple[str, ...]:
    """The attributes that lead to a key: `memorySearch.query.maxResults` → memory_search, query,
    max_results.
    """
    return tuple(_attribute(part) for part in key.removeprefix("agents.defaults.").split("."))


def value_of(settings: Settings, key: str) -> object:
    """The value a dotted key has in these settings; None for one that is kept as given and is not."""
    if key.startswith(RUNTIME):
        return settings.runtime.get(key)
    if key.startswith(REMOTE):
        return settings.memory_search.remote.get(key.removeprefix(REMOTE))
    value: object = settings
    for name in attribute_path(key):
        value = getattr(value, name)
    return value


def with_value(settings: Settings, key: str, value: object) -> Settings:
    """The same settings with one key changed."""
    if key.startswith(RUNTIME):
        return settings._replace(runtime={**settings.runtime, key: value})
    if key.startswith(REMOTE):
        search = settings.memory_search
        return settings._replace(
            memory_search=search._replace(remote={**search.remote, key.removeprefix(REMOTE): value})
        )
    changed: Settings = _replaced(settings, attribute_path(key), value)
    return changed


def _replaced(group: object, path: tuple[str, ...], value: object) -> Settings:
    inner = value if len(path) == 1 else _replaced(getattr(group, path[0]), path[1:], value)
    changed: Settings = group._replace(**{path[0]: inner})  # type: ignore[attr-defined]
    return changed


def _attribute(part: str) -> str:
    if part == "lambda":
        return "lambda_"  # a Python keyword
    return "".join("_" + letter.lower() if letter.isupper() else letter for letter in part)
