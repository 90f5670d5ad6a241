"""Publish files of the workspace into shared spaces, as the rules say, after each sync."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from clawmark.backends.team.base import Published, TeamSpaces
from clawmark.backends.team.files.publishing import (
    PublishPlan,
    plan_publish,
    published_files,
)
from clawmark.model.errors import ClawmarkError, SpaceDenied, WorkspaceError
from clawmark.model.sync_report import FileFailure, SpaceSync
from clawmark.model.values import FileState, Scan, is_cited_below
from clawmark.system.backoff import Backoff
from clawmark.text.secrets.redact import Redactor
from clawmark.workspace import Workspace

BATCH_BYTES = 4 << 20
"""How much text one request holds."""
BATCH_FILES = 100
MAX_BYTES = 2 << 20
"""Larger files are not published."""
PAUSE = Backoff(first=30.0, longest=900.0)
"""The pause after a failure, in which the background worker does not try again."""


class _Wanted(NamedTuple):
    """The files that should be in a space."""

    states: tuple[FileState, ...]
    hashes: dict[str, str]
    withheld: tuple[FileFailure, ...]
    """Files that are not sent, and why; what is already there of them stays."""


class Publisher:
    """Publishes the files of one workspace."""

    def __init__(
        self,
        team: TeamSpaces,
        workspace: Workspace,
        rules: Mapping[str, tuple[str, ...]],
        redactor: Callable[[], Redactor],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`rules` are the patterns of each space; `redactor` finds secrets."""
        self._clock = clock
        self._failed: dict[str, tuple[int, float, SpaceSync]] = {}
        """How often each space has failed in a row, until when it is left alone, and why."""
        self._team = team
        self._workspace = workspace
        self._rules = rules
        self._redactor = redactor
        self._known: dict[str, tuple[FileState, str, str]] = {}
        """The hash of each file that was read, or why it is withheld, while it does not change."""
        self._done: dict[str, tuple[FileState, ...]] = {}
        """The files of each space that was up to date after the last call."""

    def publish(self, scan: Scan, *, force: bool = False) -> tuple[SpaceSync, ...]:
        """Bring every space up to date; a space that fails is reported, and the others go on.

        A space whose files are as they were after the last call is not asked, and neither is one
        that has just failed, unless `force` is given."""
        return tuple(self._publish_into(space, scan, force=force) for space in self._rules)

    def plan(self, scan: Scan) -> tuple[tuple[PublishPlan, SpaceSync], ...]:
        """Return what `publish` would do in each space, with what is withheld and what failed."""
        return tuple(self._plan(space, self._wanted(space, scan), scan) for space in self._rules)

    def _publish_into(self, space: str, scan: Scan, *, force: bool) -> SpaceSync:
        failures, pause_until, failed = self._failed.get(space, (0, 0.0, SpaceSync(space)))
        if not force and self._clock() < pause_until:
            return failed
        wanted = self._wanted(space, scan)
        if not force and self._done.get(space) == wanted.states and not scan.failures:
            unchanged = len(wanted.hashes)
            return SpaceSync(space, unchanged=unchanged, withheld=wanted.withheld)
        report = self._carry_out(space, wanted, scan)
        if report.problem:
            pause_until = self._clock() + PAUSE.wait(failures + 1)
            self._failed[space] = (failures + 1, pause_until, report._replace(published=0))
        else:
            self._failed.pop(space, None)
            self._done[space] = wanted.states
        return report

    def _carry_out(self, space: str, wanted: _Wanted, scan: Scan) -> SpaceSync:
        plan, report = self._plan(space, wanted, scan)
        published = withdrawn = 0
        try:
            states = {state.path: state for state in wanted.states}
            for batch in _batches(self._documents(states[path] for path in plan.publish)):
                self._team.publish(space, batch)
                published += len(batch)
            if plan.withdraw:
                self._team.withdraw(space, plan.withdraw)
                withdrawn = len(plan.withdraw)
        except ClawmarkError as error:
            report = report._replace(problem=error.message, next_step=error.hint)
        return report._replace(published=published, withdrawn=withdrawn)

    def _plan(self, space: str, wanted: _Wanted, scan: Scan) -> tuple[PublishPlan, SpaceSync]:
        report = SpaceSync(space, withheld=wanted.withheld)
        try:
            published = self._team.published(space)
        except ClawmarkError as error:
            nothing = PublishPlan(space=space, publish=(), withdraw=(), unchanged=0)
            # A space that may only be read is not a problem if there is nothing to publish.
            is_idle = isinstance(error, SpaceDenied) and not wanted.states
            said = ("", "") if is_idle else (error.message, error.hint)
            return nothing, report._replace(problem=said[0], next_step=said[1])
        unlisted = [failure.path for failure in scan.failures]
        withheld = {one.path for one in wanted.withheld}
        plan = plan_publish(
            space,
            wanted.hashes,
            published,
            lambda path: path in withheld or _is_unlisted(path, unlisted),
        )
        return plan, report._replace(unchanged=plan.unchanged)

    def _wanted(self, space: str, scan: Scan) -> _Wanted:
        states = published_files(scan.files, self._rules[space])
        hashes, withheld = dict[str, str](), list[FileFailure]()
        for state in states:
            _, digest, reason = self._examined(state)
            if reason:
                withheld.append(FileFailure(state.path, reason))
            else:
                hashes[state.path] = digest
        return _Wanted(states, hashes, tuple(withheld))

    def _examined(self, state: FileState) -> tuple[FileState, str, str]:
        """Return the hash of a file, or why it is withheld."""
        known = self._known.get(state.path)
        if known is None or known[0] != state:
            found = self._read(state)
            digest, reason = ("", found) if isinstance(found, str) else (found.hash, "")
            known = self._known[state.path] = (state, digest, reason)
        return known

    def _documents(self, states: Iterable[FileState]) -> Iterator[Published]:
        for state in states:
            found = self._read(state)
            if not isinstance(found, str):  # it may have changed since the look
                yield found

    def _read(self, state: FileState) -> Published | str:
        """Return a file to publish, or why it is withheld."""
        if state.size > MAX_BYTES:
            return f"it has {state.size:,} bytes; the limit is {MAX_BYTES:,}"
        try:
            document = self._workspace.read_document(state)
        except WorkspaceError as error:
            return error.message
        kind = self._redactor().kind_in(document.text)
        if kind:
            return f"it contains what looks like a secret ({kind})"
        return Published(state.path, document.text, document.hash)


def _is_unlisted(path: str, folders: Iterable[str]) -> bool:
    """Whether a path lies below a folder that could not be listed; an empty one is the root."""
    return any(not one or path == one or is_cited_below(path, one) for one in folders)


def _batches(documents: Iterable[Published]) -> Iterator[list[Published]]:
    batch, size = list[Published](), 0
    for document in documents:
        length = len(document.text.encode("utf-8", "surrogatepass"))
        if batch and (size + length > BATCH_BYTES or len(batch) == BATCH_FILES):
            yield batch
            batch, size = [], 0
        batch.append(document)
        size += length
    if batch:
        yield batch
