"""Decide how fresh an index has to be for a search, without doing anything.

`plan_look` decides whether the disk has to be scanned, and `plan_freshening` what is done about
what the scan found. `freshener` carries the decisions out."""

from collections.abc import Sequence
from typing import NamedTuple

from clawmark.engine.sync.plan import changed_since
from clawmark.model.values import Degraded, Mark, ScanFailure, SyncPlan

# A search may spend this long on indexing; the first one of a memory may take longer.
FRESHEN_SECONDS = 1.5
FIRST_FRESHEN_SECONDS = 10.0
# The first search of a memory with more files than this answers from the newest ones, within about
# a second: looking at the disk and indexing take this long, and indexing at least a part of it.
LARGE_MEMORY_FILES = 2000
FIRST_ANSWER_SECONDS, FIRST_INDEXING_SECONDS = 0.8, 0.2
# While the worker of this process runs a sync, a search only adds what cannot wait.
BESIDE_WORKER_SECONDS = 0.25
# Above this many due files, the worker that is indexing does all of it, except for files that
# changed since the last look.
MANY_FILES = 200
# The modification time of a file may be this far behind the clock.
TICK_NS = 20_000_000
# An answer never makes a claim about the files from a look that began longer ago than this.
LOOK_SECONDS = 1.0
# Searches in quick succession share a look, so that cheap looks take at most a twentieth of the
# time, and expensive ones a quarter. A search after a write of this process always looks.
CHEAP_FACTOR, EXPENSIVE_FACTOR = 20, 4
# A look that takes longer than this is left to the background worker if there is one.
EXPENSIVE_LOOK_SECONDS = 0.25
# While a watcher reports changes and has reported none, an expensive look is shared for this long:
# a change that the system does not report, such as one through a memory map, is found then.
WATCHED_SECONDS = 60.0
# How long a search waits for another search or sync of this process.
OWN_LOCK_SECONDS = 0.25
# How long a rebuild by another process may take before this process resumes it.
REBUILD_PATIENCE = 60.0

NEVER = float("-inf")


class Look(NamedTuple):
    """One comparison of disk and index, valid as of the moment it began."""

    at: float
    seconds: float
    changes: int
    """The workspace's count of own writes when the look began."""
    mark: Mark
    """The index file the look compared with."""
    due: int
    """Files that differed from the index, minus those indexed since."""
    unlisted: tuple[str, ...] = ()
    """Folders that could not be listed; files below them do not count as deleted."""
    by_sync: bool = False
    """Whether a sync began with this look and has not ended."""
    reported: int | None = None
    """How many changes a watcher had reported when the look began; None without one."""

    @property
    def is_expensive(self) -> bool:
        return self.seconds > EXPENSIVE_LOOK_SECONDS

    @property
    def is_complete(self) -> bool:
        """Whether every folder could be listed, and nothing is left to be indexed."""
        return not (self.due or self.unlisted or self.by_sync)


class Known(NamedTuple):
    """Everything that is known about how fresh the index is; replaced as a whole."""

    look: Look | None = None
    looked_ns: int = 0
    """When a search last looked, by the clock that file times are compared with."""
    left_due: int = 0
    """Files that the last sync left due."""
    asked_worker_at: float = NEVER
    """When the background worker was last asked to look."""
    building: int = 0
    """The rebuild that is in progress, 0 for none."""
    building_since: float = 0.0
    failed: Degraded | None = None
    """Why what is due could not be written to the index."""
    unlisted: Degraded | None = None
    """Which folders could not be listed."""
    outdated: Degraded | None = None
    """Set when the index needs a rebuild and no worker will start one."""
    unfinished: Degraded | None = None
    """Set while the files of a large memory are indexed for the first time."""

    def due_at(self, now: float) -> int | None:
        """Return the number of due files, or None when the last look is too old to say."""
        is_current = self.look is not None and now - self.look.at <= LOOK_SECONDS
        return self.look.due if self.look is not None and is_current else None


class Worker(NamedTuple):
    """What the background worker of this process is doing."""

    is_busy: bool = False
    """A sync is running or about to."""
    is_syncing: bool = False
    is_indexing_files: bool = False


class ShareLook(NamedTuple):
    """Use the last look; `due` is None when it is too old for a claim."""

    due: int | None


class LookInBackground(NamedTuple):
    """Answer now, and let the worker look."""

    is_asked: bool
    """Whether the worker has been asked already."""


class LookNow:
    """Scan the disk before answering."""


