"""What sync, status, doctor and verify tell people: values like those in `types`, apart because no
search needs them.
"""

from typing import Literal, NamedTuple

from clawmark.model.values import Degraded, Mode, ScanFailure, Skipped, Space


class Progress(NamedTuple):
    """A moment of a running sync."""

    stage: Literal["text", "vectors"]
    done: int
    total: int
    label: str
    """The file or the embedder at hand."""
    source: str = ""
    """Where the text comes from: `memory` or `sessions`; empty for vectors."""
    seconds_left: float | None = None
    """How long this stage will still take at the rate so far; None while nobody can tell."""


class FileFailure(NamedTuple):
    """One file that could not be indexed; the others were."""

    path: str
    reason: str


class SyncReport(NamedTuple):
    """What a sync did and what it left."""

    added: int
    updated: int
    touched: int
    deleted: int
    unchanged: int
    chunks: int
    embedded: int
    reused: int
    """Vectors taken from the cache instead of being computed again."""
    skipped: tuple[Skipped, ...]
    failures: tuple[FileFailure, ...]
    scan_failures: tuple[ScanFailure, ...]
    due_files: int
    due_vectors: int
    generation: int
    degraded: Degraded | None
    seconds: float
    healed: str = ""
    """What was wrong with the index and what became of it; empty when it was sound."""
    jobs: str = ""
    """Why batch jobs did not do all of it, or what is still on its way; empty when they did, or are
    switched off.
    """


class WatchEvent(NamedTuple):
    """Something happened to a memory that keeps itself fresh."""

    kind: Literal["changed", "began", "progress", "done", "failed", "warning"]
    reason: str = ""
    """What made a sync run: `watch`, `search`, `interval`, `session-start` …"""
    path: str = ""
    """What changed; empty for "anything may have"."""
    message: str = ""
    report: SyncReport | None = None
    error: Exception | None = None
    progress: Progress | None = None


class SourceReport(NamedTuple):
    """A folder that is searched in addition to the workspace's own memory."""

    name: str
    """What citations begin with; empty for a path of `memorySearch.extraPaths`."""
    path: str
    patterns: tuple[str, ...]
    files: int
    """Markdown files that are searched."""
    other_files: dict[str, int]
    """Files that are not Markdown, by their ending."""
    problem: str = ""
    """Why it cannot be searched now."""


class Status(NamedTuple):
    """The answers to the operational questions, measured when asked."""

    workspace: str
    agent_id: str
    index_path: str
    index_bytes: int
    config_file: str
    files: int
    chunks: int
    due_files: int
    due_by_source: dict[str, int]
    """The same for memory files and for transcripts."""
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
    """The stored summary of the last sync: when, why, what it did, how long; empty before the
    first.
    """
    last_error: str
    """Why the last sync in this process's background failed; empty when it did not."""
    skipped: tuple[Skipped, ...]
    scan_failures: tuple[ScanFailure, ...]
    denied_paths: int
    degraded: Degraded | None
    containment: str
    """How paths are kept inside the workspace here: `descriptor` or `best-effort`."""
    warnings: tuple[str, ...]
    spent: dict[str, int]
    """Calls and tokens sent to services, today and in all; empty when nothing remote is configured.
    """
    metrics: dict[str, float]
    """Every number worth a graph, by its dotted name; those of the last sync come from whichever
    process made it.
    """
    shared_disk: str = ""
    """The kind of network or shared file system the index is on; empty for a local disk."""
    healed: str = ""
    """When and why the index before this one was set aside; empty when none was."""
    search_enabled: bool = True
    """`memorySearch.enabled`."""
    sources: tuple[SourceReport, ...] = ()
    """The folders that were added, and the configured extra paths."""
    not_markdown: dict[str, int] = {}  # noqa: RUF012 - a field of a tuple, never changed
    """How many files in the searched folders are not Markdown, by their ending."""
    unsearched_files: int = 0
    """Indexed files of a source that is switched off: kept for other configurations, found by no
    search.
    """
    running: dict[str, object] = {}  # noqa: RUF012 - never changed
    """The sync that is running in any process: `pid`, `reason`, `startedAt`, `stage`, `done`,
    `total`; or empty.
    """


class Transcript(NamedTuple):
    """One transcript of a conversation, as `clawmark sessions` lists it."""

    path: str
    kind: str
    """Who wrote it: OpenClaw, Claude Code or Codex; empty when that does not show."""
    size: int
    messages: int
    first: str
    """When the first message was said, in UTC; empty when the transcript does not say."""
    last: str
    status: Literal["indexed", "due", "not a source"]


class Finding(NamedTuple):
    """One thing `doctor` has to say."""

    level: Literal["ok", "note", "problem"]
    what: str
    next_step: str
    fixed: bool = False


class Probe(NamedTuple):
    """What one part of the memory did when it was really used."""

    part: Literal["embeddings", "vectors"]
    state: Literal["ok", "failed", "off"]
    """`off` where the configuration asks for nothing that could be used."""
    name: str
    """The embedder or the vector engine."""
    reason: str = ""
    """Why it failed or is off."""
    next_step: str = ""
    model: str = ""
    dims: int = 0
    milliseconds: float = 0.0


class VerifyReport(NamedTuple):
    """The outcome of re-deriving every row from its file."""

    files: int
    chunks: int
    vectors: int
    problems: tuple[str, ...]


class Judged(NamedTuple):
    """How one question of an evaluation was answered."""

    question: str
    expected: tuple[str, ...]
    """What should have been found: paths, citations or texts."""
    rank: int
    """The rank of the first hit with something expected; 0 when there is none."""
    recall_1: float
    recall_3: float
    recall_6: float
    """The share of what was expected among the first 1, 3 and 6 hits."""
    seen: float
    """The share of it whose text is shown in the snippets of the first 6 hits."""
    found: tuple[str, ...]
    """The citations of the first 6 hits."""


class Evaluation(NamedTuple):
    """How well the memory answers a set of questions; the figures are means over the questions, 0
    to 1.
    """

    recall_1: float
    recall_3: float
    recall_6: float
    mrr: float
    """The mean of 1 / rank; 0 for a question without a right hit."""
    seen: float
    questions: tuple[Judged, ...]
    missing: tuple[str, ...] = ()
    """Expected paths that are not in the memory: those questions cannot be answered."""
    degraded: str = ""
    """Why the answers were less than they could be; empty when they were not."""
