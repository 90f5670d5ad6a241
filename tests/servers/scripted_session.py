"""A workspace, a session with a transcript, and a scripted model, for the tests of the runtime."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from chat import ChatServer

from clawmark.agent.flush.flush import FlushParts, FlushSettings, SessionState
from clawmark.agent.models.catalog import choose_completer
from clawmark.agent.session.session import SessionStore, fresh_fields
from clawmark.text.secrets.redact import Redactor
from clawmark.workspace import Workspace

KEY = "agent:main:main"
NOON = datetime(2026, 11, 15, 12, 0, tzinfo=UTC)


class Clock:
    """A time that stands still until it is told to move."""

    def __init__(self, now: datetime = NOON) -> None:
        self.now = now

    def __call__(self) -> datetime:
        return self.now

    def advance(self, minutes: float) -> None:
        self.now += timedelta(minutes=minutes)


def line(role: str, text: str) -> str:
    message = {"role": role, "content": [{"type": "text", "text": text}]}
    return json.dumps({"type": "message", "timestamp": "2026-11-15T11:00:00Z", "message": message})


class ScriptedSession(NamedTuple):
    """One session of one agent."""

    folder: Path
    clock: Clock
    store: SessionStore
    workspace: Workspace

    @property
    def transcript(self) -> Path:
        return Path(self.store.folder) / "s1.jsonl"

    @property
    def log(self) -> str:
        """Today's log as it is on disk."""
        return self.read(f"memory/{self.clock.now.date().isoformat()}.md")

    def read(self, path: str) -> str:
        file = self.folder / "workspace" / path
        return file.read_text(encoding="utf-8") if file.exists() else ""

    def add_messages(self, *messages: tuple[str, str]) -> None:
        """Add messages to the transcript."""
        with open(self.transcript, "a", encoding="utf-8") as file:
            file.write("".join(line(role, text) + "\n" for role, text in messages))

    def state(self, **more: bool) -> SessionState:
        return SessionState(self.store.get(KEY), **more)

    def parts(
        self,
        server: ChatServer | None,
        window: int = 200_000,
        settings: FlushSettings | None = None,
    ) -> FlushParts:
        completer = choose_completer(f"scripted@{server.openai_url}", {}) if server else None
        return FlushParts(
            completer=completer,
            store=self.store,
            workspace=self.workspace,
            redactor=Redactor(),
            settings=settings or FlushSettings(),
            context_window=window,
            now=self.clock,
        )


def start_session(folder: Path, messages: Sequence[tuple[str, str]] = ()) -> ScriptedSession:
    """A new session, with some messages in its transcript."""
    (folder / "workspace").mkdir()
    store = SessionStore(str(folder / "sessions"))
    made = ScriptedSession(
        folder=folder,
        clock=Clock(),
        store=store,
        workspace=Workspace(str(folder / "workspace"), lock_dir=str(folder / "locks")),
    )
    store.update(KEY, **fresh_fields("s1", str(made.transcript), 1))
    made.add_messages(*messages)
    return made
