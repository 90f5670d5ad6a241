"""A memory in which a canary went through every feature, and a search for what is left of it."""

from __future__ import annotations

import json
import shutil
import sqlite3
import zlib
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from chat import ChatServer, call, say
from dulwich.repo import Repo
from scripted_session import KEY, Clock

from clawmark import Memory
from clawmark.agent.flush.flush import Flushed
from clawmark.agent.models.catalog import choose_completer
from clawmark.agent.models.completer import Completer
from clawmark.agent.notes.session_note import Noted
from clawmark.composition import history_folder
from clawmark.history.history import History
from clawmark.importers.run import run_import
from clawmark.model.provenance import Origin

CANARY = "Zebrafinch7731"
"""One word, so that the full-text index has it as a term."""
SECRET = f"The safe behind the piano opens with {CANARY} in José's house"
CHAIRS = "Oystercatcher4412"
"""Only said in the session, and written from it."""
FROM_SESSION = f"Anna ordered the {CHAIRS} chairs in a shop in Lisbon"
KEPT = "Ann prefers tea in the morning and coffee never"
NOW = datetime(2026, 11, 16, 14, 5, tzinfo=UTC)
SETTINGS: dict[str, object] = {"memorySearch.sources": ["memory", "sessions"]}


def open_memory(folder: Path, **more: object) -> Memory:
    """Open the memory of the scene."""
    return Memory.open(
        folder / "agent",
        state_dir=folder / "state",
        overrides=SETTINGS | more,
        clock=Clock(NOW),
        background=False,
    )


def make_scene(folder: Path) -> str:
    """Put the canary through the features; return the id of the session that it was said in."""
    (folder / "agent" / "memory").mkdir(parents=True)
    (folder / "agent" / "MEMORY.md").write_text(f"# Facts\n\n- {KEPT}.\n", encoding="utf-8")
    _make_exports(folder / "exports")
    with open_memory(folder) as memory:
        memory.append(SECRET)
        memory.append("The boat is painted every second spring by the harbour")
        record(memory, "first")
        _replace(memory, f"# Facts\n\n- {KEPT}.\n- {SECRET}.\n")
        _replace(memory, f"# Facts\n\n- {KEPT}.\n- {SECRET}, says Ann.\n- More.\n")
        session = _talk(memory)
        for source in ("markdown", "chatgpt"):
            assert import_again(memory, folder, source) == ["new"]
        memory.sync()
        memory.sync(force=True)
        record(memory, "second")
        _leave_copies(memory)
    with open_memory(folder) as memory:
        assert memory.search(SECRET).hits
    return session


def import_again(memory: Memory, folder: Path, source: str) -> list[str]:
    """Import an export of the scene, replacing what was edited; return what happened."""
    path = _export(folder, source)
    return [one.action for one in run_import(memory, source, path, overwrite=True)]


def _export(folder: Path, source: str) -> str:
    return str(folder / "exports" / ("notes" if source == "markdown" else "chatgpt.json"))


def _make_exports(folder: Path) -> None:
    (folder / "notes").mkdir(parents=True)
    (folder / "notes" / "house.md").write_text(
        f"# The house\n\n- The roof was mended in March by two people.\n- {SECRET}\n",
        encoding="utf-8",
    )
    message = {"author": {"role": "user"}, "content": {"content_type": "text", "parts": [SECRET]}}
    tree: dict[str, object] = {"a": {"message": message, "parent": None, "children": []}}
    one = {"id": "c-1", "title": "About a safe", "mapping": tree, "current_node": "a"}
    (folder / "chatgpt.json").write_text(json.dumps([one]), encoding="utf-8")


def flush_answers(text: str) -> ChatServer:
    """Return a model that writes a text in a flush and proposes it in a curation."""
    return ChatServer(
        lambda seen: call("memory_append", text=f"- {text}") if seen.step == 0 else say("NO_REPLY")
    )


def completer_of(server: ChatServer) -> Completer:
    """Return the model that a server plays."""
    return choose_completer(f"scripted@{server.openai_url}", {})


