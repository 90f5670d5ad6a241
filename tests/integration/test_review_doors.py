"""Every door through which an agent writes: what waits for the user under each `memory.review`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from chat import ChatServer, call, say

from clawmark import Memory
from clawmark.adapters.memories import Memories
from clawmark.agent.flush.flush import Flushed, SkipFlush
from clawmark.agent.models.catalog import choose_completer
from clawmark.chat.file_tools import FileTools
from clawmark.model.errors import KeptForReview, PathDenied
from clawmark.model.provenance import Origin

PAGE = "# Facts\n\n- Billing runs on MySQL.\n"
LOG = "memory/2026-11-16.md"
KEY = "agent:main:main"
BY_AGENT = Origin(actor="agent", kind="tool", trust="agent", session=KEY)


class Scene:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.workspace = folder / "ws"
        (self.workspace / "memory").mkdir(parents=True)
        (self.workspace / "MEMORY.md").write_text(PAGE)

    def open(self, review: str) -> Memory:
        return Memory.open(
            self.workspace,
            state_dir=self.folder / "state",
            provider="none",
            background=False,
            clock=lambda: datetime(2026, 11, 16, 12, 0, tzinfo=UTC),
            overrides={"memory.review": review},
        )

    @property
    def page(self) -> str:
        return (self.workspace / "MEMORY.md").read_text()

    @property
    def log(self) -> str:
        file = self.workspace / LOG
        return file.read_text() if file.exists() else ""


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


@pytest.fixture
def server() -> Iterator[ChatServer]:
    with ChatServer() as running:
        yield running


def append_tool(memory: Memory, **arguments: Any) -> Any:
    tools = {tool.name: tool for tool in memory.tools(KEY, append=True)}
    return tools["memory_append"].call(arguments)


# --- what a user does himself ---


@pytest.mark.parametrize("review", ["off", "curated", "all"])
def test_what_a_program_or_the_user_writes_never_waits(scene: Scene, review: str) -> None:
    with scene.open(review) as memory:
        memory.append("Tom likes tea.", to="MEMORY.md")
        memory.append("The router got a cable.")
        current = memory.workspace.read_exact("MEMORY.md")
        assert current is not None
        memory.replace("MEMORY.md", current.text + "- More.\n", current.hash)
        assert memory.review.list() == ()
    assert "Tom likes tea." in scene.page and "- More." in scene.page and "cable" in scene.log


# --- memory_append ---


def test_a_note_of_an_agent_for_the_page_waits_and_the_answer_says_so(scene: Scene) -> None:
    with scene.open("curated") as memory:
        answer = append_tool(memory, text="Tom likes tea.", to="MEMORY.md")
        assert answer == {
            "written": False,
            "proposal": "p1",
            "note": "MEMORY.md is not changed yet: this is kept as proposal p1. "
            "The user decides with `clawmark review`.",
        }
        assert scene.page == PAGE
        (proposal,) = memory.review.list()
        assert proposal.hunks[0].reason == f"The agent noted it in session {KEY}."
        assert append_tool(memory, text="Tom likes tea.", to="MEMORY.md")["proposal"] == "p1"
        memory.review.accept("p1")
        assert scene.page.startswith(PAGE + "- Tom likes tea.")


def test_a_rejected_note_is_refused_the_next_time(scene: Scene) -> None:
    with scene.open("curated") as memory:
        append_tool(memory, text="Tom likes tea.", to="MEMORY.md")
        memory.review.reject("p1")
        answer = append_tool(memory, text="Tom likes tea.", to="MEMORY.md")
        assert (answer["written"], answer["reason"]) == (False, "rejected")
        assert "rejected this text before" in answer["error"]


@pytest.mark.parametrize(("review", "waits"), [("off", False), ("curated", False), ("all", True)])
def test_a_note_for_the_log_waits_only_if_everything_does(
    scene: Scene, review: str, waits: bool
) -> None:
    with scene.open(review) as memory:
        answer = append_tool(memory, text="Tom likes tea.")
        assert answer["written"] is not waits
        assert bool(memory.review.list()) is waits
        assert ("Tom likes tea." in scene.log) is not waits
        if waits:
            memory.review.accept("p1")
            assert scene.log.startswith("# 2026-11-16")
            assert "Tom likes tea." in scene.log


def test_without_review_the_page_is_written(scene: Scene) -> None:
    with scene.open("off") as memory:
        assert append_tool(memory, text="Tom likes tea.", to="MEMORY.md")["written"] is True
    assert "Tom likes tea." in scene.page


# --- other doors ---


def test_an_append_with_the_origin_of_an_agent_or_a_plugin_waits(scene: Scene) -> None:
    with scene.open("curated") as memory:
        by_plugin = BY_AGENT._replace(actor="plugin")
        for number, origin in enumerate((BY_AGENT, by_plugin), 1):
            with pytest.raises(KeptForReview) as kept:
                memory.append(f"Fact {number}.", to="MEMORY.md", origin=origin)
            assert kept.value.proposal == f"p{number}"
        with pytest.raises(KeptForReview):
            memory.append("Fact 3.", to="./MEMORY.md", origin=BY_AGENT)
    assert scene.page == PAGE


def test_a_file_edit_of_the_chat_waits(scene: Scene) -> None:
    with scene.open("curated") as memory:
        files = FileTools(str(scene.workspace), str(scene.folder / "locks"), memory.workspace)
        tools = {tool.name: tool for tool in files.tools()}
        answer = tools["file_edit"].call({"path": "MEMORY.md", "old": "MySQL", "new": "SQLite"})
        assert "kept as proposal p1" in str(answer["error"])
        assert "clawmark review" in str(answer["action"])
        assert scene.page == PAGE
        memory.review.accept("p1")
        assert scene.page == PAGE.replace("MySQL", "SQLite")
        tools["file_write"].call({"path": "IDENTITY.md", "text": "I am Nora.\n"})
        assert (scene.workspace / "IDENTITY.md").exists()


@pytest.mark.parametrize("review", ["curated", "all"])
def test_the_memory_tool_of_anthropic_waits_only_if_everything_does(
    scene: Scene, review: str
) -> None:
    with scene.open(review) as memory:
        tool = Memories(memory.workspace)
        if review == "curated":
            tool.create("/memories/prefs.md", "Likes tea.\n")
            tool.delete("/memories/prefs.md")
            return
        (scene.workspace / "memory" / "old.md").write_text("Old.\n")
        with pytest.raises(KeptForReview, match="kept as proposal p1"):
            tool.create("/memories/prefs.md", "Likes tea.\n")
        with pytest.raises(KeptForReview):
            tool.str_replace("/memories/old.md", "Old", "New")
        with pytest.raises(PathDenied, match=r"memory\.review is all"):
            tool.delete("/memories/old.md")
        with pytest.raises(PathDenied, match=r"memory\.review is all"):
            tool.rename("/memories/old.md", "/memories/new.md")
        assert (scene.workspace / "memory" / "old.md").read_text() == "Old.\n"
        memory.review.accept("p1")
        assert (scene.workspace / "memory" / "prefs.md").read_text() == "Likes tea.\n"


@pytest.mark.parametrize(("review", "waits"), [("curated", False), ("all", True)])
def test_a_flush_waits_only_if_everything_does(
    scene: Scene, server: ChatServer, review: str, waits: bool
) -> None:
    server.script([call("memory_append", text="- Tom likes tea."), say("NO_REPLY")])
    model = choose_completer(f"scripted@{server.openai_url}", {})
    with scene.open(review) as memory:
        conversation = memory.conversation(KEY, completer=model)
        conversation.start()
        conversation.on_user("Tom likes tea, by the way.")
        conversation.on_usage(10, reply="Noted.")
        outcome = conversation.flush()
        assert isinstance(outcome, Flushed)
        assert outcome.proposals == (("p1",) if waits else ())
        assert bool(outcome.written) is not waits
        assert ("Tom likes tea." in scene.log) is not waits
        assert isinstance(conversation.flush(), SkipFlush)  # a flush that waits is done


@pytest.mark.parametrize(("review", "waits"), [("curated", False), ("all", True)])
def test_a_session_note_waits_only_if_everything_does(
    scene: Scene, review: str, waits: bool
) -> None:
    with scene.open(review) as memory:
        conversation = memory.conversation(KEY)
        conversation.start()
        conversation.on_user("We decided to move the launch of the ferry to March.")
        conversation.on_usage(10, reply="I will remember that the ferry starts in March.")
        outcome = conversation.end()
        notes = list((scene.workspace / "memory").glob("2026-11-16-*.md"))
        assert (len(notes), len(memory.review.list())) == ((0, 1) if waits else (1, 0))
        if waits:
            assert getattr(outcome, "because", "") == "for-review"
            memory.review.accept("p1")
            (note,) = (scene.workspace / "memory").glob("2026-11-16-*.md")
            assert "ferry to March" in note.read_text()


# --- pending text is not memory ---


def test_pending_text_is_neither_found_nor_shown_in_a_prompt(scene: Scene) -> None:
    with scene.open("curated") as memory:
        append_tool(memory, text="The zebra sleeps in the harbour.", to="MEMORY.md")
        memory.sync(force=True)
        assert not memory.search("zebra harbour", min_score=0).hits
        assert "zebra" not in memory.recall("Where does the zebra sleep?", KEY)
        assert "zebra" not in memory.prompt(KEY, append=True).text
        assert "zebra" not in repr(memory.status())
        assert memory.status().proposals == 1
        memory.review.accept("p1")
        assert memory.search("zebra harbour", min_score=0).hits


def test_a_proposal_of_an_earlier_version_is_taken_over(scene: Scene) -> None:
    with scene.open("curated") as memory:
        folder = Path(memory.places.conversations_dir)
        folder.mkdir(parents=True)
        new = PAGE.replace("MySQL", "SQLite")
        values = {"base_hash": "x", "old": PAGE, "new": new, "reasons": ["the log", ""]}
        (folder / "proposal.json").write_text(json.dumps(values))
        (proposal,) = memory.review.list()
        assert proposal.hunks[0].reason == "the log"
        assert not (folder / "proposal.json").exists()
        memory.review.accept("p1")
    assert scene.page == new


def test_captured_statements_wait_if_everything_does(tmp_path: Path) -> None:
    pytest.importorskip("lancedb")
    entry = {"config": {"autoCapture": True}}
    plugins = {"slots": {"memory": "memory-lancedb"}, "entries": {"memory-lancedb": entry}}
    (tmp_path / "state").mkdir()
    tree = {"memory": {"review": "all"}, "plugins": plugins}
    (tmp_path / "state" / "clawmark.json").write_text(json.dumps(tree))
    (tmp_path / "ws").mkdir()
    with Memory.open(
        tmp_path / "ws", state_dir=tmp_path / "state", provider="none", background=False
    ) as memory:
        tools = {tool.name: tool for tool in memory.tools(KEY, append=True)}
        answer = tools["memory_store"].call({"text": "Tom prefers green tea."})
        assert "kept as proposal p1" in str(answer["error"])
        hooks = memory.lifecycle(KEY)
        hooks.agent_end(
            [("user", "I always prefer to fly with a window seat."), ("assistant", "OK")]
        )
        texts = [hunk.new for one in memory.review.list() for hunk in one.hunks]
        assert len(texts) == 2 and "window seat" in texts[1]
        assert memory.plugins() and not list((tmp_path / "ws").rglob("*.md"))
        assert memory.status().plugin_problems == ()
