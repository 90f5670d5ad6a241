"""The language model protocol, its values, and the loop that runs the tools a model calls.

A host can hand in any object with the one method of `Completer`. `catalog.choose_completer` returns
the model that a name such as `openai:gpt-4o-mini` stands for, and `clawmark.testing` has a scripted
completer and the contract suite.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Literal, NamedTuple, Protocol, TypeAlias

from clawmark.agent.tools.base import Tool, render

__all__ = [
    "Completer",
    "Completion",
    "Message",
    "Role",
    "Tool",
    "ToolCall",
    "Turns",
    "complete_with_tools",
    "run_tool",
]

Role: TypeAlias = Literal["user", "assistant", "tool"]


class ToolCall(NamedTuple):
    """A request by the model to run a tool."""

    id: str
    name: str
    arguments: str
    """JSON as the model wrote it, possibly invalid."""


class Message(NamedTuple):
    """One message of a conversation; the system prompt is passed separately."""

    role: Role
    text: str
    calls: tuple[ToolCall, ...] = ()
    """The tools that an assistant message calls."""
    call_id: str = ""
    """The id of the call that a tool message answers."""


class Completion(NamedTuple):
    """A model's answer and its token counts; 0 where the service does not report them."""

    text: str
    calls: tuple[ToolCall, ...] = ()
    input_tokens: int = 0
    output_tokens: int = 0


class Completer(Protocol):
    """A language model. Calls may come from several threads."""

    def complete(
        self,
        system: str,
        messages: Sequence[Message],
        tools: Sequence[Tool] = (),
        *,
        seconds: float = 60.0,
    ) -> Completion:
        """Return the next message within `seconds`; raises CompletionError."""
        ...


class Turns(NamedTuple):
    """The result of `complete_with_tools`."""

    text: str
    """The text of the last answer."""
    added: tuple[Message, ...]
    """The messages added to the conversation, including tool calls and their results."""
    input_tokens: int
    """Input tokens of the last request, which holds the whole conversation."""
    output_tokens: int
    """Output tokens of all requests."""
    finished: bool
    """False if the model still called tools in the last request it was allowed."""


def complete_with_tools(
    completer: Completer,
    system: str,
    messages: Sequence[Message],
    tools: Sequence[Tool],
    most_turns: int = 8,
    *,
    seconds: float = 120.0,
    clock: Callable[[], float] = time.monotonic,
) -> Turns:
    """Ask the model and run the tools it calls until it answers without a call.

    Makes at most `most_turns` requests within `seconds` in total; raises CompletionError.
    """
    by_name = {tool.name: tool for tool in tools}
    added: list[Message] = []
    output = 0
    end = clock() + seconds
    step = 0
    while True:
        step += 1
        # Never zero: a completer reports by itself that it ran out of time.
        left = max(0.001, end - clock())
        answer = completer.complete(system, [*messages, *added], tools, seconds=left)
        added.append(Message("assistant", answer.text, answer.calls))
        results = [(run_tool(call, by_name), call.id) for call in answer.calls]
        added += [Message("tool", result, call_id=call_id) for result, call_id in results]
        output += answer.output_tokens
        if not answer.calls or step >= most_turns:
            return Turns(
                text=answer.text,
                added=tuple(added),
                input_tokens=answer.input_tokens,
                output_tokens=output,
                finished=not answer.calls,
            )


def run_tool(call: ToolCall, tools: Mapping[str, Tool]) -> str:
    """Run a tool and return its result as text, or an error text if there is no such tool."""
    tool = tools.get(call.name)
    if tool is None:
        error = f"There is no tool {call.name[:80]!r}."
        return render({"error": error, "action": f"Use one of: {', '.join(tools)}."})
    return render(tool.call(call.arguments))
