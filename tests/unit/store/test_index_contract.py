"""The SQLite store passes the contract of `IndexStore`, with either vector engine."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path

import pytest

from clawmark.store.base import IndexStore
from clawmark.store.sqlite.store import SqliteStore
from clawmark.testing import index_store_contract


@pytest.mark.parametrize("engine", ["blocks", "sqlite-vec"])
@pytest.mark.parametrize("check", index_store_contract, ids=lambda check: check.__name__)
def test_contract(check: Callable[[IndexStore], None], engine: str, tmp_path: Path) -> None:
    if engine == "sqlite-vec" and find_spec("sqlite_vec") is None:
        pytest.skip("sqlite-vec is not installed")
    with closing(SqliteStore(str(tmp_path / "index.sqlite"), vector_engine=engine)) as store:
        check(store)
