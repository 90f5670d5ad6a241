"""The bytes of one JSON-RPC message in; the SDK's message out, or the reason it is refused. And
back.

Stricter than the SDK: what is not JSON by the letter, holds a key twice or an impossible number, or
is a request whose id or method cannot be one, is answered with an error and never guessed at. Both
transports read through here; parsing the JSON is left to `strict_json`."""

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

from clawmark.mcp.strict_json import (
    AmbiguousJson,
    NotJson,
    parse_json,
    replace_lone_surrogates,
)


class Refusal(NamedTuple):
    """Why a message was not taken, in the words of JSON-RPC."""

    code: int
    reason: str
    id: str | int | None = None

    def message(self) -> JSONRPCError:
        """The answer that says so."""
        return JSONRPCError(
            jsonrpc="2.0", id=self.id, error=ErrorData(code=self.code, message=self.reason)
        )


Read: TypeAlias = "JSONRPCMessage | Refusal"


def read_message(data: bytes) -> Read:
    """One message, or why it is none."""
    try:
        return _as_message(parse_json(data))
    except AmbiguousJson as error:
        return Refusal(INVALID_REQUEST, str(error))
    except NotJson as error:
        return Refusal(PARSE_ERROR, str(error))


def dump_message(message: JSONRPCMessage) -> bytes:
    """The bytes of a message.

    Text that UTF-8 cannot carry, such as an undecodable file name, is made valid.
    """
    try:
        text: str = message.model_dump_json(by_alias=True, exclude_unset=True)
    except PydanticSerializationError:
        value = message.model_dump(by_alias=True, exclude_unset=True)
        text = replace_lone_surrogates(json.dumps(value, ensure_ascii=False))
    return text.encode("utf-8")


def _as_message(value: object) -> Read:
    """What kind of message an object is: the keys decide, so a request with an odd id is no
    notification.
    """
    if not isinstance(value, dict):
        return Refusal(
            INVALID_REQUEST, "A message is one JSON object; batches are not part of this protocol."
        )
    asked = value.get("id")
    known = asked if isinstance(asked, str | int) and not isinstance(asked, bool) else None
    if "method" in value and not isinstance(value.get("params"), dict | None):
        return Refusal(INVALID_PARAMS, "The params of a message are an object.", known)
    kinds: list[
        tuple[str, type[JSONRPCRequest | JSONRPCNotification | JSONRPCResponse | JSONRPCError]]
    ] = [
        ("method", JSONRPCRequest if "id" in value else JSONRPCNotification),
        ("result", JSONRPCResponse),
        ("error", JSONRPCError),
    ]
    kind = next((kind for key, kind in kinds if key in value), None)
    if kind is None:
        return Refusal(INVALID_REQUEST, "A message has a method, a result or an error.", known)
    try:
        return kind.model_validate(value, by_name=False)
    except ValidationError:
        return Refusal(INVALID_REQUEST, "This is not a JSON-RPC 2.0 message.", known)
