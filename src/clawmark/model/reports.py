"""The reports of sync, status, doctor, verify and eval; separate from `values` because a search
does not need them.
"""

from typing import Literal, NamedTuple

from clawmark.model.sync_report import FileFailure as FileFailure
from clawmark.model.sync_report import Progress as Progress
from clawmark.model.sync_report import SyncReport as SyncReport
from clawmark.model.values import Degraded, Mode, ScanFailure, Skipped, Space


class WatchEvent(NamedTuple):
    """An event of a memory that watches its files."""

    kind: Literal["changed", "began", "progress", "done", "failed", "warning"]
    reason: str = ""
    """What made a sync run: `watch`, `search`, `interval`, `session-start` …"""
    path: str = ""
    """What changed; empty when that is not known."""
    message: str = ""
    report: SyncReport | None = None
    error: Exception | None = None
    progress: Progress | None = None


class SourceReport(NamedTuple):
    """A folder that is searched in addition to the workspace's own memory."""

    name: str
    """The prefix of its citations; empty for a path of `memorySearch.extraPaths`."""
    path: str
    patterns: tuple[str, ...]
    files: int
    """Markdown files that are searched."""
    other_files: dict[str, int]
    """The number of other files by extension."""
    problem: str = ""
    """Why it cannot be searched now."""
    media: int = 0
    """Images and audio files that are searched."""


class FlushTimes(NamedTuple):
    """When a session was flushed; times are in UTC, empty if there is none."""

    last: str
    failures: int
    """Attempts that failed since then."""
    failed: str
    """The time of the last failure."""
    next_attempt: str
    """When a failed flush is tried again at the earliest; a compaction does not wait."""


class Fallback(NamedTuple):
    """Why the built-in backend answers instead of the configured one."""

    from_: str
    reason: str
    next_step: str = ""


class Status(NamedTuple):
    """The state of the memory, measured when it is requested."""

    workspace: str
    agent_id: str
    index_path: str
    index_bytes: int
    config_file: str
    files: int
    chunks: int
    due_files: int
    due_by_source: dict[str, int]
    """`due_files` for each source."""
    due_vectors: int
    generation: int
    rebuilding: bool
    mode: Mode
    embedder: str
    embedder_reason: str
    spaces: tuple[Space, ...]
    vector_engine: str
    sqlite_version: str
    sqlite_safe: bool
    """False when this SQLite has the WAL-reset bug that loses commits."""
    cache_entries: int
    cache_limit: int
    last_sync: dict[str, object]
    """The stored summary of the last sync (when, why, what, how long); empty before the first."""
    last_error: str
    """Why the last background sync of this process failed; empty when it did not."""
    skipped: tuple[Skipped, ...]
    scan_failures: tuple[ScanFailure, ...]
    denied_paths: int
    degraded: Degraded | None
    containment: str
    """How paths are kept inside the workspace here: `descriptor` or `best-effort`."""
    warnings: tuple[str, ...]
    spent: dict[str, int]
    """Calls and tokens sent to services, today and in total; empty without a remote provider."""
    metrics: dict[str, float]
    """Metrics by dotted name; those of the last sync may come from another process."""
    shared_disk: str = ""
    """The kind of network or shared file system the index is on; empty for a local disk."""
    healed: str = ""
    """When and why a damaged index was replaced; empty when none was."""
    search_enabled: bool = True
    """`memorySearch.enabled`."""
    sources: tuple[SourceReport, ...] = ()
    """The folders that were added, and the configured extra paths."""
    not_markdown: dict[str, int] = {}  # noqa: RUF012 - a field of a tuple, never changed
    """The number of files in the searched folders that are not Markdown, by extension."""
    unsearched_files: int = 0
    """Indexed files of a source that is switched off: kept for other configurations, but not
    searched.
    """
    media: dict[str, int] = {}  # noqa: RUF012 - never changed
    """The number of images (`image`) and audio files (`audio`) that are indexed, of those that
    were skipped (`skipped`), and of indexed ones without a vector (`withoutVector`); empty when
    `memorySearch.multimodal` is off.
    """
    running: dict[str, object] = {}  # noqa: RUF012 - never changed
    """The sync that is running in any process (`pid`, `reason`, `startedAt`, `stage`, `done`,
    `total`), or empty.
    """
    backend: str = "builtin"
    """The backend that answers now."""
    fallback: Fallback | None = None
    """Set while `builtin` answers instead of the configured backend."""
    memory_plugin: str = "memory-core"
    """The plugin in the memory slot."""
    plugin_problems: tuple[str, ...] = ()
    """Why a configured plugin is not used, and which hooks failed in the last days."""
    proposals: int = 0
    """How many proposals of agents wait for the user's decision."""
    events: dict[str, dict[str, object]] = {}  # noqa: RUF012 - never changed
    """What has happened in all processes: for `denied`, `readErrors`, `fallbacks`,
    `historyFailures` and `journalErrors` the `count` and the time of the `last` one in UTC; without
    those that never
    happened.
    """
    flush: FlushTimes | None = None
    """The latest flush of any session, and what failed since; None if there was none."""
    journal: str = ""
    """What is wrong with the journal of writes; empty if nothing is."""


