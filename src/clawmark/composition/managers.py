"""The managers of open memories: memories of the same folder in one process share one.

A manager is the backend of a memory with its index, its background worker and its embedders. It is
shared by memories with the same places, settings, embedder and clock, and closed with the last of
them. The registry does not keep a manager alive: memories that are dropped without `close` leave
none."""

from __future__ import annotations

import os
from _thread import RLock  # a lock without `threading`, which costs a cold search 1 ms
from _weakref import ref  # `weakref` itself costs a cold search as much
from typing import TYPE_CHECKING

from clawmark.composition import build, choose_backend, join_team

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from clawmark.backends.base import MemoryBackend
    from clawmark.backends.builtin import BuiltinBackend
    from clawmark.composition.team import TeamParts
    from clawmark.config.paths import Places
    from clawmark.config.schema import Loaded
    from clawmark.embed.base import Embedder


class Manager:
    """A backend, and how many memories use it."""

    def __init__(
        self,
        identity: tuple[object, ...],
        builtin: BuiltinBackend,
        own: MemoryBackend,
        team: TeamParts | None,
    ) -> None:
        self.identity = identity
        self.builtin = builtin
        self.own = own
        """The backend that answers about the workspace."""
        self.team = team
        self.backend = own if team is None else team.backend
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
    clock: Callable[[], datetime] | None = None,
) -> Lease:
    """Return the use of the manager for these places and settings, which is made if necessary.

    The first search of a memory looks at the disk, also if the manager has just done so."""
    identity = (
        places._replace(workspace_origin=""),
        loaded,
        id(embedder),  # while a manager exists, it keeps its embedder
        provider,
        background,
        id(clock),  # kept like the embedder; the journal uses it
        os.getpid(),  # a forked child has none of its parent's threads
        dict(os.environ),  # providers take keys and addresses from it
        os.path.isdir(places.conversations_dir),  # only then it is a source of transcripts
    )
    with _lock:
        manager = _find(identity)
        if manager is None:
            builtin = build(places, loaded, embedder, provider, background=background, clock=clock)
            own = choose_backend(builtin, loaded.settings, places, background=background)
            team = join_team(builtin, own, loaded.settings, places)
            manager = Manager(identity, builtin, own, team)
            _managers.append(ref(manager))
        else:
            manager.builtin.freshener.expire()
        manager.users += 1
        return Lease(manager)


def _find(identity: tuple[object, ...]) -> Manager | None:
    found = (one() for one in _managers)
    return next((one for one in found if one is not None and one.identity == identity), None)


def _forked() -> None:
    """Replace the lock in a forked child: another thread of the parent may have held it."""
    global _lock
    _lock = RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
