"""The LanceDB backend keeps the promises of `MemoryBackend`."""

from __future__ import annotations

from pathlib import Path

import pytest

from clawmark.backends.lancedb.backend import LanceBackend
from clawmark.backends.lancedb.files import CapturedFiles
from clawmark.backends.lancedb.table import MemoryTable
from clawmark.model.values import Query
from clawmark.testing import HashingEmbedder, backend_contract
from clawmark.workspace import Workspace

pytest.importorskip("lancedb")


def backend_with(workspace: Path, embedder: HashingEmbedder | None) -> LanceBackend:
    state = workspace.parent / "state"
    files = CapturedFiles(Workspace(str(workspace), lock_dir=str(state / "locks")), folder="memory")
    table = MemoryTable(str(state / "memory" / "lancedb" / "main"))
    return LanceBackend(files, table, lambda: embedder, lock=str(state / "locks" / "lancedb.lock"))


def test_lancedb_recall_keeps_the_contract() -> None:
    backend_contract(lambda workspace: backend_with(workspace, HashingEmbedder()))


def test_a_memory_without_an_embedder_answers_by_words(tmp_path: Path) -> None:
    (tmp_path / "workspace" / "memory").mkdir(parents=True)
    note = tmp_path / "workspace" / "memory" / "2026-02-24.md"
    note.write_text("- The heron nests by the old pier.\n", encoding="utf-8")
    backend = backend_with(tmp_path / "workspace", None)
    found = backend.search(Query(text="where is the nesting heron?"))
    assert [hit.citation for hit in found.hits] == ["memory/2026-02-24.md#L1"]
    assert found.mode == "fts-only"
    assert backend.status().due_files == 0
    assert not backend.table.exists()
