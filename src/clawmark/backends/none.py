"""The backend for a memory whose search is switched off."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from clawmark.model.errors import ConfigError

if TYPE_CHECKING:
    from clawmark.backends.base import MemoryBackend
    from clawmark.model.reports import Status
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
