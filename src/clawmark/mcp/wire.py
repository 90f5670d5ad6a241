"""The bytes of one JSON-RPC message in; the SDK's message out, or the reason it is refused.

Stricter than the SDK: what is not JSON by the letter, holds a key twice or an impossible number, or is a request whose id or
method cannot be one, is answered with an error and never guessed at. Both transports read through here.
"""

from __future__ import annotations

import json
from typing import TypeAlias

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

from clawmark.values import NamedTuple

LONGEST_NUMBER = 300
"""Digits. Python refuses to print what has more than 4,300, and no id or count needs a tenth of that."""


class Refusal(NamedTuple):
    """Why a message was not taken, in the words of JSON-RPC."""

    code: int
    reason: str
    id: str | int | None = None

    def message(self) -> JSONRPCError:
        """The answer that says so."""
        return JSONRPCError(jsonrpc="2.0", id=self.id, error=ErrorData(code=self.code, message=self.reason))


Read: TypeAlias = "JSONRPCMessage | Refusal"


def read_message(data: bytes) -> Read:
    """One message, or why it is none."""
    try:
        value = json.loads(data.decode("utf-8"), object_pairs_hook=_once, parse_constant=_no_number, parse_int=_whole)
    except _Odd as odd:
        return Refusal(INVALID_REQUEST, str(odd))
    except (UnicodeDecodeError, json.JSONDecodeError):
        return Refusal(PARSE_ERROR, "This is not JSON in UTF-8.")
    except RecursionError:
        return Refusal(PARSE_ERROR, "This is nested too deeply.")
    return _as_message(value)


def _as_message(value: object) -> Read:
    """What kind of message an object is: the keys decide, so a request with an odd id is no notification."""
    if not isinstance(value, dict):
        return Refusal(INVALID_REQUEST, "A message is one JSON object; batches are not part of this protocol.")
    asked = value.get("id")
    known = asked if isinstance(asked, str | int) and not isinstance(asked, bool) else None
    if "method" in value and not isinstance(value.get("params"), dict | None):
        return Refusal(INVALID_PARAMS, "The params of a message are an object.", known)
    kinds: list[tuple[str, type[JSONRPCRequest | JSONRPCNotification | JSONRPCResponse | JSONRPCError]]] = [
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


class _Odd(Exception):
    """Something JSON parsers accept and we do not."""


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    value = dict(pairs)
    if len(value) < len(pairs):
        raise _Odd("A key is given twice.")
    return value


def _no_number(name: str) -> object:
    raise _Odd(f"{name} is not a JSON number.")


def _whole(digits: str) -> int:
    if len(digits) > LONGEST_NUMBER:
        raise _Odd("A number has too many digits.")
    return int(digits)
