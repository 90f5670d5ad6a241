"""The protocol that every memory backend implements."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, Protocol, runtime_checkable

if TYPE_CHECKING:
    from clawmark.config.schema import Settings
    from clawmark.model.documents import Excerpt
    from clawmark.model.reports import Probe, Status
    from clawmark.model.sync_report import Progress, SyncReport
    from clawmark.model.values import Found, Query, Scan, SyncPlan
    from clawmark.workspace import Workspace


class BackendContext(NamedTuple):
    """What a backend is opened with. An entry point of the group `clawmark.backends` names a
    function that takes one and returns a `MemoryBackend`.
    """

    workspace: Workspace
    """Guarded reading and scanning of the memory's files; shared, so do not close it."""
    folder: str
    """A folder for the files of this backend and agent; it may not exist yet."""
    agent_id: str
    settings: Settings
    background: bool
    """Whether the process lives long enough for work in the background."""
    describe: Callable[[], Status]
    """Returns the status of the built-in backend, whose fields describe the workspace."""


class MemoryBackend(Protocol):
    """Answers questions about the notes of one workspace.

    Methods may be called from several threads at once. `clawmark.testing.backend_contract` checks
    an implementation."""

    def search(self, query: Query, *, freshen: bool = True) -> Found:
        """Return the passages that answer a query, the best one first; an empty answer says why.

        With `freshen`, changed files are indexed first as far as time allows, and the answer
        reports how many are left.
        """

    def read(
        self, path: str, start: int | None = None, lines: int | None = None, max_chars: int = 12_000
    ) -> Excerpt:
        """Return lines of a memory file, by its path or a citation; an absent file is empty."""

    def sync(
        self,
        *,
        force: bool = False,
        progress: Callable[[Progress], None] | None = None,
        instant_only: bool = False,
        seconds: float | None = None,
    ) -> SyncReport:
        """Index what has changed and wait for it.

        `force` indexes every file again, `instant_only` sends nothing to a service, and `seconds`
        limits the time; the report counts what is left.
        """

    def refresh(self, reason: str, *, deltas: bool = False) -> bool:
        """Index what has changed, in the background where there is a worker, and return whether
        that was done or started.

        `deltas` leaves out transcripts that have grown by little. `reason` is shown in the status.
        """

    def status(self) -> Status:
        """Measure the state of the workspace and the index without changing either."""

    def probe(self) -> tuple[Probe, ...]:
        """Use each part that a search depends on once; failures are reported, not raised."""

    def close(self) -> None:
        """Stop background work and release every resource; closing twice is allowed."""


@runtime_checkable
class Plans(Protocol):
    """A backend that can say what a sync would do."""

    def plan(self) -> tuple[SyncPlan, Scan] | None:
        """Return the plan of a sync, or None if it is not known."""
