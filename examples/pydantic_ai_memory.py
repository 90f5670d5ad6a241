"""A Pydantic AI agent with a memory: one toolset brings the tools and the instructions.

    pip install 'clawmark[pydantic-ai]' 'pydantic-ai-slim[openai]'
    python examples/pydantic_ai_memory.py ~/agent "Which database did we pick?"

Needs `OPENAI_API_KEY`; `OPENAI_BASE_URL` names another server.
"""

from __future__ import annotations

import sys

from pydantic_ai import Agent

from clawmark import Memory
from clawmark.adapters.pydantic_ai import memory_toolset


def main(workspace: str, question: str, model: str = "openai-chat:gpt-4o-mini") -> None:
    with Memory.open(workspace) as memory:
        agent = Agent(model, toolsets=[memory_toolset(memory)])
        print(agent.run_sync(question).output)


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
