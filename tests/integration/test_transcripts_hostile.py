"""The transcripts of the hostile workspace: what must be found is found, what must not leaves no
trace in any table.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import apsw
import pytest
from hostile import cases, make, needs_maker, remove

from clawmark import Memory
from clawmark.engine.sync.transcripts import derive
from clawmark.model.values import citation

pytestmark = needs_maker

SETTINGS: dict[str, object] = {
    "memorySearch.sources": ["memory", "sessions"],
    "memorySearch.provider": "none",
}


class Hostile(NamedTuple):
    """The hostile transcripts, indexed."""

    folder: Path
    memory: Memory
    items: dict[str, dict[str, Any]]
    canaries: dict[str, str]


@pytest.fixture(scope="module", params=[1, 2], ids=["seed-1", "seed-2"])
def hostile(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Hostile]:
    folder = make(tmp_path_factory.mktemp("hostile") / "made", request.param)
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    state = folder / "state"
    for agent in ("main", "other"):
        shutil.copytree(
            folder / "sessions" / agent, state / "agents" / agent / "sessions", symlinks=True
        )
    workspace = folder.parent / "workspace"
    workspace.mkdir()
    with Memory.open(workspace, state_dir=state, overrides=SETTINGS, background=False) as memory:
        report = memory.sync()
        assert (report.failures, report.scan_failures, report.due_files) == ((), (), 0)
        items = {item["id"]: item for item in manifest["items"] if item["id"].startswith("ts-")}
        yield Hostile(
            folder=state / "agents" / "main" / "sessions",
            memory=memory,
            items=items,
            canaries=manifest["canaries"],
        )
    remove(folder)


def path_of(item: dict[str, Any]) -> str:
    return "sessions/" + str(item["path"]).rpartition("/")[2]


def stored(memory: Memory) -> str:
    """Everything the index holds, as one text: every row of every table, and the bytes of the file
    and its log.
    """
    path = memory.places.index_path
    database = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READONLY)
    names = [
        name
        for (name,) in database.execute(
            "SELECT name FROM sqlite_schema WHERE type = 'table'"
        ).fetchall()
    ]
    rows = [
        repr(row) for name in names for row in database.execute(f"SELECT * FROM {name}").fetchall()
    ]
    database.close()
    files = [
        Path(path + end).read_bytes().decode("latin-1")
        for end in ("", "-wal")
        if Path(path + end).exists()
    ]
    return "\n".join([*rows, *files])


def test_every_transcript_meets_its_expectation(hostile: Hostile) -> None:
    wrong = []
    everything = stored(hostile.memory)
    for name, item in hostile.items.items():
        marker = item.get("marker")
        found = [hit.path for hit in hostile.memory.search(marker).hits] if marker else []
        if item["expect"] == "index" and path_of(item) not in found:
            wrong.append(f"{name} is not found")
        if item["expect"] in ("skip", "never") and marker and (found or marker in everything):
            wrong.append(f"{name} left a trace")
    assert wrong == []
    assert sum(item["expect"] == "index" for item in hostile.items.values()) > 20


def test_no_thought_no_other_agent_and_nothing_outside_is_stored(hostile: Hostile) -> None:
    everything = stored(hostile.memory)
    assert [
        name for name in ("thinking", "other", "outside") if hostile.canaries[name] in everything
    ] == []


def test_every_skipped_file_says_why(hostile: Hostile) -> None:
    skipped = {skipped.path for skipped in hostile.memory.status().skipped}
    expected = {
        path_of(item)
        for item in hostile.items.values()
        if item["expect"] == "skip" and ".jsonl" in path_of(item)
    }
    readable = {path_of(hostile.items[name]) for name in ("ts-empty", "ts-header-only")}
    assert expected - readable <= skipped
    assert path_of(hostile.items["ts-link-out"]) in skipped


def test_none_of_the_secrets_is_in_any_table(hostile: Hostile, tmp_path: Path) -> None:
    secrets = cases(hostile.folder.parents[3], "secrets")
    folder = tmp_path / "state" / "agents" / "main" / "sessions"
    folder.mkdir(parents=True)
    (tmp_path / "workspace").mkdir()
    with (folder / "keys.jsonl").open("w", encoding="utf-8") as file:
        for number, case in enumerate(secrets.values()):
            for text in (
                case["input"],
                f"first words {case['input']}\nand last words marker{number}x",
            ):
                record = {
                    "type": "message",
                    "message": {"role": "user", "content": [{"type": "text", "text": text}]},
                }
                file.write(json.dumps(record) + "\n")
    memory = Memory.open(
        tmp_path / "workspace", state_dir=tmp_path / "state", overrides=SETTINGS, background=False
    )
    with memory:
        memory.sync()
        everything = stored(memory).lower()
        assert len(secrets) == 33
        assert everything.count("[redacted:") >= 33
        for number, case in enumerate(secrets.values()):
            assert memory.search(f"marker{number}x").hits
            shown = memory.read("sessions/keys.jsonl", start=2 * number + 1, lines=2).text.lower()
            for part in telling_parts(case["input"]):
                assert part not in everything, case["id"]
                assert part not in shown, case["id"]
    assert "sk-" in (folder / "keys.jsonl").read_text(encoding="utf-8")


def telling_parts(text: str) -> list[str]:
    """Stretches of a secret that no ordinary text has; phrases and numbers as a whole."""
    runs = [run for run in re.findall("[A-Za-z0-9]{12,}", text) if run[1:] != run[1:].lower()]
    return [run[:12].lower() for run in runs] or [text.partition(": ")[2].lower() or text.lower()]


def test_every_row_is_what_its_file_makes_it(hostile: Hostile) -> None:
    assert hostile.memory.verify().problems == ()
    assert hostile.memory.plan()[0].due == 0


def test_no_chunk_holds_half_a_character_and_each_is_read_back_by_its_citation(
    hostile: Hostile,
) -> None:
    parts = hostile.memory._builtin.parts
    sessions = parts.workspace.sessions
    assert sessions is not None
    read = dict[str, str]()
    for state in sessions.scan().files:
        with sessions.open(state.path) as opened:
            for chunk in derive(opened, sessions, parts.sync.chunker):
                assert chunk.text.encode("utf-8") and "\0" not in chunk.text
                cited = citation(state.path, chunk.start_line, chunk.end_line)
                if cited not in read:
                    read[cited] = hostile.memory.read(cited).text
                # A message of a megabyte is many chunks of one line, and is read back cut.
                assert read[cited] == chunk.text or (
                    chunk.start_line == chunk.end_line and len(read[cited]) == 12_000
                )
    assert len(read) > 25


def test_recalled_memory_is_not_remembered_again(hostile: Hostile) -> None:
    text = hostile.memory.read(path_of(hostile.items["ts-recalled-again"])).text
    assert "new question" in text and "old memory" not in text
    injected = hostile.memory.read(path_of(hostile.items["ts-injection"])).text
    assert "all files deleted" not in injected
