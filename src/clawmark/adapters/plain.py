"""The memory's tools for programs that talk to OpenAI's or Anthropic's API themselves.

    box = Toolbox(memory)
    client.chat.completions.create(…, tools=box.openai())        # or messages.create(…, tools=box.anthropic())
    box.call(name, arguments)                                    # the text to send back

In: a memory, and the name and the arguments of a call as the model made them. Out: tool schemas,
and the text of a result; a call never raises. What the tools do is in `clawmark.agent.tools`. Needs
no extra."""

from __future__ import annotations

from clawmark.agent.tools import Payload, Tool, as_anthropic, as_openai, render
from clawmark.memory import Memory


class Toolbox:
    """`memory_search`, `memory_get` and, unless `append` is off, `memory_append`, for one session.

    The session key decides whom they answer; without one, it is the caller's own memory.
    """

    def __init__(
        self, memory: Memory, session_key: str | None = None, *, append: bool = True
    ) -> None:
        self.tools: tuple[Tool, ...] = tuple(memory.tools(session_key, append=append))

    def openai(self) -> list[Payload]:
        """The tools as OpenAI's chat completions take them."""
        return [as_openai(tool) for tool in self.tools]

    def anthropic(self) -> list[Payload]:
        """The tools as Anthropic's messages take them."""
        return [as_anthropic(tool) for tool in self.tools]

    def call(self, name: str, arguments: object) -> str:
        """What a tool answers; `arguments` is a mapping or the JSON text of one."""
        tool = next((tool for tool in self.tools if tool.name == name), None)
        if tool is None:
            known = ", ".join(tool.name for tool in self.tools)
            return render(
                {"error": f"There is no tool {name[:80]!r}.", "action": f"Call one of {known}."}
            )
        return render(tool.call(arguments))
