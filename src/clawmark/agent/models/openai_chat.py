"""A completer over `POST {base}/chat/completions`: OpenAI, and all who speak like it (Gemini,
Ollama, vLLM, LM Studio).

In: messages and tools. Out: the first choice. Only what every such server knows is sent: model,
messages, tools."""

from __future__ import annotations

import json
from collections.abc import Sequence

from clawmark.agent.models.completer import Completion, Message, Tool, ToolCall
from clawmark.agent.models.request import ChatService, whole
from clawmark.agent.tools.base import as_openai
from clawmark.net.headers import bearer

BASE_URL = "https://api.openai.com/v1"


class OpenAIChat:
    """A model behind an OpenAI-compatible address; safe to use from several threads."""

    def __init__(
        self, model: str, *, key: str = "", base_url: str = BASE_URL, provider: str = "openai"
    ) -> None:
        self.model = model
        self._service = ChatService(
            provider=provider,
            model=model,
            base_url=base_url.rstrip("/"),
            headers=bearer(key),
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
        body: dict[str, object] = {"model": self.model, "messages": _messages(system, messages)}
        if tools:
            body["tools"] = [as_openai(tool) for tool in tools]
        answer = self._service.post("/chat/completions", body, seconds)
        choices = answer.get("choices")
        first = choices[0] if isinstance(choices, list) and choices else None
        message = first.get("message") if isinstance(first, dict) else None
        if not isinstance(message, dict):
            raise self._service.nonsense("without a message")
        usage = answer.get("usage")
        usage = usage if isinstance(usage, dict) else {}
        return Completion(
            text=_text(message.get("content")),
            calls=_calls(message.get("tool_calls")),
            input_tokens=whole(usage.get("prompt_tokens")),
            output_tokens=whole(usage.get("completion_tokens")),
        )

    def close(self) -> None:
        self._service.close()


def _messages(system: str, messages: Sequence[Message]) -> list[dict[str, object]]:
    rendered: list[dict[str, object]] = [{"role": "system", "content": system}] if system else []
    for one in messages:
        if one.role == "tool":
            rendered.append({"role": "tool", "tool_call_id": one.call_id, "content": one.text})
        elif one.calls:
            calls = [
                {
                    "id": call.id,
                    "type": "function",
                    "function": {"name": call.name, "arguments": call.arguments},
                }
                for call in one.calls
            ]
            rendered.append({"role": one.role, "content": one.text or None, "tool_calls": calls})
        else:
            rendered.append({"role": one.role, "content": one.text})
    return rendered


def _text(content: object) -> str:
    """A text, or the texts of a list of parts, as some servers answer."""
    if isinstance(content, list):
        parts = [part.get("text") for part in content if isinstance(part, dict)]
        return "".join(part for part in parts if isinstance(part, str))
    return content if isinstance(content, str) else ""


def _calls(given: object) -> tuple[ToolCall, ...]:
    calls = []
    for number, one in enumerate(given if isinstance(given, list) else ()):
        function = one.get("function") if isinstance(one, dict) else None
        if not isinstance(function, dict) or not isinstance(function.get("name"), str):
            continue
        arguments = function.get("arguments")
        # Some servers send the object itself, and some no id.
        written = arguments if isinstance(arguments, str) else json.dumps(arguments or {})
        calls.append(
            ToolCall(str(one.get("id") or f"call_{number + 1}"), function["name"], written)
        )
    return tuple(calls)
