"""The memory's tools for programs that call OpenAI's or Anthropic's API themselves.

    box = Toolbox(memory)
    client.chat.completions.create(…, tools=box.openai())        # or box.anthropic()
    box.call(name, arguments)                                    # the text to send back

A call never raises. Needs no extra."""

from __future__ import annotations

from clawmark.agent.tools import Payload, Tool, as_anthropic, as_openai, render
from clawmark.memory import Memory


class Toolbox:
    """`memory_search`, `memory_get` and, unless `append` is off, `memory_append`, for one session.

    The session key decides what they may do; without one, it is the caller's own memory.
    """

    def __init__(
        self, memory: Memory, session_key: str | None = None, *, append: bool = True
    ) -> None:
        self.tools: tuple[Tool, ...] = tuple(memory.tools(session_key, append=append))

    def openai(self) -> list[Payload]:
        """Return the tools for OpenAI's chat completions."""
        return [as_openai(tool) for tool in self.tools]

    def anthropic(self) -> list[Payload]:
        """Return the tools for Anthropic's messages."""
        return [as_anthropic(tool) for tool in self.tools]

    def call(self, name: str, arguments: object) -> str:
        """Return the answer of a tool; `arguments` is a mapping or JSON text."""
        tool = next((tool for tool in self.tools if tool.name == name), None)
        if tool is None:
            names = ", ".join(tool.name for tool in self.tools)
            action = f"Call one of {names}." if names else "There are no tools."
            return render({"error": f"There is no tool {name[:80]!r}.", "action": action})
        return render(tool.call(arguments))
