"""The keys of the settings that a search reads: description, limits and choices of each field.

They are not annotations of the fields, as those of other settings are: a search with the defaults
does without them, and ninety annotations would take it 2 ms."""

from clawmark.config.schema import (
    CacheOptions,
    Chunking,
    DailyLogOptions,
    Experimental,
    Hybrid,
    Local,
    MemoryOptions,
    MemorySearch,
    Mmr,
    QueryOptions,
    Remote,
    RemoteBatch,
    RerankOptions,
    SessionDeltas,
    SessionOptions,
    Settings,
    Store,
    SyncOptions,
    TemporalDecay,
    VectorStore,
)
from clawmark.config.schema.key import Key
from clawmark.config.schema.media import MODALITIES, Multimodal
from clawmark.config.schema.plugins import PluginSlots

FIELD_KEYS: dict[type, dict[str, Key]] = {
    Local: {
        "model_path": Key("A local model file to use instead of the installed weights."),
    },
    VectorStore: {
        "enabled": Key("Whether the index keeps vectors."),
        "engine": Key("How vectors are kept and scored.", choices=("blocks", "sqlite-vec")),
    },
    Store: {
        "driver": Key("The database of the index.", choices=("sqlite",)),
        "path": Key(
            "The path of the index, with `{agentId}` and `~` filled in; empty for the state folder."
        ),
        "uri": Key(
            "The address of a PostgreSQL database that holds the index instead of SQLite: "
            "`postgresql://USER:PASSWORD@HOST/DATABASE`; `${NAME}` takes it from the environment.",
            kind="secret",
        ),
        "owner": Key(
            "The name of this agent's index in that database, with `{agentId}` filled in; it must "
            "not be shared by two workspaces. Empty for a name made of agent, machine and folder."
        ),
        "fallback": Key(
            "What answers while that database cannot be used: `none` for an error, or `sqlite` for "
            "an index on this machine, with keywords and static vectors, made when it is needed.",
            choices=("none", "sqlite"),
        ),
    },
    Chunking: {
        "mode": Key(
            "`markdown` cuts passages at headings, lists and fences; `lines` cuts as OpenClaw "
            "2026.3 does and `lines-v5` as OpenClaw 2026.9 does (`chunkingVersion` 5), to the "
            "byte.",
            choices=("markdown", "lines", "lines-v5"),
        ),
        "tokens": Key(
            "The size of a passage in tokens; less than 16 is taken as 16.", low=1, high=100_000
        ),
        "overlap": Key("How many tokens neighbours share; kept below the size.", high=100_000),
    },
    SessionDeltas: {
        "delta_bytes": Key(
            "How many bytes a transcript grows before the watcher indexes it again; 0 for any."
        ),
        "delta_messages": Key("The same in messages; whichever comes first."),
        "post_compaction_force": Key(
            "Whether a transcript is indexed after a compaction however little it grew."
        ),
    },
    SyncOptions: {
        "on_session_start": Key("Whether the index is brought up to date when a session starts."),
        "on_search": Key("Whether a search first brings the index up to date."),
        "watch": Key("Whether a long-running process watches the files."),
        "watch_debounce_ms": Key(
            "How long the watcher waits for changes to stop, in milliseconds; at most five "
            "times as long.",
            high=3_600_000,
        ),
        "interval_minutes": Key(
            "How often a long-running process syncs by itself; 0 for never.", high=525_600
        ),
    },
    Mmr: {
        "enabled": Key("Whether hits that repeat each other are replaced by others."),
        "lambda_": Key("1 asks for the best hits, 0 for the most different ones.", high=1),
    },
    TemporalDecay: {
        "enabled": Key("Whether old daily logs count less; MEMORY.md never ages."),
        "half_life_days": Key("The age at which a log counts half.", low=1, high=36_500),
    },
    Hybrid: {
        "enabled": Key("Whether keywords are used together with vectors."),
        "vector_weight": Key("The weight of meaning; the two weights are scaled to sum 1.", high=1),
        "text_weight": Key("The weight of words; the two weights are scaled to sum 1.", high=1),
        "fusion": Key(
            "How the two scores are combined: calibrated evidence that adds up, or the weighted "
            "sum that OpenClaw publishes.",
            choices=("calibrated", "weighted"),
        ),
        "candidate_multiplier": Key(
            "How many candidates each leg contributes per result, at least 100 in all; more "
            "than 20 is taken as 20.",
            low=1,
        ),
    },
    RerankOptions: {
        "provider": Key(
            "What reranks the best candidates; a service is sent the question and their passages.",
            choices=("none", "onnx", "cohere", "jina", "voyage"),
        ),
        "model": Key("The reranker's model: a name, or for onnx the folder of a cross-encoder."),
        "base_url": Key("The address of the service, if it is not the provider's own.", kind="url"),
        "api_key": Key(
            "The reranker's key; `${NAME}` takes it from the environment.", kind="secret"
        ),
        "top_k": Key("How many candidates are reranked.", low=2, high=100),
        "timeout_ms": Key(
            "How long reranking may take; after that, hits keep their order.", low=50, high=60_000
        ),
    },
    QueryOptions: {
        "max_results": Key("How many hits a search returns.", low=1, high=10_000),
        "min_score": Key("The minimum score of a hit.", high=1),
    },
    CacheOptions: {
        "enabled": Key("Whether vectors of removed text are kept in case it comes back."),
        "max_entries": Key("How many vectors are kept; the least recently used go first.", low=1),
    },
    SessionOptions: {
        "paths": Key(
            "More folders of transcripts, of Claude Code or Codex, for the source `sessions`.",
            kind="paths",
        ),
    },
    Experimental: {
        "session_memory": Key(
            "OpenClaw's second switch for transcripts: `false` removes `sessions` from the sources."
        ),
    },
    RemoteBatch: {
        "enabled": Key("Whether the service's batch interface is used."),
        "wait": Key("Whether a sync waits for its batches."),
        "concurrency": Key("How many batches at once.", low=1, high=64),
        "poll_interval_ms": Key("How often the state of a batch is requested."),
        "timeout_minutes": Key("How long a batch may take.", low=1),
    },
    Remote: {
        "base_url": Key("The address of an embedding service.", kind="url"),
        "api_key": Key(
            "The key of the service; `${NAME}` takes it from the environment.", kind="secret"
        ),
        "daily_tokens": Key(
            "A hard daily limit of embedded tokens; beyond it, searches use keywords and static "
            "vectors. 0 for no limit."
        ),
        "proxy": Key("The proxy for the service; proxies of the environment are not used."),
        "query_input_type": Key("The `input_type` of questions, where a service wants one."),
        "document_input_type": Key("The `input_type` of passages."),
        "region": Key("The region of Amazon Bedrock."),
        "headers": Key("Additional headers for the service.", kind="headers"),
    },
    MemorySearch: {
        "enabled": Key(
            "Whether memory can be searched; if not, there are no search tools and no vectors."
        ),
        "sources": Key(
            "What is searched: `memory` is the Markdown files, `sessions` the transcripts.",
            choices=("memory", "sessions"),
        ),
        "extra_paths": Key(
            "More folders or Markdown files to index: absolute, from `~` or from the workspace; "
            '`{ path: "~/wiki", pattern: "public/**/*.md" }` for part of a folder.',
            kind="paths",
        ),
        "provider": Key(
            "The embedding provider: `auto` uses the first key it finds, else what is "
            "installed; `none` is keywords only.",
            kind="name",
        ),
        "model": Key("The model of the provider; empty for the provider's own default."),
        "fallback": Key(
            "Providers to use, in this order, when the provider fails: a name, a list, or `none`.",
            kind="names",
        ),
        "output_dimensionality": Key(
            "The size of the vectors, where the model offers a choice; 0 for its default.",
            high=65_536,
        ),
    },
    DailyLogOptions: {
        "times": Key("Whether entries of the daily log start with the time, as in `- 14:05 …`."),
    },
    MemoryOptions: {
        "backend": Key(
            "The search backend: `builtin`, `qmd`, or the name of an installed one. If it fails, "
            "`builtin` answers.",
            kind="name",
        ),
        "citations": Key(
            "Whether answers to an agent carry their source.", choices=("auto", "on", "off")
        ),
        "shared_sessions": Key(
            "Kinds of sessions, besides private ones, that may search and read the memory.",
            choices=("group", "channel", "subagent", "cron", "heartbeat", "unknown"),
        ),
        "trusted_paths": Key(
            "Patterns of paths outside `MEMORY.md` and `memory/`, such as `notes:**`, whose text "
            "may be recalled unasked. Other added folders and extra paths are only searched.",
            kind="texts",
        ),
        "log": Key(
            "What commands and servers write to `logs/clawmark.log` in the state folder: `info` "
            "for what ran too, `off` for nothing. Memory text and keys are never written.",
            choices=("off", "error", "warning", "info"),
        ),
    },
    Settings: {
        "workspace": Key("The folder with the memory files."),
        "user_timezone": Key(
            "The time zone of daily logs, such as `Europe/Berlin`; empty for the local one."
        ),
        "bootstrap_max_chars": Key(
            "How many characters of one workspace file enter a prompt.", low=1, high=1_000_000
        ),
        "bootstrap_total_max_chars": Key(
            "How many characters of all workspace files together.", low=1, high=10_000_000
        ),
        "model": Key(
            "The model for chat, flushes, names of notes and curation: `openai:…`, "
            "`anthropic:…`, `gemini:…`, `ollama:…`, or the address of a server like OpenAI's. "
            "CLAWMARK_MODEL takes precedence.",
            kind="model",
        ),
        "context_tokens": Key(
            "The context window of the model in tokens; 0 to take it from the model's name."
        ),
    },
    Multimodal: {
        "enabled": Key(
            "Whether images and audio files in extra paths and added folders are indexed; the "
            "provider has to be `gemini` and the model `gemini-embedding-2`."
        ),
        "modalities": Key(
            "Which of them: PNG and JPEG images, MP3 and WAV audio.", choices=(*MODALITIES, "all")
        ),
        "max_file_bytes": Key("Larger images and audio files are skipped.", low=1, high=64 << 20),
    },
    PluginSlots: {
        "memory": Key(
            "The memory plugin: `memory-core`, `memory-lancedb`, `none` for no memory, or the name "
            "of an installed plugin. `clawmark plugins` lists them.",
            kind="name",
        ),
    },
}
