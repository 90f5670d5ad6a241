"""A memory that keeps itself fresh: the watcher says that something changed, the keeper syncs, and
a handle ends both.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, NamedTuple

from clawmark.backends.builtin import due_vectors_of_best
from clawmark.engine.maintenance.status import active_embedder
from clawmark.engine.sync.run import SyncRequest
from clawmark.engine.sync.scan import look
from clawmark.model.reports import WatchEvent
from clawmark.store.sqlite.files import shared_file_system
from clawmark.system.private_files import make_private_folder
from clawmark.workspace.watching import Target, Watcher, memory_targets

if TYPE_CHECKING:
    from clawmark.backends.background import Background
    from clawmark.backends.builtin import BuiltinBackend


class Kept(NamedTuple):
    """What an index that is kept fresh holds now."""

    files: int
    chunks: int
    due_files: int
    due_vectors: int
    embedder: str


class Watching:
    """Made by `Memory.watch`; a context manager."""

    def __init__(
        self,
        backend: BuiltinBackend,
        *,
        files: bool,
        on_event: Callable[[WatchEvent], None] | None = None,
    ) -> None:
        self._backend = backend
        self._background: Background = backend.background()
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
        # What changed before anybody watched.
        self._background.ask(SyncRequest(reason="watch"))

    @property
    def polls_because(self) -> str:
        """Why the files are looked at again and again; empty while the system reports their
        changes.
        """
        return self._watcher.polls_because if self._watcher is not None else ""

    @property
    def watched_folders(self) -> int:
        """How many folders the system watches."""
        return self._watcher.watched_folders if self._watcher is not None else 0

    def kept(self) -> Kept:
        """What the index holds, and what the last sync left; nothing is looked at on the disk."""
        parts = self._backend.parts
        with parts.store.reading() as reader:
            state = reader.state()
            due_vectors = due_vectors_of_best(reader, parts.embedders)
        active = active_embedder(parts, state.spaces)
        return Kept(
            files=state.files,
            chunks=state.chunks,
            due_files=self._backend.freshener.left,
            due_vectors=due_vectors,
            embedder=active.traits.label if active else "keywords only",
        )

    def wait_quiet(self, timeout: float | None = None) -> bool:
        """Wait until nothing runs and the index says what the files say; False when that takes
        longer than `timeout`.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        keeper = self._background.keeper()

        def left() -> float | None:
            return None if deadline is None else max(0.0, deadline - time.monotonic())

        while keeper.wait_for(lambda: keeper.is_idle, left()):
            runs = keeper.runs
            plan = look(self._backend.parts.sync)[1]
            if not (plan.due or plan.recheck):
                return True
            if not keeper.wait_for(lambda: keeper.runs != runs, left()):  # noqa: B023 - asked before it changes
                return False
        return False

    def close(self) -> None:
        """Stop watching; the memory stays open."""
        if self._watcher is not None:
            self._watcher.close()
        if self._on_event is not None:
            self._background.leave(self._on_event)

    def __enter__(self) -> Watching:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _targets(self) -> list[Target]:
        """The folders of the memory, and the list of its sources, which decides what else is one."""
        listed_in, name = os.path.split(self._backend.parts.source_file)
        try:
            make_private_folder(
                listed_in
            )  # a watch on the state folder itself would wake up at every sync
        except OSError:
            return self._folders()
        return [
            *self._folders(),
            Target(listed_in, lambda _: False, deep=False, listing=name),
        ]

    def _folders(self) -> list[Target]:
        workspace = self._backend.parts.workspace
        folders = [source.path for source in workspace.sources()]
        targets = memory_targets(workspace.root, workspace.extra_paths, folders)
        if workspace.sessions is not None:
            targets += [
                Target(folder, _is_transcript, deep=True) for folder in workspace.sessions.folders()
            ]
        return targets

    def _changed(self, path: str) -> None:
        self._background.tell(WatchEvent("changed", path=path))
        self._background.ask(SyncRequest(reason="watch", deltas=True), settle=True)

    def _warned(self, message: str) -> None:
        logging.getLogger("clawmark.watch").warning(message)
        self._background.tell(WatchEvent("warning", message=message))


def _is_transcript(name: str) -> bool:
    return ".jsonl" in name


def _shared(targets: list[Target]) -> str:
    """Why the system cannot be trusted to report changes; empty when it can."""
    for target in targets:
        kind = shared_file_system(target.folder + "/.")
        if kind:
            return f"{target.folder} is on a {kind} disk, whose changes elsewhere are not reported"
    return ""
