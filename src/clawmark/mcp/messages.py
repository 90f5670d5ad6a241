"""Read and write JSON-RPC messages, more strictly than the SDK does.

Invalid JSON, a repeated key, an impossible number, and a request with an invalid id or method are
answered with an error and never interpreted. Both transports read through this module."""

from __future__ import annotations

import json
from typing import NamedTuple, TypeAlias

from mcp_types import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
)
from pydantic import ValidationError
from pydantic_core import PydanticSerializationError

from clawmark.mcp.strict_json import AmbiguousJson, NotJson, parse_json, replace_lone_surrogates

MessageType: TypeAlias = type[JSONRPCRequest | JSONRPCNotification | JSONRPCResponse | JSONRPCError]


class InvalidMessage(NamedTuple):
    """Why a message was rejected, as a JSON-RPC error."""

    code: int
    reason: str
    id: str | int | None = None

    def response(self) -> JSONRPCError:
        return JSONRPCError(
            jsonrpc="2.0", id=self.id, error=ErrorData(code=self.code, message=self.reason)
        )


def read_message(data: bytes) -> JSONRPCMessage | InvalidMessage:
    """Parse one message."""
    try:
        return _as_message(parse_json(data))
    except AmbiguousJson as error:
        return InvalidMessage(INVALID_REQUEST, str(error))
    except NotJson as error:
        return InvalidMessage(PARSE_ERROR, str(error))


def dump_message(message: JSONRPCMessage) -> bytes:
    """Serialize a message; text that UTF-8 cannot encode, as in file names, is made valid."""
    try:
        text: str = message.model_dump_json(by_alias=True, exclude_unset=True)
    except PydanticSerializationError:
        value = message.model_dump(by_alias=True, exclude_unset=True)
        text = replace_lone_surrogates(json.dumps(value, ensure_ascii=False))
    return text.encode("utf-8")


def _as_message(value: object) -> JSONRPCMessage | InvalidMessage:
    """Choose the message type by the keys, so a request with an odd id is not a notification."""
    if not isinstance(value, dict):
        return InvalidMessage(
            INVALID_REQUEST, "A message is one JSON object; batches are not part of this protocol."
        )
    given = value.get("id")
    known = given if isinstance(given, str | int) and not isinstance(given, bool) else None
    if "method" in value and not isinstance(value.get("params"), dict | None):
        return InvalidMessage(INVALID_PARAMS, "The params of a message are an object.", known)
    types: dict[str, MessageType] = {
        "method": JSONRPCRequest if "id" in value else JSONRPCNotification,
        "result": JSONRPCResponse,
        "error": JSONRPCError,
    }
    message_type = next((types[key] for key in types if key in value), None)
    if message_type is None:
        return InvalidMessage(
            INVALID_REQUEST, "A message has a method, a result or an error.", known
        )
    try:
        return message_type.model_validate(value, by_name=False)
    except ValidationError:
        return InvalidMessage(INVALID_REQUEST, "This is not a JSON-RPC 2.0 message.", known)
