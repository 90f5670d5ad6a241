"""Every backend we ship keeps the promises of `MemoryBackend`."""

from __future__ import annotations

from pathlib import Path

import pytest

from clawmark import Memory
from clawmark.backends.base import MemoryBackend
from clawmark.backends.builtin import BuiltinBackend
from clawmark.backends.none import NoSearchBackend
from clawmark.model.errors import ConfigError
from clawmark.model.values import Found, Query
from clawmark.testing import HashingEmbedder, backend_contract


def builtin(workspace: Path, *, background: bool = False) -> BuiltinBackend:
    memory = Memory.open(
        workspace,
        state_dir=workspace.parent / "state",
        embedder=HashingEmbedder(),
        background=background,
    )
    return memory._builtin


def without_search(workspace: Path) -> MemoryBackend:
    return NoSearchBackend(builtin(workspace))


def test_the_builtin_backend_keeps_the_contract() -> None:
    backend_contract(builtin)


def test_the_builtin_backend_with_a_background_worker_keeps_the_contract() -> None:
    backend_contract(lambda workspace: builtin(workspace, background=True))


def test_a_backend_with_search_switched_off_keeps_the_contract() -> None:
    backend_contract(without_search, searches=False)


def test_a_memory_with_search_switched_off_uses_that_backend(tmp_path: Path) -> None:
    off = {"memorySearch.enabled": False}
    with Memory.open(tmp_path, state_dir=tmp_path / "state", overrides=off) as memory:
        assert isinstance(memory._backend, NoSearchBackend)


def test_the_contract_rejects_a_backend_that_refuses_to_search() -> None:
    with pytest.raises(ConfigError, match="switched off"):
        backend_contract(without_search)


def test_the_contract_rejects_a_backend_that_cites_deleted_files() -> None:
    class Forgetful(BuiltinBackend):
        """Repeats its first answer."""

        first: Found | None = None

        def search(self, query: Query, *, freshen: bool = True) -> Found:
            self.first = self.first or super().search(query, freshen=freshen)
            return self.first

    with pytest.raises(AssertionError, match="broken promise"):
        backend_contract(lambda workspace: Forgetful(builtin(workspace).parts, freshen=True))
