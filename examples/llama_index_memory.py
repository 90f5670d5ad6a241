"""A LlamaIndex memory with a block of ours: the prompt has what the workspace knows about the
message.

    pip install 'clawmark[llama-index]' openai
    python examples/llama_index_memory.py ~/agent "Which database did we pick?"

Needs `OPENAI_API_KEY`; `OPENAI_BASE_URL` names another server.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.memory import Memory as ChatMemory
from openai import AsyncOpenAI

from clawmark import Memory
from clawmark.adapters.llama_index import ClawmarkMemoryBlock


async def main(workspace: str, *questions: str) -> None:
    with Memory.open(workspace) as memory:
        # A small window, so that the example soon has something to write into its transcript.
        chat = ChatMemory.from_defaults(
            session_id="example",
            token_limit=200,
            chat_history_token_ratio=0.2,
            token_flush_size=20,
            memory_blocks=[ClawmarkMemoryBlock(memory=memory)],
        )
        async with AsyncOpenAI() as client:
            for question in questions:
                await chat.aput(ChatMessage(role="user", content=question))
                messages: list[Any] = [
                    {"role": one.role.value, "content": one.content} for one in await chat.aget()
                ]
                answer = await client.chat.completions.create(
                    model="gpt-4o-mini", messages=messages
                )
                reply = answer.choices[0].message.content or ""
                print(reply)
                await chat.aput(ChatMessage(role="assistant", content=reply))


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    asyncio.run(main(*sys.argv[1:]))
