"""Private memory stays with private sessions: every kind of key against every door, on a real
workspace with a real index.

Each private file holds a marker. A session that is not proven private must not meet one, neither in
its context nor in its prompt, by recall, by search or by reading (I-32). One that is proven must
meet them all, or the test would prove nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

import pytest

from clawmark import Memory
from clawmark.agent.notes.session_note import NoNote
from clawmark.agent.prompt.context import ContextReader
from clawmark.agent.session.conversation import HostOptions
from clawmark.agent.tools import render
from clawmark.agent.tools.policy import access_of
from clawmark.aio import AsyncMemory
from clawmark.testing import HashingEmbedder
from clawmark.text.transcripts.session_keys import kind_of

TODAY = "2026-02-24"
PRIVATE_FILES = {
    "MEMORY.md": "markermemory",
    "memory.md": "markerlower",
    "USER.md": "markeruser",
    f"memory/{TODAY}.md": "markertoday",
    "memory/2026-02-23.md": "markeryesterday",
    f"memory/{TODAY}-vendor.md": "markerslug",
    "memory/people.md": "markerpeople",
}
IN_PROMPT = sorted(set(PRIVATE_FILES.values()) - {"markerpeople"})
SEARCHED = sorted(set(PRIVATE_FILES.values()) - {"markeruser"})  # USER.md is read, and not searched

PRIVATE: list[tuple[str | None, str]] = [
    (None, ""),
    ("main", ""),
    ("agent:main:main", ""),
    ("AGENT:MAIN:Main", ""),
    ("agent:main:main", "direct"),
    ("agent:other:main", ""),
    ("agent:main:direct:ada", ""),
    ("agent:main:dm:ada", ""),
    ("agent:main:telegram:direct:12345", ""),
    ("agent:main:slack:acme:dm:U1", "dm"),
    ("agent:main:matrix:direct:@ada:example.org", ""),
    ("agent:main:whatsapp:direct:+4930123", ""),
]
SHARED: list[tuple[str | None, str]] = [
    # groups and channels
    ("agent:main:telegram:group:-100", ""),
    ("agent:main:telegram:GROUP:-100", ""),
    ("agent:main:telegram:supergroup:-100", ""),
    ("agent:main:discord:channel:77", ""),
    ("agent:main:discord:guild:1:channel:77", ""),
    ("agent:main:slack:channel:c1:thread:5", ""),
    ("agent:main:matrix:room:!x:example.org", ""),
    ("agent:main:telegram:broadcast:9", ""),
    # machines
    ("agent:main:cron:daily", ""),
    ("agent:main:cron:daily:run:8", ""),
    ("cron:daily", ""),
    ("agent:main:subagent:0b1c", ""),
    ("subagent:0b1c", ""),
    ("agent:main:subagent:0b1c:subagent:1c0b", ""),
    ("agent:main:hook:gmail", ""),
    # heartbeats of anything but a main session, and main ones that are said to be less private
    ("heartbeat", ""),
    ("agent:main:heartbeat", ""),
    ("agent:main:heartbeat:main", ""),
    ("agent:main:direct:heartbeat", ""),
    ("agent:main:main:main:heartbeat", ""),
    ("agent:main:main:heartbeat:heartbeat", ""),
    ("agent:main:main:heartbeat ", ""),
    ("agent:main:main: heartbeat", ""),
    ("agent:../x:main:heartbeat", ""),
    (":heartbeat", ""),
    ("agent:main:telegram:direct:5:heartbeat", ""),
    ("agent:main:telegram:direct:5", "heartbeat"),
    ("agent:main:telegram:group:-100:heartbeat", ""),
    ("agent:main:telegram:group:-100", "heartbeat"),
    ("agent:main:group:heartbeat", "heartbeat"),
    ("agent:main:heartbeat:group:5", "heartbeat"),
    ("agent:main:subagent:0b1c:heartbeat", ""),
    ("agent:main:cron:daily:heartbeat", "heartbeat"),
    ("agent:main:main:heartbeat", "group"),
    ("agent:main:main:heartbeat", "channel"),
    ("agent:main:main:heartbeat", "subagent"),
    ("agent:main:main:heartbeat", "p2p"),
    ("", "heartbeat"),
    ("whatever", "heartbeat"),
    ("agent:main:acp:direct:x", ""),
    # nested, forged
    ("agent:main:telegram:direct:5:subagent:0b1c", ""),
    ("agent:main:group:direct:5", ""),
    ("agent:main:telegram:group:direct:main", ""),
    ("agent:main:cron:main:main", ""),
    ("agent:main:main:thread:5", ""),
    ("agent:main:main:main", ""),
    ("agent:agent:main:main:group:1", ""),
    ("agent:../x:main", ""),
    ("agent:main:x:y:z:direct:5", ""),
    # missing and unknown
    ("", ""),
    (" ", ""),
    ("\n", ""),
    (":", ""),
    ("agent", ""),
    ("agent:", ""),
    ("agent:main", ""),
    ("agent:main:", ""),
    ("agent::main", ""),
    ("agent:main:direct", ""),
    ("agent:main:direct:", ""),
    ("direct:ada", ""),
    ("telegram:12345", ""),
    ("whatever", ""),
    # odd characters
    ("agent:main:main ", ""),
    ("agent:main:main\n", ""),
    ("agent:main:main\0", ""),
    ("agent:main:ma\u200bin", ""),
    ("agent:main:\uff4d\uff41\uff49\uff4e", ""),
    ("agent:main:m\u0430in", ""),
    ("agent:main:telegram:gr\u200boup:direct:5", ""),
    ("agent:main:telegram:\u202egroup:direct:5", ""),
    ("agent:main:main\udcff", ""),
    # what the host says about the chat
    ("agent:main:main", "group"),
    ("agent:main:telegram:direct:5", "channel"),
    ("", "direct"),
    (None, "group"),
    ("agent:main:main", "p2p"),
    ("agent:main:telegram:group:-100", "direct"),
    ("whatever", "main"),
]
HEARTBEATS: list[tuple[str | None, str]] = [
    ("agent:main:main:heartbeat", ""),
    ("AGENT:main:main:Heartbeat", ""),
    ("agent:other:main:heartbeat", ""),
    ("main:heartbeat", ""),
    ("agent:main:main:heartbeat", "heartbeat"),
    ("agent:main:main:heartbeat", "direct"),
    ("agent:main:main", "heartbeat"),
    ("main", "Heartbeat"),
    (None, "heartbeat"),
]


class Session(NamedTuple):
    """One session of the matrix."""

    key: str | None
    chat_type: str


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("scopes") / "agent"
    (root / "memory").mkdir(parents=True)
    for name, marker in PRIVATE_FILES.items():
        (root / name).write_text(f"# Notes\n\n- The {marker} is a kingfisher by the harbour.\n")
    for name in ("AGENTS.md", "SOUL.md", "TOOLS.md", "IDENTITY.md"):
        (root / name).write_text(f"# {name}\n\nWritten for everyone.\n")
    return root


def opened(workspace: Path, **overrides: object) -> Memory:
    return Memory.open(
        workspace,
        state_dir=workspace.parent / "state",
        embedder=HashingEmbedder(),
        clock=lambda: datetime(2026, 2, 24, 9, 30),
        overrides={f"memory.{name}": value for name, value in overrides.items()},
    )


@pytest.fixture(scope="module")
def memory(workspace: Path) -> Iterator[Memory]:
    with opened(workspace) as made:
        made.sync()
        yield made


def doors(memory: Memory, session: Session) -> dict[str, str]:
    """Everything a session can be shown, by the door it comes through."""
    key, chat_type = session
    tools = {tool.name: tool for tool in memory.tools(key, append=True, chat_type=chat_type)}
    search, get = tools["memory_search"], tools["memory_get"]
    markers = sorted(PRIVATE_FILES.values())
    return {
        "context": repr(
            ContextReader(str(memory.places.workspace)).read(
                kind_of(key, chat_type), TODAY, curates=access_of(key, chat_type=chat_type).curates
            )
        ),
        "prompt": memory.prompt(key, append=True, chat_type=chat_type).text,
        "recall": "\n".join(
            memory.recall(marker, key, chat_type=chat_type, min_score=0) for marker in markers
        ),
        "search": "\n".join(
            render(search.call({"query": marker, "minScore": 0})) for marker in markers
        ),
        "get": "\n".join(render(get.call({"path": path})) for path in PRIVATE_FILES),
    }


def met(text: str) -> list[str]:
    return sorted(marker for marker in PRIVATE_FILES.values() if marker in text)


def test_the_matrix_is_large_enough() -> None:
    assert len({*PRIVATE, *SHARED}) >= 60


@pytest.mark.parametrize(("key", "chat_type"), SHARED)
def test_no_door_shows_private_memory_to_a_session_that_is_not_proven_private(
    memory: Memory, key: str | None, chat_type: str
) -> None:
    shown = doors(memory, Session(key, chat_type))
    assert {door: met(text) for door, text in shown.items() if met(text)} == {}
    assert "kingfisher" not in "".join(shown.values())
    assert shown["recall"].strip() == ""
    assert "Memory is unavailable in shared sessions." in shown["search"]
    assert "Memory is unavailable in shared sessions." in shown["get"]
    assert (
        "memory_search" not in shown["prompt"]
        and str(memory.places.workspace) not in shown["prompt"]
    )


@pytest.mark.parametrize(("key", "chat_type"), PRIVATE)
def test_every_door_is_open_to_a_session_that_is_proven_private(
    memory: Memory, key: str | None, chat_type: str
) -> None:
    shown = doors(memory, Session(key, chat_type))
    assert met(shown["context"]) == met(shown["prompt"]) == IN_PROMPT
    assert met(shown["recall"]) == met(shown["search"]) == SEARCHED
    assert met(shown["get"]) == sorted(PRIVATE_FILES.values())
    assert "## Memory Recall" in shown["prompt"] and "## Memory Writing" in shown["prompt"]


@pytest.mark.parametrize(("key", "chat_type"), HEARTBEATS)
def test_the_heartbeat_of_a_main_session_looks_after_the_memory_and_nothing_else(
    memory: Memory, key: str | None, chat_type: str
) -> None:
    shown = doors(memory, Session(key, chat_type))
    without_user = sorted(set(IN_PROMPT) - {"markeruser"})
    assert met(shown["context"]) == met(shown["prompt"]) == without_user
    assert met(shown["search"]) == met(shown["get"]) == SEARCHED
    assert shown["recall"].strip() == "", "nothing was asked"
    assert "## Memory Recall" in shown["prompt"] and "## Memory Writing" in shown["prompt"]
    assert str(memory.places.workspace) not in shown["prompt"]


@pytest.mark.parametrize(("key", "chat_type"), HEARTBEATS)
def test_a_heartbeat_proposes_for_memory_md_and_leaves_no_note(
    tmp_path: Path, key: str | None, chat_type: str
) -> None:
    (tmp_path / "agent").mkdir()
    with opened(tmp_path / "agent") as memory:
        tools = memory.tools(key, append=True, chat_type=chat_type)
        append = next(tool for tool in tools if tool.name == "memory_append")
        kept = append.call({"text": "Billing runs on PostgreSQL.", "to": "MEMORY.md"})
        assert not (tmp_path / "agent" / "MEMORY.md").exists()
        memory.review.accept(str(kept["proposal"]))
        assert "PostgreSQL" in (tmp_path / "agent" / "MEMORY.md").read_text()
        host = HostOptions(chat_type=chat_type)
        conversation = memory.conversation(key or "main", host_options=host)
        conversation.start()
        conversation.on_user("Let us take Redis for the sessions, and nothing else.")
        conversation.on_usage(10, reply="Redis it is.")
        assert conversation.end() == NoNote("automatic")


@pytest.mark.parametrize(("key", "chat_type"), [one for one in SHARED if "heartbeat" in str(one)])
def test_another_heartbeat_has_no_tool_that_writes(
    memory: Memory, key: str | None, chat_type: str
) -> None:
    tools = memory.tools(key, append=True, chat_type=chat_type)
    assert [tool.name for tool in tools] == ["memory_search", "memory_get"]


def test_a_kind_that_is_allowed_may_search_and_read_and_its_prompt_stays_without(
    workspace: Path,
) -> None:
    with opened(workspace, sharedSessions=["subagent"]) as memory:
        shown = doors(memory, Session("agent:main:subagent:1", ""))
        assert met(shown["search"]) == met(shown["get"]) == SEARCHED
        assert met(shown["prompt"]) == met(shown["context"]) == met(shown["recall"]) == []
        assert "Source:" not in shown["search"]
        assert "## Memory Recall" in shown["prompt"] and "## Memory Writing" not in shown["prompt"]
        assert "Do not name files" in shown["prompt"]
        assert (
            met("".join(doors(memory, Session("agent:main:telegram:group:1", "")).values())) == []
        )


def test_the_prompt_speaks_of_citations_as_the_tool_gives_them(workspace: Path) -> None:
    for mode in ("auto", "on", "off"):
        with opened(workspace, citations=mode, sharedSessions=["group"]) as memory:
            for key in ("agent:main:main", "agent:main:telegram:group:1"):
                shown = doors(memory, Session(key, ""))
                assert ("Source: <path>#L<line>" in shown["prompt"]) == (
                    "Source: memory/" in shown["search"]
                )


def test_the_awaited_memory_keeps_the_same_doors_shut(workspace: Path) -> None:
    async def ask() -> str:
        async with AsyncMemory.open(
            workspace, state_dir=workspace.parent / "state", embedder=HashingEmbedder()
        ) as memory:
            prompt = await memory.prompt("agent:main:telegram:group:1")
            recalled = await memory.recall("kingfisher", "agent:main:telegram:group:1")
            answers = [
                await tool.call({"query": "kingfisher"})
                for tool in memory.tools("agent:main:telegram:group:1")
            ]
            return prompt.text + recalled + "".join(map(render, answers))

    assert "kingfisher" not in asyncio.run(ask())
