"""When a search looks at the disk, and what it does about what it finds."""

from __future__ import annotations

from typing import Any

import pytest

from clawmark.backends.freshening import (
    BESIDE_WORKER_SECONDS,
    EXPENSIVE_LOOK_SECONDS,
    FIRST_ANSWER_SECONDS,
    FIRST_FRESHEN_SECONDS,
    FIRST_INDEXING_SECONDS,
    FRESHEN_SECONDS,
    LARGE_MEMORY_FILES,
    LOOK_SECONDS,
    MANY_FILES,
    NEVER,
    OWN_LOCK_SECONDS,
    WATCHED_SECONDS,
    IndexNow,
    Known,
    LeaveToWorker,
    Look,
    LookInBackground,
    LookNow,
    ShareLook,
    UpToDate,
    Worker,
    after_sync,
    plan_freshening,
    plan_look,
    unfinished_index,
    unlisted_folders,
)
from clawmark.model.values import Degraded, FileState, ScanFailure, SyncPlan

NOW = 1000.0
BUSY = Worker(is_busy=True)
INDEXING = Worker(is_busy=True, is_syncing=True, is_indexing_files=True)
EXPENSIVE = 2 * EXPENSIVE_LOOK_SECONDS


def known(
    age: float, seconds: float = 0.01, *, due: int = 0, asked_ago: float | None = None
) -> Known:
    look = Look(at=NOW - age, seconds=seconds, changes=7, mark=(0, None), due=due)
    return Known(look=look, asked_worker_at=NEVER if asked_ago is None else NOW - asked_ago)


def decide(
    facts: Known, *, changes: int = 7, is_replaced: bool = False, worker: Worker | None = None
) -> ShareLook | LookInBackground | LookNow:
    return plan_look(facts, NOW, changes=changes, is_replaced=is_replaced, worker=worker)


def files(count: int, mtime_ns: int = 1) -> tuple[FileState, ...]:
    return tuple(
        FileState(
            path=f"memory/{number}.md",
            source="memory",
            size=1,
            mtime_ns=mtime_ns,
            inode=number,
            device=1,
        )
        for number in range(count)
    )


def plan(add: int = 0, *, unchanged: int = 10, mtime_ns: int = 1, delete: int = 0) -> SyncPlan:
    return SyncPlan(
        add=files(add, mtime_ns),
        check=(),
        recheck=(),
        delete=tuple(f"memory/gone-{number}.md" for number in range(delete)),
        unchanged=unchanged,
        kept=(),
    )


def act(
    found: SyncPlan,
    *,
    makes_vectors: bool = False,
    since_ns: int = 1000,
    worker: Worker | None = None,
) -> UpToDate | LeaveToWorker | IndexNow:
    return plan_freshening(found, makes_vectors=makes_vectors, since_ns=since_ns, worker=worker)


# --- whether to look ------------------------------------------------------------------------


def test_the_first_search_looks() -> None:
    assert isinstance(decide(Known()), LookNow)


def test_a_search_right_after_a_look_shares_it() -> None:
    decision = decide(known(age=0.1, due=3))
    assert isinstance(decision, ShareLook) and decision.due == 3


def test_a_search_after_a_write_of_this_process_looks() -> None:
    assert isinstance(decide(known(age=0.0), changes=8), LookNow)


def test_a_search_after_the_index_was_replaced_looks() -> None:
    assert isinstance(decide(known(age=0.0), is_replaced=True), LookNow)


@pytest.mark.parametrize("seconds", [0.0, 0.01, 0.04, 0.1, 0.2, EXPENSIVE_LOOK_SECONDS, 0.6, 30.0])
@pytest.mark.parametrize("age", [0.0, 0.3, 0.99, 1.01, 5.0, 200.0])
@pytest.mark.parametrize("worker", [None, Worker(), BUSY])
def test_no_claim_rests_on_a_look_older_than_a_second(
    seconds: float, age: float, worker: Worker | None
) -> None:
    decision = decide(known(age=age, seconds=seconds, due=5), worker=worker)
    if isinstance(decision, ShareLook) and decision.due is not None:
        assert age <= LOOK_SECONDS


@pytest.mark.parametrize("seconds", [0.001, 0.04, 0.2])
def test_a_cheap_look_is_never_shared_for_longer_than_a_second(seconds: float) -> None:
    assert isinstance(decide(known(age=LOOK_SECONDS, seconds=seconds)), LookNow)


def test_without_a_worker_an_expensive_look_is_shared_without_a_claim_and_then_repeated() -> None:
    decision = decide(known(age=3 * EXPENSIVE, seconds=EXPENSIVE))
    assert isinstance(decision, ShareLook) and decision.due is None
    assert isinstance(decide(known(age=4 * EXPENSIVE, seconds=EXPENSIVE)), LookNow)


def test_an_idle_worker_is_asked_for_an_expensive_look() -> None:
    decision = decide(known(age=60, seconds=EXPENSIVE), worker=Worker())
    assert isinstance(decision, LookInBackground) and not decision.is_asked


def test_a_worker_is_asked_once() -> None:
    decision = decide(known(age=60, seconds=EXPENSIVE, asked_ago=1), worker=BUSY)
    assert isinstance(decision, LookInBackground) and decision.is_asked


def test_a_search_does_not_wait_for_a_worker_that_is_busy_with_something_else() -> None:
    assert isinstance(decide(known(age=60, seconds=EXPENSIVE), worker=BUSY), LookNow)
    asked_before_the_look = known(age=60, seconds=EXPENSIVE, asked_ago=90)
    assert isinstance(decide(asked_before_the_look, worker=BUSY), LookNow)


