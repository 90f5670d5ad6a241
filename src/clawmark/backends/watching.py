"""A memory that is kept up to date: a watcher reports changes and the background worker syncs."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from clawmark.backends.background import Background
from clawmark.engine.parts import active_embedder, count_due_vectors
from clawmark.engine.sync.scan import SyncRequest, look
from clawmark.model.reports import WatchEvent
from clawmark.model.sync_report import SyncReport
from clawmark.store.sqlite.files import shared_file_system
from clawmark.system.log_records import get_logger
from clawmark.system.private_files import make_private_folder
from clawmark.workspace.watching import Target, Watcher, memory_targets

if TYPE_CHECKING:
    from clawmark.backends.base import MemoryBackend
    from clawmark.backends.builtin import BuiltinBackend

PULL_SECONDS = 60.0
CLOSE_SECONDS = 5.0
"""How long closing waits for a running pull, which may be interrupted at any moment."""
DEBOUNCE = 1.5
"""How long changes must have stopped before another backend is synced, in seconds."""


class Kept(NamedTuple):
    """What an index that is kept up to date holds now."""

    files: int
    chunks: int
    due_files: int
    due_vectors: int
    embedder: str


class Watching:
    """Keeps the index up to date until it is closed; made by `Memory.watch`."""

    def __init__(
        self,
        backend: BuiltinBackend,
        *,
        files: bool,
        on_event: Callable[[WatchEvent], None] | None = None,
        other: MemoryBackend | None = None,
        pull: Callable[[], Sequence[str]] | None = None,
    ) -> None:
        """`other` is the backend that is kept up to date instead of the built-in one. `pull` is
        called every minute; it returns what the user should know."""
        self._backend = backend
        self._other = other
        self._background = backend.background() if other is None else _background_of(other)
        self._on_event = on_event
        self._watcher: Watcher | None = None
        if on_event is not None:
            self._background.listen(on_event)
        if files:
            self._watcher = Watcher(
                self._targets,
                backend.parts.workspace.scan,
                self._changed,
                warn=self._warned,
                poll_because=_shared(self._folders()),
            )
            self._watcher.start()
            if other is None:
                backend.freshener.count_changes = self._watcher.count_changes
        self._pulling = _Pulling(pull, self._warned) if pull is not None else None
        # Index what changed before the watcher started.
        self._background.ask(SyncRequest(reason="watch"))

    @property
    def polls_because(self) -> str:
        """Why files are polled; empty while the system reports their changes."""
        return self._watcher.polls_because if self._watcher is not None else ""

    @property
    def watched_folders(self) -> int:
        """The number of folders that the system watches."""
        return self._watcher.watched_folders if self._watcher is not None else 0

    def kept(self) -> Kept:
        """Return what the index holds and what the last sync left, without looking at the disk."""
        if self._other is not None:
            status = self._other.status()
            return Kept(
                files=status.files,
                chunks=status.chunks,
                due_files=status.due_files,
                due_vectors=status.due_vectors,
                embedder=f"{status.backend}, {status.embedder}",
            )
        parts = self._backend.parts
        with parts.store.snapshot() as reader:
            state = reader.state()
            due_vectors = count_due_vectors(reader, parts.embedders)
        active = active_embedder(parts, state.spaces)
        return Kept(
            files=state.files,
            chunks=state.chunks,
            due_files=self._backend.freshener.known.left_due,
            due_vectors=due_vectors,
            embedder=active.traits.label if active else "keywords only",
        )

    def wait_quiet(self, timeout: float | None = None) -> bool:
        """Wait until no sync runs and the index matches the files; False after `timeout`."""
        deadline = None if timeout is None else time.monotonic() + timeout
        worker = self._background.worker()

        def left() -> float | None:
            return None if deadline is None else max(0.0, deadline - time.monotonic())

        while worker.wait_for(lambda: worker.is_idle, left()):
            runs = worker.runs  # read by the lambda before the next round changes it
            if not self._is_due():
                return True
            if not worker.wait_for(lambda: worker.runs != runs, left()):  # noqa: B023
                return False
        return False

    def _is_due(self) -> bool:
        if self._other is not None:
            return self._other.status().due_files > 0
        plan = look(self._backend.parts.sync)[1]
        return bool(plan.due or plan.recheck)

    def close(self) -> None:
        """Stop watching; the memory stays open."""
        if self._watcher is not None:
            self._backend.freshener.count_changes = lambda: None
            self._watcher.close()
        if self._pulling is not None:
            self._pulling.close()
        if self._other is not None:
            self._background.close(lambda: None)
        if self._on_event is not None:
            self._background.leave(self._on_event)

    def __enter__(self) -> Watching:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _targets(self) -> list[Target]:
        """Return the folders of the memory, and the file that lists its added sources."""
        listed_in, name = os.path.split(self._backend.parts.setup.source_file)
        try:
            # Without its own folder, the state folder would be watched, which every sync changes.
            make_private_folder(listed_in)
        except OSError:
            return self._folders()
        listed = Target(listed_in, lambda _: False, deep=False, listing=name)
        return [*self._folders(), listed]

    def _folders(self) -> list[Target]:
        workspace = self._backend.parts.workspace
        folders = [source.path for source in workspace.sources()]
        targets = memory_targets(workspace.root, workspace.extra_paths, folders, workspace.media)
        if workspace.sessions is not None:
            targets += [
                Target(folder, _is_transcript, deep=True) for folder in workspace.sessions.folders()
            ]
        return targets

    def _changed(self, path: str) -> None:
        self._background.emit(WatchEvent("changed", path=path))
        self._background.ask(SyncRequest(reason="watch", deltas=True), settle=True)

    def _warned(self, message: str) -> None:
        get_logger("clawmark.watch").warning(message)
        self._background.emit(WatchEvent("warning", message=message))


class _Pulling:
    """Calls a function every minute in a thread of its own, until it is closed."""

    def __init__(self, pull: Callable[[], Sequence[str]], warn: Callable[[str], None]) -> None:
        self._pull = pull
        self._warn = warn
        self._warned: set[str] = set()
        self.first = threading.Event()
        """Set after the first pull."""
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="clawmark-pull", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._closed.is_set():
            said = set(self._pull())
            for message in sorted(said - self._warned):
                self._warn(message)
            self._warned = said  # each is reported once while it lasts
            self.first.set()
            self._closed.wait(PULL_SECONDS)

    def close(self) -> None:
        self._closed.set()
        self._thread.join(CLOSE_SECONDS)


def _background_of(backend: MemoryBackend) -> Background:
    """Return a worker that syncs a backend other than the built-in one."""

    def run(request: SyncRequest) -> SyncReport:
        return backend.sync(force=request.force, instant_only=request.instant_only)

    return Background(run, DEBOUNCE, 0.0)


def _is_transcript(name: str) -> bool:
    return ".jsonl" in name


def _shared(targets: list[Target]) -> str:
    """Return why the system does not report every change; empty when it does."""
    for target in targets:
        kind = shared_file_system(target.folder + "/.")
        if kind:
            return f"{target.folder} is on a {kind} disk, whose changes elsewhere are not reported"
    return ""
