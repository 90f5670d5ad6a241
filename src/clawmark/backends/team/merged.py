"""The memory of a workspace together with the shared spaces of its team; a `MemoryBackend`.

A search asks both at the same time and returns the best hits of both. If the team does not answer,
the workspace answers alone and says so. A search that names a space asks that space only."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from clawmark.backends.base import MemoryBackend, Plans
from clawmark.backends.team.base import TeamSpaces
from clawmark.backends.team.files.copies import CopyFiles
from clawmark.backends.team.files.local_paths import is_space_path, local_path
from clawmark.backends.team.merging import merge, without_spaces
from clawmark.model.documents import Excerpt
from clawmark.model.errors import ClawmarkError, SpaceDenied, SpacesUnavailable
from clawmark.model.reports import Probe, Status
from clawmark.model.sync_report import Progress, SpaceSync, SyncReport
from clawmark.model.values import (
    OWN_MEMORY,
    Found,
    Query,
    Scan,
    SyncPlan,
    parse_citation,
)
from clawmark.system.backoff import Backoff
from clawmark.system.cancellation import Cancelled, current_cancellation
from clawmark.text.space_paths import is_name

WAIT_SECONDS = 6.0
"""How long a search waits for the spaces."""
PAUSE = Backoff(first=10.0, longest=300.0)
"""The pause after a failure, in which searches do not ask the spaces."""
MAX_LINES = 120


class TeamAccess(NamedTuple):
    """What a memory with a team works with."""

    names: tuple[str, ...]
    """The spaces that are searched."""
    spaces: Callable[[], TeamSpaces]
    """Opens the spaces at the first call; ConfigError or SpacesUnavailable if that fails."""
    copies: CopyFiles
    """The copies that were pulled, for when the spaces do not answer."""
    publish: Callable[[], tuple[SpaceSync, ...]]
    """Publishes the files of the workspace; never raises."""
    close: Callable[[], None]


class _Failed(NamedTuple):
    """Why the spaces are missing from an answer."""

    reason: str
    fix: str


class MergedBackend:
    """Asks the backend of the workspace and the shared spaces."""

    def __init__(
        self,
        inner: MemoryBackend,
        team: TeamAccess,
        *,
        searches: bool = True,
        publishes: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`searches` is False if searching is switched off. With `publishes`, `sync` publishes;
        without it, the built-in backend does so after each of its syncs."""
        self.inner = inner
        self._team = team
        self._searches = searches
        self._publishes = publishes
        self._clock = clock
        self._failures = 0
        self._retry_at = 0.0
        self._failed = _Failed("", "")

    def search(self, query: Query, *, freshen: bool = True) -> Found:
        """Return the best passages of the workspace and the spaces, or of one space."""
        filters = query.filters
        plain = query._replace(filters=filters._replace(space=""))
        if not self._searches or filters.space == OWN_MEMORY or filters.source:
            return self.inner.search(plain, freshen=freshen)
        if filters.space:
            return self._search_space(plain, filters.space)
        if not self._team.names or not query.text.strip():
            return self.inner.search(plain, freshen=freshen)
        asking = None if self._clock() < self._retry_at else _Asking(self._search_all, plain)
        own = self.inner.search(plain, freshen=freshen)
        shared = self._failed if asking is None else self._outcome(asking)
        if isinstance(shared, _Failed):
            return without_spaces(own, shared.reason, shared.fix)
        return merge(own, shared, query.max_results)

    def _search_space(self, query: Query, space: str) -> Found:
        if not is_name(space):
            raise SpaceDenied(
                f"{space[:64]!a} is not the name of a shared space.",
                space=space,
                hint="`clawmark pull --list` shows yours.",
            )
        return self._team.spaces().search(query, (space,))

    def _search_all(self, query: Query) -> Found:
        """Search every space that is used; the answer says which ones are denied."""
        names, denied = self._team.names, list[SpaceDenied]()
        while True:
            try:
                found = self._team.spaces().search(query, names)
                break
            except SpaceDenied as error:
                denied.append(error)
                names = tuple(name for name in names if name != error.space)
                if len(names) + len(denied) > len(self._team.names) or not names:
                    raise
        for one in denied:
            found = without_spaces(found, one.message, one.hint)
        return found

    def _outcome(self, asking: _Asking) -> Found | _Failed:
        """Return the answer of the spaces, or why there is none; then they are left alone for a
        while."""
        try:
            found = asking.wait(WAIT_SECONDS)
        except Cancelled:
            raise
        except ClawmarkError as error:
            failed = _Failed(f"The shared spaces are not searched: {error.message}", error.hint)
        except Exception as error:  # the boundary of a thread: own memory answers in any case
            failed = _Failed(f"The shared spaces failed with {type(error).__name__}.", "")
        else:
            self._failures, self._retry_at = 0, 0.0
            return found
        self._failures += 1
        self._retry_at = self._clock() + PAUSE.wait(self._failures)
        self._failed = failed
        return failed

    def read(
        self, path: str, start: int | None = None, lines: int | None = None, max_chars: int = 12_000
    ) -> Excerpt:
        """Return lines of a memory file, or of a document of a space; if the space does not answer,
        of the copy that was pulled."""
        cited = parse_citation(path)
        if not is_space_path(cited.path):
            return self.inner.read(path, start, lines, max_chars)
        if start is None:
            start, lines = cited.start, cited.lines if lines is None else lines
        place = local_path(cited.path)
        try:
            return self._team.spaces().read(place.cited, start, lines, max_chars)
        except SpacesUnavailable as error:
            copy = self._team.copies.read(place.cited, start, lines, MAX_LINES, max_chars)
            if copy.missing:
                raise
            return copy._replace(note=f"This is the copy that was pulled last. {error.message}")

    def sync(
        self,
        *,
        force: bool = False,
        progress: Callable[[Progress], None] | None = None,
        instant_only: bool = False,
        seconds: float | None = None,
    ) -> SyncReport:
        """Index what has changed, and publish what the rules say."""
        report = self.inner.sync(
            force=force, progress=progress, instant_only=instant_only, seconds=seconds
        )
        if not self._publishes or seconds is not None:
            return report
        return report._replace(spaces=self._team.publish())

    def refresh(self, reason: str, *, deltas: bool = False) -> bool:
        return self.inner.refresh(reason, deltas=deltas)

    def plan(self) -> tuple[SyncPlan, Scan] | None:
        """Return what a sync of the workspace would do, if its backend can say that."""
        return self.inner.plan() if isinstance(self.inner, Plans) else None

    def status(self) -> Status:
        return self.inner.status()

    def probe(self) -> tuple[Probe, ...]:
        """Probe the backend of the workspace, and list the spaces once."""
        return (*self.inner.probe(), self.probe_spaces())

    def probe_spaces(self) -> Probe:
        """List the spaces once; a failure is reported, not raised."""
        began = time.perf_counter()
        try:
            known = {one.name for one in self._team.spaces().spaces()}
        except ClawmarkError as error:
            return Probe(
                part="spaces",
                state="failed",
                name=", ".join(self._team.names),
                reason=error.message,
                next_step=error.hint,
            )
        missing = [name for name in self._team.names if name not in known]
        return Probe(
            part="spaces",
            state="failed" if missing else "ok",
            name=", ".join(self._team.names),
            reason=f"You may not see these spaces: {', '.join(missing)}." if missing else "",
            next_step="Correct team.spaces, or ask for access." if missing else "",
            milliseconds=(time.perf_counter() - began) * 1000,
        )

    def close(self) -> None:
        """Close the backend of the workspace and the connections to the spaces."""
        self.inner.close()
        self._team.close()


class _Asking:
    """A call in a thread of its own, whose result is fetched later."""

    def __init__(self, call: Callable[[Query], Found], query: Query) -> None:
        self._found: list[Found] = []
        self._raised: list[BaseException] = []
        self._done = threading.Event()
        cancellation, ask = current_cancellation(), partial(call, query)

        def run() -> None:
            try:
                self._found.append(ask() if cancellation is None else cancellation.run(ask))
            except BaseException as error:  # the boundary of a thread: `wait` raises it
                self._raised.append(error)
            finally:
                self._done.set()

        threading.Thread(target=run, name="clawmark-team", daemon=True).start()

    def wait(self, seconds: float) -> Found:
        """Return the result; SpacesUnavailable if there is none in time."""
        if not self._done.wait(seconds):
            raise SpacesUnavailable(
                f"They did not answer within {seconds:g} s.",
                hint="Check team.uri and the connection.",
            )
        if self._raised:
            raise self._raised[0]
        return self._found[0]