def _talk(memory: Memory) -> str:
    """Hold a conversation that is flushed, noted, archived and traced."""
    with flush_answers(f"Noted from the talk: {SECRET}.") as server:
        conversation = memory.conversation(
            KEY, completer=completer_of(server), context_window=10_000, append=True
        )
        conversation.start()
        conversation.on_user(f"Please keep in mind: {SECRET}. The weather is fine.")
        conversation.on_usage(9_000, reply=f"I will remember that {SECRET}.")
        assert isinstance(conversation.before_compaction(), Flushed)
        conversation.on_user(f"We also bought twelve {CHAIRS} chairs for the garden on Tuesday.")
        conversation.on_usage(100, reply=f"Twelve {CHAIRS} chairs, bought on Tuesday. Lovely.")
        transcript = Path(conversation.transcript)
        by_flush = Origin(
            actor="agent",
            kind="flush",
            trust="agent",
            session=KEY,
            source=f"{transcript.name} bytes 0-900",
        )
        memory.workspace.remember(FROM_SESSION, "2026-11-16", origin=by_flush)
        assert isinstance(conversation.end("new"), Noted)
    session = transcript.name.removesuffix(".jsonl")
    shutil.copy(transcript, transcript.with_name(f"{session}.trajectory.jsonl"))
    shutil.copy(transcript, transcript.with_name(f"{session}.jsonl.reset.2026-11-16T10-00-00Z"))
    arguments = json.dumps({"text": SECRET})
    blocks = [{"type": "toolCall", "name": "memory_append", "arguments": arguments}]
    line = {"type": "message", "message": {"role": "assistant", "content": blocks}}
    with transcript.with_name("other.jsonl").open("w", encoding="utf-8") as file:
        file.write(json.dumps({"type": "session", "version": 3, "id": "other"}) + "\n")
        file.write(json.dumps(line) + "\n" + f"not JSON: {SECRET}\n")
        text = {"role": "user", "content": [{"type": "text", "text": "The chairs are green."}]}
        file.write(json.dumps({"type": "message", "message": text}) + "\n")
    return session


def _replace(memory: Memory, text: str) -> None:
    current = memory.workspace.read_exact("MEMORY.md")
    assert current is not None
    memory.replace("MEMORY.md", text, current.hash, force=True)


def record(memory: Memory, reason: str) -> None:
    """Record a version of the workspace."""

    def read(path: str) -> bytes:
        return (Path(memory.workspace.root) / path).read_bytes()

    files = [one for one in memory.workspace.scan().files if one.source == "memory"]
    History(history_folder(memory.places)).record(files, read, reason)


def _leave_copies(memory: Memory) -> None:
    """Leave an edited copy, a proposal, a damaged index and a damaged history."""
    state = Path(memory.places.state_dir)
    (state / "edits" / "x1").mkdir(parents=True)
    (state / "edits" / "x1" / "MEMORY.md").write_text(f"- {SECRET}\n- {KEPT}\n", encoding="utf-8")
    agent = Path(history_folder(memory.places)).parent
    (agent / "sessions" / "proposal.json").write_text(
        json.dumps({"base_hash": "0", "old": "", "new": f"- {SECRET}\n", "reasons": ["log"]})
    )
    (agent / "proposals").mkdir()
    (agent / "proposals" / "p1.json").write_text(json.dumps({"hunks": [f"+- {SECRET}"]}))
    index = Path(memory.places.index_path)
    shutil.copy(index, index.with_name(f"{index.name}.corrupt-1"))
    shutil.copytree(agent / "history.git", agent / "history.git.damaged-1")
    with sqlite3.connect(agent / "as-of.sqlite") as database:
        database.execute("CREATE TABLE t (text)")
        database.execute("INSERT INTO t VALUES (?)", (SECRET,))


def traces(*folders: Path, canary: str = CANARY) -> list[str]:
    """Return every file that holds the canary: as text, UTF-16, JSON, or in a git object."""
    found = list[str]()
    for folder in folders:
        for path in sorted(one for one in folder.rglob("*") if one.is_file()):
            if any(_has(data, canary) for data in _forms(path)) or _has(
                str(path.relative_to(folder)).encode(), canary
            ):
                found.append(str(path.relative_to(folder)))
        for repo in folder.rglob("*.git*"):
            if (repo / "objects").is_dir():
                found += _git_traces(repo, canary)
    return found


def _forms(path: Path) -> Iterator[bytes]:
    data = path.read_bytes()
    yield data
    try:
        yield zlib.decompress(data)
    except zlib.error:
        return


def _has(data: bytes, canary: str) -> bool:
    lower = data.lower()
    wanted = canary.lower()
    return any(
        form in lower
        for form in (wanted.encode(), wanted.encode("utf-16-le"), wanted.encode("utf-16-be"))
    )


def _git_traces(folder: Path, canary: str) -> list[str]:
    with Repo(str(folder)) as repo:
        return [
            f"{folder.name}:{name.decode()}"
            for name in repo.object_store
            if _has(repo[name].as_raw_string(), canary)
        ]
