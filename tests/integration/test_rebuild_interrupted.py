"""A rebuild that was interrupted goes on with the files that are there then."""

from __future__ import annotations

from pathlib import Path

import pytest

from clawmark.memory import Memory
from clawmark.model.reports import Progress
from clawmark.testing import HashingEmbedder


class Interrupted(Exception):
    """What a host raises in its progress listener to stop a sync."""


def interrupt(progress: Progress) -> None:
    raise Interrupted


def test_a_file_deleted_during_the_sync_is_not_published(tmp_path: Path) -> None:
    note = tmp_path / "ws" / "memory" / "a.md"
    note.parent.mkdir(parents=True)
    note.write_text("The ferry leaves at seven.\n", encoding="utf-8")
    with Memory.open(
        tmp_path / "ws", state_dir=tmp_path / "state", embedder=HashingEmbedder()
    ) as memory:
        with pytest.raises(Interrupted):
            memory.sync(force=True, progress=interrupt)
        note.rename(note.with_name("b.md"))
        memory.sync()
        assert [hit.path for hit in memory.search("ferry", freshen=False).hits] == ["memory/b.md"]
        assert memory.verify().problems == ()
