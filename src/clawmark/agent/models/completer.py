"""What a language model is to Clawmark: a system prompt, messages and tools in; a text or tool
calls out.

One protocol with one method, so that a host can hand over the model it already talks to.
`openai_chat` and `anthropic_chat` are the two languages that ship with us, `turns` carries out the
calls a model asks for, and `models` finds the right one for a name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple, Protocol, TypeAlias

from clawmark.agent.tools.base import Tool

__all__ = ["Completer", "Completion", "Message", "Role", "Tool", "ToolCall"]

Role: TypeAlias = Literal["user", "assistant", "tool"]


class ToolCall(NamedTuple):
    """A tool a model wants called."""

    id: str
    name: str
    arguments: str
    """JSON, as the model wrote it; it may be wrong."""


class Message(NamedTuple):
    """One message of a conversation; the system prompt is none of them."""

    role: Role
    text: str
    calls: tuple[ToolCall, ...] = ()
    """What an assistant asked for."""
    call_id: str = ""
    """Which of the calls a tool's message answers."""


class Completion(NamedTuple):
    """What a model answered, and what it counted; 0 where it does not say."""

    text: str
    calls: tuple[ToolCall, ...] = ()
    input_tokens: int = 0
    output_tokens: int = 0


class Completer(Protocol):
    """A language model."""

    def complete(
        self,
        system: str,
        messages: Sequence[Message],
        tools: Sequence[Tool] = (),
        *,
        seconds: float = 60.0,
    ) -> Completion:
        """Answer within `seconds`, whatever happens; raises CompletionError."""
        ...
