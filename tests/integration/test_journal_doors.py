"""Every door through which text gets into the memory leaves exactly one record in the journal."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from commands import Place
from mcp_servers import call, stdio_server

from clawmark import Memory
from clawmark.agent.models.completer import Completion, ToolCall
from clawmark.agent.notes.curate import Curation, keep_curation
from clawmark.chat.file_tools import FileTools
from clawmark.cli import run as run_command
from clawmark.hooks.events import Event
from clawmark.hooks.notes import note_session_of
from clawmark.importers.run import run_import
from clawmark.model.provenance import JournalRecord, Origin
from clawmark.testing import ScriptedCompleter

NOW = datetime(2026, 11, 16, 14, 5, tzinfo=UTC)
LOG = "memory/2026-11-16.md"
MAIN = "agent:main:main"
LANCEDB = {
    "plugins": {
        "slots": {"memory": "memory-lancedb"},
        "entries": {"memory-lancedb": {"config": {"autoCapture": True}}},
    }
}


class Scene(NamedTuple):
    memory: Memory
    folder: Path

    @property
    def workspace(self) -> Path:
        return self.folder / "workspace"

    def run(self, *arguments: str) -> None:
        state = ("--state-dir", str(self.folder / "state"))
        assert run_command([*arguments, "-w", str(self.workspace), *state]) == 0

    def call(self, name: str, session_key: str | None = MAIN, **arguments: object) -> Any:
        tools = self.memory.tools(session_key, append=True)
        return next(tool for tool in tools if tool.name == name).call(arguments)

    def given(self, path: str, text: str) -> None:
        """Write a file before the door is used, and let a sync record it."""
        file = self.workspace / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        self.memory.sync()


def tool_call(name: str, **arguments: object) -> Completion:
    return Completion("", calls=(ToolCall("1", name, json.dumps(arguments)),))


def by_cli_remember(scene: Scene) -> None:
    scene.run("remember", "Carla prefers tea")


def by_cli_edit(scene: Scene) -> None:
    scene.given("MEMORY.md", "- An entry that stays\n")
    editor = scene.folder / "editor.py"
    editor.write_text("import sys\nopen(sys.argv[1], 'a').write('- Carla prefers tea\\n')\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EDITOR", f"{sys.executable} {editor}")
        patch.delenv("VISUAL", raising=False)
        scene.run("edit", "MEMORY.md")


def by_library_append(scene: Scene) -> None:
    scene.memory.append("Carla prefers tea")


def by_library_replace(scene: Scene) -> None:
    scene.memory.replace("MEMORY.md", "- Carla prefers tea\n", "")


def by_library_with_an_origin(scene: Scene) -> None:
    page = Origin(actor="agent", kind="web", trust="external", source="https://example.org")
    scene.memory.append("Carla prefers tea", to="MEMORY.md", origin=page)


def by_memory_append(scene: Scene) -> None:
    assert scene.call("memory_append", text="Carla prefers tea")["written"]


def by_memory_append_from_a_page(scene: Scene) -> None:
    assert scene.call("memory_append", text="Carla prefers tea", origin="tool")["written"]


def by_memory_append_of_a_claimed_user(scene: Scene) -> None:
    assert scene.call("memory_append", text="Carla prefers tea", origin="user")["written"]


def by_memory_append_of_a_heartbeat(scene: Scene) -> None:
    assert scene.call("memory_append", f"{MAIN}:heartbeat", text="Carla prefers tea")["written"]


def by_anthropic_create(scene: Scene) -> None:
    anthropic_tool(scene).create("/memories/prefs.md", "- Carla prefers tea\n")


def by_anthropic_edit(scene: Scene) -> None:
    scene.given("memory/prefs.md", "- Carla prefers coffee\n- Ben prefers water\n")
    anthropic_tool(scene).str_replace("/memories/prefs.md", "coffee", "tea")


def by_anthropic_delete(scene: Scene) -> None:
    scene.given("memory/prefs.md", "- Carla prefers coffee\n")
    anthropic_tool(scene).delete("/memories/prefs.md")


def by_anthropic_rename(scene: Scene) -> None:
    scene.given("memory/prefs.md", "- Carla prefers coffee\n")
    anthropic_tool(scene).rename("/memories/prefs.md", "/memories/likes.md")


def anthropic_tool(scene: Scene) -> Any:
    adapter = pytest.importorskip("clawmark.adapters.anthropic")
    return adapter.MemoryTool(scene.memory, session_key=MAIN)._memories


def by_langgraph(scene: Scene) -> None:
    adapter = pytest.importorskip("clawmark.adapters.langgraph")
    adapter.MemoryStore(scene.memory, session_key=MAIN).put(("users",), "carla", {"likes": "tea"})


def by_file_edit_of_chat(scene: Scene) -> None:
    scene.given("MEMORY.md", "- Carla prefers coffee\n- Ben prefers water\n")
    origin = Origin(actor="agent", kind="tool", trust="agent", session=MAIN, source="file tools")
    files = FileTools(
        str(scene.workspace), str(scene.folder / "locks"), scene.memory.workspace, origin
    )
    edit = next(tool for tool in files.tools() if tool.name == "file_edit")
    assert edit.call({"path": "MEMORY.md", "old": "coffee", "new": "tea"})["written"]


def by_flush(scene: Scene) -> None:
    model = ScriptedCompleter([tool_call("memory_append", text="- Carla prefers tea"), "NO_REPLY"])
    talk = scene.memory.conversation(MAIN, completer=model)
    talk.start()
    talk.on_user("Remember for later that Carla prefers tea.")
    talk.on_usage(10, reply="I will.")
    talk.flush()


def by_flush_of_a_group(scene: Scene) -> None:
    key = "agent:main:telegram:group:7"
    model = ScriptedCompleter([tool_call("memory_append", text="- Carla prefers tea"), "NO_REPLY"])
    talk = scene.memory.conversation(key, completer=model)
    talk.start()
    talk.on_user("Remember for later that Carla prefers tea.")
    talk.on_usage(10, reply="I will.")
    talk.flush()


def by_flush_of_a_transcript(scene: Scene) -> None:
    model = ScriptedCompleter([tool_call("memory_append", text="- Carla prefers tea"), "NO_REPLY"])
    scene.memory.conversation(MAIN, completer=model).flush(str(transcript(scene)))


def by_session_note(scene: Scene) -> None:
    talk = scene.memory.conversation(MAIN)
    talk.start()
    talk.on_user("Please remember that Carla prefers tea.")
    talk.on_usage(10, reply="Noted: Carla prefers tea over coffee, and she has it at four.")
    talk.end()


def by_hook(scene: Scene) -> None:
    event = Event(
        name="SessionEnd",
        host="claude-code",
        session_id="s1",
        transcript=str(transcript(scene)),
    )
    assert note_session_of(scene.memory, event, MAIN)


def transcript(scene: Scene) -> Path:
    said = (("user", "We decided that Carla gets tea."), ("assistant", "Tea for Carla it is."))
    lines = [
        json.dumps(
            {
                "type": role,
                "timestamp": f"2026-11-16T10:0{minute}:00Z",
                "message": {"role": role, "content": [{"type": "text", "text": text}]},
            }
        )
        for minute, (role, text) in enumerate(said)
    ]
    file = scene.folder / "s1.jsonl"
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return file


def by_capture(scene: Scene) -> None:
    pytest.importorskip("lancedb")
    turn = (("user", "I prefer tea over coffee in the morning."), ("assistant", "Noted."))
    scene.memory.lifecycle(MAIN).agent_end(turn)


def by_memory_store(scene: Scene) -> None:
    pytest.importorskip("lancedb")
    assert scene.call("memory_store", text="Carla prefers tea.")["action"] == "created"


def by_import(scene: Scene) -> None:
    notes = scene.folder / "notes"
    notes.mkdir()
    (notes / "carla.md").write_text("# Carla\n\nCarla prefers tea.\n", encoding="utf-8")
    assert [one[0] for one in run_import(scene.memory, "markdown", str(notes))] == ["new"]


def by_curation(scene: Scene) -> None:
    made = Curation(base_hash="", old="", new="- Carla prefers tea\n")
    proposal = keep_curation(scene.memory.review, made)
    assert proposal is not None
    scene.memory.review.accept(proposal.id)


def by_editor(scene: Scene) -> None:
    scene.given("MEMORY.md", "- Carla prefers tea\n")


DOORS: dict[Callable[[Scene], None], Mapping[str, object]] = {
    by_cli_remember: {"actor": "user", "kind": "remember", "trust": "owner"},
    by_cli_edit: {"actor": "user", "kind": "edited", "trust": "owner", "path": "MEMORY.md"},
    by_library_append: {"actor": "user", "kind": "remember", "trust": "owner", "path": LOG},
    by_library_replace: {"actor": "user", "kind": "remember", "trust": "owner"},
    by_library_with_an_origin: {
        "kind": "web",
        "trust": "external",
        "source": "https://example.org",
    },
    by_memory_append: {
        "actor": "agent",
        "kind": "tool",
        "trust": "agent",
        "session": MAIN,
        "source": "memory_append",
    },
    by_memory_append_from_a_page: {"kind": "tool", "trust": "external", "session": MAIN},
    by_memory_append_of_a_claimed_user: {"actor": "agent", "trust": "agent"},
    by_memory_append_of_a_heartbeat: {"trust": "agent", "session": f"{MAIN}:heartbeat"},
    by_anthropic_create: {"kind": "tool", "trust": "agent", "session": MAIN, "source": "memory"},
    by_anthropic_edit: {"kind": "tool", "trust": "agent", "path": "memory/prefs.md"},
    by_anthropic_delete: {"kind": "tool", "action": "delete", "path": "memory/prefs.md"},
    by_anthropic_rename: {
        "kind": "tool",
        "action": "rename",
        "path": "memory/likes.md",
        "moved_from": "memory/prefs.md",
    },
    by_langgraph: {"kind": "tool", "trust": "agent", "session": MAIN, "source": "langgraph"},
    by_file_edit_of_chat: {"kind": "tool", "trust": "agent", "path": "MEMORY.md"},
    by_flush: {"actor": "agent", "kind": "flush", "trust": "agent", "session": MAIN, "path": LOG},
    by_flush_of_a_group: {"kind": "flush", "trust": "external"},
    by_flush_of_a_transcript: {"kind": "flush", "trust": "external"},
    by_session_note: {"actor": "agent", "kind": "note", "trust": "agent", "session": MAIN},
    by_hook: {"actor": "agent", "kind": "note", "trust": "agent", "session": MAIN},
    by_capture: {"actor": "plugin", "kind": "capture", "trust": "agent", "session": MAIN},
    by_memory_store: {"actor": "agent", "kind": "tool", "source": "memory_store"},
    by_import: {"actor": "import", "kind": "import", "trust": "external"},
    by_curation: {"actor": "user", "kind": "accepted", "trust": "owner", "path": "MEMORY.md"},
    by_editor: {"actor": "user", "kind": "edited", "trust": "owner", "action": "found"},
}
NO_ENTRIES = (by_anthropic_delete, by_anthropic_rename)
ONE_ENTRY = (by_cli_edit, by_anthropic_edit, by_file_edit_of_chat, by_editor, by_curation)


@pytest.mark.parametrize("door", DOORS, ids=lambda door: door.__name__)
def test_a_write_leaves_exactly_one_record(tmp_path: Path, door: Callable[[Scene], None]) -> None:
    (tmp_path / "workspace" / "memory").mkdir(parents=True)
    config = tmp_path / "clawmark.json"
    plugins = LANCEDB if door in (by_capture, by_memory_store) else {}
    config.write_text(json.dumps({"memory": {"review": "off"}, **plugins}))
    with Memory.open(
        tmp_path / "workspace",
        state_dir=tmp_path / "state",
        provider="none",
        clock=lambda: NOW,
        config=config,
        background=False,
    ) as memory:
        scene = Scene(memory, tmp_path)
        door(scene)
        *before, record = memory.journal.records()
        assert all(one.origin.kind == "edited" for one in before), "what was there already"
        assert fields(record, DOORS[door]) == DOORS[door]
        assert record.done
        if not door.__name__.startswith("by_cli"):
            assert record.time == "2026-11-16T14:05:00.000+00:00", "the clock of the memory"
        assert bool(record.entries) != (door in NO_ENTRIES)
        if door in ONE_ENTRY:
            assert len(record.entries) == 1, "entries that stay keep their origins"
        count = len(before) + 1
        memory.sync()
        memory.sync(force=True)
        assert len(list(memory.journal.records())) == count, "a sync finds nothing unknown"


def fields(record: JournalRecord, wanted: Mapping[str, object]) -> dict[str, object]:
    """Return the wanted fields of a record and its origin."""
    values = {**record.origin._asdict(), **record._asdict()}
    return {name: values[name] for name in wanted}


def test_sources_say_which_turns_and_which_import(tmp_path: Path) -> None:
    (tmp_path / "workspace").mkdir()
    with Memory.open(
        tmp_path / "workspace", state_dir=tmp_path / "state", provider="none", background=False
    ) as memory:
        scene = Scene(memory, tmp_path)
        by_import(scene)
        by_flush(scene)
        imported, flushed = memory.journal.records()
        assert imported.origin.source == f"markdown: {tmp_path / 'notes'}"
        talk = memory.conversation(MAIN)
        name, size = Path(talk.transcript).name, Path(talk.transcript).stat().st_size
        assert flushed.origin.source == f"{name} bytes 0-{size}"


def test_the_command_line_prints_what_it_has_written(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.workspace.mkdir(parents=True)
    assert place.run("remember", "Carla prefers tea").code == 0
    assert place.run("remember", "--to", "MEMORY.md", "Ben prefers water").code == 0
    newest, oldest = place.run("log", "--json").json()["records"]
    assert (newest["path"], newest["texts"]) == ("MEMORY.md", ["- Ben prefers water"])
    assert oldest["kind"] == "remember" and oldest["state"] == "done"


def test_mcp_records_the_session_of_the_host_and_explains_origins(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.workspace.mkdir(parents=True)
    with stdio_server(["--session", MAIN], place.environment()) as server:
        server.initialize()
        note = {"text": "Ada prints the ferry timetable on Mondays.", "origin": "tool"}
        written = server.ask(call("memory_append", note))["result"]["structuredContent"]
        assert written["written"] is True
        asked = {"query": "ferry timetable", "explain": True}
        (found,) = server.ask(call("memory_search", asked))["result"]["structuredContent"][
            "results"
        ]
    (record,) = found["origin"]["records"]
    assert (record["kind"], record["trust"], record["session"]) == ("tool", "external", MAIN)
    assert found["origin"]["trust"] == "external" and found["origin"]["unknownEntries"] == 0
    assert found["provenance"]["originClass"] == "untrusted"
    (logged,) = place.run("log", "--session", MAIN, "--json").json()["records"]
    assert (logged["source"], logged["trust"]) == ("memory_append", "external")


def test_the_log_fits_eighty_columns_and_its_filters_apply(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.workspace.mkdir(parents=True)
    long = "memory/projects/" + "ferry-" * 20 + ".md"
    place.run("remember", "--to", long, "The ferry " + "leaves at nine and " * 20)
    place.run("remember", "Carla prefers tea")
    everything = place.run("log", env={"COLUMNS": "80"})
    assert everything.code == 0 and "The ferry leaves" in everything.out
    assert max(map(len, everything.out.splitlines())) <= 80
    assert "Carla" not in place.run("log", "memory/projects").out
    assert place.run("log", "--kind", "import").out == ""
    assert "no record matches" in place.run("log", "--since", "2999-01-01").err
    wrong = place.run("log", "--kind", "nothing")
    assert wrong.code == 2 and "choose from" in wrong.err
