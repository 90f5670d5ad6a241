"""The table follows the files: edits, deletions, other embedders, damage and failures."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from lancedb_scene import MAIN, TODAY, call, captured_file, plugin_in

from clawmark.model.values import Filters, Query, Vector
from clawmark.testing import HashingEmbedder, UnreliableEmbedder

pytest.importorskip("lancedb")


class CountingEmbedder(HashingEmbedder):
    """Records the texts of passages that it embeds."""

    def __init__(self, dims: int = 64) -> None:
        super().__init__(dims)
        self.texts: list[str] = []

    def embed_texts(self, texts: Sequence[str]) -> list[Vector]:
        self.texts += texts
        return super().embed_texts(texts)


def write(folder: Path, text: str, name: str = TODAY) -> Path:
    file = folder / "workspace" / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    return file


def texts(plugin: object, question: str) -> list[str]:
    backend = plugin.backend  # type: ignore[attr-defined]
    return [hit.snippet for hit in backend.search(Query(text=question, min_score=0.0)).hits]


def rows(plugin: object) -> list[str]:
    backend = plugin.backend  # type: ignore[attr-defined]
    return sorted(row.text for row in backend.table.rows().values())


def test_a_deleted_table_is_rebuilt_from_the_files(tmp_path: Path) -> None:
    plugin = plugin_in(tmp_path)
    call(plugin, "memory_store", text="The heron nests by the pier.")
    shutil.rmtree(tmp_path / "state" / "memory")
    assert plugin.backend.sync().embedded == 1
    assert rows(plugin) == ["The heron nests by the pier."]


def test_edits_and_deletions_by_hand_are_followed_and_only_changes_are_embedded(
    tmp_path: Path,
) -> None:
    embedder = CountingEmbedder()
    plugin = plugin_in(tmp_path, embedder=embedder)
    write(tmp_path, "- The heron nests.\n- The osprey hunts.\n- The gull cries.\n")
    assert plugin.backend.sync().added == 1
    write(tmp_path, "- The heron nests.\n- The osprey sleeps.\n- A swan came.\n")
    embedder.texts.clear()
    assert plugin.backend.sync().updated == 1
    assert sorted(embedder.texts) == ["A swan came.", "The osprey sleeps."]
    assert rows(plugin) == ["A swan came.", "The heron nests.", "The osprey sleeps."]
    files = [one for one in (tmp_path / "state" / "memory").rglob("*") if one.is_file()]
    assert not any(b"osprey hunts" in one.read_bytes() for one in files)
    captured_file(tmp_path).unlink()
    assert plugin.backend.sync().deleted == 1
    assert rows(plugin) == []


def test_a_line_that_moves_keeps_its_vector_and_is_cited_where_it_is(tmp_path: Path) -> None:
    embedder = CountingEmbedder()
    plugin = plugin_in(tmp_path, embedder=embedder)
    write(tmp_path, "- The heron nests.\n")
    plugin.backend.sync()
    embedder.texts.clear()
    write(tmp_path, "# Birds\n\n- The heron nests.\n")
    found = plugin.backend.search(Query(text="heron"))
    assert [hit.citation for hit in found.hits] == [f"{TODAY}#L3"]
    assert embedder.texts == []


def test_another_embedder_rebuilds_the_table(tmp_path: Path) -> None:
    plugin = plugin_in(tmp_path)
    call(plugin, "memory_store", text="The heron nests by the pier.")
    other = CountingEmbedder(32)
    again = plugin_in(tmp_path, embedder=other)
    assert again.backend.status().due_files == 1
    again.backend.sync()
    assert other.texts == ["The heron nests by the pier."]
    identity = again.backend.table.identity()
    assert identity is not None and identity.dims == 32
    assert again.backend.status().due_files == 0


def test_a_damaged_table_is_rebuilt(tmp_path: Path) -> None:
    plugin = plugin_in(tmp_path)
    call(plugin, "memory_store", text="The heron nests by the pier.")
    for file in (tmp_path / "state" / "memory").rglob("*"):
        if file.is_file():
            file.write_bytes(b"rubbish")
    again = plugin_in(tmp_path)
    assert texts(again, "heron") == ["The heron nests by the pier."]
    assert rows(again) == ["The heron nests by the pier."]


def test_a_failing_embedder_keeps_the_text_and_the_row_is_added_later(tmp_path: Path) -> None:
    embedder = UnreliableEmbedder()
    plugin = plugin_in(tmp_path, embedder=embedder)
    embedder.fault = "down"
    stored = call(plugin, "memory_store", text="The heron nests by the pier.")
    assert stored["action"] == "created" and "The embedder is down" in stored["pending"]
    assert "The heron nests by the pier." in captured_file(tmp_path).read_text("utf-8")
    recalled = call(plugin, "memory_recall", query="where does the heron nest?")
    assert recalled["count"] == 1
    assert recalled["degraded"]["reason"] == "The embedder is down."
    assert plugin.backend.status().due_vectors == 1
    embedder.fault = ""
    assert plugin.backend.sync().embedded == 1
    assert rows(plugin) == ["The heron nests by the pier."]
    again = call(plugin, "memory_recall", query="where does the heron nest?")
    assert again["count"] == 1 and "degraded" not in again


@pytest.mark.parametrize("fault", ["nan", "zero", "short"])
def test_vectors_that_cannot_be_right_are_not_stored(tmp_path: Path, fault: str) -> None:
    embedder = UnreliableEmbedder()
    plugin = plugin_in(tmp_path, embedder=embedder)
    embedder.fault = fault  # type: ignore[assignment]
    assert call(plugin, "memory_store", text="The heron nests.")["action"] == "created"
    assert rows(plugin) == []


def test_the_text_of_a_forgotten_entry_is_gone_from_the_files_of_the_table(tmp_path: Path) -> None:
    plugin = plugin_in(tmp_path)
    lines = "".join(f"- Bird number {number} is a kestrel.\n" for number in range(60))
    write(tmp_path, lines)
    plugin.backend.sync()
    stored = call(plugin, "memory_store", text="The quetzal lives in Monteverde.")
    files = [one for one in (tmp_path / "state" / "memory").rglob("*") if one.is_file()]
    assert any(b"quetzal" in one.read_bytes() for one in files)
    call(plugin, "memory_forget", memoryId=stored["id"])
    files = [one for one in (tmp_path / "state" / "memory").rglob("*") if one.is_file()]
    assert files and not any(b"quetzal" in one.read_bytes() for one in files)
    assert len(rows(plugin)) == 60


def test_rows_of_a_file_that_cannot_be_read_stay(tmp_path: Path) -> None:
    plugin = plugin_in(tmp_path)
    write(tmp_path, "- The heron nests.\n")
    plugin.backend.sync()
    write(tmp_path, "- A swan came.\n", "memory/captured/2026-11-17.md")
    captured_file(tmp_path).write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(2000))
    report = plugin.backend.sync()
    assert [failure.path for failure in report.failures] == [TODAY]
    assert rows(plugin) == ["A swan came.", "The heron nests."]


def test_filters_select_by_day_and_path(tmp_path: Path) -> None:
    plugin = plugin_in(tmp_path)
    write(tmp_path, "- The heron nests.\n", "memory/captured/2026-11-15.md")
    write(tmp_path, "- The heron sleeps.\n")
    asked = Query(text="heron", min_score=0.0)
    since = plugin.backend.search(asked._replace(filters=Filters(since="2026-11-16")))
    assert [hit.snippet for hit in since.hits] == ["The heron sleeps."]
    none = plugin.backend.search(asked._replace(filters=Filters(path="memory/other/**")))
    assert none.nothing is not None and none.nothing.code == "filtered-out"


def test_nothing_imports_lancedb_while_nothing_is_captured(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from lancedb_scene import MAIN, call, plugin_in\n"
        "plugin = plugin_in(Path(sys.argv[1]))\n"
        "assert plugin.hooks().before_agent_start(MAIN, 'where does the heron nest?') is None\n"
        "assert call(plugin, 'memory_recall', query='heron')['count'] == 0\n"
        "plugin.backend.status()\n"
        "print('lancedb' in sys.modules)\n"
    )
    servers = Path(__file__).parents[3] / "servers"
    ran = subprocess.run(
        [
            sys.executable,
            "-c",
            f"import sys; sys.path.insert(0, {str(servers)!r})\n{program}",
            str(tmp_path),
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout.strip() == "False"
    assert MAIN.access.writes
