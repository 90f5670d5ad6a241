"""A completer over Anthropic's `POST {base}/v1/messages`.

In: messages and tools. Out: the text blocks as one text, and the tool_use blocks as calls. Results
of tools travel in a message of the user's, and neighbours of one role become one message, as that
service wants it."""

from __future__ import annotations

import json
from collections.abc import Sequence

from clawmark.agent.models.completer import Completion, Message, Tool, ToolCall
from clawmark.agent.models.request import ChatService, whole
from clawmark.agent.tools.base import as_anthropic

BASE_URL = "https://api.anthropic.com"
VERSION = "2023-06-01"
MOST_OUTPUT = 4096
"""Tokens; the service wants a limit, and every model of it allows this one."""

Block = dict[str, object]


class AnthropicChat:
    """A model of Anthropic's; safe to use from several threads."""

    def __init__(
        self, model: str, *, key: str = "", base_url: str = BASE_URL, most_output: int = MOST_OUTPUT
    ) -> None:
        self.model = model
        self._most = most_output
        headers = {"anthropic-version": VERSION, **({"x-api-key": key} if key else {})}
        self._service = ChatService(
            provider="anthropic",
            model=model,
            base_url=base_url.rstrip("/").removesuffix("/v1"),
            headers=headers,
            key=key,
        )

    def __repr__(self) -> str:
        return repr(self._service)

    def complete(
        self,
        system: str,
        messages: Sequence[Message],
        tools: Sequence[Tool] = (),
        *,
        seconds: float = 60.0,
    ) -> Completion:
        """Answer within `seconds`; raises CompletionError."""
        body: dict[str, object] = {
            "model": self.model,
            "max_tokens": self._most,
            "messages": _messages(messages),
        }
        if system:
            body["system"] = system
        if tools:
            body["tools"] = [as_anthropic(tool) for tool in tools]
        answer = self._service.post("/v1/messages", body, seconds)
        content = answer.get("content")
        if not isinstance(content, list) or "usage" not in answer:
            raise self._service.nonsense("without a message")
        blocks = [block for block in content if isinstance(block, dict)]
        texts = [block.get("text") for block in blocks if block.get("type") == "text"]
        usage = answer["usage"]
        usage = usage if isinstance(usage, dict) else {}
        return Completion(
            text="".join(text for text in texts if isinstance(text, str)),
            calls=_calls(blocks),
            input_tokens=sum(
                whole(usage.get(name))
                for name in (
                    "input_tokens",
                    "cache_read_input_tokens",
                    "cache_creation_input_tokens",
                )
            ),
            output_tokens=whole(usage.get("output_tokens")),
        )

    def close(self) -> None:
        self._service.close()


def _messages(messages: Sequence[Message]) -> list[Block]:
    merged: list[tuple[str, list[Block]]] = []
    for one in messages:
        role, blocks = ("user" if one.role == "tool" else one.role), _blocks(one)
        if not blocks:
            continue
        if merged and merged[-1][0] == role:
            merged[-1][1].extend(blocks)
        else:
            merged.append((role, blocks))
    if merged and merged[0][0] == "assistant":
        merged.insert(
            0, ("user", [{"type": "text", "text": "(The conversation began before this.)"}])
        )
    return [{"role": role, "content": blocks} for role, blocks in merged]


def _blocks(message: Message) -> list[Block]:
    """The parts of a message; a text of blanks is none, and would be refused."""
    if message.role == "tool":
        return [{"type": "tool_result", "tool_use_id": message.call_id, "content": message.text}]
    blocks: list[Block] = [{"type": "text", "text": message.text}] if message.text.strip() else []
    return blocks + [
        {"type": "tool_use", "id": call.id, "name": call.name, "input": _object(call.arguments)}
        for call in message.calls
    ]


def _object(arguments: str) -> object:
    try:
        value = json.loads(arguments)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _calls(blocks: Sequence[Block]) -> tuple[ToolCall, ...]:
    uses = [
        block
        for block in blocks
        if block.get("type") == "tool_use" and isinstance(block.get("name"), str)
    ]
    return tuple(
        ToolCall(
            str(use.get("id") or f"call_{number + 1}"),
            str(use["name"]),
            json.dumps(use.get("input") or {}),
        )
        for number, use in enumerate(uses)
    )
