"""Requests to chat models through pydantic-ai.

Opens connections, converts messages, tools and errors between our types and the library's, and
makes single requests for `catalog.ChatModel`. `clawmark chat` uses the same functions for its
streamed answers. The library takes a second to load, so this module is imported by the first
request and not before.
"""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import AsyncIterator, Sequence
from concurrent.futures import Future
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pydantic_ai
from pydantic_ai import ToolDefinition, exceptions
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import Model, ModelRequestParameters, create_async_httpx2_client
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.openai import OpenAIProvider

from clawmark.agent.models.catalog import ModelName
from clawmark.agent.models.completer import Completion, Message, Tool, ToolCall
from clawmark.agent.tools.base import one_line
from clawmark.model.errors import CompletionError, ContextTooLong
from clawmark.net.addresses import AddressRefused, allowed_addresses
from clawmark.system.log_records import get_logger
from clawmark.text.chunking.tokens import well_formed
from clawmark.text.secrets.redact import Redactor

pydantic_ai.BANNER_ENABLED = False

_log = get_logger("clawmark.agent")

PAUSES = (0.5, 1.0)
"""Seconds to wait before the second and the third attempt; a server may ask for more."""
MAX_RESPONSE_BYTES = 32 << 20

REQUEST_ERRORS = (exceptions.AgentRunError, exceptions.UserError, TimeoutError)
"""What is raised when a request fails; `translate_error` turns it into a CompletionError."""
_TEMPORARY_ERRORS = (
    exceptions.ModelRateLimitError,
    exceptions.ModelUnavailableError,
    exceptions.ModelServerError,
    exceptions.ModelConnectionError,
)
_NO_KEY = "none"
"""Given to the SDKs where there is no key, so that they do not look for one in the environment."""


# --- requests ------------------------------------------------------------------------------------


def complete(
    name: ModelName,
    key: str,
    system: str,
    messages: Sequence[Message],
    tools: Sequence[Tool],
    seconds: float,
) -> Completion:
    """Make one request, with retries, within `seconds`; raises CompletionError.

    The request runs in a thread with its own event loop, so that this function also works where an
    event loop is already running, and returns on time even if a name lookup hangs.
    """
    answered: Future[ModelResponse] = Future()

    async def run() -> None:
        try:
            async with asyncio.timeout(seconds):
                answered.set_result(await _request(name, key, system, messages, tools, seconds))
        except BaseException as error:  # also on KeyboardInterrupt
            # The boundary of the thread. A malformed answer raises any exception in the libraries.
            if not isinstance(error, REQUEST_ERRORS):
                facts = {"model": name.model, "error": type(error).__name__}
                _log.warning("a chat model's answer cannot be read", extra={"facts": facts})
            answered.set_exception(translate_error(error, name, key))

    threading.Thread(target=lambda: asyncio.run(run()), name="clawmark-model", daemon=True).start()
    response = answered.result()
    return Completion(
        text="".join(part.content for part in response.parts if isinstance(part, TextPart)),
        calls=tool_calls(response),
        input_tokens=response.usage.input_tokens,
        output_tokens=response.usage.output_tokens,
    )


async def _request(
    name: ModelName,
    key: str,
    system: str,
    messages: Sequence[Message],
    tools: Sequence[Tool],
    seconds: float,
) -> ModelResponse:
    end = asyncio.get_running_loop().time() + seconds
    parameters = ModelRequestParameters(function_tools=[tool_definition(tool) for tool in tools])
    async with connect(name, key, sdk_retries=0) as model:
        pauses = iter(PAUSES)
        while True:
            try:
                return await model.request(to_model_messages(messages, system), None, parameters)
            except _TEMPORARY_ERRORS as error:
                pause = next(pauses, None)
                if pause is None:
                    raise
                pause = max(pause, error.retry_after or 0.0)
                if asyncio.get_running_loop().time() + pause >= end:
                    raise
                await asyncio.sleep(pause)


