"""What is forgotten is gone from what other backends and plugins have stored."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from forget_scene import CANARY, KEPT, SECRET, traces
from qmds import qmd_command
from scripted_session import KEY, line

from clawmark import Memory


def folder_with_memory(folder: Path) -> tuple[Path, Path]:
    agent, state = folder / "agent", folder / "state"
    (agent / "memory").mkdir(parents=True)
    (agent / "MEMORY.md").write_text(f"# Facts\n\n- {KEPT}.\n", encoding="utf-8")
    return agent, state


def test_captured_entries_and_their_table_are_cleaned(tmp_path: Path) -> None:
    pytest.importorskip("lancedb")
    agent, state = folder_with_memory(tmp_path)
    settings: dict[str, object] = {"plugins.slots.memory": "memory-lancedb"}
    with Memory.open(agent, state_dir=state, overrides=settings, background=False) as memory:
        tools = {tool.name: tool for tool in memory.tools(KEY, append=True)}
        assert tools["memory_store"].call({"text": SECRET})["action"] == "created"
        assert tools["memory_store"].call({"text": KEPT})["action"] == "created"
        assert len(traces(agent, state)) > 1
        memory.forget(memory.plan_forget(CANARY))
        assert traces(agent, state) == []
        again = tools["memory_store"].call({"text": f"{SECRET}!"})
        assert again["reason"] == "forgotten"
        found = tools["memory_recall"].call({"query": KEPT})
        assert [one["text"] for one in found["memories"]] == [KEPT]  # type: ignore[attr-defined]
    assert traces(agent, state) == []


def test_the_database_and_the_exports_of_qmd_are_cleaned(tmp_path: Path) -> None:
    agent, state = folder_with_memory(tmp_path)
    settings: dict[str, object] = {
        "memory.backend": "qmd",
        "memory.qmd.command": qmd_command(),
        "memory.qmd.limits.timeoutMs": 30_000,
        "memory.qmd.sessions.enabled": True,
        "memorySearch.provider": "none",
    }
    with Memory.open(agent, state_dir=state, overrides=settings, background=False) as memory:
        memory.append(SECRET)
        sessions = Path(memory.places.sessions_dir)
        sessions.mkdir(parents=True)
        said = (line("user", SECRET), line("assistant", KEPT))
        (sessions / "s1.jsonl").write_text("\n".join(said) + "\n", encoding="utf-8")
        memory.sync()
        assert any("index.sqlite" in one for one in traces(agent, state))
        assert any(one.endswith("s1.jsonl.md") for one in traces(agent, state))
        memory.forget(memory.plan_forget(CANARY))
        assert traces(agent, state) == []
        memory.sync()
        assert memory.search("prefers tea morning").hits
    assert traces(agent, state) == []
    assert json.loads((sessions / "s1.jsonl").read_text("utf-8").splitlines()[0])
