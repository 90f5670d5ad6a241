"""A process that is killed between the file and the table leaves what the next sync repairs."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from lancedb_scene import call, captured_file, plugin_in

pytest.importorskip("lancedb")
SERVERS = Path(__file__).parents[1] / "servers"
CHILD = """
import os, signal, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from lancedb_scene import call, plugin_in

plugin = plugin_in(Path(sys.argv[2]))
tool, step, argument, value = sys.argv[3:]
owner = plugin.backend.files.workspace if step == "replace" else plugin.backend.table
whole = getattr(owner, step)
gone = value

def killed(*arguments, **named):
    if step == "tidy" and gone not in owner.rows() or step != "tidy" and arguments[0]:
        os.kill(os.getpid(), signal.SIGKILL)
    return whole(*arguments, **named)

setattr(owner, step, killed)
call(plugin, tool, **{argument: value})
print("not killed")
"""


def killed(folder: Path, tool: str, step: str, argument: str, value: str) -> None:
    """Run a tool in a process that is killed before a step of the table or of the workspace."""
    ran = subprocess.run(
        [sys.executable, "-c", CHILD, str(SERVERS), str(folder), tool, step, argument, value],
        capture_output=True,
        text=True,
    )
    assert ran.returncode == -signal.SIGKILL, ran.stderr + ran.stdout


def test_a_store_that_is_killed_before_its_row_is_healed_and_not_doubled(tmp_path: Path) -> None:
    killed(tmp_path, "memory_store", "put", "text", "The heron nests by the pier.")
    assert captured_file(tmp_path).read_text("utf-8").count("heron") == 1
    plugin = plugin_in(tmp_path)
    assert not plugin.backend.table.rows() and plugin.backend.status().due_files == 1
    assert plugin.backend.sync().embedded == 1
    assert [row.text for row in plugin.backend.table.rows().values()] == [
        "The heron nests by the pier."
    ]
    again = call(plugin, "memory_store", text="The heron nests by the pier.")
    assert again["action"] == "duplicate"
    assert captured_file(tmp_path).read_text("utf-8").count("heron") == 1


@pytest.mark.parametrize("step", ["delete", "tidy"])
def test_a_forget_that_is_killed_before_its_row_is_removed_is_finished_by_a_sync(
    tmp_path: Path, step: str
) -> None:
    plugin = plugin_in(tmp_path)
    kept = call(plugin, "memory_store", text="The osprey hunts at dawn.")
    gone = call(plugin, "memory_store", text="The heron nests by the pier.")
    killed(tmp_path, "memory_forget", step, "memoryId", gone["id"])
    assert "heron" not in captured_file(tmp_path).read_text("utf-8")
    again = plugin_in(tmp_path)
    assert call(again, "memory_recall", query="heron nests by the pier")["count"] == 0
    again.backend.sync()
    assert list(again.backend.table.rows()) == [kept["id"]]
    assert again.backend.status().due_files == 0
    files = [one for one in (tmp_path / "state" / "memory").rglob("*") if one.is_file()]
    assert files and not any(b"heron" in one.read_bytes() for one in files)


def test_a_forget_that_is_killed_before_its_line_is_removed_has_not_happened(
    tmp_path: Path,
) -> None:
    plugin = plugin_in(tmp_path)
    entry = call(plugin, "memory_store", text="The heron nests by the pier.")
    killed(tmp_path, "memory_forget", "replace", "memoryId", entry["id"])
    again = plugin_in(tmp_path)
    assert call(again, "memory_recall", query="heron nests by the pier")["count"] == 1
    assert call(again, "memory_forget", memoryId=entry["id"])["action"] == "deleted"
