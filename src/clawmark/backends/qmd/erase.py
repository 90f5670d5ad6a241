"""Delete what QMD has stored of the memory: its database and the exported transcripts.

QMD keeps replaced documents and the answers of models in its database, so it is deleted as a whole;
the next sync makes it again from the files. Downloaded models stay."""

from __future__ import annotations

import os
from collections.abc import Iterable

from clawmark.backends.qmd.process import QmdFolders
from clawmark.backends.qmd.record import load_record


def erase(folder: str, export_folder: str) -> None:
    """Delete the database and the exported transcripts of one agent."""
    folders = QmdFolders(folder)
    record = load_record(
        os.path.join(folder, "record.json"), folders.index_file, folders.collections_file
    )
    names = [os.path.basename(name) for name in record.exported]
    _unlink(os.path.join(export_folder, one) for name in names for one in (name, f"{name}.tmp"))
    _unlink(folders.index_file + suffix for suffix in ("", "-wal", "-shm", "-journal"))


def _unlink(paths: Iterable[str]) -> None:
    for path in paths:
        try:
            os.unlink(path)
        except FileNotFoundError:
            continue
