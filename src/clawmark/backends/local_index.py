"""A second, local index that answers while the database of the first one cannot be used.

Both are built-in backends over the same files: one with its index in a database, the other with an
SQLite file on this machine."""

from __future__ import annotations

from clawmark.backends.answer_check import AnswerCheck
from clawmark.backends.base import MemoryBackend
from clawmark.backends.builtin import BuiltinBackend
from clawmark.backends.fallback import FallbackBackend
from clawmark.model.values import Found

NAME = "postgresql"


class _OwnAnswers(AnswerCheck):
    """Accepts hits as they are: the built-in backend has compared them with the files."""

    def found(self, answer: object, most: int) -> Found:
        assert isinstance(answer, Found)
        return answer


class _KeptOpen:
    """The backend of the database, which a failure does not close: other parts use it as well."""

    def __init__(self, backend: BuiltinBackend) -> None:
        self.name = NAME
        self.search = backend.search
        self.read = backend.read
        self.sync = backend.sync
        self.refresh = backend.refresh
        self.status = backend.status
        self.probe = backend.probe

    def close(self) -> None:
        """Do nothing: `LocalIndexFallback` closes the backend."""


class LocalIndexFallback(FallbackBackend):
    """Asks the backend of a database and, if that fails, the one of the local index."""

    def __init__(self, database: BuiltinBackend, local: BuiltinBackend) -> None:
        kept: MemoryBackend = _KeptOpen(database)
        super().__init__(
            NAME,
            lambda: kept,
            local,
            _OwnAnswers(NAME, database.parts.workspace),
        )
        self._database = database

    def close(self) -> None:
        super().close()
        self._database.close()
