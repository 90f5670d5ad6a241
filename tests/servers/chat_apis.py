"""The request and response formats of OpenAI's and Anthropic's chat APIs.

Requests that the real services refuse are refused here too: a tool result must answer a call, every
call must be answered, and no text block may be empty.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple


class Wrong(Exception):
    """Raised for a request that the real service would refuse."""


class Call(NamedTuple):
    """A tool call of the model; `arguments` may be a text that is not JSON."""

    name: str
    arguments: dict[str, Any] | str = "{}"
    id: str = ""

    @property
    def json(self) -> str:
        return self.arguments if isinstance(self.arguments, str) else json.dumps(self.arguments)


class Turn(NamedTuple):
    """The next answer, or how the server fails; token counts of 0 are estimated."""

    text: str = ""
    calls: tuple[Call, ...] = ()
    input_tokens: int = 0
    output_tokens: int = 0
    fault: str = ""


class Heard(NamedTuple):
    """One message of a request to either API."""

    role: str
    text: str
    calls: tuple[Call, ...] = ()
    call_id: str = ""


class Seen(NamedTuple):
    """A parsed request."""

    api: str
    model: str
    system: str
    messages: tuple[Heard, ...]
    tools: tuple[str, ...]
    stream: bool
    body: dict[str, Any]
    headers: dict[str, str]

    @property
    def last_user(self) -> str:
        """The last user message."""
        return next((one.text for one in reversed(self.messages) if one.role == "user"), "")

    @property
    def step(self) -> int:
        """How often the model has answered since the last user message."""
        count = 0
        for one in reversed(self.messages):
            if one.role == "user":
                return count
            count += one.role == "assistant"
        return count

    @property
    def results(self) -> list[str]:
        """The tool results since the last user message, oldest first."""
        found: list[str] = []
        for one in reversed(self.messages):
            if one.role == "user":
                break
            if one.role == "tool":
                found.insert(0, one.text)
        return found


def understand(path: str, data: bytes, headers: dict[str, str]) -> Seen | None:
    """Parse a request; None for an unknown path. Raises Wrong."""
    api = (
        "openai"
        if path.endswith("/chat/completions")
        else "anthropic"
        if path.endswith("/v1/messages")
        else ""
    )
    if not api:
        return None
    try:
        body = json.loads(data)
    except ValueError as error:
        raise Wrong("the body is not JSON") from error
    if (
        not isinstance(body, dict)
        or not isinstance(body.get("messages"), list)
        or not isinstance(body.get("model"), str)
    ):
        raise Wrong("model and messages are required")
    system, messages = _from_openai(body) if api == "openai" else _from_anthropic(body, headers)
    _check_results(messages)
    tools = tuple(
        tool["function"]["name"] if api == "openai" else tool["name"]
        for tool in body.get("tools") or ()
    )
    return Seen(
        api=api,
        model=body["model"],
        system=system,
        messages=tuple(messages),
        tools=tools,
        stream=bool(body.get("stream")),
        body=body,
        headers=headers,
    )


def _from_openai(body: dict[str, Any]) -> tuple[str, list[Heard]]:
    system: list[str] = []
    messages: list[Heard] = []
    for one in body["messages"]:
        role, text = one["role"], _text(one.get("content"))
        if role in ("system", "developer"):
            system.append(text)
        elif role == "tool":
            messages.append(Heard("tool", text, call_id=one["tool_call_id"]))
        elif role in ("user", "assistant"):
            calls = [
                Call(call["function"]["name"], call["function"]["arguments"], call["id"])
                for call in one.get("tool_calls") or ()
            ]
            messages.append(Heard(role, text, tuple(calls)))
        else:
            raise Wrong(f"there is no role {role!r}")
    return "\n".join(system), messages


def _from_anthropic(body: dict[str, Any], headers: dict[str, str]) -> tuple[str, list[Heard]]:
    if "anthropic-version" not in headers:
        raise Wrong("anthropic-version: header is required")
    if not isinstance(body.get("max_tokens"), int):
        raise Wrong("max_tokens: field required")
    roles = [one["role"] for one in body["messages"]]
    if roles[:1] != ["user"] or not set(roles) <= {"user", "assistant"}:
        raise Wrong(f"messages: roles are user and assistant, and user begins; not {roles}")
    messages: list[Heard] = []
    for one in body["messages"]:
        content = one["content"]
        parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
        for part in parts:
            if part["type"] == "tool_result":
                messages.append(
                    Heard("tool", _text(part.get("content")), call_id=part["tool_use_id"])
                )
            elif part["type"] == "text" and not part["text"].strip():
                raise Wrong("messages: text content blocks must be non-empty")
        text = "".join(part["text"] for part in parts if part["type"] == "text")
        calls = [
            Call(part["name"], part["input"], part["id"])
            for part in parts
            if part["type"] == "tool_use"
        ]
        if text or calls:
            messages.append(Heard(one["role"], text, tuple(calls)))
    return _text(body.get("system")), messages


def _text(content: object) -> str:
    if isinstance(content, list):
        return "".join(part.get("text", "") for part in content)
    return content if isinstance(content, str) else ""


def _check_results(messages: Sequence[Heard]) -> None:
    """Check that every call has one result right after it, and every result a call."""
    open_calls: set[str] = set()
    for one in messages:
        if one.role == "tool":
            if one.call_id not in open_calls:
                raise Wrong(f"the result {one.call_id!r} answers no call")
            open_calls.remove(one.call_id)
            continue
        if open_calls:
            raise Wrong(f"the calls {sorted(open_calls)} have no result")
        open_calls = {call.id for call in one.calls}
    if open_calls:
        raise Wrong(f"the calls {sorted(open_calls)} have no result")


# --- answers


def render(seen: Seen, turn: Turn) -> bytes:
    """Return the body of a response that is not streamed."""
    if seen.api == "openai":
        message: dict[str, Any] = {"role": "assistant", "content": turn.text or None}
        if turn.calls:
            message["tool_calls"] = [_openai_call(call) for call in turn.calls]
        choice = {
            "index": 0,
            "message": message,
            "finish_reason": "tool_calls" if turn.calls else "stop",
        }
        return _json(
            {
                **_openai_head(seen, "chat.completion"),
                "choices": [choice],
                "usage": _openai_usage(turn),
            }
        )
    content: list[dict[str, Any]] = [{"type": "text", "text": turn.text}] if turn.text else []
    content += [
        {"type": "tool_use", "id": call.id, "name": call.name, "input": json.loads(call.json)}
        for call in turn.calls
    ]
    usage = {"input_tokens": turn.input_tokens, "output_tokens": turn.output_tokens}
    return _json(
        {**_anthropic_head(seen), "content": content, "stop_reason": _stop(turn), "usage": usage}
    )


def events(seen: Seen, turn: Turn) -> Iterator[bytes]:
    """Yield the same answer as server-sent events, a few characters at a time."""
    yield from _openai_events(seen, turn) if seen.api == "openai" else _anthropic_events(seen, turn)


def refusal(api: str, status: int, message: str) -> bytes:
    """Return the body of an error response."""
    kind = {400: "invalid_request_error", 401: "authentication_error", 429: "rate_limit_error"}.get(
        status, "api_error"
    )
    code = None
    if "quota" in message:
        kind, code = ("billing_error", None) if api == "anthropic" else ("insufficient_quota",) * 2
    error = {"type": kind, "message": message}
    return _json(
        {"type": "error", "error": error}
        if api == "anthropic"
        else {"error": {**error, "code": code}}
    )


def _openai_events(seen: Seen, turn: Turn) -> Iterator[bytes]:
    head = _openai_head(seen, "chat.completion.chunk")

    def chunk(delta: dict[str, Any], finish: str | None = None) -> bytes:
        return _event({**head, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})

    yield chunk({"role": "assistant", "content": ""})
    for piece in _pieces(turn.text):
        yield chunk({"content": piece})
    for number, call in enumerate(turn.calls):
        opened = {
            "index": number,
            "id": call.id,
            "type": "function",
            "function": {"name": call.name, "arguments": ""},
        }
        yield chunk({"tool_calls": [opened]})
        for piece in _pieces(call.json):
            yield chunk({"tool_calls": [{"index": number, "function": {"arguments": piece}}]})
    yield chunk({}, "tool_calls" if turn.calls else "stop")
    if (seen.body.get("stream_options") or {}).get("include_usage"):
        yield _event({**head, "choices": [], "usage": _openai_usage(turn)})
    yield b"data: [DONE]\n\n"


def _anthropic_events(seen: Seen, turn: Turn) -> Iterator[bytes]:
    def event(kind: str, **fields: object) -> bytes:
        return _event({"type": kind, **fields}, kind)

    usage = {"input_tokens": turn.input_tokens, "output_tokens": 1}
    yield event(
        "message_start",
        message={**_anthropic_head(seen), "content": [], "stop_reason": None, "usage": usage},
    )
    blocks: list[tuple[dict[str, Any], str, str]] = []
    if turn.text:
        blocks.append(({"type": "text", "text": ""}, "text", turn.text))
    blocks += [
        ({"type": "tool_use", "id": one.id, "name": one.name, "input": {}}, "json", one.json)
        for one in turn.calls
    ]
    for number, (block, kind, text) in enumerate(blocks):
        yield event("content_block_start", index=number, content_block=block)
        for piece in _pieces(text):
            delta = {"type": "text_delta", "text": piece}
            if kind == "json":
                delta = {"type": "input_json_delta", "partial_json": piece}
            yield event("content_block_delta", index=number, delta=delta)
        yield event("content_block_stop", index=number)
    ended = {"stop_reason": _stop(turn), "stop_sequence": None}
    yield event("message_delta", delta=ended, usage={"output_tokens": turn.output_tokens})
    yield event("message_stop")


def _openai_head(seen: Seen, kind: str) -> dict[str, Any]:
    return {"id": "chatcmpl-1", "object": kind, "created": 1_700_000_000, "model": seen.model}


def _openai_call(call: Call) -> dict[str, Any]:
    return {
        "id": call.id,
        "type": "function",
        "function": {"name": call.name, "arguments": call.json},
    }


def _openai_usage(turn: Turn) -> dict[str, int]:
    total = turn.input_tokens + turn.output_tokens
    return {
        "prompt_tokens": turn.input_tokens,
        "completion_tokens": turn.output_tokens,
        "total_tokens": total,
    }


def _anthropic_head(seen: Seen) -> dict[str, Any]:
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": seen.model,
        "stop_sequence": None,
    }


def _stop(turn: Turn) -> str:
    return "tool_use" if turn.calls else "end_turn"


def _pieces(text: str, size: int = 7) -> Iterator[str]:
    return (text[at : at + size] for at in range(0, len(text), size))


def _event(body: dict[str, Any], name: str = "") -> bytes:
    return (f"event: {name}\n" if name else "").encode() + b"data: " + _json(body) + b"\n\n"


def _json(body: object) -> bytes:
    return json.dumps(body, separators=(",", ":")).encode()
