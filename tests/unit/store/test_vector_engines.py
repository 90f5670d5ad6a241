"""Both vector engines pass the contract, and one can replace the other."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from clawmark.model.errors import IndexStoreError
from clawmark.store.similarity import dot_products
from clawmark.store.sqlite.store import SqliteStore
from clawmark.store.sqlite.vectors import blocks
from clawmark.store.sqlite.vectors.vec0 import find_extension
from clawmark.testing.vectors import (
    fill,
    identity_of,
    random_vectors,
    ranking,
    vector_index_contract,
)

ENGINES = ("blocks", "sqlite-vec")


@pytest.fixture(params=ENGINES)
def index(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SqliteStore]:
    opened = SqliteStore(str(tmp_path / "index.sqlite"), vector_engine=request.param)
    yield opened
    opened.close()


@pytest.mark.parametrize(
    "check", vector_index_contract, ids=lambda check: check.__name__.strip("_")
)
def test_the_engine_keeps_the_contract(
    check: Callable[[SqliteStore], None], index: SqliteStore
) -> None:
    check(index)
    with index.snapshot() as reader:
        assert reader.integrity_problems() == []


@pytest.mark.parametrize(("first", "second"), [ENGINES, ENGINES[::-1]])
def test_another_engine_starts_from_the_cache(first: str, second: str, tmp_path: Path) -> None:
    path = str(tmp_path / "index.sqlite")
    vectors = random_vectors(40, 16, seed=1)
    old = SqliteStore(path, vector_engine=first)
    keys = fill(old, "a.md", vectors, 16)
    with old.transaction() as writer:
        writer.set_ready(1)
    old.close()
    new = SqliteStore(path, vector_engine=second)
    with new.snapshot() as reader:
        assert reader.database_facts()["vector_engine"] == first
        assert [key for key, _ in reader.nearest(1, vectors[5], 1)] == [keys[5]]
    with new.transaction() as writer:
        assert (writer.spaces(), writer.state().cache_entries) == ((), 40)
        space = writer.add_space(identity_of(16)).id
        due = writer.due_chunks(space, writer.due_keys(space))
        writer.put_vectors(space, [(key, text, vector) for key, text, _, vector in due])
    assert ranking(new, vectors[5], 1, space=space) == [keys[5]]
    swept = 1
    while swept:
        with new.transaction() as writer:
            swept = writer.sweep()
    with new.snapshot() as reader:
        assert reader.db.rows("SELECT DISTINCT space FROM chunks_vec") == [(space,)]
        tables = reader.db.rows("SELECT name FROM sqlite_schema WHERE name LIKE 'chunks_vec_s_'")
        assert tables == ([(f"chunks_vec_s{space}",)] if second == "sqlite-vec" else [])
    new.close()


@pytest.mark.parametrize("kept", [0, 16 * 300, 16 * 600])
def test_codes_beyond_the_limit_are_read_from_the_database(
    kept: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blocks, "MOST_RESIDENT", kept)
    store = SqliteStore(str(tmp_path / "index.sqlite"))
    vectors = random_vectors(900, 16, seed=3)
    by_key = dict(zip(fill(store, "a.md", vectors[:700], 16), vectors, strict=False))
    assert ranking(store, vectors[5], 50) == nearest_of(by_key, vectors[5], 50)
    by_key |= zip(fill(store, "b.md", vectors[700:], 16), vectors[700:], strict=True)
    assert ranking(store, vectors[5], 50) == nearest_of(by_key, vectors[5], 50)
    (resident,) = store._residents.values()
    assert len(bytes(resident.codes)) <= kept
    assert resident.kept < len(resident.heads)
    store.close()


def nearest_of(by_key: dict[int, bytes], query: bytes, limit: int) -> list[int]:
    cosines = dot_products(query, list(by_key.values()))
    order = sorted(zip(cosines, by_key, strict=True), key=lambda item: (-item[0], item[1]))
    return [key for _, key in order[:limit]]


def test_an_unknown_engine_is_named_in_the_error(tmp_path: Path) -> None:
    index = SqliteStore(str(tmp_path / "index.sqlite"), vector_engine="faiss")
    with pytest.raises(IndexStoreError, match="faiss") as raised:
        fill(index, "a.md", random_vectors(1, 8, seed=1), 8)
    assert "blocks" in raised.value.hint


def test_a_missing_extension_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("clawmark.store.sqlite.vectors.vec0.find_spec", lambda name: None)
    with pytest.raises(IndexStoreError, match="not installed") as raised:
        find_extension()
    assert raised.value.hint == "pip install 'clawmark[sqlite-vec]'"


@pytest.mark.parametrize("engine", ENGINES)
def test_a_search_does_not_import_numpy(engine: str, tmp_path: Path) -> None:
    index = SqliteStore(str(tmp_path / "index.sqlite"), vector_engine=engine)
    fill(index, "a.md", random_vectors(20, 16, seed=1), 16)
    index.close()
    code = (
        "import sys; from clawmark.store.sqlite.store import SqliteStore; from "
        "clawmark.testing.vectors import random_vectors, ranking; "
        f"store = SqliteStore({index.path!r}); "
        "assert len(ranking(store, random_vectors(1, 16, seed=2)[0], 5)) == 5; "
        "assert 'numpy' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_extensions_cannot_be_loaded_by_a_query(tmp_path: Path) -> None:
    index = SqliteStore(str(tmp_path / "index.sqlite"), vector_engine="sqlite-vec")
    fill(index, "a.md", random_vectors(2, 8, seed=1), 8)
    with index.transaction() as writer, pytest.raises(IndexStoreError):
        writer.db.rows("SELECT load_extension(?)", (find_extension(),))