@asynccontextmanager
async def connect(name: ModelName, key: str, *, sdk_retries: int = 2) -> AsyncIterator[Model]:
    """Open a model with an HTTP client of its own. Redirects are not followed."""
    async with create_async_httpx2_client() as client:
        client.event_hooks["request"] += [_check_address, *([] if key else [_remove_key])]
        client.event_hooks["response"] += [_limit_response]
        yield _open_model(name, key or _NO_KEY, client, sdk_retries)


def _open_model(name: ModelName, key: str, client: httpx2.AsyncClient, retries: int) -> Model:
    if name.provider == "anthropic":
        # The SDK adds the version to the path.
        base_url = name.base_url.removesuffix("/v1")
        anthropic = AnthropicProvider(api_key=key, base_url=base_url, http_client=client)
        anthropic.client.max_retries = retries
        return AnthropicModel(name.model, provider=anthropic)
    openai = OpenAIProvider(api_key=key, base_url=name.base_url, http_client=client)
    openai.client.max_retries = retries
    return OpenAIChatModel(name.model, provider=openai)


class _BlockedAddress(httpx2.ConnectError):
    """The address of the service is not one that may be connected to."""


async def _check_address(request: httpx2.Request) -> None:
    """Refuse a host name that resolves to a cloud metadata or link-local address."""
    loop = asyncio.get_running_loop()
    try:
        found = await loop.getaddrinfo(request.url.host, None, type=socket.SOCK_STREAM)
        allowed_addresses([str(address[0]) for *_, address in found])
    except AddressRefused as error:
        raise _BlockedAddress(f"its name resolves to {error.reason}") from None
    except OSError:
        return  # left to the connection, or to a proxy that can resolve the name


async def _remove_key(request: httpx2.Request) -> None:
    for header in ("authorization", "x-api-key"):
        request.headers.pop(header, None)


async def _limit_response(response: httpx2.Response) -> None:
    assert isinstance(response.stream, httpx2.AsyncByteStream)
    response.stream = _LimitedStream(response.stream)


class _LimitedStream(httpx2.AsyncByteStream):
    """A response body that fails when it is longer than MAX_RESPONSE_BYTES."""

    def __init__(self, stream: httpx2.AsyncByteStream) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for chunk in self._stream:
            size += len(chunk)
            if size > MAX_RESPONSE_BYTES:
                raise httpx2.ReadError("the response is too large")
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()


# --- messages and tools --------------------------------------------------------------------------


def to_model_messages(messages: Sequence[Message], system: str = "") -> list[ModelMessage]:
    """Convert a conversation; neighbours of one role become one message, blank texts are left out.

    Services refuse text that is not valid Unicode, empty text, and a conversation that begins with
    the assistant.
    """
    names = {call.id: call.name for message in messages for call in message.calls}
    found: list[ModelMessage] = []
    if system.strip():
        found.append(ModelRequest(parts=[SystemPromptPart(well_formed(system))]))
    if messages and messages[0].role == "assistant":
        messages = [Message("user", "(The conversation began before this.)"), *messages]
    for message in messages:
        text = well_formed(message.text)
        parts: list[Any] = []
        if message.role == "tool":
            name = names.get(message.call_id, "tool")
            parts.append(ToolReturnPart(name, text, message.call_id))
        elif text.strip():
            parts.append(TextPart(text) if message.role == "assistant" else UserPromptPart(text))
        parts += [
            ToolCallPart(call.name, well_formed(call.arguments), call.id) for call in message.calls
        ]
        kind = ModelResponse if message.role == "assistant" else ModelRequest
        if parts and found and isinstance(found[-1], kind):
            found[-1].parts = [*found[-1].parts, *parts]
        elif parts:
            found.append(kind(parts=parts))
    return found


def tool_calls(response: ModelResponse) -> tuple[ToolCall, ...]:
    """Return the calls of an answer; arguments that are not valid JSON are passed on unchanged."""
    return tuple(
        ToolCall(
            id=call.tool_call_id,
            name=call.tool_name,
            arguments=call.args if isinstance(call.args, str) else call.args_as_json_str(),
        )
        for call in response.tool_calls
    )