class PluginReport(NamedTuple):
    """A memory plugin, as `clawmark plugins` lists it."""

    name: str
    owner: str
    """The distribution that offers it; empty if it is not installed."""
    state: str
    """`active`, `recall`, `consolidator`, `recall and consolidator` or `not used`."""
    reason: str
    """Why it is not active; empty for the configured one."""


class Transcript(NamedTuple):
    """One transcript of a conversation, as `clawmark sessions` lists it."""

    path: str
    kind: str
    """The program that wrote it: OpenClaw, Claude Code or Codex; empty when unknown."""
    size: int
    messages: int
    first: str
    """The time of the first message in UTC; empty when unknown."""
    last: str
    status: Literal["indexed", "due", "not a source"]
    flush: FlushTimes | None = None
    """None if the session was never flushed, or is not one of the agent's own."""


class Finding(NamedTuple):
    """One finding of `doctor`."""

    level: Literal["ok", "note", "problem"]
    what: str
    next_step: str
    fixed: bool = False


class Probe(NamedTuple):
    """The result of trying out one part of the memory."""

    part: Literal["embeddings", "vectors", "backend", "spaces"]
    state: Literal["ok", "failed", "off"]
    """`off` when the configuration disables it."""
    name: str
    """The embedder, the vector engine, the backend or the shared spaces."""
    reason: str = ""
    """Why it failed or is off."""
    next_step: str = ""
    model: str = ""
    dims: int = 0
    milliseconds: float = 0.0


class VerifyReport(NamedTuple):
    """The result of comparing every row of the index with its file."""

    files: int
    chunks: int
    vectors: int
    problems: tuple[str, ...]


class Judged(NamedTuple):
    """The result of one question of an evaluation."""

    question: str
    expected: tuple[str, ...]
    """The right answers: paths, citations or texts."""
    rank: int
    """The rank of the first right hit; 0 without one."""
    recall_1: float
    recall_3: float
    recall_6: float
    """The share of the expected answers among the first 1, 3 and 6 hits."""
    seen: float
    """The share whose text is shown in the snippets of the first 6 hits."""
    found: tuple[str, ...]
    """The citations of the first 6 hits."""


class Evaluation(NamedTuple):
    """How well the memory answers a set of questions; the figures are means, 0 to 1."""

    recall_1: float
    recall_3: float
    recall_6: float
    mrr: float
    """The mean of 1 / rank; 0 for a question without a right hit."""
    seen: float
    questions: tuple[Judged, ...]
    missing: tuple[str, ...] = ()
    """Expected paths that are not in the memory."""
    degraded: str = ""
    """Why the answers were degraded; empty when they were not."""
