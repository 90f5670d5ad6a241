"""A memory with sessions for tests of the web page: notes with links, a private conversation that
recalled, searched and wrote something, and a group."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from clawmark import Memory
from clawmark.agent.session.conversation import HostOptions
from clawmark.agent.tools.base import render
from clawmark.testing import HashingEmbedder

MAIN = "agent:main:main"
GROUP = "agent:main:telegram:group:77"
SECRET = "The safe opens with the birthday of Aunt Ottilie."
NOTES = {
    "MEMORY.md": f"# Facts\n\n- Ann prefers tea.\n- {SECRET}\n\nSee [ferry](memory/ferry.md).\n",
    "USER.md": "# User\n\nThe user is called Wilhelmina.\n",
    "AGENTS.md": "# Rules\n\nAnswer in one sentence.\n",
    "memory/ferry.md": "# The ferry\n\nBuilt by Anna Berg. See [[Crew list]] and [x](gone.md).\n",
    "memory/crew.md": "# Crew list\n\n- the captain Anna Berg\n",
    "memory/alone.md": "# Alone\n\nnothing here\n",
}


def write_notes(workspace: Path) -> None:
    for name, text in NOTES.items():
        path = workspace / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


@contextmanager
def open_scene(workspace: Path, state: Path, **settings: object) -> Iterator[Memory]:
    """Write the notes and open their memory."""
    state.mkdir(mode=0o700, exist_ok=True)
    given = {"memorySearch": {"provider": "none"}, **settings}
    (state / "clawmark.json").write_text(json.dumps(given), encoding="utf-8")
    write_notes(workspace)
    with Memory.open(workspace, state_dir=state, embedder=HashingEmbedder()) as memory:
        yield memory


def have_sessions(memory: Memory) -> None:
    """Have a private conversation that uses the memory, and one in a group."""
    memory.sync()  # recall does not wait for an index that is being built
    talk = memory.conversation(MAIN, append=True, recall=True)
    talk.start()
    talk.on_user("What does Ann prefer, tea or coffee?")
    search, *_ = memory.tools(MAIN)
    arguments = {"query": "what does Ann prefer"}
    call = {"type": "toolCall", "id": "c1", "name": "memory_search", "arguments": arguments}
    talk.record("message", {"message": {"role": "assistant", "content": [call]}})
    content = [{"type": "text", "text": render(search.call(arguments))}]
    answer = {"role": "toolResult", "toolCallId": "c1", "toolName": "memory_search"}
    talk.record("message", {"message": {**answer, "content": content}})
    append = next(tool for tool in memory.tools(MAIN, append=True) if tool.name == "memory_append")
    append.call({"text": "Ann is a keen rower and trains on Mondays."})
    talk.on_usage(500, reply="She prefers tea.")
    group = memory.conversation(GROUP, host_options=HostOptions(chat_type="group"))
    group.start()
    group.on_user("Hello from the group!")
    group.on_usage(100, reply="Hello!")
