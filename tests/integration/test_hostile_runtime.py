"""Flush and notes on hostile conversations: no secret, no mask, no tool's words and nothing
recalled becomes memory.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from chat import ChatServer, call, say
from hostile import cases, make, needs_maker, remove

from clawmark.agent.flush.daily_log import DailyLog
from clawmark.agent.flush.flush import Flushed, FlushSettings, run_flush
from clawmark.agent.models.catalog import choose_completer
from clawmark.agent.notes.session_note import (
    NoNote,
    Noted,
    NoteOutcome,
    NoteParts,
    NoteSettings,
    note_session,
)
from clawmark.agent.session.session import SessionStore, fresh_fields
from clawmark.agent.session.transcript_reader import recent_messages
from clawmark.text.secrets.redact import REMOVED, Redactor
from clawmark.workspace import Workspace

pytestmark = needs_maker
KEY = "agent:main:main"


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = make(tmp_path_factory.mktemp("hostile") / "tree")
    yield folder
    remove(folder)


@pytest.fixture
def server() -> Iterator[ChatServer]:
    with ChatServer() as made:
        yield made


def now() -> datetime:
    return datetime(2026, 11, 15, 12, 0, tzinfo=UTC)


def flush(workspace: Workspace, transcript: Path, server: ChatServer) -> Flushed:
    said = recent_messages(str(transcript), Redactor())
    log = DailyLog(workspace=workspace, now=now, redactor=Redactor(), session_key=KEY)
    return run_flush(
        choose_completer(f"m@{server.openai_url}", {}),
        said,
        log,
        FlushSettings(),
        now(),
        seconds=30,
    )


def note(tmp_path: Path, workspace: Workspace, transcript: Path, name: str) -> NoteOutcome:
    store = SessionStore(str(tmp_path / "sessions"))
    store.update(name, **fresh_fields(f"id-{name}", str(transcript), 1))
    settings = NoteSettings(messages=1000)
    return note_session(
        NoteParts(
            completer=None,
            store=store,
            workspace=workspace,
            redactor=Redactor(),
            settings=settings,
            now=now,
        ),
        name,
        reason="new",
    )


def line(text: str) -> str:
    return json.dumps({"type": "message", "message": {"role": "user", "content": text}})


def telling(text: str) -> list[str]:
    """The parts of a secret that must not be left: each line of it that is no heading of a key
    block.
    """
    return [one for one in text.splitlines() if one.strip() and not one.startswith("-----")]


def all_memory(workspace: Workspace) -> str:
    return "".join(file.read_text(encoding="utf-8") for file in Path(workspace.root).rglob("*.md"))


def test_no_secret_reaches_a_note_the_model_or_the_log(
    tree: Path, tmp_path: Path, server: ChatServer
) -> None:
    found = cases(tree, "secrets")
    assert len(found) == 33
    workspace = Workspace(str(tmp_path / "ws"), lock_dir=str(tmp_path / "locks"))
    Path(workspace.root).mkdir()
    transcript = tmp_path / "t.jsonl"
    transcript.write_text(
        "".join(line(f"case {name}: {case['input']}") + "\n" for name, case in found.items()),
        encoding="utf-8",
    )
    assert isinstance(note(tmp_path, workspace, transcript, "secrets"), Noted)
    items = [
        call("memory_append", text=f"- {name} is {case['input']}") for name, case in found.items()
    ]
    for start in range(0, len(items), 7):
        server.script([*items[start : start + 7], say("NO_REPLY")])
        flush(workspace, transcript, server)
    shown = "".join(seen.last_user for seen in server.seen)
    kept = all_memory(workspace)
    for name, case in found.items():
        for part in telling(case["input"]):
            assert part not in kept, name
            assert part not in shown, name
        assert f"case {name}" in kept and f"case {name}" in shown
    assert REMOVED in kept and "[redacted:" not in kept


def test_lookalikes_stay_as_they_are(tree: Path, tmp_path: Path) -> None:
    text = (tree / "workspace" / "memory" / "sec" / "lookalikes.md").read_text(encoding="utf-8")
    workspace = Workspace(str(tmp_path / "ws"))
    Path(workspace.root).mkdir()
    transcript = tmp_path / "t.jsonl"
    lines = [one for one in text.splitlines() if one.strip()]
    transcript.write_text("".join(line(one) + "\n" for one in lines), encoding="utf-8")
    note(tmp_path, workspace, transcript, "lookalikes")
    kept = all_memory(workspace)
    assert [one for one in lines if f"> {one.strip()}\n" not in kept] == []


MASKED = [
    "The key is [redacted:openai].",
    "token ****abcd",
    "password: ***",
    "sk-ab…cd12 was the key",
    "[REDACTED]",
]


@pytest.mark.parametrize("text", MASKED)
def test_a_mask_is_refused_by_a_flush_and_is_in_no_note(
    tmp_path: Path, server: ChatServer, text: str
) -> None:
    workspace = Workspace(str(tmp_path / "ws"))
    Path(workspace.root).mkdir()
    transcript = tmp_path / "t.jsonl"
    transcript.write_text(
        line("Please keep it.") + "\n" + line("it is [redacted:openai]") + "\n", encoding="utf-8"
    )
    server.script([call("memory_append", text=f"- {text}"), say("NO_REPLY")])
    outcome = flush(workspace, transcript, server)
    assert outcome.written == () and "redaction mask" in outcome.refused[0]
    assert isinstance(note(tmp_path, workspace, transcript, "masked"), Noted)
    assert "[redacted" not in all_memory(workspace)


def transcripts(tree: Path) -> dict[str, dict[str, Any]]:
    manifest = json.loads((tree / "manifest.json").read_text(encoding="utf-8"))
    return {
        item["id"]: item for item in manifest["items"] if item["path"].startswith("sessions/main/")
    }


def test_every_hostile_transcript_gives_a_note_or_none_and_no_canary(
    tree: Path, tmp_path: Path
) -> None:
    workspace = Workspace(str(tmp_path / "ws"))
    Path(workspace.root).mkdir()
    canaries = json.loads((tree / "manifest.json").read_text(encoding="utf-8"))["canaries"]
    outcomes = {
        name: note(tmp_path, workspace, tree / item["path"], name)
        for name, item in transcripts(tree).items()
    }
    assert {type(outcome) for outcome in outcomes.values()} == {Noted, NoNote}
    assert {"ts-empty", "ts-header-only", "ts-index-bad", "ts-link-out"} <= {
        name for name, outcome in outcomes.items() if isinstance(outcome, NoNote)
    }
    kept = all_memory(workspace)
    for name in ("outside", "other", "thinking"):
        assert canaries[name] not in kept
    for name in (
        "ts-good",
        "ts-malformed-middle",
        "ts-bad-utf8",
        "ts-lone-surrogate",
        "ts-nul",
        "ts-deep",
        "ts-bad-times",
    ):
        assert outcomes[name] != NoNote("empty"), f"{name}: its messages were not read"


def test_what_tools_said_and_what_was_recalled_is_not_kept(
    tree: Path, tmp_path: Path, server: ChatServer
) -> None:
    workspace = Workspace(str(tmp_path / "ws"))
    Path(workspace.root).mkdir()
    for name in ("injection", "recalled", "tools"):
        transcript = tree / "sessions" / "main" / f"{name}.jsonl"
        words = [
            part
            for row in transcript.read_text(encoding="utf-8").splitlines()
            for part in _tool_texts(row)
        ]
        note(tmp_path, workspace, transcript, name)
        server.script([say("NO_REPLY")])
        flush(workspace, transcript, server)
        seen = all_memory(workspace) + server.seen[-1].last_user
        assert [word for word in words if word in seen] == []
        assert "<relevant-memories>" not in seen, "a closing tag alone is the user's own"


def _tool_texts(row: str) -> list[str]:
    message = json.loads(row).get("message") or {}
    if message.get("role") not in ("toolResult", "bashExecution"):
        return []
    content = message.get("content") or message.get("output") or ""
    return (
        [content]
        if isinstance(content, str)
        else [block["text"] for block in content if block.get("text")]
    )
