"""The backends for a memory whose search is switched off, and for an empty memory slot."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from clawmark.model.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable

    from clawmark.backends.base import MemoryBackend
    from clawmark.model.reports import Status
    from clawmark.model.sync_report import Progress
    from clawmark.model.values import Query


class NoSearchBackend:
    """Refuses to search and never indexes unasked; everything else is done by another backend."""

    def __init__(self, backend: MemoryBackend) -> None:
        self._backend = backend
        self.read = backend.read
        self.sync = backend.sync
        self.probe = backend.probe
        self.close = backend.close

    def search(self, query: Query, *, freshen: bool = True) -> NoReturn:
        raise ConfigError(
            "Memory search is switched off: memorySearch.enabled is false.",
            key="memorySearch.enabled",
            hint="Set it to true, or remove it, to search; everything else works as it is.",
        )

    def refresh(self, reason: str, *, deltas: bool = False) -> bool:
        return False

    def status(self) -> Status:
        return self._backend.status()._replace(search_enabled=False)


class NoMemoryBackend(NoSearchBackend):
    """Refuses to search and to index, so that there is no index; files can be read."""

    def __init__(self, backend: MemoryBackend) -> None:
        self._backend = backend
        self.read = backend.read
        self.probe = backend.probe
        self.close = backend.close

    def search(self, query: Query, *, freshen: bool = True) -> NoReturn:
        raise empty_slot()

    def sync(
        self,
        *,
        force: bool = False,
        progress: Callable[[Progress], None] | None = None,
        instant_only: bool = False,
        seconds: float | None = None,
    ) -> NoReturn:
        raise empty_slot()

    def status(self) -> Status:
        status = self._backend.status()
        return status._replace(search_enabled=False, due_files=0, due_by_source={}, due_vectors=0)


def empty_slot() -> ConfigError:
    """Return the error for everything that needs an index."""
    return ConfigError(
        'The memory slot is empty: plugins.slots.memory is "none", so nothing is indexed.',
        key="plugins.slots.memory",
        hint="Set it to memory-core, or remove it, to search; files can be read and written.",
    )
