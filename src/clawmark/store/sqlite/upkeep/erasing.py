"""Remove every trace of deleted text from the disk.

Deleted rows are overwritten (`secure_delete`). What is left are rows that wait to be swept, words
in unmerged segments of the full-text index, vectors in the cache, the log, and damaged indexes that
were set aside."""

from __future__ import annotations

import os
import time

from clawmark.model.errors import IndexBusy
from clawmark.store.sqlite.file_stamps import stamp_of
from clawmark.store.sqlite.files import remove_set_aside
from clawmark.store.sqlite.store import LOG_PAUSE, SqliteStore

CHECKED_AT_ONCE = 2000


def erase_deleted(index: SqliteStore, *, timeout: float = 10.0) -> int:
    """Erase what was deleted, and return how many cached vectors were removed.

    All vectors that no chunk uses are removed, because the cache does not know which texts they
    belong to. Raise `IndexBusy` if a reader keeps the log in use."""
    gone = 0
    if stamp_of(index.path) is not None:
        index.tidy(timeout=timeout, force=True)
        with index.snapshot() as snapshot:
            rows = [row for (row,) in snapshot.db.rows("SELECT id FROM embedding_cache")]
        for start in range(0, len(rows), CHECKED_AT_ONCE):
            with index.transaction(timeout=timeout) as transaction:
                gone += transaction.forget_cached(rows[start : start + CHECKED_AT_ONCE])
        _empty_log(index, timeout)
    remove_set_aside(index.path)
    return gone


def _empty_log(index: SqliteStore, timeout: float) -> None:
    """Write the log into the main file and empty it, waiting for readers that use it."""
    deadline = time.monotonic() + timeout
    while True:
        with index.transaction(timeout=timeout):
            pass  # opens a writer, which empties the log when it is closed
        index.close()
        try:
            is_empty = os.stat(index.path + "-wal").st_size == 0
        except FileNotFoundError:
            is_empty = True
        if is_empty:
            return
        if time.monotonic() > deadline:
            raise IndexBusy(
                f"A reader keeps the log of the index {index.path} in use.",
                hint="End the process that reads it, and try again.",
            )
        time.sleep(LOG_PAUSE)
