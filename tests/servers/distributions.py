"""Memory plugins as real distributions in a folder: a module, and a `.dist-info` with an entry
point.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from clawmark import Memory
from clawmark.agent.plugins.base import GROUP

ACME = '''
"""A memory plugin that writes every call to a file."""
import json
import os

from clawmark.agent.plugins.base import Companions, FlushPolicy, LifecycleHooks
from clawmark.agent.tools import Tool


class Acme:
    def __init__(self, context):
        self.companions = Companions(**context.config.get("companions", {}))
        self.log = os.path.join(context.state_dir, "acme.jsonl")
        self.config = dict(context.config)
        self.context = context

    def tools(self, session, *, append):
        def call(given):
            return {"answer": "acme knows", "config": self.config.get("greeting", "")}

        return [Tool("acme_recall", "Recalls.", {"type": "object", "properties": {}}, call)]

    def prompt_section(self, session, tools):
        return "## Acme Memory\\n\\nCall acme_recall first." if "acme_recall" in tools else ""

    def flush_policy(self):
        return FlushPolicy(prompt="Acme flush into memory/acme/YYYY-MM-DD.md.",
                           log="memory/acme/YYYY-MM-DD.md")

    def note(self, hook, *what):
        with open(self.log, "a", encoding="utf-8") as file:
            file.write(json.dumps([hook, *what]) + "\\n")

    def hooks(self):
        def before(session, message):
            self.note("before_agent_start", session.key, message)
            return "Acme remembers " + message

        return LifecycleHooks(
            session_start=lambda session: self.note("session_start", session.key),
            before_agent_start=before,
            agent_end=lambda session, turn: self.note(
                "agent_end", session.key, turn.succeeded, [list(one) for one in turn.messages]
            ),
            before_compaction=lambda session: self.note("before_compaction", session.key),
            session_end=lambda session: self.note("session_end", session.key),
        )

    def close(self):
        self.note("close")


def make(context):
    return Acme(context)
'''
"""The code of a plugin that works."""


def install(folder: Path, name: str, code: str, **points: str) -> None:
    """Put a distribution into the folder as an installer would; its module has its name."""
    about = folder / f"{name}-1.2.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.2\n")
    lines = [f"{point} = {target}" for point, target in points.items()]
    (about / "entry_points.txt").write_text("\n".join([f"[{GROUP}]", *lines]) + "\n")
    (folder / f"{name}.py").write_text(code, encoding="utf-8")


@contextmanager
def on_path(folder: Path) -> Iterator[Path]:
    """Put a folder on the path; what was imported from it is forgotten afterwards."""
    folder.mkdir()
    known = set(sys.modules)
    sys.path.insert(0, str(folder))
    try:
        yield folder
    finally:
        sys.path.remove(str(folder))
        for name in set(sys.modules) - known:
            if (folder / f"{name}.py").exists():
                del sys.modules[name]


def open_with_slot(
    folder: Path, slot: str = "acme", entries: Mapping[str, object] | None = None, **more: Any
) -> Memory:
    """Open a memory with this plugin in its slot."""
    workspace, state = folder / "agent", folder / "state"
    (workspace / "memory").mkdir(parents=True, exist_ok=True)
    state.mkdir(exist_ok=True)
    (workspace / "MEMORY.md").write_text("# Facts\n\nAnn prefers green tea.\n", encoding="utf-8")
    tree = {"plugins": {"slots": {"memory": slot}, "entries": entries or {}}}
    (state / "clawmark.json").write_text(json.dumps(tree), encoding="utf-8")
    given: dict[str, Any] = {"provider": "none", "background": False, **more}
    return Memory.open(workspace, state_dir=state, **given)


def calls(folder: Path) -> list[list[Any]]:
    """Return the hooks that ACME was called with, in order."""
    file = folder / "state" / "acme.jsonl"
    text = file.read_text(encoding="utf-8") if file.exists() else ""
    return [json.loads(line) for line in text.splitlines()]
