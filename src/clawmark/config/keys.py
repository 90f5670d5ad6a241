"""Every key a configuration file may set: its kind, its range and one sentence.

`load` checks files against this table, `config list` and the reference are printed from it, and a
test compares it with the settings in `schema`. Keys of OpenClaw that have no effect here are in
`unsupported`. Where the keys are written in a file is decided by `sections`."""

from typing import NamedTuple


class Key(NamedTuple):
    """One key, under its short name: `memorySearch.query.maxResults`, wherever in the file it
    stands.
    """

    name: str
    kind: str
    """flag, count, number, text, words, texts, name, names, choice, choices, paths, url, secret,
    headers, size, model
    """
    sentence: str
    low: float = 0
    high: float = 2**31 - 1
    choices: tuple[str, ...] = ()
    default: object = None
    """Given only for keys that `schema` keeps as given."""
    secret: bool = False


_S = "memorySearch."
_C = "agents.defaults.compaction."
_F = _C + "memoryFlush."
_N = "hooks.internal.entries.session-memory."

KEYS: tuple[Key, ...] = (
    # what is searched, and with which vectors
    Key(
        _S + "enabled",
        "flag",
        "Whether memory is searched; off, memory_search and memory_get are absent and nothing is "
        "embedded.",
    ),
    Key(
        _S + "sources",
        "choices",
        "What is searched: `memory` is the Markdown files, `sessions` the transcripts of "
        "conversations.",
        choices=("memory", "sessions"),
    ),
    Key(
        _S + "experimental.sessionMemory",
        "flag",
        "OpenClaw's second switch for transcripts: `false` removes `sessions` from the sources.",
    ),
    Key(
        _S + "sessions.paths",
        "paths",
        "More folders of transcripts, of Claude Code or Codex, read with the source `sessions`.",
    ),
    Key(
        _S + "extraPaths",
        "paths",
        "More folders or Markdown files to index, by full path, from `~` or from the workspace; "
        '`{ path: "~/wiki", pattern: "public/**/*.md" }` for a part of a folder.',
    ),
    Key(
        _S + "provider",
        "name",
        "What makes the vectors: `auto` takes a key it finds, else what is installed; `none` is "
        "keywords only.",
    ),
    Key(_S + "model", "text", "The model of the provider; empty for the provider's own default."),
    Key(
        _S + "fallback",
        "names",
        "What may stand in when the provider fails, in this order: a name, a list, or `none`.",
    ),
    Key(
        _S + "local.modelPath",
        "text",
        "A local model file to use instead of the installed weights.",
    ),
    # the index
    Key(_S + "store.driver", "choice", "The database of the index.", choices=("sqlite",)),
    Key(
        _S + "store.path",
        "text",
        "Where the index is, with `{agentId}` and `~` filled in; empty for the state folder.",
    ),
    Key(_S + "store.vector.enabled", "flag", "Whether the index keeps vectors."),
    Key(
        _S + "store.vector.engine",
        "choice",
        "How vectors are kept and scored.",
        choices=("blocks", "sqlite-vec"),
    ),
    Key(
        _S + "chunking.mode",
        "choice",
        "`markdown` cuts passages at headings, lists and fences; `lines` cuts as OpenClaw 2026.3 "
        "does and `lines-v5` "
        "as OpenClaw 2026.9 does (`chunkingVersion` 5), to the byte.",
        choices=("markdown", "lines", "lines-v5"),
    ),
    Key(
        name=_S + "chunking.tokens",
        kind="count",
        sentence="The size of a passage in tokens; less than 16 is taken as 16.",
        low=1,
        high=100_000,
    ),
    Key(
        name=_S + "chunking.overlap",
        kind="count",
        sentence="How many tokens neighbours share; kept below the size.",
        low=0,
        high=100_000,
    ),
    Key(_S + "cache.enabled", "flag", "Whether vectors are kept for text that comes back."),
    Key(
        name=_S + "cache.maxEntries",
        kind="count",
        sentence="How many vectors are kept; the least recently used go first.",
        low=1,
    ),
    # when the index is brought up to date
    Key(
        _S + "sync.onSessionStart",
        "flag",
        "Whether the index is brought up to date when a session starts.",
    ),
    Key(_S + "sync.onSearch", "flag", "Whether a search first brings the index up to date."),
    Key(_S + "sync.watch", "flag", "Whether a long-running process watches the files."),
    Key(
        name=_S + "sync.watchDebounceMs",
        kind="count",
        sentence="How long the watcher waits for changes to stop, in "
        "milliseconds; at most five times as long.",
        low=0,
        high=3_600_000,
    ),
    Key(
        name=_S + "sync.intervalMinutes",
        kind="count",
        sentence="How often a long-running process looks by itself; 0 is never.",
        low=0,
        high=525_600,
    ),
    Key(
        _S + "sync.sessions.deltaBytes",
        "count",
        "How many bytes a transcript grows before the watcher has it indexed again; 0 is any.",
    ),
    Key(
        _S + "sync.sessions.deltaMessages", "count", "The same in messages; whichever comes first."
    ),
    Key(
        _S + "sync.sessions.postCompactionForce",
        "flag",
        "Whether a transcript is indexed after a compaction however little it grew.",
    ),
    # the question
    Key(
        name=_S + "query.maxResults",
        kind="count",
        sentence="How many hits a search gives.",
        low=1,
        high=10_000,
    ),
    Key(
        name=_S + "query.minScore",
        kind="number",
        sentence="The score below which nothing is a hit.",
        low=0,
        high=1,
    ),
    Key(_S + "query.hybrid.enabled", "flag", "Whether keywords count beside vectors."),
    Key(
        name=_S + "query.hybrid.vectorWeight",
        kind="number",
        sentence="What meaning counts; the two weights are scaled to sum 1.",
        low=0,
        high=1,
    ),
    Key(
        name=_S + "query.hybrid.textWeight",
        kind="number",
        sentence="What words count; the two weights are scaled to sum 1.",
        low=0,
        high=1,
    ),
    Key(
        _S + "query.hybrid.fusion",
        "choice",
        "How the legs are merged: calibrated evidence that adds up, or the weighted sum that "
        "OpenClaw publishes.",
        choices=("calibrated", "weighted"),
    ),
    Key(
        name=_S + "query.hybrid.candidateMultiplier",
        kind="count",
        sentence="How many candidates each leg brings for one result, at "
        "least 100 in all; more than 20 is taken as 20.",
        low=1,
    ),
    Key(
        _S + "query.hybrid.mmr.enabled",
        "flag",
        "Whether hits that repeat each other make room for others.",
    ),
    Key(
        name=_S + "query.hybrid.mmr.lambda",
        kind="number",
        sentence="1 asks for the best hits, 0 for the most different ones.",
        low=0,
        high=1,
    ),
    Key(
        _S + "query.hybrid.temporalDecay.enabled",
        "flag",
        "Whether old daily logs count less; MEMORY.md never ages.",
    ),
    Key(
        name=_S + "query.hybrid.temporalDecay.halfLifeDays",
        kind="count",
        sentence="The age at which a log counts half.",
        low=1,
        high=36_500,
    ),
    Key(
        _S + "query.rerank.provider",
        "choice",
        "What puts the best candidates in order; a service is sent the question and their "
        "passages.",
        choices=("none", "onnx", "cohere", "jina", "voyage"),
    ),
    Key(
        _S + "query.rerank.model",
        "text",
        "Its model: a name, or for onnx the folder of a cross-encoder.",
    ),
    Key(
        _S + "query.rerank.baseUrl",
        "url",
        "The address of the service, if it is not the provider's own.",
    ),
    Key(
        _S + "query.rerank.apiKey",
        "secret",
        "Its key; `${NAME}` takes it from the environment.",
        secret=True,
    ),
    Key(
        name=_S + "query.rerank.topK",
        kind="count",
        sentence="How many candidates it is given.",
        low=2,
        high=100,
    ),
    Key(
        name=_S + "query.rerank.timeoutMs",
        kind="count",
        sentence="How long it may take before hits keep their order.",
        low=50,
        high=60_000,
    ),
    # answers
    Key(
        "memory.backend",
        "choice",
        "What answers searches; `qmd` is not supported yet, and `builtin` answers in its place.",
        choices=("builtin", "qmd"),
    ),
    Key(
        "memory.citations",
        "choice",
        "Whether answers to an agent carry their source.",
        choices=("auto", "on", "off"),
    ),
    Key(
        "memory.sharedSessions",
        "choices",
        "Kinds of sessions, beside private ones, that may search and read the memory.",
        choices=("group", "channel", "subagent", "cron", "heartbeat", "unknown"),
    ),
    Key(
        "tools.allow",
        "texts",
        "Tools an agent may have, by name, `*` or `group:memory`; empty for all of them.",
    ),
    Key(
        "tools.deny",
        "texts",
        "Tools an agent does not get, written the same way; this wins over `tools.allow`.",
    ),
    # what a session sees without asking
    Key("agents.defaults.workspace", "text", "The folder with the memory files."),
    Key(
        "agents.defaults.userTimezone",
        "text",
        "The time zone of daily logs, such as `Europe/Berlin`; empty for the local one.",
    ),
    Key(
        name="agents.defaults.bootstrapMaxChars",
        kind="count",
        sentence="How many characters of one workspace file enter a prompt.",
        low=1,
        high=1_000_000,
    ),
    Key(
        name="agents.defaults.bootstrapTotalMaxChars",
        kind="count",
        sentence="How many characters of all workspace files together.",
        low=1,
        high=10_000_000,
    ),
    Key(
        "agents.defaults.startupContext.enabled",
        "flag",
        "Whether the logs of the last days are in the prompt.",
    ),
    Key(
        name="agents.defaults.startupContext.dailyMemoryDays",
        kind="count",
        sentence="Of how many days; 2 is today and yesterday.",
        low=1,
        high=14,
    ),
    Key(
        name="agents.defaults.startupContext.maxFileChars",
        kind="count",
        sentence="How many characters of one log.",
        low=1,
        high=100_000,
    ),
    Key(
        name="agents.defaults.startupContext.maxTotalChars",
        kind="count",
        sentence="How many characters of all of them.",
        low=1,
        high=500_000,
    ),
    # what a conversation needs
    Key(
        "agents.defaults.model",
        "model",
        "The model that talks, flushes, names notes and curates: `openai:…`, `anthropic:…`, "
        "`gemini:…`, `ollama:…`, "
        "or the address of a server like OpenAI's. CLAWMARK_MODEL comes before it.",
        default="",
    ),
    Key(
        "agents.defaults.contextTokens",
        "count",
        "How many tokens the model holds; 0 for what is known of it by its name.",
        default=0,
    ),
    Key(
        _C + "reserveTokensFloor",
        "count",
        "How many tokens a compaction leaves free.",
        default=20_000,
    ),
    Key(
        _F + "enabled",
        "flag",
        "Whether what matters is written into today's log before a compaction.",
        default=True,
    ),
    Key(
        _F + "softThresholdTokens",
        "count",
        "How many tokens before the compaction that happens.",
        default=4000,
    ),
    Key(
        _F + "forceFlushTranscriptBytes",
        "size",
        "How much a transcript grows before it happens anyway; 0 is never.",
        default=2 << 20,
    ),
    Key(_F + "model", "model", "Another model for this alone.", default=""),
    Key(
        _F + "prompt",
        "words",
        "What the model is asked, with YYYY-MM-DD for the day; empty for our own words.",
        default="",
    ),
    Key(_F + "systemPrompt", "words", "The system prompt it is asked with.", default=""),
    Key(
        "hooks.internal.enabled",
        "flag",
        "Whether the end of a session leaves a note.",
        default=True,
    ),
    Key(_N + "enabled", "flag", "The same, for this hook alone.", default=True),
    Key(
        name=_N + "messages",
        kind="count",
        sentence="How many of the last messages are in the note.",
        low=1,
        high=1000,
        default=15,
    ),
    Key(_N + "llmSlug", "flag", "Whether the model names the note, if there is one.", default=True),
    Key(
        "session.reset.mode",
        "choice",
        "What ends a session by itself: `daily` is the hour and the silence, `idle` the silence "
        "alone, `none` neither.",
        choices=("daily", "idle", "none"),
        default="daily",
    ),
    Key(
        name="session.reset.atHour",
        kind="count",
        sentence="The hour, where the user lives, at which the day's session ends.",
        low=0,
        high=23,
        default=4,
    ),
    Key(
        "session.reset.idleMinutes",
        "count",
        "The minutes of silence that end one; 0 is never.",
        default=0,
    ),
    # embedding services
    Key(
        name=_S + "outputDimensionality",
        kind="count",
        sentence="The size of vectors, where one may choose.",
        low=0,
        high=65_536,
    ),
    Key(_S + "remote.baseUrl", "url", "The address of an embedding service.", default=""),
    Key(
        _S + "remote.apiKey",
        "secret",
        "Its key; `${NAME}` takes it from the environment.",
        default="",
        secret=True,
    ),
    Key(
        _S + "remote.dailyTokens",
        "count",
        "A hard limit a day for embedding; searches go on with words and static vectors. 0 is "
        "none.",
        default=0,
    ),
    Key(
        _S + "remote.proxy",
        "text",
        "A proxy to reach the service through; the environment's is not used.",
        default="",
    ),
    Key(
        _S + "remote.queryInputType",
        "text",
        "The `input_type` of questions, where a service wants one.",
        default="",
    ),
    Key(_S + "remote.documentInputType", "text", "The `input_type` of passages.", default=""),
    Key(_S + "remote.region", "text", "The region of Amazon Bedrock.", default=""),
    Key(_S + "remote.headers", "headers", "More headers for it.", default={}, secret=True),
    Key(_S + "remote.batch.enabled", "flag", "Whether its batch interface is used.", default=False),
    Key(_S + "remote.batch.wait", "flag", "Whether a sync waits for its batches.", default=True),
    Key(
        name=_S + "remote.batch.concurrency",
        kind="count",
        sentence="How many batches at once.",
        low=1,
        high=64,
        default=2,
    ),
    Key(
        name=_S + "remote.batch.pollIntervalMs",
        kind="count",
        sentence="How often a batch is asked after.",
        low=0,
        default=2000,
    ),
    Key(
        name=_S + "remote.batch.timeoutMinutes",
        kind="count",
        sentence="How long a batch may take.",
        low=1,
        default=60,
    ),
)

BY_NAME: dict[str, Key] = {key.name: key for key in KEYS}

GROUPS: frozenset[str] = frozenset(
    ".".join(parts[:end])
    for parts in (key.name.split(".") for key in KEYS)
    for end in range(1, len(parts))
)
"""Every dotted name that holds other keys."""
