"""Claude with its memory tool, whose files are a workspace: what it writes is Markdown, and found
by every other host.

    pip install 'clawmark[anthropic]'
    python examples/anthropic_memory.py ~/agent "What do you know about me?"

Needs `ANTHROPIC_API_KEY`; `ANTHROPIC_BASE_URL` names another server.
"""

from __future__ import annotations

import sys

from anthropic import Anthropic

from clawmark import Memory
from clawmark.adapters.anthropic import MemoryTool


def main(workspace: str, question: str, model: str = "claude-sonnet-4-5") -> None:
    with Memory.open(workspace) as memory, Anthropic() as client:
        runner = client.beta.messages.tool_runner(
            model=model,
            max_tokens=2048,
            system=memory.prompt().text,
            messages=[{"role": "user", "content": question}],
            tools=[MemoryTool(memory)],
            # Every turn sends the whole history; otherwise the service keeps it between turns.
            thread=False,
        )
        for block in runner.until_done().content:
            if block.type == "text":
                print(block.text)


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
