"""Read vectors from the responses of embedding services; raise ValueError for anything else.

A wrong vector would be stored and never found, so a response with a missing, repeated, misplaced,
wrongly sized or non-finite vector is refused as a whole. The reason completes a sentence and may
quote the service: the caller masks keys in it and shortens it.

A long response is read by `msgspec`, six times as fast as by `json`, into the shape that the
service module declares. What does not have that shape is read again by `json`, which finds the
reason."""

from __future__ import annotations

import json
import math
import re
import struct
import threading
from binascii import a2b_base64
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypedDict

import simsimd

from clawmark.model.values import Vector

if TYPE_CHECKING:
    from msgspec.json import Decoder

QUOTED = 8192
"""How much of a service's error message is read."""
SMALLEST = 1e-10
"""A shorter vector has no usable direction; unnormalised ones are between 0.1 and 100."""
UNIT = 1e-6
"""How far a length may be from 1 without scaling; most services normalise."""
LONG = 1 << 18
"""Bytes from which a response is worth importing `msgspec`; a single vector is shorter."""

_MAKING = threading.Lock()
"""Two threads that make the same decoder at once crash the interpreter (msgspec 0.22)."""
_DECODERS: dict[Any, Decoder[Any]] = {}
_USED = re.compile(
    rb'"(?:total_tokens|prompt_eval_count|inputTextTokenCount|prompt_tokens)"\s*:\s*([0-9]{1,9})\b'
)


Numbers = tuple[float, ...]
"""A vector in a shape: what is decoded to it holds only numbers."""


class Shape(TypedDict, total=False):
    """The fields in which any response may report an error; modules add what they read."""

    error: Any
    detail: Any
    object: Any
    message: Any


class _Row(TypedDict, total=False):
    index: Any
    embedding: Numbers | str


class _Data(Shape, total=False):
    data: list[_Row]


def load(body: bytes, shape: type[Shape] | None = None) -> Mapping[str, object]:
    """Return the JSON object, of a long response only the fields of its shape; raise its error."""
    answer = _read_quickly(body, shape) if shape is not None and len(body) > LONG else None
    if answer is None:
        answer = _read(body)
    if message := error_message(answer):
        raise ValueError(f'it said "{message}"')
    return answer


def _read_quickly(body: bytes, shape: Any) -> dict[str, object] | None:
    # Imported late: a query has one short vector.
    import msgspec

    try:
        body.decode()  # msgspec does not check what it skips
        with _MAKING:
            decoder = _DECODERS.get(shape)
            if decoder is None:
                decoder = _DECODERS[shape] = msgspec.json.Decoder(shape)
        found: dict[str, object] = decoder.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return found


def _read(body: bytes) -> dict[str, object]:
    try:
        answer = json.loads(body.decode(), parse_constant=_refuse)
    except RecursionError:
        raise ValueError("the response is nested too deeply") from None
    except UnicodeDecodeError:
        raise ValueError("the response is not UTF-8") from None
    except json.JSONDecodeError:
        raise ValueError("the response is not JSON") from None
    except _NotFinite:
        raise
    except ValueError:  # a whole number of more than 4300 digits
        raise ValueError("the response has a number beyond all measure") from None
    if not isinstance(answer, dict):
        raise ValueError("the response is not a JSON object")
    return answer


def error_message(answer: Mapping[str, object]) -> str:
    """Return the error message in a response, on one line; empty without one."""
    error = answer.get("error") or answer.get("detail")
    if isinstance(error, dict):
        error = (
            error.get("message")
            or error.get("code")
            or error.get("type")
            or "an error without a message"
        )
    if not error and answer.get("object") == "error":
        error = answer.get("message")
    text = error if isinstance(error, str) else "an error" if error else ""
    return " ".join("".join(char if char.isprintable() else " " for char in text[:QUOTED]).split())


def read_data(body: bytes, expected: int) -> list[Sequence[float]]:
    """Return the vectors of `{"data": [{"index": 0, "embedding": [...]}]}`, OpenAI's format."""
    rows = load(body, _Data).get("data")
    if not isinstance(rows, list):
        raise ValueError("the response has no list of vectors")
    if not all(isinstance(row, dict) for row in rows):
        raise ValueError("the response has something else where a vector should be")
    check_count(len(rows), expected)
    places = [row.get("index") for row in rows]
    if any(place is not None for place in places):
        if any(type(place) is not int for place in places) or sorted(places) != list(
            range(expected)
        ):
            raise ValueError(
                "the response does not number the vectors from first to last, each once"
            )
        rows = [row for _, row in sorted(zip(places, rows, strict=True), key=lambda pair: pair[0])]
    return check_vectors([row.get("embedding") for row in rows], expected)


def check_vectors(values: object, expected: int) -> list[Sequence[float]]:
    """Return the vectors; check that there is one per text, all of one size, all of numbers."""
    if not isinstance(values, list):
        raise ValueError("the response has no list of vectors")
    check_count(len(values), expected)
    vectors = [_numbers(value) for value in values]
    sizes = {len(vector) for vector in vectors}
    if len(sizes) > 1:
        raise ValueError(f"the response mixes vectors of {min(sizes)} and {max(sizes)} numbers")
    return vectors


def check_count(found: int, expected: int) -> None:
    if found != expected:
        raise ValueError(f"the response has {found} vectors for {expected} texts")


def to_unit(values: Sequence[float]) -> Vector:
    """Return a vector of length 1 as float32; raise ValueError when it has no direction."""
    try:
        length = math.hypot(*values)
    except OverflowError:
        length = math.inf
    if not math.isfinite(length):
        raise ValueError("the response has numbers that are not finite or far too large")
    if length < SMALLEST:
        raise ValueError("the response has a vector of zeros")
    if 0.001 < length < 1000:
        vector = struct.pack(f"<{len(values)}f", *values)
        return vector if abs(length - 1) <= UNIT else _scaled(vector, 1 / length)
    return struct.pack(f"<{len(values)}f", *[value / length for value in values])


def _scaled(vector: Vector, by: float) -> Vector:
    """Multiply a vector by a number."""
    numbers: Any = memoryview(vector).cast("f")
    scaled: Any = simsimd.wsum(numbers, numbers, alpha=by, beta=0.0)
    return bytes(memoryview(scaled).cast("B"))


def used_tokens(body: bytes, estimate: int) -> int:
    """Return the service's token count, or the estimate when that is missing or implausible."""
    found = [int(count) for count in _USED.findall(body[:1024] + b" " + body[-1024:])]
    return found[-1] if found and 0 < found[-1] <= 16 * estimate + 64 else estimate


def _numbers(value: object) -> Sequence[float]:
    if isinstance(value, str):
        value = _from_base64(value)
    if not isinstance(value, list | tuple):
        raise ValueError("the response has something else where a vector should be")
    if not value:
        raise ValueError("the response has an empty vector")
    # Exact types: a boolean is an int to isinstance.
    if isinstance(value, list) and not {float, int}.issuperset(map(type, value)):
        raise ValueError("the response has a vector with something that is not a number")
    return value


def _from_base64(text: str) -> list[float]:
    try:
        packed = a2b_base64(text, strict_mode=True)
    except ValueError:
        raise ValueError("the response has a vector that is neither numbers nor base64") from None
    if len(packed) % 4:
        raise ValueError("the response has a vector in base64 that is cut")
    return list(struct.unpack(f"<{len(packed) // 4}f", packed))


class _NotFinite(ValueError):
    """NaN or an infinity, which Python reads although they are not JSON."""


def _refuse(constant: str) -> float:
    raise _NotFinite(f"the response has {constant} where a number should be")
