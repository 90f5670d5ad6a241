"""The progress and the report of a sync; separate from the other reports because a sync does not
need those.
"""

from typing import Literal, NamedTuple

from clawmark.model.values import Degraded, ScanFailure, Skipped


class Progress(NamedTuple):
    """The progress of a running sync."""

    stage: Literal["text", "vectors"]
    done: int
    total: int
    label: str
    """The current file or embedder."""
    source: str = ""
    """Where the text comes from: `memory` or `sessions`; empty for vectors."""
    seconds_left: float | None = None
    """The estimated rest of this stage; None while it is unknown."""


class FileFailure(NamedTuple):
    """One file that could not be indexed; the others were."""

    path: str
    reason: str


class SpaceSync(NamedTuple):
    """What a sync did with one shared space."""

    space: str
    published: int = 0
    withdrawn: int = 0
    unchanged: int = 0
    withheld: tuple[FileFailure, ...] = ()
    """Files that were not published, and why."""
    problem: str = ""
    """Why the space could not be brought up to date; empty if it was."""
    next_step: str = ""


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
    """0 for a backend that has no generations."""
    degraded: Degraded | None
    seconds: float
    healed: str = ""
    """What was wrong with the index and how it was repaired; empty when it was intact."""
    jobs: str = ""
    """Why batch jobs did not finish everything, or what is still pending; empty when they did, or
    are switched off.
    """
    spaces: tuple[SpaceSync, ...] = ()
    """What was published into the shared spaces; empty without a team."""
