"""Every store passes the contract of `IndexStore`: SQLite with either vector engine, PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path

import pytest

from clawmark.store.base import IndexStore
from clawmark.store.sqlite.store import SqliteStore
from clawmark.testing import index_store_contract


@pytest.mark.parametrize("engine", ["blocks", "sqlite-vec", "postgres"])
@pytest.mark.parametrize("check", index_store_contract, ids=lambda check: check.__name__)
def test_contract(
    check: Callable[[IndexStore], None],
    engine: str,
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> None:
    if engine == "postgres":
        check(request.getfixturevalue("postgres_index"))
        return
    if engine == "sqlite-vec" and find_spec("sqlite_vec") is None:
        pytest.skip("sqlite-vec is not installed")
    with closing(SqliteStore(str(tmp_path / "index.sqlite"), vector_engine=engine)) as store:
        check(store)
