"""The backend for a memory whose search is switched off."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NoReturn

from clawmark.model.errors import ConfigError

if TYPE_CHECKING:
    from clawmark.backends.base import MemoryBackend
    from clawmark.model.documents import Excerpt
    from clawmark.model.reports import Probe, Progress, Status, SyncReport
    from clawmark.model.values import Query


class NoSearchBackend:
    """Refuses to search and never indexes unasked; everything else is done by another backend."""

    def __init__(self, backend: MemoryBackend) -> None:
        self._backend = backend

    def search(self, query: Query, *, freshen: bool = True) -> NoReturn:
        raise ConfigError(
            "Memory search is switched off: memorySearch.enabled is false.",
            key="memorySearch.enabled",
            hint="Set it to true, or remove it, to search; everything else works as it is.",
        )

    def read(
        self,
        path: str,
        start: int | None = None,
        lines: int | None = None,
        max_chars: int = 12_000,
    ) -> Excerpt:
        return self._backend.read(path, start, lines, max_chars)

    def sync(
        self,
        *,
        force: bool = False,
        progress: Callable[[Progress], None] | None = None,
        instant_only: bool = False,
        seconds: float | None = None,
    ) -> SyncReport:
        return self._backend.sync(
            force=force, progress=progress, instant_only=instant_only, seconds=seconds
        )

    def refresh(self, reason: str, *, deltas: bool = False) -> bool:
        return False

    def status(self) -> Status:
        return self._backend.status()._replace(search_enabled=False)

    def probe(self) -> tuple[Probe, ...]:
        return self._backend.probe()

    def close(self) -> None:
        self._backend.close()
