"""The OpenAI Agents SDK: tools that a real runner calls, and a session that is a transcript."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("agents")

from agents import Agent, RunConfig, Runner, Session, SessionSettings, SQLiteSession
from agents.testing import ScriptedModel, assistant_message, function_call

from clawmark import Memory
from clawmark.adapters.openai_agents import TranscriptSession, memory_tools
from clawmark.text.transcripts.records import read_message

USER = {"role": "user", "content": "Which database?"}
CALL = {
    "type": "function_call",
    "call_id": "c1",
    "name": "memory_search",
    "arguments": '{"query": "database"}',
}
RESULT = {"type": "function_call_output", "call_id": "c1", "output": "PostgreSQL"}
SAID = {
    "type": "message",
    "role": "assistant",
    "id": "m1",
    "status": "completed",
    "content": [{"type": "output_text", "text": "PostgreSQL, naïvely 🌸.", "annotations": []}],
}
ITEMS: list[Any] = [USER, CALL, RESULT, SAID]


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    (tmp_path / "agent" / "memory").mkdir(parents=True)
    (tmp_path / "agent" / "MEMORY.md").write_text(
        "# Facts\n\nWe chose PostgreSQL for billing.\n", encoding="utf-8"
    )
    with Memory.open(tmp_path / "agent", state_dir=tmp_path / "state") as opened:
        yield opened


def said(path: str) -> list[tuple[str, str]]:
    lines = Path(path).read_text(encoding="utf-8").splitlines()
    return [
        (one.role, one.text)
        for number, line in enumerate(lines, 1)
        if (one := read_message(line, number))
    ]


def test_a_runner_calls_the_tools_and_keeps_the_history(memory: Memory) -> None:
    model = ScriptedModel(
        [
            [function_call("memory_search", {"query": "database"}, call_id="c1")],
            [function_call("memory_append", {"text": "Billing is on PostgreSQL."}, call_id="c2")],
            [assistant_message("PostgreSQL.")],
            [assistant_message("Because of billing.")],
        ]
    )
    session = TranscriptSession(memory, "carla")
    assert isinstance(session, Session)

    async def talk() -> list[Any]:
        agent = Agent(name="a", model=model, tools=[*memory_tools(memory)])
        quiet = RunConfig(tracing_disabled=True)
        await Runner.run(agent, "Which database?", session=session, run_config=quiet)
        await Runner.run(agent, "Why?", session=session, run_config=quiet)
        return list(await session.get_items())

    items = asyncio.run(talk())
    outputs = [
        json.loads(item["output"]) for item in items if item.get("type") == "function_call_output"
    ]
    assert "We chose PostgreSQL" in outputs[0]["results"][0]["snippet"]
    assert outputs[1]["written"] is True
    assert said(session.path) == [
        ("user", "Which database?"),
        ("assistant", "PostgreSQL."),
        ("user", "Why?"),
        ("assistant", "Because of billing."),
    ]


def test_a_session_answers_as_the_sdks_own_does(memory: Memory, tmp_path: Path) -> None:
    async def tried(session: Session) -> list[object]:
        seen: list[object] = [await session.get_items(), await session.pop_item()]
        await session.add_items(ITEMS)
        await session.add_items([])
        seen += [
            await session.get_items(),
            await session.get_items(limit=2),
            await session.get_items(limit=99),
        ]
        seen += [await session.pop_item(), await session.get_items()]
        await session.add_items([SAID])
        seen.append(await session.get_items(1))
        await session.clear_session()
        seen += [await session.get_items(), await session.pop_item()]
        await session.clear_session()
        await session.add_items([USER])
        return [*seen, await session.get_items()]

    theirs = SQLiteSession("s", tmp_path / "theirs.db")
    try:
        assert asyncio.run(tried(TranscriptSession(memory, "s"))) == asyncio.run(tried(theirs))
    finally:
        theirs.close()


def test_another_process_continues_the_same_session(memory: Memory) -> None:
    asyncio.run(TranscriptSession(memory, "s").add_items(ITEMS[:2]))
    asyncio.run(TranscriptSession(memory, "s").add_items(ITEMS[2:]))
    session = TranscriptSession(memory, "s", session_settings=SessionSettings(limit=1))
    assert asyncio.run(session.get_items()) == [SAID]
    assert asyncio.run(session.get_items(limit=4)) == ITEMS
    records = [
        json.loads(line) for line in Path(session.path).read_text(encoding="utf-8").splitlines()
    ]
    assert [record["type"] for record in records] == [
        "session",
        "message",
        "custom",
        "custom",
        "message",
    ]
    assert [record["parentId"] for record in records[1:]] == [
        None,
        *(record["id"] for record in records[1:-1]),
    ]


def test_partial_line_left_by_a_crash_is_ignored(memory: Memory) -> None:
    session = TranscriptSession(memory, "s")
    asyncio.run(session.add_items(ITEMS))
    path = Path(session.path)
    path.write_bytes(path.read_bytes()[:-40])
    assert asyncio.run(session.get_items()) == ITEMS[:3]
    asyncio.run(session.add_items([SAID]))
    assert asyncio.run(session.get_items()) == ITEMS


def test_cleared_history_is_archived(memory: Memory) -> None:
    session = TranscriptSession(memory, "s")
    asyncio.run(session.add_items(ITEMS))
    asyncio.run(session.clear_session())
    aside = list(Path(session.path).parent.glob("s.jsonl.reset.*Z"))
    assert len(aside) == 1 and len(said(str(aside[0]))) == 2
    assert not Path(session.path).exists()


@pytest.mark.parametrize(
    "session_id",
    ["../../evil", "/etc/passwd", "", ".hidden", "a/b", "a\0b", "日本", "x" * 300, "\ud800"],
)
def test_no_session_id_leads_out_of_the_folder(memory: Memory, session_id: str) -> None:
    session = TranscriptSession(memory, session_id)
    asyncio.run(session.add_items([USER]))
    assert Path(session.path).parent == Path(memory.places.conversations_dir)
    assert asyncio.run(session.get_items()) == [USER]


def test_two_session_ids_never_share_a_file(memory: Memory) -> None:
    ids = ["a/b", "a b", "a-b", "a:b", "A/b", ""]
    assert len({TranscriptSession(memory, one).path for one in ids}) == len(ids)


def test_without_append_no_tool_writes(memory: Memory) -> None:
    assert [tool.name for tool in memory_tools(memory, append=False)] == [
        "memory_search",
        "memory_get",
    ]
    assert [tool.name for tool in memory_tools(memory)] == [
        "memory_search",
        "memory_get",
        "memory_append",
        "memory_forget",
    ]
