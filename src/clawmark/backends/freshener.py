"""Bring the index up to date before a search, as `freshening` decides.

The number of due files in a `Freshness` comes from one look at the disk that began at most a second
ago, or is None. Unbounded work is left to the background worker and to explicit syncs."""

import time
from _thread import allocate_lock  # a lock without `threading`, which costs a cold search 1 ms
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from clawmark.backends import freshening
from clawmark.backends.freshening import IndexNow, Known, Look, LookInBackground, LookNow, ShareLook
from clawmark.backends.snapshot import HeldSnapshot
from clawmark.engine.parts import OUTDATED, IndexParts
from clawmark.engine.sync.scan import FEW_CHUNKS, SyncParts, SyncRequest, is_chunked_by, look
from clawmark.model.errors import IndexBusy, IndexDamaged, IndexFromTheFuture, IndexStoreError
from clawmark.model.values import Degraded, Freshness, Scan, SyncPlan
from clawmark.system.cancellation import check_cancelled, is_cancelled

if TYPE_CHECKING:
    from clawmark.backends.background import Background
    from clawmark.store.base import Snapshot


class Lag(NamedTuple):
    """What the index lacks compared with what was configured."""

    sync_reason: str
    """Why a whole sync is wanted; empty when none is."""
    makes_vectors: bool
    """Whether a search makes due vectors itself: those of a local embedder in use, or of a very
    small memory.
    """


