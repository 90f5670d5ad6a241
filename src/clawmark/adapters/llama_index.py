"""A memory block for LlamaIndex: recalled memory for the last message.

    block = ClawmarkMemoryBlock(memory=workspace)
    memory = Memory.from_defaults(session_id="carla", memory_blocks=[block])

Messages that LlamaIndex drops from its history are written to a transcript, where they can be
searched. Of the lifecycle hooks of memory plugins, `before_agent_start` is called for the last
message, and `before_compaction` when messages are dropped. Needs the extra `llama-index`."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from llama_index.core.base.llms.types import ChatMessage, MessageRole
from llama_index.core.bridge.pydantic import Field
from llama_index.core.memory.memory import BaseMemoryBlock

from clawmark.adapters.transcripts import open_transcript
from clawmark.memory import Memory


class ClawmarkMemoryBlock(BaseMemoryBlock[str]):
    """Recalled memory about the last message; may be empty."""

    name: str = Field(default="clawmark", description="The name of the memory block.")
    memory: Any = Field(description="The clawmark.Memory that is asked.", exclude=True, repr=False)
    session_key: str | None = Field(
        default=None, description="Whose session it is; only private ones are answered."
    )
    session_id: str = Field(
        default="llama-index", description="The transcript for messages without a session id."
    )
    max_results: int = Field(default=3, ge=1, description="How many passages are recalled at most.")

    async def _aget(self, messages: list[ChatMessage] | None = None, **block_kwargs: Any) -> str:
        text = next((text for text in map(_user_text, reversed(messages or ())) if text), "")
        if not text:
            return ""
        memory: Memory = self.memory
        return await asyncio.to_thread(
            memory.recall, text, self.session_key, max_results=self.max_results
        )

    async def _aput(self, messages: list[ChatMessage]) -> None:
        await asyncio.to_thread(self._log, messages)

    def _log(self, messages: Sequence[ChatMessage]) -> None:
        memory: Memory = self.memory
        memory.lifecycle(self.session_key).before_compaction()
        for message in messages:
            text = message.content or ""
            if not text.strip() or message.role not in (MessageRole.USER, MessageRole.ASSISTANT):
                continue
            session_id = str(message.additional_kwargs.get("session_id") or self.session_id)
            open_transcript(self.memory, session_id).add_message(
                "user" if message.role == MessageRole.USER else "assistant", text
            )


def _user_text(message: ChatMessage) -> str:
    return (message.content or "").strip() if message.role == MessageRole.USER else ""
