"""Every key a configuration file may set: its kind, its range and one sentence.

`load` checks files against this table, `config list` and the reference are printed from it, and a test compares it with
the settings in `schema`. Keys marked `later` are known, checked and listed, and nothing uses them yet: a file made for
OpenClaw is read without complaint. Where they are written in a file is `sections`' matter.
"""

from clawmark.values import NamedTuple


class Key(NamedTuple):
    """One key, under its short name: `memorySearch.query.maxResults`, wherever in the file it stands."""

    name: str
    kind: str
    """flag, count, number, text, words, name, choice, choices, paths, url, secret, headers, duration, size, model …"""
    sentence: str
    low: float = 0
    high: float = 2**31 - 1
    choices: tuple[str, ...] = ()
    default: object = None
    """Given only for keys that have no place in `schema` yet."""
    later: bool = False
    secret: bool = False


_S = "memorySearch."
_Q = "memory.qmd."
_C = "agents.defaults.compaction."
_F = _C + "memoryFlush."
_N = "hooks.internal.entries.session-memory."

KEYS: tuple[Key, ...] = (
    # what is searched, and with which vectors
    Key(_S + "enabled", "flag", "Whether memory is searched at all; off, the memory tools are absent."),
    Key(
        _S + "sources",
        "choices",
        "What is searched: `memory` is the Markdown files, `sessions` the transcripts of conversations.",
        choices=("memory", "sessions"),
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
        "What makes the vectors: `auto` takes a key it finds, else what is installed; `none` is keywords only.",
    ),
    Key(_S + "model", "text", "The model of the provider; empty for the provider's own default."),
    Key(_S + "fallback", "names", "What may stand in when the provider fails, in this order: a name, a list, or `none`."),
    Key(_S + "local.modelPath", "text", "A local model file to use instead of the installed weights."),
    # the index
    Key(_S + "store.driver", "choice", "The database of the index.", choices=("sqlite",)),
    Key(_S + "store.path", "text", "Where the index is, with `{agentId}` and `~` filled in; empty for the state folder."),
    Key(_S + "store.vector.enabled", "flag", "Whether the index keeps vectors."),
    Key(_S + "store.vector.engine", "choice", "How vectors are kept and scored.", choices=("blocks", "sqlite-vec")),
    Key(
        _S + "store.vector.extensionPath",
        "text",
        "A sqlite-vec library to load instead of the installed one.",
        later=True,
    ),
    Key(
        _S + "store.fts.tokenizer",
        "choice",
        "How the keyword index cuts words.",
        choices=("unicode61", "trigram"),
        later=True,
    ),
    Key(
        _S + "chunking.mode",
        "choice",
        "`markdown` cuts passages at headings, lists and fences; `lines` cuts as OpenClaw does, to the byte.",
        choices=("markdown", "lines"),
    ),
    Key(_S + "chunking.tokens", "count", "The size of a passage in tokens; less than 16 is taken as 16.", 1, 100_000),
    Key(
        _S + "chunking.overlap",
        "count",
        "How many tokens neighbours share; kept below the size.",
        0,
        100_000,
    ),
    Key(_S + "cache.enabled", "flag", "Whether vectors are kept for text that comes back.", later=True),
    Key(_S + "cache.maxEntries", "count", "How many vectors are kept; the least recently used go first.", 1),
    # when the index is brought up to date
    Key(_S + "sync.onSessionStart", "flag", "Whether the index is brought up to date when a session starts."),
    Key(_S + "sync.onSearch", "flag", "Whether a search first brings the index up to date."),
    Key(_S + "sync.watch", "flag", "Whether a long-running process watches the files."),
    Key(
        _S + "sync.watchDebounceMs",
        "count",
        "How long the watcher waits for changes to stop, in milliseconds; at most five times as long.",
        0,
        3_600_000,
    ),
    Key(
        _S + "sync.intervalMinutes",
        "count",
        "How often a long-running process looks by itself; 0 is never.",
        0,
        525_600,
    ),
    Key(
        _S + "sync.sessions.deltaBytes",
        "count",
        "How many bytes a transcript grows before the watcher has it indexed again; 0 is any.",
    ),
    Key(_S + "sync.sessions.deltaMessages", "count", "The same in messages; whichever comes first."),
    Key(
        _S + "sync.sessions.postCompactionForce",
        "flag",
        "Whether a transcript is indexed after a compaction however little it grew.",
    ),
    # the question
    Key(_S + "query.maxResults", "count", "How many hits a search gives.", 1, 10_000),
    Key(_S + "query.minScore", "number", "The score below which nothing is a hit.", 0, 1),
    Key(_S + "query.hybrid.enabled", "flag", "Whether keywords count beside vectors."),
    Key(
        _S + "query.hybrid.vectorWeight",
        "number",
        "What meaning counts; the two weights are scaled to sum 1.",
        0,
        1,
    ),
    Key(
        _S + "query.hybrid.textWeight",
        "number",
        "What words count; the two weights are scaled to sum 1.",
        0,
        1,
    ),
    Key(
        _S + "query.hybrid.fusion",
        "choice",
        "How the legs are merged: calibrated evidence that adds up, or the weighted sum that OpenClaw publishes.",
        choices=("calibrated", "weighted"),
    ),
    Key(
        _S + "query.hybrid.candidateMultiplier",
        "count",
        "How many candidates each leg brings for one result, at least 100 in all; more than 20 is taken as 20.",
        1,
    ),
    Key(_S + "query.hybrid.mmr.enabled", "flag", "Whether hits that repeat each other make room for others."),
    Key(_S + "query.hybrid.mmr.lambda", "number", "1 asks for the best hits, 0 for the most different ones.", 0, 1),
    Key(_S + "query.hybrid.temporalDecay.enabled", "flag", "Whether old daily logs count less; MEMORY.md never ages."),
    Key(_S + "query.hybrid.temporalDecay.halfLifeDays", "count", "The age at which a log counts half.", 1, 36_500),
    Key(
        _S + "query.rerank.provider",
        "choice",
        "What puts the best candidates in order; a service is sent the question and their passages.",
        choices=("none", "onnx", "cohere", "jina", "voyage"),
    ),
    Key(_S + "query.rerank.model", "text", "Its model: a name, or for onnx the folder of a cross-encoder."),
    Key(_S + "query.rerank.baseUrl", "url", "The address of the service, if it is not the provider's own."),
    Key(_S + "query.rerank.apiKey", "secret", "Its key; `${NAME}` takes it from the environment.", secret=True),
    Key(_S + "query.rerank.topK", "count", "How many candidates it is given.", 2, 100),
    Key(_S + "query.rerank.timeoutMs", "count", "How long it may take before hits keep their order.", 50, 60_000),
    # answers
    Key("memory.backend", "choice", "What answers searches.", choices=("builtin", "qmd")),
    Key("memory.citations", "choice", "Whether answers to an agent carry their source.", choices=("auto", "on", "off")),
    Key(
        "memory.sharedSessions",
        "choices",
        "Kinds of sessions, beside private ones, that may search and read the memory.",
        choices=("group", "channel", "subagent", "cron", "heartbeat", "unknown"),
    ),
    # what a session sees without asking
    Key("agents.defaults.workspace", "text", "The folder with the memory files."),
    Key(
        "agents.defaults.userTimezone",
        "text",
        "The time zone of daily logs, such as `Europe/Berlin`; empty for the local one.",
    ),
    Key(
        "agents.defaults.bootstrapMaxChars",
        "count",
        "How many characters of one workspace file enter a prompt.",
        1,
        1_000_000,
    ),
    Key(
        "agents.defaults.bootstrapTotalMaxChars",
        "count",
        "How many characters of all workspace files together.",
        1,
        10_000_000,
    ),
    Key("agents.defaults.startupContext.enabled", "flag", "Whether the logs of the last days are in the prompt."),
    Key("agents.defaults.startupContext.dailyMemoryDays", "count", "Of how many days; 2 is today and yesterday.", 1, 14),
    Key("agents.defaults.startupContext.maxFileChars", "count", "How many characters of one log.", 1, 100_000),
    Key("agents.defaults.startupContext.maxTotalChars", "count", "How many characters of all of them.", 1, 500_000),
    # what a conversation needs
    Key(
        "agents.defaults.model",
        "model",
        "The model that talks, flushes, names notes and curates: `openai:…`, `anthropic:…`, `gemini:…`, `ollama:…`, "
        "or the address of a server like OpenAI's. CLAWMARK_MODEL comes before it.",
        default="",
    ),
    Key(
        "agents.defaults.contextTokens",
        "count",
        "How many tokens the model holds; 0 for what is known of it by its name.",
        default=0,
    ),
    Key(_C + "reserveTokensFloor", "count", "How many tokens a compaction leaves free.", default=20_000),
    Key(_F + "enabled", "flag", "Whether what matters is written into today's log before a compaction.", default=True),
    Key(_F + "softThresholdTokens", "count", "How many tokens before the compaction that happens.", default=4000),
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
    Key("hooks.internal.enabled", "flag", "Whether the end of a session leaves a note.", default=True),
    Key(_N + "enabled", "flag", "The same, for this hook alone.", default=True),
    Key(_N + "messages", "count", "How many of the last messages are in the note.", 1, 1000, default=15),
    Key(_N + "llmSlug", "flag", "Whether the model names the note, if there is one.", default=True),
    Key(
        "session.reset.mode",
        "choice",
        "What ends a session by itself: `daily` is the hour and the silence, `idle` the silence alone.",
        choices=("daily", "idle"),
        default="daily",
    ),
    Key(
        "session.reset.atHour", "count", "The hour, where the user lives, at which the day's session ends.", 0, 23, default=4
    ),
    Key("session.reset.idleMinutes", "count", "The minutes of silence that end one; 0 is never.", default=0),
    # known, and not used yet
    Key(
        "agents.defaults.startupContext.applyOn",
        "choices",
        "When the logs are shown; they always are.",
        choices=("new", "reset"),
        default=("new", "reset"),
        later=True,
    ),
    Key(
        "agents.defaults.startupContext.maxFileBytes",
        "count",
        "The largest log that is shown; longer ones are cut instead.",
        1,
        default=16_384,
        later=True,
    ),
    Key(
        _S + "experimental.sessionMemory",
        "flag",
        "OpenClaw's second switch for transcripts; naming `sessions` in the sources is enough here.",
        default=False,
        later=True,
    ),
    Key(
        _S + "rememberAcrossConversations",
        "flag",
        "OpenClaw's consent to recall transcripts of other conversations; `sources` and session keys decide here.",
        default=True,
        later=True,
    ),
    Key(
        _S + "multimodal.enabled",
        "flag",
        "Whether images and sounds are indexed.",
        default=False,
        later=True,
    ),
    Key(
        _S + "multimodal.modalities",
        "choices",
        "Which of them.",
        choices=("image", "audio", "all"),
        default=("all",),
        later=True,
    ),
    Key(_S + "multimodal.maxFileBytes", "count", "The largest of them.", 1, 2**40, default=10_485_760, later=True),
    Key(
        _S + "outputDimensionality",
        "count",
        "The size of vectors, where one may choose.",
        0,
        65_536,
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
        "A hard limit a day for embedding; searches go on with words and static vectors. 0 is none.",
        default=0,
    ),
    Key(_S + "remote.proxy", "text", "A proxy to reach the service through; the environment's is not used.", default=""),
    Key(_S + "remote.queryInputType", "text", "The `input_type` of questions, where a service wants one.", default=""),
    Key(_S + "remote.documentInputType", "text", "The `input_type` of passages.", default=""),
    Key(_S + "remote.region", "text", "The region of Amazon Bedrock.", default=""),
    Key(_S + "remote.headers", "headers", "More headers for it.", default={}, secret=True),
    Key(_S + "remote.batch.enabled", "flag", "Whether its batch interface is used.", default=False),
    Key(_S + "remote.batch.wait", "flag", "Whether a sync waits for its batches.", default=True),
    Key(_S + "remote.batch.concurrency", "count", "How many batches at once.", 1, 64, default=2),
    Key(_S + "remote.batch.pollIntervalMs", "count", "How often a batch is asked after.", 0, default=2000),
    Key(_S + "remote.batch.timeoutMinutes", "count", "How long a batch may take.", 1, default=60),
    Key(_S + "local.modelCacheDir", "text", "Where downloaded models are kept.", default="", later=True),
    Key(_S + "qmd.extraCollections", "folders", "More collections for QMD.", default=(), later=True),
    Key(_Q + "command", "text", "The QMD program.", default="qmd", later=True),
    Key(
        _Q + "searchMode",
        "choice",
        "Which of its searches is used.",
        choices=("search", "vsearch", "query"),
        default="search",
        later=True,
    ),
    Key(_Q + "searchTool", "text", "The exact name of its tool.", default="", later=True),
    Key(_Q + "includeDefaultMemory", "flag", "Whether it indexes the workspace's memory.", default=True, later=True),
    Key(_Q + "paths", "folders", "What else it indexes.", default=(), later=True),
    Key(_Q + "sessions.enabled", "flag", "Whether transcripts are exported to it.", default=False, later=True),
    Key(_Q + "sessions.exportDir", "text", "Where they are exported.", default="", later=True),
    Key(_Q + "sessions.retentionDays", "count", "How long exports are kept.", 1, later=True),
    Key(_Q + "update.interval", "duration", "How often it updates.", default="5m", later=True),
    Key(_Q + "update.debounceMs", "count", "The least time between updates.", default=15_000, later=True),
    Key(_Q + "update.onBoot", "flag", "Whether it updates at the start.", default=True, later=True),
    Key(_Q + "update.waitForBootSync", "flag", "Whether the start waits for that.", default=False, later=True),
    Key(_Q + "update.embedInterval", "duration", "How often it embeds.", default="60m", later=True),
    Key(_Q + "update.commandTimeoutMs", "count", "The longest a command may take.", 1, default=30_000, later=True),
    Key(_Q + "update.updateTimeoutMs", "count", "The longest an update may take.", 1, default=120_000, later=True),
    Key(_Q + "update.embedTimeoutMs", "count", "The longest an embedding may take.", 1, default=120_000, later=True),
    Key(_Q + "limits.maxResults", "count", "How many hits it gives.", 1, 10_000, default=6, later=True),
    Key(_Q + "limits.maxSnippetChars", "count", "The longest snippet.", 1, default=700, later=True),
    Key(_Q + "limits.maxInjectedChars", "count", "The longest answer.", 1, default=4000, later=True),
    Key(_Q + "limits.timeoutMs", "count", "The longest a search may take.", 1, default=4000, later=True),
    Key(_Q + "mcporter.enabled", "flag", "Whether it is reached through mcporter.", default=False, later=True),
    Key(_Q + "mcporter.serverName", "text", "Its name there.", default="qmd", later=True),
    Key(_Q + "mcporter.startDaemon", "flag", "Whether its daemon is started.", default=True, later=True),
    Key(_Q + "scope", "object", "For which chats it answers.", default={}, later=True),
)

BY_NAME: dict[str, Key] = {key.name: key for key in KEYS}

GROUPS: frozenset[str] = frozenset(
    ".".join(parts[:end]) for parts in (key.name.split(".") for key in KEYS) for end in range(1, len(parts))
)
"""Every dotted name that holds other keys."""
