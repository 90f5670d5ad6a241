"""What sync, status, doctor and verify tell people: values like those in `types`, apart because no search needs them."""

from typing import Literal, NamedTuple

from clawmark.types import Degraded, Mode, ScanFailure, Skipped, Space


class Progress(NamedTuple):
    """A moment of a running sync."""

    stage: Literal["text", "vectors"]
    done: int
    total: int
    label: str


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
    """The stored summary of the last sync: when, what it did, how long; empty before the first."""
    skipped: tuple[Skipped, ...]
    scan_failures: tuple[ScanFailure, ...]
    denied_paths: int
    degraded: Degraded | None
    containment: str
    """How paths are kept inside the workspace here: `descriptor` or `best-effort`."""
    warnings: tuple[str, ...]
    spent: dict[str, int]
    """Calls and tokens sent to services, today and in all; empty when nothing remote is configured."""


class Finding(NamedTuple):
    """One thing `doctor` has to say."""

    level: Literal["ok", "note", "problem"]
    what: str
    next_step: str
    fixed: bool = False


class VerifyReport(NamedTuple):
    """The outcome of re-deriving every row from its file."""

    files: int
    chunks: int
    vectors: int
    problems: tuple[str, ...]
