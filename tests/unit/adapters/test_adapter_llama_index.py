"""LlamaIndex: the block recalls for the last message, and keeps what its memory drops."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("llama_index.core")

from llama_index.core.base.llms.types import ChatMessage, MessageRole
from llama_index.core.memory import Memory as ChatMemory
from llama_index.core.storage.chat_store.sql import MessageStatus
from sqlalchemy.ext.asyncio import create_async_engine

from clawmark import Memory
from clawmark.adapters.llama_index import ClawmarkMemoryBlock
from clawmark.adapters.transcripts import transcript_path
from clawmark.text.transcripts.records import read_message


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    (tmp_path / "agent" / "memory").mkdir(parents=True)
    (tmp_path / "agent" / "MEMORY.md").write_text(
        "# Facts\n\nWe chose PostgreSQL for billing.\n", encoding="utf-8"
    )
    with Memory.open(tmp_path / "agent", state_dir=tmp_path / "state") as opened:
        yield opened


@asynccontextmanager
async def chatting(memory: Memory, **how: Any) -> AsyncIterator[ChatMemory]:
    """LlamaIndex's memory with our block; its own database is closed at the end, which it leaves to
    whoever opened it.
    """
    engine = create_async_engine("sqlite+aiosqlite:///:memory:")
    try:
        blocks = [ClawmarkMemoryBlock(memory=memory)]
        yield ChatMemory.from_defaults(memory_blocks=blocks, async_engine=engine, **how)
    finally:
        await engine.dispose()


def user(text: str) -> ChatMessage:
    return ChatMessage(role=MessageRole.USER, content=text)


def agent(text: str) -> ChatMessage:
    return ChatMessage(role=MessageRole.ASSISTANT, content=text)


def said(memory: Memory, session_id: str) -> list[tuple[str, str]]:
    path = Path(transcript_path(memory, session_id))
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return [
        (one.role, one.text)
        for number, line in enumerate(lines, 1)
        if (one := read_message(line, number))
    ]


def test_a_chat_memory_shows_what_is_recalled_for_the_last_message(memory: Memory) -> None:
    async def asked() -> str:
        async with chatting(memory, session_id="s") as chat:
            await chat.aput(user("Hello"))
            await chat.aput(agent("Hello, what is it?"))
            await chat.aput(user("Which database did we pick for billing?"))
            return "\n".join(str(message.content) for message in await chat.aget())

    shown = asyncio.run(asked())
    assert "We chose PostgreSQL for billing." in shown and "MEMORY.md#L" in shown


def test_last_message_of_the_user_is_recalled_for(memory: Memory) -> None:
    block = ClawmarkMemoryBlock(memory=memory)
    asked = [user("Nothing of interest"), user("billing database"), agent("Let me see")]
    assert "PostgreSQL" in asyncio.run(block.aget(asked))
    assert asyncio.run(block.aget([])) == "" == asyncio.run(block.aget(None))
    assert asyncio.run(block.aget([agent("billing database")])) == ""


def test_a_group_chat_recalls_nothing(memory: Memory) -> None:
    block = ClawmarkMemoryBlock(memory=memory, session_key="agent:main:telegram:group:1")
    assert asyncio.run(block.aget([user("billing database")])) == ""


def test_what_the_chat_memory_drops_is_in_a_transcript(memory: Memory) -> None:
    async def talked() -> int:
        small: dict[str, Any] = {
            "token_limit": 100,
            "chat_history_token_ratio": 0.5,
            "token_flush_size": 20,
        }
        async with chatting(memory, session_id="carla", **small) as chat:
            for number in range(12):
                await chat.aput(user(f"Question {number} about the harbour and its old cranes"))
                await chat.aput(agent(f"Answer {number} about the harbour and its old cranes"))
            return len(await chat.aget_all(MessageStatus.ACTIVE))

    left = asyncio.run(talked())
    kept = said(memory, "carla")
    assert left < 24 and len(kept) + left == 24, "nothing is lost between the two"
    assert kept[0] == ("user", "Question 0 about the harbour and its old cranes")
    assert kept[1] == ("assistant", "Answer 0 about the harbour and its old cranes")


def test_only_messages_of_user_and_assistant_are_kept(memory: Memory) -> None:
    block = ClawmarkMemoryBlock(memory=memory, session_id="s")
    tool = ChatMessage(role=MessageRole.TOOL, content="rows: 17")
    system = ChatMessage(role=MessageRole.SYSTEM, content="You are helpful.")
    asyncio.run(block.aput([system, user("Hello"), tool, agent(""), agent("Good day")]))
    assert said(memory, "s") == [("user", "Hello"), ("assistant", "Good day")]


def test_a_block_that_takes_no_short_term_memory_writes_nothing(memory: Memory) -> None:
    block = ClawmarkMemoryBlock(memory=memory, session_id="s", accept_short_term_memory=False)
    asyncio.run(block.aput([user("Hello")], from_short_term_memory=True))
    assert said(memory, "s") == []
