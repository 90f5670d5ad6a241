"""OpenClaw's memory settings that have no effect here, each with the reason for its warning.

Names are those of `keys`; a name includes everything below it. The values are not checked, so a
file that OpenClaw accepts is never refused because of them. A value that asks for what Clawmark
does anyway causes no warning (`is_harmless`)."""

from collections.abc import Callable
from typing import NamedTuple


def _never(value: object) -> bool:
    return False


def _is(*values: object) -> Callable[[object], bool]:
    return lambda value: value in values


def _is_disabled(value: object) -> bool:
    return isinstance(value, dict) and value.get("enabled") is False


def _has_core(value: object) -> bool:
    """Whether a list of plugins is empty or has the built-in memory."""
    return isinstance(value, list) and (not value or "memory-core" in value)


def _does_not_name_memory(value: object) -> bool:
    return "memory" not in str(value)


class Unsupported(NamedTuple):
    """One key, or a group of keys, without effect."""

    name: str
    reason: str
    is_harmless: Callable[[object], bool] = _never
    planned: bool = False
    """Whether a later release will support it; only these keys are in the reference."""


_MCPORTER = (
    "QMD 2.8 has none of the MCP tools that OpenClaw calls through mcporter, so the command qmd "
    "is used"
)
_SLOT = "plugins.slots.memory and plugins.entries decide which memory plugin is used"
_PLUGINS = "this plugin of OpenClaw does not exist here"
_TOOL_POLICY = "use tools.allow, tools.deny and tools.bySession for the memory tools"
_D = "agents.defaults."
_S = "memorySearch."
_E = "plugins.entries."
_LANCE = _E + "memory-lancedb.config."
_ATTEMPTS = "time limits and retries of services are built in"

UNSUPPORTED: tuple[Unsupported, ...] = (
    Unsupported("memory.qmd.mcporter", _MCPORTER, _is_disabled),
    Unsupported("memory.qmd.searchTool", _MCPORTER),
    Unsupported(_S + "local.modelCacheDir", "no model is downloaded"),
    Unsupported(_S + "store.vector.extensionPath", "the installed sqlite-vec is used"),
    Unsupported(
        _S + "store.fts",
        "the keyword index has one tokenizer for all languages",
        _is({"tokenizer": "unicode61"}),
    ),
    Unsupported(
        _S + "rememberAcrossConversations",
        "memorySearch.sources and the session key decide which transcripts are searched",
        _is(True),
    ),
    Unsupported(
        _D + "startupContext.applyOn",
        "the recent logs are in the prompt of every session",
        _is(["new", "reset"], ["reset", "new"]),
    ),
    Unsupported(
        _D + "startupContext.maxFileBytes",
        "long logs are shortened to maxFileChars instead of being left out",
        _is(16_384),
    ),
    Unsupported(
        _D + "contextLimits.memoryGetMaxChars",
        "memory_get returns up to 12,000 characters",
        _is(12_000),
    ),
    Unsupported(
        _D + "contextLimits.memoryGetDefaultLines",
        "memory_get returns 120 lines unless asked otherwise",
        _is(120),
    ),
    Unsupported(
        _D + "contextLimits.postCompactionMaxChars",
        "clawmark chat repeats sections of AGENTS.md up to a fixed size after a compaction",
    ),
    Unsupported(
        _D + "compaction.postCompactionSections",
        "clawmark chat repeats the sections Session Startup and Red Lines after a compaction",
        _is(["Session Startup", "Red Lines"]),
    ),
    Unsupported(
        _D + "bootstrapPromptTruncationWarning",
        "a file that does not fit into the prompt always says so",
        _is("once", "always"),
    ),
    Unsupported(
        _D + "compaction.postIndexSync",
        "the index is updated in the background after a compaction",
        _is("async"),
    ),
    Unsupported("plugins.enabled", _SLOT, _is(True)),
    Unsupported("plugins.allow", _SLOT, _has_core),
    Unsupported("plugins.deny", _SLOT, _does_not_name_memory),
    Unsupported(
        _D + "heartbeat.activeHours", "the scheduler that runs clawmark heartbeat decides when"
    ),
    Unsupported(
        _D + "heartbeat.lightContext",
        "clawmark heartbeat always reads HEARTBEAT.md, MEMORY.md and the recent logs",
        _is(True),
    ),
    Unsupported(
        _D + "heartbeat.isolatedSession",
        "clawmark heartbeat never continues a session",
        _is(True),
    ),
    Unsupported(_E + "active-memory", _PLUGINS, _is_disabled),
    Unsupported(_E + "memory-wiki", _PLUGINS, _is_disabled),
    Unsupported(_LANCE + "dreaming", "the flush and the curation of MEMORY.md do this work"),
    Unsupported(_LANCE + "storageOptions", "the table is in a folder on this machine"),
    Unsupported(_LANCE + "embedding.timeoutMs", _ATTEMPTS),
    Unsupported(_LANCE + "embedding.maxRetries", _ATTEMPTS),
    Unsupported("tools.byProvider", _TOOL_POLICY, _does_not_name_memory),
    Unsupported("tools.toolsBySender", _TOOL_POLICY, _does_not_name_memory),
    Unsupported(
        "tools.sessions.visibility",
        "a private session may search all transcripts of its agent",
        _is("agent", "all"),
    ),
    Unsupported("session.idleMinutes", "session.reset.idleMinutes is used instead"),
    Unsupported(
        "session.resetTriggers",
        "only /new and /reset end a session",
        _is(["/new", "/reset"], ["/reset", "/new"]),
    ),
    Unsupported("session.scope", "each session key is a session of its own", _is("per-sender")),
    Unsupported("session.mainKey", "the key of the main session ends with main", _is("main")),
    Unsupported(
        "session.store",
        "OpenClaw's transcripts are read from its state folder; "
        "memorySearch.sessions.paths adds folders",
    ),
    Unsupported("session.resetByType", "session.reset holds for every kind of chat"),
    Unsupported("session.resetByChannel", "session.reset holds for every channel"),
    Unsupported(
        "memoryPolicy",
        "every transcript of the agent is searched when memorySearch.sources names sessions",
    ),
)

OPENCLAW_PROVIDERS = ("github-copilot",)
"""Embedding providers of OpenClaw that we do not have."""

UNSUPPORTED_BY_NAME: dict[str, Unsupported] = {entry.name: entry for entry in UNSUPPORTED}

UNSUPPORTED_GROUPS: frozenset[str] = frozenset(
    ".".join(parts[:end])
    for parts in (entry.name.split(".") for entry in UNSUPPORTED)
    for end in range(1, len(parts))
)
"""Every dotted name that contains one of them."""
