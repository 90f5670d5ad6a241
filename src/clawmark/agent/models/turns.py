"""A turn of a model with tools: the calls it asks for are carried out until it has said what it
wanted to say.

In: a completer, messages and tools. Out: the last text, everything that was added to the
conversation, and the tokens. A tool never raises and a tool that does not exist is an answer too,
so only the completer can fail here."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from clawmark.agent.models.completer import Completer, Message, Tool, ToolCall
from clawmark.agent.tools.base import render


class Turns(NamedTuple):
    """What a turn came to."""

    text: str
    """The last thing the model said."""
    added: tuple[Message, ...]
    """The messages that the turn added, its calls and their results included."""
    input_tokens: int
    """What the last request counted: the whole conversation so far."""
    output_tokens: int
    finished: bool
    """False when the model still wanted tools after the last step that it was given."""


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
    """Ask, call what is asked for, and ask again; at most `most_turns` requests and `seconds` in
    all.
    """
    by_name = {tool.name: tool for tool in tools}
    added: list[Message] = []
    output = 0
    end = clock() + seconds
    step = 0
    while True:
        step += 1
        # At least a moment is left to ask: a completer that is out of time says so itself.
        answer = completer.complete(
            system, [*messages, *added], tools, seconds=max(0.001, end - clock())
        )
        added.append(Message("assistant", answer.text, answer.calls))
        added += [Message("tool", _result(call, by_name), call_id=call.id) for call in answer.calls]
        output += answer.output_tokens
        if not answer.calls or step >= most_turns:
            return Turns(
                text=answer.text,
                added=tuple(added),
                input_tokens=answer.input_tokens,
                output_tokens=output,
                finished=not answer.calls,
            )


def _result(call: ToolCall, tools: dict[str, Tool]) -> str:
    tool = tools.get(call.name)
    if tool is None:
        return render(
            {
                "error": f"There is no tool {call.name[:80]!r}.",
                "action": f"Use one of: {', '.join(tools)}.",
            }
        )
    return render(tool.call(call.arguments))