def tool_definition(tool: Tool) -> ToolDefinition:
    return ToolDefinition(
        name=tool.name,
        description=tool.description,
        parameters_json_schema=tool.parameters,
        strict=False,
        sequential=True,
    )


# --- errors --------------------------------------------------------------------------------------

_AGAIN = "Try again in a moment."
_MESSAGES: tuple[tuple[type[Exception], str, str], ...] = (
    (
        exceptions.ModelAuthenticationError,
        "does not accept the key",
        "Check the key and what its account may use.",
    ),
    (
        exceptions.ModelQuotaExceededError,
        "reports that the quota is used up",
        "Check the account of the key.",
    ),
    (exceptions.ModelRateLimitError, "received too many requests", _AGAIN),
    (exceptions.ModelUnavailableError, "is overloaded", _AGAIN),
    (
        exceptions.ModelServerError,
        "failed",
        "Try again; if it keeps failing, check the status of the service.",
    ),
    (
        exceptions.ModelNotFoundError,
        "was not found",
        "Check the name of the model and the address of its service.",
    ),
    (exceptions.ModelTimeoutError, "did not answer in time", "Try again, or use another model."),
    (TimeoutError, "did not answer in time", "Try again, or use another model."),
    (exceptions.ModelConnectionError, "cannot be reached", "Check the connection and the address."),
    (
        exceptions.UsageLimitExceeded,
        "kept calling tools without an answer",
        "Ask for less at once.",
    ),
    (
        exceptions.ModelRequestRejectedError,
        "refused the request",
        "Check the name of the model; if it worked before, start a new conversation.",
    ),
)
"""The end of the message and the hint for each kind of error; the first match counts."""
_MAX_QUOTED_CHARS = 200


def translate_error(error: BaseException, name: ModelName, key: str) -> CompletionError:
    """Return the CompletionError for an error of the library.

    Its message quotes the status and the text of the service, on one line and without the key.
    """
    label = f"{name.provider}:{name.model}" if name.provider else name.base_url
    fields = {"provider": name.provider or "model", "model": name.model}
    if isinstance(error, exceptions.ModelContextWindowExceededError):
        return ContextTooLong(
            f"The messages do not fit the context window of {label}.",
            **fields,
            hint="Send fewer or shorter messages.",
        )
    if isinstance(error, exceptions.ModelConnectionError) and error.phase == "read":
        message = f"{label} closed the connection before the answer was complete."
        return CompletionError(message, **fields, hint=_AGAIN)
    cause = error.__cause__.__cause__ if error.__cause__ is not None else None
    if isinstance(cause, _BlockedAddress):
        message = f"{label} cannot be used: {cause}."
        return CompletionError(message, **fields, hint="Check the address.")
    for kind, words, hint in _MESSAGES:
        if isinstance(error, kind):
            return CompletionError(f"{label} {words}{_reply(error, key)}.", **fields, hint=hint)
    reason = _quoted(getattr(error, "message", ""), key)
    return CompletionError(
        f"{label} did not return a usable answer{f': {reason}' if reason else ''}.",
        **fields,
        hint="Try again; if it keeps failing, check that the address is that of a chat service.",
    )


def _reply(error: BaseException, key: str) -> str:
    """Return the service's status and message, as in ` (HTTP 500: out of memory)`."""
    if not isinstance(error, exceptions.ModelHTTPError):
        return ""
    said = _quoted(_message_in(error.body), key)
    return f" (HTTP {error.status_code}: {said})" if said else f" (HTTP {error.status_code})"


def _message_in(body: object) -> str:
    """Find the message in the body of an error; services use different names for it."""
    if isinstance(body, dict):
        found = (_message_in(body.get(name)) for name in ("message", "error", "detail"))
        return next((said for said in found if said), "")
    return body if isinstance(body, str) and not body.lstrip().startswith("<") else ""


def _quoted(text: str, key: str) -> str:
    # Redacted before it is shortened: half a key would not be recognised.
    redacted = Redactor([key] if key else []).clean(" ".join(text.split()))
    return one_line(redacted, _MAX_QUOTED_CHARS).rstrip(".")
