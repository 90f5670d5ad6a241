"""Counts the work of Clawmark in this process: what SQLite does, which files are opened, which
texts are embedded.

Counts do not depend on how fast or how busy a machine is, so a test can compare them. Only
connections that are opened while a `WorkCounter` counts are counted."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import apsw

from clawmark import Memory

_COUNTERS: list[WorkCounter] = []


class Work(NamedTuple):
    """What was done."""

    sql_steps: int
    """Instructions of SQLite's virtual machine: a few for each row that a statement visits."""
    files_opened: int
    """Markdown files that were opened, for reading or writing."""
    folders_listed: int
    texts_embedded: int


class WorkCounter:
    """Counts between two calls of `take`."""

    def __init__(self) -> None:
        self._sql_steps = self._files_opened = self._folders_listed = self._texts_embedded = 0

    def take(self) -> Work:
        """Return what was done since the last call."""
        work = Work(
            sql_steps=self._sql_steps,
            files_opened=self._files_opened,
            folders_listed=self._folders_listed,
            texts_embedded=self._texts_embedded,
        )
        self._sql_steps = self._files_opened = self._folders_listed = self._texts_embedded = 0
        return work

    def follow(self, memory: Memory) -> None:
        """Count the texts that the embedders of a memory are given."""
        parts = memory._parts
        for embedder in {id(one): one for one in (*parts.embedders, parts.scout) if one}.values():
            for name in ("embed_texts", "embed_lines", "embed_query"):
                if hasattr(embedder, name):
                    setattr(embedder, name, self._counting(getattr(embedder, name)))

    def _counting(self, embed: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def counted(texts: str | Sequence[str]) -> Any:
            before = self._texts_embedded
            vectors = embed(texts)
            # An embedder may embed a list text by text.
            self._texts_embedded = before + (1 if isinstance(texts, str) else len(texts))
            return vectors

        return counted

    def note_statement(self, event: dict[str, Any]) -> None:
        """Count a statement of SQLite that has ended."""
        # FTS5 keeps statements of its own, whose numbers are those of all their runs.
        if "'main'." not in event["sql"]:
            self._sql_steps += event["stmt_status"]["SQLITE_STMTSTATUS_VM_STEP"]

    def note_event(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Count an event of the interpreter."""
        if event == "open" and str(arguments[0]).endswith(".md"):
            self._files_opened += 1
        elif event == "os.scandir":
            self._folders_listed += 1


@contextmanager
def counting() -> Iterator[WorkCounter]:
    """Count the work of memories that are opened inside the block."""
    counter = WorkCounter()

    def hook(connection: apsw.Connection) -> None:
        connection.trace_v2(apsw.SQLITE_TRACE_PROFILE, counter.note_statement)

    apsw.connection_hooks.append(hook)
    _COUNTERS.append(counter)
    try:
        yield counter
    finally:
        _COUNTERS.remove(counter)
        apsw.connection_hooks.remove(hook)


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    for counter in _COUNTERS:
        counter.note_event(event, arguments)


sys.addaudithook(_audit)
