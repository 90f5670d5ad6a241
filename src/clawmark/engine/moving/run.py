"""Moves an index: copies until both stores are the same, row by row.

The source is only read, and stays. If it changes while it is copied, another pass copies the
changes. A move that was interrupted leaves its name in the target, so that it can be continued."""

from __future__ import annotations

import time
from typing import NamedTuple

from clawmark.engine.moving.comparing import Comparison, Difference, compare
from clawmark.engine.moving.copying import (
    FileChanges,
    Show,
    compare_rows,
    copy_cache,
    copy_facts,
    copy_files,
    copy_vectors,
)
from clawmark.model.errors import ConfigError
from clawmark.store.base import ManagedStore

PASSES = 4
"""How often the differences are copied if the source keeps changing."""
MOVE = "move"
"""The fact that a move is running, or was interrupted."""


class MovePlan(NamedTuple):
    """What a move would do."""

    source: str
    target: str
    files: int
    chunks: int
    vectors: int
    cached: int
    copy: int
    """Files that are not in the target yet, or of another version."""
    delete: int
    """Files of the target that are not in the source."""
    is_continued: bool
    """Whether an interrupted move is continued."""


class MoveReport(NamedTuple):
    """What a move did, and the comparison of both stores afterwards."""

    source: str
    target: str
    copied_files: int
    deleted_files: int
    copied_vectors: int
    copied_cached: int
    passes: int
    seconds: float
    compared: Comparison

    @property
    def differences(self) -> tuple[Difference, ...]:
        return self.compared.differences


def plan_move(source: ManagedStore, target: ManagedStore) -> MovePlan:
    """Return what a move would do; nothing is changed."""
    changes = compare_rows(source, target)
    with source.snapshot() as snapshot:
        state = snapshot.state()
    with target.snapshot() as snapshot:
        is_continued = snapshot.facts(MOVE).get("from") == source.path
    return MovePlan(
        source=source.path,
        target=target.path,
        files=state.files,
        chunks=state.chunks,
        vectors=sum(space.vectors for space in state.spaces),
        cached=state.cache_entries,
        copy=len(changes.copy) + len(changes.touch),
        delete=len(changes.delete),
        is_continued=is_continued,
    )


def check_plan(plan: MovePlan, *, replace: bool) -> None:
    """Raise ConfigError if there is nothing to move, or if the target has an index already."""
    if not plan.files and not plan.cached:
        raise ConfigError(
            f"{plan.source} has no index to move.",
            hint="Run `clawmark status` to see where the index is.",
        )
    is_same = not plan.copy and not plan.delete
    is_other = not is_same and (plan.delete or plan.copy < plan.files)
    if is_other and not plan.is_continued and not replace:
        raise ConfigError(
            f"{plan.target} has an index of this agent already.",
            hint="Add --replace to make it the same as the one that is moved.",
        )


def move(source: ManagedStore, target: ManagedStore, show: Show) -> MoveReport:
    """Copy an index into another store, and compare both until nothing differs."""
    began = time.monotonic()
    with target.transaction() as transaction:
        transaction.set_facts(MOVE, {"from": source.path})
    deleted = files = vectors = cached = passes = 0
    compared = Comparison()
    while passes < PASSES:
        passes += 1
        changes = compare_rows(source, target)
        changes = _with_different(changes, source, compared)
        copy_files(source, target, changes, show)
        files += len(changes.copy)
        deleted += len(changes.delete)
        vectors += copy_vectors(source, target, show)
        cached += copy_cache(source, target, show)
        copy_facts(source, target)
        compared = compare(source, target, show)
        if not compared.differences:
            break
    if not compared.differences:
        with target.transaction() as transaction:
            transaction.set_facts(MOVE, {})
        target.tidy()
    return MoveReport(
        source=source.path,
        target=target.path,
        copied_files=files,
        deleted_files=deleted,
        copied_vectors=vectors,
        copied_cached=cached,
        passes=passes,
        seconds=time.monotonic() - began,
        compared=compared,
    )


def _with_different(
    changes: FileChanges, source: ManagedStore, compared: Comparison
) -> FileChanges:
    """Add the files in which the last comparison found a difference."""
    different = {difference.place for difference in compared.differences}
    known = {row.path for row in changes.copy}
    with source.snapshot() as snapshot:
        again = snapshot.files([path for path in different if path not in known])
    return changes._replace(copy=(*changes.copy, *again.values()))
