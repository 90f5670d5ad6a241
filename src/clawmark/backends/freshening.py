"""Brings the index up to date before a search: how often the disk is looked at, and what is done
about what changed.

Requests of searches come in; a `Freshness` goes out, whose number of due files is as of one look at
the disk, at most a second old, or None where that is not known. Unbounded work is left to the
background worker and to explicit syncs."""

from __future__ import annotations

import time
from _thread import allocate_lock  # a lock without `threading`, which costs a cold search 1 ms
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from clawmark.engine.search.pipeline import Freshness
from clawmark.engine.sync.plan import changed_since
from clawmark.engine.sync.scan import FEW_CHUNKS, SyncParts, look
from clawmark.model.errors import IndexBusy, IndexDamaged, IndexFromTheFuture, IndexStoreError
from clawmark.model.values import Degraded, Scan, ScanFailure, SyncPlan
from clawmark.store.sqlite.store import Mark, Reader
from clawmark.system.cancellation import check_cancelled, is_cancelled

if TYPE_CHECKING:
    from clawmark.backends.background import Background
    from clawmark.backends.builtin import Parts

# A search may spend this long on bringing the index up to date; the very first one may take longer
# to answer at all.
FRESHEN_SECONDS = 1.5
FIRST_FRESHEN_SECONDS = 10.0
# While the keeper of this process works, it is the one that indexes; a search only adds what cannot
# wait.
BESIDE_KEEPER_SECONDS = 0.25
# So many files are the keeper's alone, but for those that changed since this process last looked.
MANY_FILES = 200
# By so much the time of a file may lie behind the clock.
TICK_NS = 20_000_000
# What an answer says of the files never rests on a look at the disk that began longer ago than
# this.
LOOK_SECONDS = 1.0
# Searches in quick succession share a look, so that a cheap one takes at most a twentieth of the
# time, and an expensive one a quarter. A search after a write of this process always looks.
CHEAP_FACTOR, EXPENSIVE_FACTOR = 20, 4
# A look that takes longer than this is left to the background worker where there is one.
EXPENSIVE_LOOK_SECONDS = 0.25
# While this very process syncs in the background, or for another search, one waits so long for its
# own next turn.
OWN_LOCK_SECONDS = 0.25
# So long another process may take for a rebuild before this one takes it up.
REBUILD_PATIENCE = 60.0

OUTDATED = Degraded(
    "The text was cut with other chunking settings, or a rebuild is not finished.",
    "Run `clawmark index`; the old passages answer until then.",
)


class Look(NamedTuple):
    """One look at the disk: when it began and what it found, so that a claim is never older than it
    seems.
    """

    at: float
    seconds: float
    """How long it took."""
    changes: int
    """How many changes of this process it could see."""
    mark: Mark
    due: int
    """Files that differed from the index, less those that were indexed since."""
    unlisted: tuple[str, ...]
    """Folders that could not be listed: what is below them is not taken for deleted."""