class Freshener:
    """Looks at the disk for the searches of one memory, and indexes what fits into their time."""

    def __init__(
        self,
        parts: IndexParts,
        background: "Callable[[], Background | None]",
        note_change: Callable[[], None],
    ) -> None:
        """`note_change` is called after changed files were indexed."""
        self._parts = parts
        self._note_change = note_change
        self._background = background
        self.clock: Callable[[], float] = time.monotonic
        self.count_changes: Callable[[], int | None] = lambda: None
        """Returns how many changes a watcher has reported; None while none reports all of them."""
        self.known = Known()
        self._opened = time.monotonic()
        self._updating = allocate_lock()
        self._freshening = allocate_lock()

    def freshen(self, snapshot: HeldSnapshot, *, now: bool = False) -> Freshness:
        """Look at the disk and index what changed, within the budget of a search.

        With `now`, the disk is looked at even if that was done a moment ago. One search freshens at
        a time, because no other one may use a look whose findings are still being indexed."""
        began = time.perf_counter()
        if not self._freshening.acquire(timeout=freshening.OWN_LOCK_SECONDS):
            due = self._due_beside_another_search(snapshot)
            return _freshness(
                due, f"{freshening.describe_due(due)}, another search is indexing", began
            )
        try:
            match LookNow() if now else self._plan_look():
                case ShareLook(due):
                    done = (
                        "looked a moment ago" if due is not None else freshening.describe_due(None)
                    )
                    return Freshness(due, done, 0.0)
                case LookInBackground(is_asked) if is_asked or self._ask_worker_to_look():
                    done = f"{freshening.describe_due(None)}, looking in the background"
                    return Freshness(None, done, 0.0)
                case _:
                    return self._look_and_index(snapshot, began)
        finally:
            self._freshening.release()

    def look_at_disk(
        self, reader: "Snapshot | None" = None, *, by_sync: bool = False
    ) -> tuple[Look, Scan, SyncPlan]:
        """Compare disk and index now, and remember the outcome."""
        began, changes = self.clock(), self._parts.workspace.changes
        reported = self.count_changes()
        scan, plan = look(self._parts.sync, reader)
        made = Look(
            at=began,
            seconds=self.clock() - began,
            changes=changes,
            mark=self._parts.store.mark(),
            due=plan.due,
            unlisted=tuple(failure.path for failure in scan.failures),
            by_sync=by_sync,
            reported=reported,
        )
        self._update(look=made)
        return made, scan, plan

    def look_for_sync(self, _: SyncParts) -> tuple[Scan, SyncPlan]:
        """Look at the disk at the beginning of a sync."""
        return self.look_at_disk(by_sync=True)[1:]

    def after_sync(self, due: int) -> None:
        """Record how many files a sync left due."""
        with self._updating:
            self.known = freshening.after_sync(self.known, due)

    def expire(self) -> None:
        """Make the next search look at the disk."""
        with self._updating:
            last = self.known.look
            if last is not None:
                self.known = self.known._replace(look=last._replace(at=freshening.NEVER))

    def is_replaced(self) -> bool:
        """Return whether the index was deleted or replaced since the last look."""
        last = self.known.look
        return self._parts.store.was_replaced(last.mark if last is not None else (0, None))

    def known_due(self) -> int | None:
        """Return how many files are due, or None when no look is recent enough."""
        return self.known.due_at(self.clock())

    def _plan_look(self) -> ShareLook | LookInBackground | LookNow:
        return freshening.plan_look(
            self.known,
            self.clock(),
            changes=self._parts.workspace.changes,
            is_replaced=self.is_replaced(),
            worker=self._worker(),
            is_quiet=self._is_quiet(),
        )

    def _is_quiet(self) -> bool:
        """Return whether a watcher has reported no change since the last look, if that was
        expensive; a cheap one is rather repeated."""
        last = self.known.look
        if last is None or last.reported is None or not last.is_expensive:
            return False
        return self.count_changes() == last.reported

    def _ask_worker_to_look(self) -> bool:
        background = self._background()
        if background is None or not background.look():
            return False
        self._update(asked_worker_at=self.clock())
        return True

    def _due_beside_another_search(self, snapshot: HeldSnapshot) -> int | None:
        last, due = self.known.look, self.known_due()
        if due is None and not (last is not None and last.is_expensive):
            due = look(self._parts.sync, snapshot.reader)[1].due
        return due

    def _look_and_index(self, snapshot: HeldSnapshot, began: float) -> Freshness:
        now_ns = self._parts.sync.now_ns()
        # The clock is read only now: it fails after the year 2262, and writing must not.
        opened_ns = now_ns - int((time.monotonic() - self._opened) * 1e9)
        since_ns = (self.known.looked_ns or opened_ns) - freshening.TICK_NS
        snapshot.release()  # compare with the index as it is now
        made, scan, plan = self.look_at_disk(snapshot.reader)
        self._update(
            looked_ns=now_ns, unlisted=freshening.unlisted_folders(scan.failures), failed=None
        )
        lag = self._lag(snapshot.reader)
        match freshening.plan_freshening(
            plan,
            makes_vectors=lag.makes_vectors,
            since_ns=since_ns,
            worker=self._worker(),
            look_seconds=made.seconds,
        ):
            case freshening.UpToDate():
                self._update(unfinished=None)
                self._hand_over(lag.sync_reason)
                return _freshness(0, "no file has changed", began)
            case freshening.LeaveToWorker():
                done = f"{freshening.describe_due(plan.due)}, being indexed in the background"
                freshness = _freshness(plan.due, done, began)
            case IndexNow() as limits:
                check_cancelled()
                snapshot.release()
                freshness = self._index(limits, (scan, plan), snapshot, began)
        self._note_unfinished(len(scan.files), freshness.due_files or 0)
        with self._updating:
            if self.known.look is made:
                indexed = made._replace(due=freshness.due_files or 0)
                self.known = self.known._replace(look=indexed)
        if self.clock() - made.at > freshening.LOOK_SECONDS > made.seconds:
            # Indexing took long enough for other files to change.
            snapshot.release()
            return freshness._replace(due_files=self.look_at_disk(snapshot.reader)[0].due)
        return freshness

    def _note_unfinished(self, files: int, due: int) -> None:
        """Note whether most of the files wait for being indexed for the first time."""
        unfinished = freshening.unfinished_index(
            due,
            max(files - due, 0),
            has_worker=self._background() is not None,
            left_before=self.known.unfinished is not None,
        )
        self._update(unfinished=unfinished)

    def _index(
        self,
        limits: IndexNow,
        looked: tuple[Scan, SyncPlan],
        snapshot: HeldSnapshot,
        began: float,
    ) -> Freshness:
        """Index what there is time for, and hand the rest over to the worker."""
        # Imported late: a search that finds nothing due does not need it.
        from clawmark.engine.sync.run import run_sync

        due = looked[1].due
        request = SyncRequest(
            seconds=limits.seconds,
            lock_timeout=limits.lock_timeout,
            instant_only=limits.instant_only,
            reason="search",
            since_ns=limits.since_ns,
            cancelled=is_cancelled,
            look=lambda _: looked,
        )
        try:
            report = run_sync(self._parts.sync, request)
        except IndexBusy:
            self._hand_over("search")
            return _freshness(
                due, f"{freshening.describe_due(due)}, another process is indexing", began
            )
        except (IndexDamaged, IndexFromTheFuture):
            raise
        except IndexStoreError as error:
            # The disk is full or the folder is read-only; what is indexed still answers.
            self._update(failed=Degraded(error.message, error.hint))
            done = f"{freshening.describe_due(due)}, but the index cannot be written"
            return _freshness(due, done, began)
        left = report.due_files
        self._update(left_due=left, unlisted=freshening.unlisted_folders(report.scan_failures))
        lag = self._lag(snapshot.reader)
        self._hand_over("search" if left else lag.sync_reason)
        indexed = report.added + report.updated + report.deleted
        if indexed:
            self._note_change()
        done = f"files brought up to date: {indexed}" if indexed else "no file has changed"
        return _freshness(left, f"{done}, due: {left}" if left else done, began)

    def _hand_over(self, reason: str) -> None:
        background = self._background()
        if reason and background is not None:
            background.hand_over(reason)

    def _worker(self) -> freshening.Worker | None:
        background = self._background()
        return background.state if background is not None else None

    def _lag(self, reader: "Snapshot") -> Lag:
        """Compare the index with the chosen embedders and chunking, without loading a model."""
        sync_reason = "identity" if self._is_rebuild_wanted(reader) else ""
        embedders = self._parts.embedders
        if not embedders:
            return Lag(sync_reason, makes_vectors=False)
        ready = {space.identity: space.id for space in reader.spaces() if space.ready}
        due = {
            one.identity: reader.count_due(ready[one.identity])
            for one in embedders
            if one.identity in ready
        }
        local = {one.identity for one in embedders if not one.traits.remote}
        makes_vectors = any(due.get(identity) for identity in local)
        has_local_spaces = local <= ready.keys()
        best = due.get(embedders[-1].identity)
        if best is not None and has_local_spaces:
            return Lag(sync_reason or ("search" if best else ""), makes_vectors)
        chunks = reader.count_chunks()
        is_small = not has_local_spaces and 0 < chunks <= FEW_CHUNKS
        return Lag(sync_reason or ("identity" if chunks else ""), makes_vectors or is_small)

    def _is_rebuild_wanted(self, reader: "Snapshot") -> bool:
        """Return whether the text was chunked differently, or an earlier rebuild was abandoned."""
        is_outdated = not is_chunked_by(reader, self._parts.sync.chunker.name)
        building, now, known = reader.building, self.clock(), self.known
        since = known.building_since if building == known.building else now
        is_unattended = (is_outdated or building) and self._background() is None
        outdated = OUTDATED if is_unattended else None
        if (building, since, outdated) != (known.building, known.building_since, known.outdated):
            self._update(building=building, building_since=since, outdated=outdated)
        return now - since > freshening.REBUILD_PATIENCE if building else is_outdated

    def _update(self, **changes: Any) -> None:
        with self._updating:
            self.known = self.known._replace(**changes)


def _freshness(due: int | None, summary: str, began: float) -> Freshness:
    return Freshness(due, summary, (time.perf_counter() - began) * 1000)
