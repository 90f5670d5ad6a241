"""What went through every feature is gone after forgetting, and no feature brings it back."""

from __future__ import annotations

import hashlib
from contextlib import suppress
from pathlib import Path

import pytest
from forget_scene import (
    CANARY,
    CHAIRS,
    FROM_SESSION,
    KEPT,
    SECRET,
    completer_of,
    flush_answers,
    import_again,
    make_scene,
    open_memory,
    record,
    traces,
)
from scripted_session import KEY

from clawmark import Memory
from clawmark.agent.heartbeat.state import HeartbeatState, load_state, save_state
from clawmark.agent.review.box import ProposalBox
from clawmark.agent.review.hunks import Hunk, appended_hunk, hunk_hash
from clawmark.composition.heartbeat import heartbeat_file
from clawmark.composition.history.records import as_of_folder
from clawmark.history.journal import entry_hash
from clawmark.model.errors import ClawmarkError, NothingToUndo
from clawmark.model.provenance import Origin

LATER = "2099-01-01"
"""A day after every version: the history has the time of the machine, not of the scene."""
REPEATED = f"Grete always prefers the {CANARY} ferry to the island"
AGENT = Origin(actor="agent", kind="tool", trust="agent", session=KEY)
BY_CURATION = Origin(actor="agent", kind="curation", trust="agent", source="heartbeat")


def propose(box: ProposalBox, *hunks: Hunk, title: str = "Curate MEMORY.md") -> str:
    proposal = box.add(hunks, title=title, origin=BY_CURATION, base={"MEMORY.md": "0" * 64})
    assert proposal is not None
    return proposal.id


def use_every_feature(memory: Memory, folder: Path, text: str, note: str) -> list[str]:
    """Put a text through the features that the scene leaves out; return hashes of it."""
    box = memory.review
    rejected = appended_hunk("MEMORY.md", f"- Rejected: {text}.", f"The log says “{text}”.")
    propose(
        box,
        appended_hunk("MEMORY.md", f"- Pending: {text}.", f"The log says “{text}”.", (note,)),
        appended_hunk("MEMORY.md", "- The lighthouse is white and red.", "Said twice.", (note,)),
    )
    propose(box, appended_hunk("MEMORY.md", f"- {text}", "Said often."), title=f"About {text}")
    box.reject(propose(box, rejected), reason=f"{text} is private")
    current = memory.workspace.read_exact("MEMORY.md")
    assert current is not None
    accepted = box.accept(propose(box, appended_hunk("MEMORY.md", f"- So: {text}.", "Agreed.")))
    assert accepted is not None
    for day in ("2026-11-13", "2026-11-14", "2026-11-15"):
        memory.workspace.remember(f"{REPEATED}.", day, origin=AGENT)
    found = memory.consolidate(days=30, rules_only=True).proposal
    assert found is not None and any(CANARY in hunk.new for hunk in found.hunks)
    memory.workspace.append("memory/gone.md", f"- {text} for a while", origin=AGENT)
    record(memory, "third")
    memory.workspace.delete("memory/gone.md", origin=AGENT)
    memory.sync()
    tools = {tool.name: tool for tool in memory.tools(KEY, append=True)}
    for query in (text, REPEATED):
        assert tools["memory_search"].call({"query": query})["results"]
    assert memory.search(text, as_of=LATER).hits
    before = memory.history.read("MEMORY.md", memory.history.find(LATER).id)
    assert before is not None
    save_state(
        heartbeat_file(memory.places),
        HeartbeatState(
            seen={note.partition("#")[0]: "1" * 64, "MEMORY.md": hashlib.sha256(before).hexdigest()}
        ),
    )
    gone = f"- {text} for a while\n".encode()
    return [
        hunk_hash(rejected),
        entry_hash(f"- So: {text}."),
        hashlib.sha256(before).hexdigest(),
        hashlib.sha256(gone).hexdigest(),
        hashlib.sha256(b"# \n" + gone).hexdigest(),
    ]


def try_to_bring_back(memory: Memory, folder: Path, text: str) -> None:
    """Use everything that writes an earlier or a proposed text."""
    history = memory.history
    with suppress(NothingToUndo):
        for _ in range(50):
            history.undo(anyone=True)
    for entry in list(history.versions()):
        history.diff_of(entry.version)
        for path in ("MEMORY.md", "memory/gone.md", "memory/2026-11-16.md"):
            with suppress(ClawmarkError):
                history.restore(path, entry.version.id)
    for proposal in memory.review.list():
        memory.review.accept(proposal.id)
    memory.consolidate(days=30, rules_only=True)
    for source in ("markdown", "chatgpt"):
        import_again(memory, folder, source)
    with flush_answers(text) as server:
        conversation = memory.conversation(KEY, completer=completer_of(server))
        conversation.on_user("What is new in the harbour today?")
        conversation.on_usage(100, reply="Nothing much.")
        conversation.flush()
    memory.sync(force=True)
    record(memory, "later")
    memory.search("harbour", as_of=LATER)
    memory.search(text, as_of=LATER)


