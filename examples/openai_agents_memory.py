"""An agent of the OpenAI Agents SDK with a memory: it searches, notes, and goes on where it was.

    pip install 'clawmark[openai-agents]'
    python examples/openai_agents_memory.py ~/agent "Which database did we pick?"

Needs `OPENAI_API_KEY`; `OPENAI_BASE_URL` names another server.
"""

from __future__ import annotations

import asyncio
import sys

from agents import Agent, OpenAIChatCompletionsModel, Runner, set_tracing_disabled
from openai import AsyncOpenAI

from clawmark import Memory
from clawmark.adapters.openai_agents import TranscriptSession, memory_tools


async def main(workspace: str, question: str, model: str = "gpt-4o-mini") -> None:
    set_tracing_disabled(
        True
    )  # otherwise what is said is also sent to the service that keeps traces
    with Memory.open(workspace) as memory:
        async with AsyncOpenAI() as client:
            agent = Agent(
                name="assistant",
                instructions=memory.prompt(append=True).text,
                model=OpenAIChatCompletionsModel(model, client),
                tools=[*memory_tools(memory)],
            )
            answer = await Runner.run(agent, question, session=TranscriptSession(memory, "example"))
            print(answer.final_output)


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    asyncio.run(main(*sys.argv[1:]))