def test_an_expensive_look_is_shared_while_a_watcher_reports_nothing() -> None:
    def decide_quiet(**facts: Any) -> ShareLook | LookInBackground | LookNow:
        seen = known(age=facts.pop("age", 30), seconds=EXPENSIVE, due=facts.pop("due", 0))
        assert seen.look is not None
        look = seen.look._replace(**facts)
        return plan_look(
            seen._replace(look=look), NOW, changes=7, is_replaced=False, worker=None, is_quiet=True
        )

    assert decide_quiet() == ShareLook(0)
    assert isinstance(decide_quiet(age=WATCHED_SECONDS), LookNow)
    assert isinstance(decide_quiet(due=1), LookNow)
    assert isinstance(decide_quiet(unlisted=("memory",)), LookNow)
    assert isinstance(decide_quiet(by_sync=True), LookNow)
    assert isinstance(decide_quiet(changes=6), LookNow)


# --- what to do about it --------------------------------------------------------------------


def test_nothing_is_done_when_nothing_is_due() -> None:
    assert isinstance(act(plan()), UpToDate)


def test_due_files_are_indexed_within_the_budget_of_a_search() -> None:
    decision = act(plan(3))
    assert isinstance(decision, IndexNow)
    assert decision == IndexNow(
        seconds=FRESHEN_SECONDS, lock_timeout=0.0, instant_only=False, since_ns=0
    )


def test_deleted_files_and_due_vectors_are_reasons_to_index() -> None:
    assert isinstance(act(plan(delete=1)), IndexNow)
    assert isinstance(act(plan(), makes_vectors=True), IndexNow)


def test_the_first_search_of_a_memory_may_take_longer() -> None:
    decision = act(plan(3, unchanged=0))
    assert isinstance(decision, IndexNow) and decision.seconds == FIRST_FRESHEN_SECONDS
    decision = act(plan(3, unchanged=0), worker=BUSY)
    assert isinstance(decision, IndexNow) and decision.seconds == FRESHEN_SECONDS


def test_during_a_sync_a_search_indexes_briefly_and_leaves_the_best_vectors() -> None:
    decision = act(plan(3), worker=INDEXING)
    assert isinstance(decision, IndexNow)
    assert decision == IndexNow(
        seconds=BESIDE_WORKER_SECONDS,
        lock_timeout=OWN_LOCK_SECONDS,
        instant_only=True,
        since_ns=0,
    )


def test_many_files_are_left_to_the_worker_that_is_indexing_them() -> None:
    assert isinstance(act(plan(MANY_FILES + 1), worker=INDEXING), LeaveToWorker)


def test_of_many_files_only_those_that_changed_since_the_last_look_are_indexed() -> None:
    decision = act(plan(MANY_FILES + 1, mtime_ns=2000), since_ns=1000, worker=INDEXING)
    assert isinstance(decision, IndexNow) and decision.since_ns == 1000


@pytest.mark.parametrize("worker", [None, Worker(), BUSY])
def test_many_files_are_indexed_here_when_no_worker_is_indexing_files(
    worker: Worker | None,
) -> None:
    decision = act(plan(MANY_FILES + 1), worker=worker)
    assert isinstance(decision, IndexNow) and decision.since_ns == 0


# --- after a sync ---------------------------------------------------------------------------


def test_after_a_sync_the_next_search_looks_again() -> None:
    after = after_sync(known(age=0.0), due=2)
    assert after.left_due == 2
    assert isinstance(decide(after), LookNow)


def test_an_expensive_look_of_the_sync_itself_stays_valid_with_what_the_sync_left() -> None:
    before = known(age=0.5, seconds=EXPENSIVE, due=9)
    assert before.look is not None
    before = before._replace(look=before.look._replace(by_sync=True))
    after = after_sync(before, due=1)
    assert after.due_at(NOW) == 1
    assert after.look is not None and not after.look.by_sync


def test_an_expensive_look_of_a_search_keeps_its_own_count() -> None:
    assert after_sync(known(age=0.5, seconds=EXPENSIVE, due=9), due=1).due_at(NOW) == 9


def test_an_answer_names_the_first_folder_that_cannot_be_listed_and_counts_the_others() -> None:
    assert unlisted_folders(()) is None
    failures = [ScanFailure("memory/a", "denied"), ScanFailure("memory/b", "denied")]
    warning = unlisted_folders(failures)
    assert warning is not None
    assert warning.reason == "memory/a could not be listed: denied, and 1 more."


# --- the first answer of a large memory -------------------------------------------------------


def test_the_first_search_of_a_large_memory_has_about_a_second_with_its_look() -> None:
    large = plan(LARGE_MEMORY_FILES + 1, unchanged=0)
    for look_seconds in (0.0, 0.3, 5.0):
        decision = plan_freshening(
            large, makes_vectors=False, since_ns=0, worker=None, look_seconds=look_seconds
        )
        assert isinstance(decision, IndexNow)
        expected = max(FIRST_INDEXING_SECONDS, FIRST_ANSWER_SECONDS - look_seconds)
        assert decision.seconds == expected


def test_a_large_index_that_is_being_made_is_reported_until_few_files_are_left() -> None:
    def warning(due: int, indexed: int, before: bool) -> Degraded | None:
        return unfinished_index(due, indexed, has_worker=False, left_before=before)

    begun = warning(5000, 300, before=False)
    assert begun is not None
    assert begun.reason == (
        "The index is being made: it has 300 files, the newest first, and 5,000 are not indexed "
        "yet."
    )
    assert begun.fix == "`clawmark index` indexes the rest."
    assert warning(1000, 4300, before=True) is not None
    assert warning(1000, 4300, before=False) is None
    assert warning(MANY_FILES, 0, before=True) is None
    background = unfinished_index(5000, 300, has_worker=True, left_before=False)
    assert background is not None
    assert background.fix == "They are being indexed in the background."