def plan_look(
    known: Known,
    now: float,
    *,
    changes: int,
    is_replaced: bool,
    worker: Worker | None,
    is_quiet: bool = False,
) -> ShareLook | LookInBackground | LookNow:
    """Decide whether a search needs a look of its own.

    `changes` is the workspace's current count of own writes, `is_replaced` whether the index file
    is another one than at the last look, `is_quiet` whether a watcher has reported no change since
    then.
    """
    last = known.look
    if last is None or changes != last.changes or is_replaced:
        return LookNow()
    if is_quiet and last.is_complete and now < last.at + WATCHED_SECONDS:
        return ShareLook(0)
    shared_for = min(
        CHEAP_FACTOR * last.seconds, max(LOOK_SECONDS, EXPENSIVE_FACTOR * last.seconds)
    )
    if now < last.at + shared_for:
        return ShareLook(known.due_at(now))
    if worker is None or not last.is_expensive:
        return LookNow()
    is_asked = worker.is_busy and last.at < known.asked_worker_at
    # A worker that is busy with something else may embed for hours.
    return LookNow() if worker.is_busy and not is_asked else LookInBackground(is_asked)


class UpToDate:
    """There is nothing to do."""


class LeaveToWorker:
    """The worker is indexing the files that are due."""


class IndexNow(NamedTuple):
    """Index before answering, within these limits."""

    seconds: float
    lock_timeout: float
    instant_only: bool
    since_ns: int
    """Index only files changed since then; 0 for all."""


def plan_freshening(
    plan: SyncPlan,
    *,
    makes_vectors: bool,
    since_ns: int,
    worker: Worker | None,
    look_seconds: float = 0.0,
) -> UpToDate | LeaveToWorker | IndexNow:
    """Decide what a search does about what its look found.

    `since_ns` is when the look before began; `makes_vectors` whether vectors are due that a search
    makes itself; `look_seconds` how long the look took.
    """
    if not (plan.due or plan.recheck or makes_vectors):
        return UpToDate()
    worker = worker or Worker()
    is_much = plan.due > MANY_FILES and worker.is_indexing_files
    if is_much and not changed_since(plan, since_ns).due:
        return LeaveToWorker()
    is_first = not (plan.unchanged or plan.check or plan.recheck)
    seconds = FRESHEN_SECONDS
    if is_first and plan.due > LARGE_MEMORY_FILES:
        seconds = max(FIRST_ANSWER_SECONDS - look_seconds, FIRST_INDEXING_SECONDS)
    elif is_first and not worker.is_busy:
        seconds = FIRST_FRESHEN_SECONDS
    return IndexNow(
        seconds=BESIDE_WORKER_SECONDS if worker.is_syncing else seconds,
        lock_timeout=OWN_LOCK_SECONDS if worker.is_busy else 0.0,
        instant_only=worker.is_busy,  # a busy worker makes the better vectors
        since_ns=since_ns if is_much else 0,
    )


def after_sync(known: Known, due: int) -> Known:
    """Record how many files a sync left due.

    The next search looks for itself, unless that is expensive and the sync has just looked.
    """
    last = known.look
    if last is not None and not last.is_expensive:
        last = last._replace(at=NEVER)
    elif last is not None and last.by_sync:
        last = last._replace(due=due, by_sync=False)
    return known._replace(left_due=due, look=last)


def unfinished_index(
    due: int, indexed: int, *, has_worker: bool, left_before: bool
) -> Degraded | None:
    """Return the warning for every answer while a large memory is indexed for the first time.

    It begins when more files are due than are indexed, and ends when few are (`left_before` is
    whether the answer before had it)."""
    if due <= MANY_FILES or not (left_before or due > indexed):
        return None
    return Degraded(
        f"The index is being made: it has {indexed:,} files, the newest first, and {due:,} are not "
        "indexed yet.",
        "They are being indexed in the background."
        if has_worker
        else "`clawmark index` indexes the rest.",
    )


def unlisted_folders(failures: Sequence[ScanFailure]) -> Degraded | None:
    """Return the warning for every answer while a folder cannot be listed: its new notes are not
    found.
    """
    if not failures:
        return None
    path, reason = failures[0]
    more = f", and {len(failures) - 1} more" if len(failures) > 1 else ""
    return Degraded(
        f"{path or 'The workspace'} could not be listed: {reason}{more}.",
        "`clawmark doctor` says more; what was indexed is kept.",
    )


def describe_due(due: int | None) -> str:
    return "not known whether files are due" if due is None else f"files due: {due}"
