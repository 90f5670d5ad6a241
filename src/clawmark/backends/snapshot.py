"""The snapshot of the index that one search reads from."""

from __future__ import annotations

from contextlib import AbstractContextManager
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from clawmark.store.base import IndexStore, Snapshot


class HeldSnapshot:
    """Opens a snapshot at first use and keeps it until it is released.

    It is released before anything that may take long, such as a request to a service, and before
    this process writes: an open snapshot keeps the log of the index from being truncated."""

    def __init__(self, store: IndexStore) -> None:
        self._store = store
        self._context: AbstractContextManager[Snapshot] | None = None
        self._reader: Snapshot | None = None

    @property
    def reader(self) -> Snapshot:
        if self._reader is None:
            context = self._store.snapshot()
            self._reader = context.__enter__()
            self._context = context
        return self._reader

    def release(self) -> None:
        """End the snapshot; the next use opens a new one."""
        self.__exit__(None, None, None)

    def __enter__(self) -> HeldSnapshot:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        context, self._context, self._reader = self._context, None, None
        if context is not None:
            context.__exit__(kind, error, trace)
