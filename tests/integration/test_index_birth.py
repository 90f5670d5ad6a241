"""Readers that come while an index is being made for the first time."""

from __future__ import annotations

import threading
from pathlib import Path

from clawmark import Memory

BIRTHS = 25


def test_a_reader_finds_nothing_and_no_damage_while_the_index_is_made(tmp_path: Path) -> None:
    """An index appears whole. SQLite's first page, made in place, had no checksum yet, and two of
    three readers took it for damage."""
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    (workspace / "MEMORY.md").write_text("We chose PostgreSQL for billing.\n", encoding="utf-8")
    looks = 0
    for number in range(BIRTHS):
        overrides = {"memorySearch.provider": "none"}
        with Memory.open(
            workspace, state_dir=tmp_path / f"state-{number}", overrides=overrides
        ) as memory:
            making = threading.Thread(target=memory.sync)
            making.start()
            while making.is_alive():
                memory.plan()
                looks += 1
            making.join()
            assert memory.search("PostgreSQL").hits
    assert looks > BIRTHS