class Freshener:
    """Looks at the disk for the searches of one memory, and indexes what fits into their time."""

    def __init__(self, parts: Parts, background: Callable[[], Background | None]) -> None:
        self._parts = parts
        self._background = background
        self.clock: Callable[[], float] = time.monotonic
        self.last: Look | None = None
        """The last look at the disk."""
        self._look_of_sync: Look | None = None
        self.left = 0
        """Files that the last sync left due."""
        self.outdated: Degraded | None = None
        self.stuck: Degraded | None = None
        """Why the last look could not bring the index up to date."""
        self.unlisted: Degraded | None = None
        """Which folders could not be listed."""
        self._asked_at = float("-inf")
        """When the background worker was last asked to look."""
        self._opened, self._looked_ns = time.monotonic(), 0
        """When this memory was opened, and when the last look began."""
        self._building, self._building_since = 0, 0.0
        self._freshening = allocate_lock()

    def look_at_disk(self) -> tuple[Look, Scan, SyncPlan]:
        """Compare disk and index now; what is found counts as of the moment the look began."""
        began, changes = self.clock(), self._parts.workspace.changes
        scan, plan = look(self._parts.sync)
        made = Look(
            at=began,
            seconds=self.clock() - began,
            changes=changes,
            mark=self._parts.store.mark(),
            due=plan.due,
            unlisted=tuple(failure.path for failure in scan.failures),
        )
        self.last = made
        return made, scan, plan

    def look_for_sync(self, _: SyncParts) -> tuple[Scan, SyncPlan]:
        """The look that a sync begins with, remembered."""
        self._look_of_sync, scan, plan = self.look_at_disk()
        return scan, plan

    def after_sync(self, due: int) -> None:
        """Note how many files a sync left due; the next search looks for itself, unless that is
        expensive.
        """
        self.left = due
        last = self.last
        if last is not None and last is self._look_of_sync and _is_expensive(last):
            self.last = last._replace(due=due)
        elif last is not None and not _is_expensive(last):
            self.expire()

    def expire(self) -> None:
        """Forget when the last look was."""
        if self.last is not None:
            self.last = self.last._replace(at=float("-inf"))

    def was_replaced(self) -> bool:
        """Whether the index was deleted or replaced since the last look."""
        return self._parts.store.was_replaced(
            self.last.mark if self.last is not None else (0, None)
        )

    def known_due(self) -> int | None:
        """How many files are due as of a look that is not too old; None when that is not known."""
        last = self.last
        return last.due if last is not None and self.clock() - last.at <= LOOK_SECONDS else None

    def freshen(self, *, now: bool = False) -> Freshness:
        """Look at the disk and index what changed, within the budget; never waits long for another
        search or process.

        With `now` the disk is looked at even if that was done a moment ago. One search at a time:
        another one must not rest on a look whose findings are still being indexed."""
        began = time.perf_counter()
        if not self._freshening.acquire(timeout=OWN_LOCK_SECONDS):
            due = self.known_due()
            if due is None and not (self.last is not None and _is_expensive(self.last)):
                due = look(self._parts.sync)[1].due
            return Freshness(
                due, f"{_due_in_words(due)}, another search is indexing", _since(began)
            )
        try:
            shared = None if now else self._shared_look()
            return shared or self._freshen_alone(began)
        finally:
            self._freshening.release()

    def _shared_look(self) -> Freshness | None:
        """What a look a moment ago found, or one that the background worker is asked for; None to
        look here and now.
        """
        last, background = self.last, self._background()
        if last is None or self._parts.workspace.changes != last.changes or self.was_replaced():
            return None
        now = self.clock()
        if now < last.at + min(
            CHEAP_FACTOR * last.seconds, max(LOOK_SECONDS, EXPENSIVE_FACTOR * last.seconds)
        ):
            due = self.known_due()
            return Freshness(
                due, "looked a moment ago" if due is not None else _due_in_words(None), 0.0
            )
        if background is None or not _is_expensive(last):
            return None
        is_under_way = background.is_busy and last.at < self._asked_at
        if not is_under_way and background.look():
            is_under_way, self._asked_at = True, now
        # While the worker embeds, which may take hours, searches look for themselves.
        return (
            Freshness(None, f"{_due_in_words(None)}, looking in the background", 0.0)
            if is_under_way
            else None
        )

    def _freshen_alone(self, began: float) -> Freshness:
        now_ns = self._parts.sync.now_ns()
        opened_ns = now_ns - int((time.monotonic() - self._opened) * 1e9)
        since_ns, self._looked_ns = (self._looked_ns or opened_ns) - TICK_NS, now_ns
        made, scan, plan = self.look_at_disk()
        self.unlisted, self.stuck = _blind(scan.failures), None
        wanted_for, makes_vectors = self._lag()
        if not (plan.due or plan.recheck or makes_vectors):
            self._hand_over(wanted_for)
            return Freshness(0, "no file has changed", _since(began))
        check_cancelled()
        freshness = self._catch_up(scan, plan, since_ns, began)
        if self.last is made:
            self.last = made._replace(due=freshness.due_files or 0)
        if self.clock() - made.at > LOOK_SECONDS > made.seconds:
            # Indexing took long enough for other files to change.
            return freshness._replace(due_files=self.look_at_disk()[0].due)
        return freshness

    def _catch_up(self, scan: Scan, plan: SyncPlan, since_ns: int, began: float) -> Freshness:
        """Do what there is time for, and hand the rest over."""
        from clawmark.engine.sync.run import SyncRequest, run_sync

        background = self._background()
        is_much = plan.due > MANY_FILES and background is not None and background.is_at_files
        if is_much and not changed_since(plan, since_ns).due:
            return Freshness(
                plan.due,
                f"{_due_in_words(plan.due)}, being indexed in the background",
                _since(began),
            )
        is_first = not (plan.unchanged or plan.check or plan.recheck)
        # A keeper that works makes the better vectors anyway; new words must not wait for it.
        is_busy = background is not None and background.is_busy
        seconds = FIRST_FRESHEN_SECONDS if is_first and not is_busy else FRESHEN_SECONDS
        is_helped = background is not None and background.is_at_work
        request = SyncRequest(
            seconds=BESIDE_KEEPER_SECONDS if is_helped else seconds,
            lock_timeout=OWN_LOCK_SECONDS if is_busy else 0.0,
            instant_only=is_busy,
            reason="search",
            since_ns=since_ns if is_much else 0,
            cancelled=is_cancelled,
            look=lambda _: (scan, plan),
        )
        try:
            report = run_sync(self._parts.sync, request)
        except IndexBusy:
            self._hand_over("search")
            return Freshness(
                plan.due, f"{_due_in_words(plan.due)}, another process is indexing", _since(began)
            )
        except (IndexDamaged, IndexFromTheFuture):
            raise
        except IndexStoreError as error:
            # The disk is full, or the folder cannot be written to: what is there still answers.
            self.stuck = Degraded(error.message, error.hint)
            return Freshness(
                plan.due,
                f"{_due_in_words(plan.due)}, but the index cannot be written",
                _since(began),
            )
        self.left = report.due_files
        self.unlisted = _blind(report.scan_failures)
        wanted_for, _ = self._lag()
        self._hand_over("search" if report.due_files else wanted_for)
        done = report.added + report.updated + report.deleted
        what = f"files brought up to date: {done}" if done else "no file has changed"
        due = f", due: {report.due_files}" if report.due_files else ""
        return Freshness(report.due_files, what + due, _since(began))

    def _hand_over(self, reason: str) -> None:
        background = self._background()
        if reason and background is not None:
            background.hand_over(reason)

    def _lag(self) -> tuple[str, bool]:
        """What the index lacks of what was chosen, found without loading anything that a search
        would not load.

        For what reason a whole sync is wanted, if one is; and whether a search makes vectors
        itself: those of a local embedder in use, or of a very small memory."""
        with self._parts.store.reading() as reader:
            wanted_for = "identity" if self._is_outdated(reader) else ""
            embedders = self._parts.embedders
            if not embedders:
                return wanted_for, False
            ready = {space.identity: space.id for space in reader.spaces() if space.ready}
            due = {
                one.identity: reader.count_due_vectors(ready[one.identity])
                for one in embedders
                if one.identity in ready
            }
            local = {one.identity for one in embedders if not one.traits.remote}
            makes_vectors = any(due.get(identity) for identity in local)
            best = due.get(embedders[-1].identity)
            if best is not None and local <= ready.keys():
                return wanted_for or ("search" if best else ""), makes_vectors
            chunks = reader.count_chunks()
            makes_vectors = makes_vectors or (
                not local <= ready.keys() and 0 < chunks <= FEW_CHUNKS
            )
            return wanted_for or ("identity" if chunks else ""), makes_vectors

    def _is_outdated(self, reader: Reader) -> bool:
        """Whether a rebuild is wanted: the text was chunked differently, or an earlier rebuild was
        abandoned.
        """
        is_cut_otherwise = not reader.is_cut_by(self._parts.sync.chunker.name)
        building = reader.building()
        self.outdated = (
            OUTDATED if (is_cut_otherwise or building) and self._background() is None else None
        )
        if building != self._building:
            self._building, self._building_since = building, time.monotonic()
        if building:
            return time.monotonic() - self._building_since > REBUILD_PATIENCE
        return is_cut_otherwise


def _is_expensive(last: Look) -> bool:
    return last.seconds > EXPENSIVE_LOOK_SECONDS


def _blind(failures: Sequence[ScanFailure]) -> Degraded | None:
    """Said with every answer while a folder cannot be looked into: new notes in it are not found."""
    if not failures:
        return None
    path, reason = failures[0]
    more = f", and {len(failures) - 1} more" if len(failures) > 1 else ""
    what = path or "The workspace"
    return Degraded(
        f"{what} could not be listed: {reason}{more}.",
        "`clawmark doctor` says more; what was indexed is kept.",
    )


def _due_in_words(due: int | None) -> str:
    return "not known whether files are due" if due is None else f"files due: {due}"


def _since(began: float) -> float:
    return (time.perf_counter() - began) * 1000