def holds(folder: Path, hashes: list[str]) -> list[str]:
    """Return the files that have one of some hashes."""
    return [
        str(path)
        for path in folder.rglob("*")
        if path.is_file() and any(one.encode() in path.read_bytes() for one in hashes)
    ]


@pytest.mark.parametrize("by", ["text", "session"])
def test_nothing_brings_back_what_went_through_every_feature(tmp_path: Path, by: str) -> None:
    session = make_scene(tmp_path)
    agent, state = tmp_path / "agent", tmp_path / "state"
    canary, text = (CANARY, SECRET) if by == "text" else (CHAIRS, FROM_SESSION)
    with open_memory(tmp_path) as memory:
        (note,) = (one.path for one in memory.workspace.scan().files if CHAIRS.lower() in one.path)
        hashes = use_every_feature(memory, tmp_path, text, f"{note}#L3")
        assert len(holds(state, hashes)) >= 3
        plan = memory.plan_forget(CANARY) if by == "text" else memory.plan_forget(session=session)
        assert {"proposal", "index", "journal", "history"} <= {one.kind for one in plan.found}
        assert as_of_folder(memory.places) in [one.where for one in plan.found]
        memory.forget(plan)
        assert traces(agent, state, canary=canary) == []
        assert holds(state, hashes) == []
        assert not Path(as_of_folder(memory.places)).exists()
        seen = load_state(heartbeat_file(memory.places)).seen
        assert set(seen) <= {note} if by == "text" else seen == {}
        left = [hunk.new for one in memory.review.list() for hunk in one.hunks]
        assert "- The lighthouse is white and red." in left
        try_to_bring_back(memory, tmp_path, text)
        assert traces(agent, state, canary=canary) == []
    assert traces(agent, state, canary=canary) == []
    assert KEPT in (agent / "MEMORY.md").read_text("utf-8")


def test_a_file_of_short_entries_is_gone_from_the_index_of_an_earlier_day(tmp_path: Path) -> None:
    make_scene(tmp_path)
    with open_memory(tmp_path) as memory:
        memory.append("PIN Gannet2", to="memory/pin.md")
        record(memory, "with the number")
        assert memory.search("PIN Gannet2", as_of=LATER).hits
        memory.forget(memory.plan_forget(path="memory/pin.md"))
    assert traces(tmp_path / "agent", tmp_path / "state", canary="Gannet2") == []


def test_the_indexes_of_versions_that_the_retention_removes_are_removed(tmp_path: Path) -> None:
    make_scene(tmp_path)
    settings: dict[str, object] = {"memory.history.maxMb": 1, "memory.history.maxDays": 0}
    with open_memory(tmp_path, **settings) as memory:
        memory.search(SECRET, as_of=LATER)
        folder = Path(as_of_folder(memory.places))
        assert list(folder.glob("*.sqlite"))
        noise = hashlib.shake_256(b"noise").hexdigest(1 << 20)
        (tmp_path / "agent" / "memory" / "noise.md").write_text(noise, encoding="utf-8")
        memory.history.record()
        known = {entry.version.id for entry in memory.history.versions()}
        assert {one.name.partition(".")[0] for one in folder.glob("*.sqlite")} <= known


def test_a_captured_entry_is_gone_from_the_history_and_the_proposals(tmp_path: Path) -> None:
    pytest.importorskip("lancedb")
    make_scene(tmp_path)
    settings: dict[str, object] = {"plugins.slots.memory": "memory-lancedb"}
    text = "Grete prefers the Kittiwake3003 ferry to the island"
    with open_memory(tmp_path, **settings) as memory:
        tools = {tool.name: tool for tool in memory.tools(KEY, append=True)}
        assert tools["memory_store"].call({"text": text})["action"] == "created"
        propose(memory.review, appended_hunk("MEMORY.md", f"- {text}.", "It was captured."))
        record(memory, "captured")
        memory.forget(memory.plan_forget("Kittiwake3003"))
        assert tools["memory_store"].call({"text": text})["reason"] == "forgotten"
        with suppress(NothingToUndo):
            memory.history.undo()
    assert traces(tmp_path / "agent", tmp_path / "state", canary="Kittiwake3003") == []
