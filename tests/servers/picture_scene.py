"""The memory that the pictures of the docs show: the notes of the demo, and what their use adds.

That is entries of an agent, edits, a proposal and conversations."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

from clawmark import Memory
from clawmark.agent.review.hunks import Because, appended_hunk, make_hunks
from clawmark.agent.session.conversation import HostOptions
from clawmark.agent.tools.base import render
from clawmark.model.provenance import Origin
from clawmark.workspace.sample import write_sample

MAIN = "agent:main:main"
GROUP = "agent:main:telegram:group:77"
BY_AGENT = Origin(actor="agent", kind="tool", trust="agent", session=MAIN)
BY_CURATION = Origin(actor="agent", kind="curation", trust="agent", session=MAIN)
FROM_WEB = Origin(actor="agent", kind="web", trust="external", session=MAIN)
SETTINGS = {"memorySearch": {"provider": "local"}, "agents": {"defaults": {"userTimezone": "UTC"}}}
TOPICS = {
    "USER.md": "# User\n\nInes Carvalho, Bergen. Call her Ines.\n",
    "AGENTS.md": "# Rules\n\nShort answers first, reasons after.\n",
    "memory/printing.md": (
        "# Printing plans for doors\n\nAmélie does it; see [[Schools]] and [[Two teachers]].\n\n"
        "- One page for each door, in black and white.\n- Ghent has eleven layers of tape.\n"
    ),
    "memory/schools.md": (
        "# Schools\n\n- Northgate Music School in Leeds: Grace Adeyemi.\n"
        "- Ghent: Madame Verhaeghe. See [printing](printing.md).\n- Trondheim: Solveig.\n"
    ),
    "memory/two-teachers.md": (
        "# Two teachers\n\nOne responsible teacher and helpers, as Grace Adeyemi says.\n"
        "Tomasz Wrona writes down what breaks; then the [[Restore drill]].\n"
    ),
    "memory/restore-drill.md": (
        "# Restore drill\n\nEvery month, by Tomasz Wrona, from the newest dump on `heron`.\n"
    ),
}


def build_scene(workspace: Path, state: Path) -> None:
    """Write the notes, use them as a person and an agent would, and index them."""
    workspace.mkdir()
    state.mkdir(mode=0o700)
    (state / "clawmark.json").write_text(json.dumps(SETTINGS), encoding="utf-8")
    late_morning = datetime.now(UTC).replace(hour=11, minute=20)  # after the entries of the day
    with Memory.open(
        workspace, state_dir=state, background=False, clock=lambda: late_morning
    ) as memory:
        write_sample(str(workspace), memory.now().date())
        for name, text in TOPICS.items():
            (workspace / name).write_text(text, encoding="utf-8")
        memory.sync()
        memory.history.record()
        _edit(memory)
        memory.sync()
        _talk(memory)
        _propose(memory)
        memory.sync()
        memory.history.record()


def _edit(memory: Memory) -> None:
    page = memory.workspace.read_exact("MEMORY.md")
    assert page is not None
    text = page.text.replace("11.4 kilos", "11.9 kilos").replace("30-day trial", "45-day trial")
    assert text != page.text
    memory.replace("MEMORY.md", text, page.hash)
    noon = memory.now().replace(hour=9, minute=5)
    memory.append("Release note for 2.4 is written; Oliver says the new symbols work.", at=noon)
    memory.append(
        "Decided: nynorsk waits until Solveig asks for it. Trondheim starts with bokmål.",
        at=noon + timedelta(minutes=35),
    )
    memory.append(
        "Ines wants the templates of the status page ready before Porto.",
        at=noon + timedelta(minutes=52),
        origin=BY_AGENT,
    )
    memory.append(
        "hetzner.example: maintenance of Falkenstein in the night to 2026-12-03.",
        at=noon + timedelta(minutes=90),
        origin=FROM_WEB,
    )


def _propose(memory: Memory) -> None:
    page = memory.workspace.read_exact("MEMORY.md")
    assert page is not None
    cited = (memory.now().date() - timedelta(days=2)).isoformat()
    agreed = "- Restore drill every month;"
    new = page.text.replace(agreed, "- Restore drill every month, next by Tomasz alone;")
    because = Because("Tomasz does the next drill without help.", (f"memory/{cited}.md#L15",))
    hunks = make_hunks("MEMORY.md", page.text, new, lambda _: because)
    more = appended_hunk(
        "MEMORY.md",
        "- A lesson has one responsible teacher, and helpers.",
        "Decided with Tomasz and Priya; Grace agrees.",
    )
    memory.review.add((*hunks, more), title="What this week settled", origin=BY_CURATION)


def _talk(memory: Memory) -> None:
    """Have a private conversation that searches and notes something, and one in a group."""
    talk = memory.conversation(MAIN, append=True, recall=True)
    talk.start()
    talk.on_user("Which foods are unsafe due to an allergy?")
    talk.on_usage(500, reply="Cashews and pistachios.")
    talk.on_user("And who looks after Biscuit in December?")
    search, *_ = memory.tools(MAIN)
    arguments = {"query": "who takes the dog while Ines is in Porto"}
    call = {"type": "toolCall", "id": "c1", "name": "memory_search", "arguments": arguments}
    talk.record("message", {"message": {"role": "assistant", "content": [call]}})
    answer = {"role": "toolResult", "toolCallId": "c1", "toolName": "memory_search"}
    content = [{"type": "text", "text": render(search.call(arguments))}]
    talk.record("message", {"message": {**answer, "content": content}})
    append = next(tool for tool in memory.tools(MAIN, append=True) if tool.name == "memory_append")
    append.call({"text": "Remind Ines on 2026-12-07 to bring smoked salmon to the Eides."})
    talk.on_usage(900, reply="The Eides take him, for smoked salmon. I will remind you.")
    group = memory.conversation(GROUP, host_options=HostOptions(chat_type="group"))
    group.start()
    group.on_user("Is there a lesson on Thursday?")
    group.on_usage(100, reply="Yes, at four.")
