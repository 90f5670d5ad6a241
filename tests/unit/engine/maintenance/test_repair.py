"""A broken index is replaced and filled again; searches are answered all the time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from clawmark import Memory
from clawmark.model.errors import IndexDamaged
from clawmark.store.sqlite.db import checking_vfs
from clawmark.testing import HashingEmbedder


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    notes = tmp_path / "ws" / "memory"
    notes.mkdir(parents=True)
    for number in range(6):
        (notes / f"{number}.md").write_text(
            f"# Note {number}\n\nThe zebra number {number} is striped.\n", encoding="utf-8"
        )
    with Memory.open(
        tmp_path / "ws", state_dir=tmp_path / "state", embedder=HashingEmbedder(dims=32)
    ) as opened:
        opened.sync()
        yield opened


def file_of(memory: Memory) -> Path:
    return Path(memory.places.index_path)


def spoil(memory: Memory) -> None:
    memory._builtin.parts.store.close()
    file_of(memory).write_bytes(b"this is not a database" * 1000)


def tamper(memory: Memory, statements: str) -> None:
    memory._builtin.parts.store.close()
    other = apsw.Connection(str(file_of(memory)), vfs=checking_vfs())
    other.execute(statements)
    other.close()


def aside(memory: Memory) -> list[str]:
    names = (path.name for path in file_of(memory).parent.iterdir())
    return sorted(
        name
        for name in names
        if "-" in name.rpartition(".")[2] and not name.endswith(("-wal", "-shm"))
    )


def test_a_search_on_a_damaged_index_answers_and_reports_the_repair(memory: Memory) -> None:
    spoil(memory)
    found = memory.search("zebra number 3")
    assert found.hits[0].path == "memory/3.md"
    assert found.degraded is not None
    assert "is damaged" in found.degraded.reason
    assert "set aside as" in found.degraded.reason
    assert memory.search("zebra number 3").degraded is None
    assert aside(memory) == [f"{file_of(memory).name}.corrupt-1"]


def test_a_search_without_freshening_repairs_the_index_too(memory: Memory) -> None:
    spoil(memory)
    assert len(memory.search("zebra", freshen=False).hits) == 6


def test_a_sync_repairs_the_index_and_reports_it_in_one_sentence(memory: Memory) -> None:
    spoil(memory)
    report = memory.sync()
    assert report.added == 6
    assert report.healed.count("set aside as") == 1
    assert memory.sync().healed == ""
    assert "set aside as" in memory.status().healed
    assert memory.verify().problems == ()


def test_an_explicit_sync_finds_damage_that_a_search_does_not_touch(memory: Memory) -> None:
    memory._builtin.parts.store.close()
    content = bytearray(file_of(memory).read_bytes())
    content[-100] ^= 1
    file_of(memory).write_bytes(content)
    assert "is damaged" in memory.sync().healed


def test_status_reports_damage_without_repairing_it(memory: Memory) -> None:
    spoil(memory)
    with pytest.raises(IndexDamaged) as raised:
        memory.status()
    assert "clawmark index" in raised.value.hint
    assert aside(memory) == []


def test_an_index_of_a_newer_clawmark_is_kept_under_its_own_name(memory: Memory) -> None:
    tamper(memory, "UPDATE meta SET value = '99' WHERE key = 'schema_version'")
    assert "newer Clawmark" in memory.sync().healed
    assert aside(memory) == [f"{file_of(memory).name}.newer-1"]


def test_an_older_index_is_built_again_with_the_vectors_it_had(memory: Memory) -> None:
    tamper(memory, "UPDATE meta SET value = '1' WHERE key = 'schema_version'")
    report = memory.sync()
    assert "older Clawmark" in report.healed
    assert (report.embedded, report.reused) == (0, 6)


def test_a_database_of_another_program_is_kept(memory: Memory) -> None:
    for _ in range(4):
        memory._builtin.parts.store.close()
        file_of(memory).unlink()
        other = apsw.Connection(str(file_of(memory)))
        other.execute("CREATE TABLE precious (text)")
        other.close()
        assert "not one of Clawmark's" in memory.sync().healed
    assert aside(memory) == [f"{file_of(memory).name}.foreign-{number}" for number in range(1, 5)]


def test_the_last_two_damaged_indexes_are_kept(memory: Memory) -> None:
    for _ in range(4):
        spoil(memory)
        memory.sync()
    assert aside(memory) == [f"{file_of(memory).name}.corrupt-{number}" for number in (3, 4)]


def test_an_index_that_another_process_has_repaired_is_not_replaced(memory: Memory) -> None:
    spoil(memory)
    with Memory.open(
        memory.places.workspace,
        state_dir=memory.places.state_dir,
        embedder=HashingEmbedder(dims=32),
    ) as other:
        with pytest.raises(IndexDamaged):
            memory.status()
        other.sync()
        assert memory._builtin.parts.store.set_aside("corrupt") == ""
        assert len(memory.search("zebra").hits) == 6
    assert len(aside(memory)) == 1


def test_a_deleted_index_does_not_pass_for_an_empty_memory(memory: Memory) -> None:
    assert len(memory.search("zebra").hits) == 6
    for suffix in ("", "-wal", "-shm"):
        file_of(memory).with_name(file_of(memory).name + suffix).unlink()
    found = memory.search("zebra", freshen=False)
    assert len(found.hits) == 6
    assert found.nothing is None


def test_a_lost_log_is_noticed_and_its_files_are_indexed_again(memory: Memory) -> None:
    Path(f"{file_of(memory)}-wal").unlink()
    (Path(memory.places.workspace) / "memory" / "new.md").write_text(
        "A quagga.\n", encoding="utf-8"
    )
    memory.sync()
    assert [hit.path for hit in memory.search("quagga").hits][:1] == ["memory/new.md"]
    assert memory.verify().problems == ()
