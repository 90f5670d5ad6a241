"""A workspace with the plugin memory-lancedb, for tests of the plugin and its backend."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from clawmark.agent.plugins.base import PluginContext, PluginSession, Turn, TurnMessage
from clawmark.agent.plugins.lancedb import make
from clawmark.agent.plugins.lancedb.plugin import LancePlugin
from clawmark.agent.tools.policy import access_of
from clawmark.embed.base import Embedder
from clawmark.testing import HashingEmbedder
from clawmark.text.secrets.redact import Redactor
from clawmark.workspace import Workspace

NOW = datetime(2026, 11, 16, 14, 5, tzinfo=UTC)
TODAY = "memory/captured/2026-11-16.md"
KEY = "agent:main:main"
MAIN = PluginSession(KEY, access_of(KEY))
GROUP = PluginSession("agent:main:discord:group:7", access_of("agent:main:discord:group:7"))


def plugin_in(
    folder: Path,
    config: Mapping[str, object] | None = None,
    *,
    embedder: Embedder | None = None,
    environ: Mapping[str, str] | None = None,
    agent_id: str = "main",
) -> LancePlugin:
    """Return the plugin over `folder/workspace`, with a hashing embedder unless told otherwise."""
    chosen = embedder or HashingEmbedder()
    (folder / "workspace" / "memory").mkdir(parents=True, exist_ok=True)
    return make(
        PluginContext(
            name="memory-lancedb",
            config=config or {},
            agent_id=agent_id,
            state_dir=str(folder / "state"),
            workspace=Workspace(
                str(folder / "workspace"), lock_dir=str(folder / "state" / "locks")
            ),
            redactor=Redactor(("configured-key-12345",)),
            environ=environ or {},
            now=lambda: NOW,
            search=_not_used,
            read=_not_used,
            embedder=lambda: chosen,
        )
    )


def call(
    plugin: LancePlugin, tool: str, session: PluginSession = MAIN, **arguments: object
) -> dict[str, Any]:
    """Call a tool of a session by its name."""
    tools = {one.name: one for one in plugin.tools(session, append=True)}
    return tools[tool].call(arguments)


def turn(*texts: str) -> Turn:
    """Return a finished turn with these messages of the user, and an answer."""
    asked = (TurnMessage("user", text) for text in texts)
    return Turn((*asked, TurnMessage("assistant", "Noted. I prefer short answers.")))


def captured_file(folder: Path) -> Path:
    """Return today's file of captured entries."""
    return folder / "workspace" / TODAY


def _not_used(*_: object, **__: object) -> Any:
    raise AssertionError("the plugin searches its own entries")
