"""Read the body and the query parameters of a request into the class that its route names."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TypeVar

import msgspec

from clawmark.serve.problems import Problem, RequestFailed, invalid
from clawmark.serve.rest.bodies import Request

MAX_NESTING = 20
R = TypeVar("R", bound=Request)

NOT_JSON = Problem(
    status=400,
    type="NotJson",
    message="The body is not JSON in UTF-8.",
    hint="Send one JSON object, without lone surrogates, NaN or repeated keys.",
)
WRONG_TYPE = Problem(
    status=415,
    type="WrongContentType",
    message="The body must be application/json.",
    hint="Set the header Content-Type.",
)


def read_body(kind: type[R], content_types: Sequence[bytes], body: bytes) -> R:
    """Return the body of a request; raise RequestFailed if it is not what the route takes."""
    types = [one.partition(b";")[0].strip().lower() for one in content_types]
    if types != [b"application/json"]:
        raise RequestFailed(WRONG_TYPE)
    try:
        value = json.loads(
            body.decode("utf-8"), object_pairs_hook=_unique, parse_constant=_refuse_constant
        )
    except (ValueError, RecursionError):  # UnicodeDecodeError and JSONDecodeError are ValueErrors
        raise RequestFailed(NOT_JSON) from None
    check_text(value)
    return _convert(kind, value, is_text=False)


def read_query(kind: type[R], pairs: Sequence[tuple[str, str]]) -> R:
    """Return the query parameters of a request; numbers are written as text there."""
    names = [name for name, _ in pairs]
    if len(names) > len(set(names)):
        raise RequestFailed(invalid("A parameter is given twice."))
    check_text(dict(pairs))
    return _convert(kind, dict(pairs), is_text=True)


def check_text(value: object, depth: int = 0, *, may_have_nul: bool = False) -> None:
    """Refuse text that the database cannot store, and deep nesting.

    A NUL is allowed in the field `text`: files may have one, and the spaces replace it."""
    if isinstance(value, str):
        if "\0" in value and not may_have_nul:
            raise RequestFailed(invalid("A text contains the character NUL.", "Remove it."))
        try:
            value.encode("utf-8")
        except UnicodeEncodeError:
            raise RequestFailed(NOT_JSON) from None
        return
    if depth > MAX_NESTING:
        raise RequestFailed(invalid("The body is nested too deeply."))
    if isinstance(value, dict):
        for name, inner in value.items():
            check_text(name)
            check_text(inner, depth + 1, may_have_nul=name == "text")
    elif isinstance(value, list):
        for inner in value:
            check_text(inner, depth + 1)


def _convert(kind: type[R], value: object, *, is_text: bool) -> R:
    try:
        return msgspec.convert(value, kind, strict=not is_text)
    except msgspec.ValidationError as error:
        # The message names the field and the rule, and does not repeat the value.
        raise RequestFailed(invalid(f"{_one_line(str(error))}.")) from None


def _one_line(text: str) -> str:
    return "".join(char if char.isprintable() else "?" for char in text)[:300]


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    value = dict(pairs)
    if len(value) < len(pairs):
        raise ValueError("a key is given twice")
    return value


def _refuse_constant(name: str) -> object:
    raise ValueError(f"{name} is not JSON")
