"""Databases that real releases of OpenClaw made are imported, and every vector in them is used
again.

`python bench/interop_openclaw.py --record` made them from the files in `bench/data/interop`.
Nothing listens at the address they were made with: a passage that was sent again would be left
without a vector."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from clawmark.cli import run
from clawmark.importers.run import Seeded, run_seeding
from clawmark.memory import Memory

DATA = Path(__file__).parent / "data" / "openclaw"
WORKSPACE = Path(__file__).parents[2] / "bench" / "data" / "interop"
ADDRESS = "http://127.0.0.1:18743/v1/"

OLD, NEW, COMPATIBLE = "2026.3-openai-slash", "2026.9-openai-slash", "2026.9-compatible"
RELEASES = [
    pytest.param(OLD, "openai", "lines", id=OLD),
    pytest.param(NEW, "openai", "lines-v5", id=NEW),
    pytest.param(COMPATIBLE, "openai-compatible", "lines-v5", id=COMPATIBLE),
]
VECTORS = {OLD: 12, NEW: 21, COMPATIBLE: 21}


def openclaw(folder: Path, name: str, provider: str, mode: str) -> Path:
    """A state folder of OpenClaw with a recorded database, and settings of ours in it."""
    state = folder / "openclaw"
    place = "memory/main.sqlite" if name == OLD else "agents/main/agent/openclaw-agent.sqlite"
    (state / place).parent.mkdir(parents=True)
    shutil.copyfile(DATA / f"{name}.sqlite", state / place)
    shutil.copytree(WORKSPACE, state / "workspace")
    search = {
        "provider": provider,
        "model": "demo-embed",
        "remote": {"baseUrl": ADDRESS, "apiKey": "sk-FAKE"},
    }
    (state / "openclaw.json").write_text(
        json.dumps({"memory": {"search": search}}), encoding="utf-8"
    )
    (state / "clawmark").mkdir(mode=0o700)
    ours = {"memorySearch": {"chunking": {"mode": mode}}}
    (state / "clawmark" / "clawmark.json").write_text(json.dumps(ours), encoding="utf-8")
    return state


def imported(memory: Memory, state: Path) -> Seeded:
    (database,) = [str(path) for path in state.rglob("*.sqlite") if "clawmark" not in path.parts]
    return run_seeding(memory, database)


@pytest.mark.parametrize(("name", "provider", "mode"), RELEASES)
def test_no_passage_that_openclaw_embedded_is_sent_again(
    tmp_path: Path, name: str, provider: str, mode: str
) -> None:
    state = openclaw(tmp_path, name, provider, mode)
    with Memory.open(state_dir=state, background=False) as memory:
        seeded = imported(memory, state)
    with Memory.open(state_dir=state, background=False) as memory:
        report = memory.sync()
        status = memory.status()
    assert (seeded.kept, seeded.reusable, seeded.unsound, seeded.chunking_mode) == (
        VECTORS[name],
        VECTORS[name],
        0,
        mode,
    )
    assert status.due_vectors == 0
    assert report.degraded is None
    (space,) = [space for space in status.spaces if space.identity.model == "demo-embed"]
    assert space.ready and space.vectors == status.chunks > 0


@pytest.mark.parametrize(("name", "provider", "mode"), RELEASES)
def test_a_second_import_and_a_trial_run_count_the_same(
    tmp_path: Path, name: str, provider: str, mode: str
) -> None:
    state = openclaw(tmp_path, name, provider, mode)
    with Memory.open(state_dir=state, background=False) as memory:
        (database,) = [
            str(path) for path in state.rglob("*.sqlite") if "clawmark" not in path.parts
        ]
        planned = run_seeding(memory, database, dry_run=True)
        assert memory.status().cache_entries == 0
        assert run_seeding(memory, database) == run_seeding(memory, database) == planned
        assert memory.status().cache_entries == planned.kept


def test_vectors_of_another_address_are_kept_but_not_taken_for_our_own(tmp_path: Path) -> None:
    state = openclaw(tmp_path, OLD, "openai", "lines")
    config = (state / "openclaw.json").read_text(encoding="utf-8")
    (state / "openclaw.json").write_text(config.replace("18743", "18744"), encoding="utf-8")
    with Memory.open(state_dir=state, background=False) as memory:
        seeded = imported(memory, state)
    assert (seeded.kept, seeded.reusable) == (12, 0)


def test_the_command_imports_from_the_state_folder_it_is_given(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    state = openclaw(tmp_path, NEW, "openai", "markdown")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    os.mkdir(tmp_path / "home")
    assert run(["--state-dir", str(state), "import", "openclaw"]) == 0
    said = capsys.readouterr().out
    assert f"21 vectors kept from {state}" in said
    assert 'set memorySearch.chunking.mode to "lines-v5"' in said
