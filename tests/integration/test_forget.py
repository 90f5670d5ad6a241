"""What is forgotten is gone from every file, and does not come back."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from forget_scene import (
    CANARY,
    CHAIRS,
    FROM_SESSION,
    KEPT,
    NOW,
    SECRET,
    completer_of,
    flush_answers,
    import_again,
    make_scene,
    open_memory,
    record,
    traces,
)
from scripted_session import KEY, line

from clawmark import Memory, WorkspaceError
from clawmark.agent.flush.flush import Flushed, FlushOutcome
from clawmark.agent.notes.session_note import NoNote
from clawmark.composition import history_folder
from clawmark.history.history import History
from clawmark.model.provenance import Origin

AGENT = Origin(actor="agent", kind="tool", trust="agent", session=KEY)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    folder = tmp_path_factory.mktemp("scene")
    return folder, make_scene(folder)


@pytest.fixture
def scene(made: tuple[Path, str], tmp_path: Path) -> Iterator[Path]:
    """Return the scene and restore it afterwards, at the same path: names in the state folder
    depend on the path of the workspace."""
    original, _ = made
    kept = tmp_path / "kept"
    shutil.copytree(original, kept)
    yield original
    shutil.rmtree(original)
    shutil.copytree(kept, original)


def folders(scene: Path) -> tuple[Path, Path]:
    return scene / "agent", scene / "state"


def flush_with(memory: Memory, text: str) -> FlushOutcome:
    """Flush a new session with a model that writes a text."""
    with flush_answers(text) as server:
        conversation = memory.conversation(KEY, completer=completer_of(server))
        conversation.on_user("What is new in the harbour today?")
        conversation.on_usage(100, reply="Nothing much.")
        return conversation.flush()


def versions(memory: Memory) -> list[tuple[str, bytes]]:
    """Return every file of every version."""
    history = History(history_folder(memory.places))
    return [one for version in history.versions() for one in history.tree(version.version)]


def test_a_text_is_gone_from_every_file(scene: Path) -> None:
    assert len(traces(*folders(scene))) > 25
    with open_memory(scene) as memory:
        report = memory.forget(memory.plan_forget(CANARY))
        assert (report.files_changed, report.transcripts_changed) == (5, 4)
        assert report.history_rewritten and report.versions and report.journal_records
        assert traces(*folders(scene)) == []
        assert not [hit for hit in memory.search(SECRET).hits if CANARY in hit.snippet]
        assert memory.search(KEPT).hits
    assert KEPT in (scene / "agent" / "MEMORY.md").read_text("utf-8")
    assert traces(*folders(scene)) == []


def test_a_plan_lists_every_place_and_changes_nothing(scene: Path) -> None:
    with open_memory(scene) as memory:
        assert memory.review.count() == 1  # the proposal of an earlier version is taken over
        before = traces(*folders(scene))
        plan = memory.plan_forget(f"opens   with {CANARY.lower()}")
    assert {one.kind for one in plan.found} == {
        "memory",
        "transcript",
        "version",
        "history",
        "proposal",
        "copy",
        "journal",
        "index",
    }
    assert "MEMORY.md#L4" in [one.where for one in plan.found]
    assert traces(*folders(scene)) == before


def test_a_forgotten_text_does_not_come_back(scene: Path) -> None:
    with open_memory(scene) as memory:
        memory.forget(memory.plan_forget(CANARY))
        memory.sync(force=True)
        assert import_again(memory, scene, "markdown") == ["changed"]
        assert import_again(memory, scene, "chatgpt") == ["skipped"]
        outcome = flush_with(memory, f"As I heard, the safe\n  opens with {CANARY}, they say.")
        assert isinstance(outcome, Flushed) and outcome.refused and not outcome.written
        proposed = flush_with(memory, f"{SECRET}\n- The heron nests by the pier this year.")
        assert isinstance(proposed, Flushed) and proposed.refused
        record(memory, "later")
        assert all(CANARY.encode() not in data for _, data in versions(memory))
        memory.sync()
    assert traces(*folders(scene)) == []
    assert "heron" in (scene / "agent" / "memory" / "2026-11-16.md").read_text("utf-8")


def test_a_forgotten_session_stays_gone(made: tuple[Path, str], scene: Path) -> None:
    session = made[1]
    transcripts = scene / "state" / "agents"
    (original,) = transcripts.rglob(f"{session}.jsonl")
    said = original.read_bytes()
    assert len(traces(*folders(scene), canary=CHAIRS)) > 6
    with open_memory(scene) as memory:
        plan = memory.plan_forget(session=session)
        assert [one for one in plan.files if CHAIRS.lower() in one] == list(plan.files)
        report = memory.forget(plan)
        assert (report.files_deleted, report.transcripts_deleted) == (1, 3)
        assert traces(*folders(scene), canary=CHAIRS) == []
        assert traces(*folders(scene), canary=session) == []
        memory.sync(force=True)
        # A host that still has the conversation flushes it again, and ends it again.
        for text in (
            FROM_SESSION,
            f"We also bought twelve {CHAIRS} chairs for the garden on Tuesday.",
        ):
            outcome = flush_with(memory, text)
            assert isinstance(outcome, Flushed) and outcome.refused and not outcome.written
        assert traces(*folders(scene), canary=CHAIRS) == []
        original.write_bytes(said)
        noted = memory.conversation(KEY).keep_messages(str(original))
        assert isinstance(noted, NoNote)
        assert traces(scene / "agent", canary=CHAIRS) == []
        original.unlink()
        record(memory, "later")
        memory.sync()
        assert all(CHAIRS.encode() not in data for _, data in versions(memory))
    assert traces(*folders(scene), canary=CHAIRS) == []
    # What the user wrote stays, also where it says the same as the session.
    assert KEPT in (scene / "agent" / "MEMORY.md").read_text("utf-8")


def test_the_user_can_write_a_forgotten_text_again(scene: Path) -> None:
    with open_memory(scene) as memory:
        memory.forget(memory.plan_forget(CANARY))
        assert memory.workspace.is_forgotten(SECRET)
        memory.append(SECRET)
        assert not memory.workspace.is_forgotten(SECRET)
        assert memory.search(SECRET).hits


def test_lines_are_forgotten_with_their_copies(scene: Path) -> None:
    with open_memory(scene) as memory:
        memory.append("no")
        memory.append("no", to="memory/other.md")
        memory.forget(memory.plan_forget(lines="MEMORY.md#L4"))
        assert CANARY not in (scene / "agent" / "MEMORY.md").read_text("utf-8")
        # A short entry is forgotten in its own file only.
        log = "memory/2026-11-16.md"
        text = (scene / "agent" / log).read_text("utf-8")
        number = text.split("\n").index("- 14:05 no") + 1
        memory.forget(memory.plan_forget(lines=f"{log}#L{number}"))
        assert "14:05 no\n" not in (scene / "agent" / log).read_text("utf-8")
        assert (scene / "agent" / "memory/other.md").read_text("utf-8") == "- no\n"


def test_a_file_is_forgotten_with_its_versions(scene: Path) -> None:
    with open_memory(scene) as memory:
        memory.append("The plan for the pier is secret Kittiwake9001", to="memory/pier.md")
        record(memory, "with the pier")
        memory.sync()
        memory.workspace.delete("memory/pier.md")
        assert traces(*folders(scene), canary="Kittiwake9001")
        memory.forget(memory.plan_forget(path="memory/pier.md"))
    assert traces(*folders(scene), canary="Kittiwake9001") == []
    assert traces(*folders(scene), canary="pier.md") == []


def test_an_import_is_forgotten_and_not_imported_again(scene: Path) -> None:
    with open_memory(scene) as memory:
        memory.forget(memory.plan_forget(source="chatgpt"))
        assert not list((scene / "agent").rglob("about-a-safe*"))
        assert import_again(memory, scene, "chatgpt") == ["skipped"]
    assert traces(*folders(scene), canary="about-a-safe") == []


def test_an_added_folder_is_no_longer_searched_and_its_files_stay(scene: Path) -> None:
    notes = scene / "vault"
    notes.mkdir(exist_ok=True)
    (notes / "a.md").write_text("The Whimbrel5050 lands at noon on the roof\n", encoding="utf-8")
    with open_memory(scene) as memory:
        memory.add_source(notes, name="vault")
        memory.sync()
        found = memory.plan_forget("Whimbrel5050")
        assert found.is_empty and "is only read" in " ".join(found.unreachable)
        plan = memory.plan_forget(source="vault")
        memory.forget(plan)
        assert any(str(notes) in one for one in plan.unreachable)
        assert memory.sources() == ()
    assert traces(*folders(scene), canary="Whimbrel5050") == []
    assert (notes / "a.md").exists()


def test_what_agents_wrote_since_a_day_is_forgotten_and_what_the_user_wrote_stays(
    scene: Path,
) -> None:
    with open_memory(scene) as memory:
        memory.workspace.remember(
            "The agent concluded Pintail6060 again", "2026-11-16", origin=AGENT
        )
        memory.append("The user wrote about ducks in the pond")
        memory.forget(memory.plan_forget(since="2026-11-16"))
        text = (scene / "agent" / "memory" / "2026-11-16.md").read_text("utf-8")
        with pytest.raises(WorkspaceError, match="nothing that an agent wrote"):
            memory.plan_forget(since="2026-11-16")
    assert traces(*folders(scene), canary="Pintail6060") == []
    assert traces(*folders(scene), canary=FROM_SESSION[:12]) == []
    assert "ducks in the pond" in text and SECRET in text


def test_an_agent_forgets_what_it_wrote_and_asks_for_the_rest(scene: Path) -> None:
    with open_memory(scene) as memory:
        memory.workspace.remember(
            "The agent guessed Gadwall7070 wrongly", "2026-11-16", origin=AGENT
        )
        tools = {tool.name: tool for tool in memory.tools(KEY, append=True)}
        refused = tools["memory_forget"].call({"text": CANARY})
        assert refused["forgotten"] is False and refused["reason"] == "not-yours"
        assert f"clawmark forget {CANARY}" in str(refused["action"])
        assert traces(scene / "agent")
        missing = tools["memory_forget"].call({"text": "nothing like this is anywhere"})
        assert missing["reason"] == "not-found"
        assert tools["memory_forget"].call({"text": " "})["reason"] == "argument"
        done = tools["memory_forget"].call({"text": "guessed Gadwall7070"})
        assert done["forgotten"] is True and done["files"] == 1
        again = tools["memory_append"].call({"text": "The agent guessed Gadwall7070 wrongly"})
        assert again["written"] is False and again["reason"] == "forgotten"
        assert "memory_forget" not in [tool.name for tool in memory.tools(KEY)]
        group = memory.tools("agent:main:discord:group:7", append=True)
        assert "memory_forget" not in [tool.name for tool in group]
    assert traces(*folders(scene), canary="Gadwall7070") == []


def test_what_cannot_be_reached_is_said(scene: Path) -> None:
    from dulwich import porcelain

    agent = scene / "agent"
    porcelain.init(str(agent))
    porcelain.add(str(agent), [str(agent / "MEMORY.md")])
    (agent / "MEMORY.md~").write_text(f"- {SECRET}, says Ann.\n", encoding="utf-8")
    (agent / "USER.md").write_text(f"Knows that {SECRET}.\n", encoding="utf-8")
    with open_memory(scene, **{"agents.defaults.model": "anthropic/claude-x"}) as memory:
        said = " ".join(memory.plan_forget(CANARY).unreachable)
    assert f"git repository {agent} tracks MEMORY.md" in said
    assert "MEMORY.md~ holds it too" in said
    assert "USER.md#L1 also says it" in said
    assert "anthropic/claude-x may keep" in said
    with open_memory(scene) as memory:
        said = " ".join(memory.plan_forget(CHAIRS).unreachable)
    assert f"The name of memory/2026-11-16-bought-twelve-{CHAIRS.lower()}.md says it" in said
    assert "Backups" in said


def test_transcripts_of_openclaw_are_changed_in_place(tmp_path: Path) -> None:
    sessions = tmp_path / "openclaw" / "agents" / "main" / "sessions"
    sessions.mkdir(parents=True)
    (tmp_path / "openclaw" / "openclaw.json").write_text("{}")
    (tmp_path / "agent").mkdir()
    (tmp_path / "agent" / "MEMORY.md").write_text("# Facts\n")
    text = line("user", f"First paragraph.\n\n{SECRET}\n\nLast paragraph.")
    (sessions / "s1.jsonl").write_text(text + "\n" + line("assistant", "Fine.") + "\n")
    os.chmod(sessions / "s1.jsonl", 0o644)
    with Memory.open(
        tmp_path / "agent", state_dir=tmp_path / "openclaw", clock=lambda: NOW
    ) as memory:
        memory.forget(memory.plan_forget(CANARY))
        _, messages = memory.transcript("s1")
    assert [one.text for one in messages] == [
        "First paragraph.\n\n[forgotten]\n\nLast paragraph.",
        "Fine.",
    ]
    assert traces(tmp_path / "openclaw") == []
    assert (sessions / "s1.jsonl").stat().st_mode & 0o777 == 0o644


@pytest.mark.parametrize(
    "given",
    [
        {"text": "  "},
        {"text": "a"},
        {"path": "memory/none.md"},
        {"lines": "MEMORY.md"},
        {"lines": "MEMORY.md#L900"},
        {"session": "nobody"},
        {"session": "../../x"},
        {"source": "unknown"},
        {"text": "a", "path": "b"},
        {},
    ],
)
def test_a_selection_that_means_nothing_is_refused(scene: Path, given: dict[str, str]) -> None:
    with open_memory(scene) as memory, pytest.raises(WorkspaceError) as raised:
        memory.plan_forget(**given)
    assert raised.value.hint


@pytest.mark.parametrize(
    "settings",
    [{"memorySearch.enabled": False}, {"plugins.slots.memory": "none"}],
    ids=["search is off", "no memory plugin"],
)
def test_an_index_that_is_no_longer_used_is_cleaned_too(
    scene: Path, settings: dict[str, object]
) -> None:
    with open_memory(scene, **settings) as memory:
        memory.forget(memory.plan_forget(CANARY))
    assert traces(*folders(scene)) == []
