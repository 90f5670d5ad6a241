"""What is forgotten is gone from every file, and does not come back."""

from __future__ import annotations

from pathlib import Path

import pytest
from forget_scene import CANARY, KEPT, make_scene, open_memory, traces


@pytest.fixture
def session(tmp_path: Path) -> str:
    return make_scene(tmp_path)


def test_a_text_is_gone_from_every_file(tmp_path: Path, session: str) -> None:
    folders = (tmp_path / "agent", tmp_path / "state")
    assert len(traces(*folders)) > 10
    with open_memory(tmp_path) as memory:
        report = memory.forget(memory.plan_forget(CANARY))
        assert report.files_changed and report.history_rewritten
    assert traces(*folders) == []
    assert KEPT in (tmp_path / "agent" / "MEMORY.md").read_text("utf-8")
