"""The managers of open memories: memories of the same folder in one process share one.

A manager is the backend of a memory with its index, its background worker and its embedders. It is
shared by memories with the same places, settings and embedder, and closed with the last of them.
The registry does not keep a manager alive: memories that are dropped without `close` leave none."""

from __future__ import annotations

import os
from _thread import RLock  # a lock without `threading`, which costs a cold search 1 ms
from _weakref import ref  # `weakref` itself costs a cold search as much
from typing import TYPE_CHECKING, NamedTuple

from clawmark.composition import build, choose_backend

if TYPE_CHECKING:
    from clawmark.backends.base import MemoryBackend
    from clawmark.backends.builtin import BuiltinBackend
    from clawmark.config.paths import Places
    from clawmark.config.schema import Loaded
    from clawmark.embed.base import Embedder


class Identity(NamedTuple):
    """What two memories must have in common to share a manager."""

    places: Places
    loaded: Loaded
    provider: str | None
    background: bool
    pid: int
    """A forked child has none of its parent's threads and makes a manager of its own."""
    environment: dict[str, str]
    """Providers take keys and addresses from it."""
    has_conversations: bool
    """Whether the folder of the transcripts that Clawmark writes exists: then it is a source."""


class Manager:
    """A backend, and how many memories use it."""

    def __init__(
        self, identity: Identity, embedder: Embedder | None, builtin: BuiltinBackend
    ) -> None:
        self.identity = identity
        self.embedder = embedder
        self.builtin = builtin
        self.backend: MemoryBackend = choose_backend(builtin, identity.loaded.settings)
        self.users = 0


class Lease:
    """The use of a manager by one memory."""

    def __init__(self, manager: Manager) -> None:
        self.manager = manager
        self._is_open = True

    def close(self) -> None:
        """Release the manager; the last release closes it. Closing twice is allowed."""
        with _lock:
            if not self._is_open:
                return
            self._is_open = False
            self.manager.users -= 1
            is_last = not self.manager.users
            if is_last:
                _managers[:] = [one for one in _managers if one() not in (None, self.manager)]
        if is_last:
            self.manager.backend.close()


_managers: list[ref[Manager]] = []
_lock = RLock()
"""Reentrant, because an embedder that is made for a memory may open another one."""


def lease_manager(
    places: Places,
    loaded: Loaded,
    embedder: Embedder | None,
    provider: str | None,
    *,
    background: bool,
) -> Lease:
    """Return the use of the manager for these places and settings, which is made if necessary.

    The first search of a memory looks at the disk, also if the manager has just done so."""
    identity = Identity(
        places=places._replace(workspace_origin=""),
        loaded=loaded,
        provider=provider,
        background=background,
        pid=os.getpid(),
        environment=dict(os.environ),
        has_conversations=os.path.isdir(places.conversations_dir),
    )
    with _lock:
        manager = _find(identity, embedder)
        if manager is None:
            builtin = build(places, loaded, embedder, provider, background=background)
            manager = Manager(identity, embedder, builtin)
            _managers.append(ref(manager))
        else:
            manager.builtin.freshener.expire()
        manager.users += 1
        return Lease(manager)


def _find(identity: Identity, embedder: Embedder | None) -> Manager | None:
    for each in _managers:
        manager = each()
        if manager and manager.embedder is embedder and manager.identity == identity:
            return manager
    return None


def _forked() -> None:
    """Replace the lock in a forked child: another thread of the parent may have held it."""
    global _lock
    _lock = RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
