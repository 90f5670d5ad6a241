"""Reads what embedding services answer: bytes in, vectors out, and a ValueError with the reason for
anything else.

Nothing is guessed. A vector that is missing, doubled, out of order without saying so, of another
size or not made of finite numbers would be stored for good and found by nobody, so the whole answer
is refused. Reasons are the ends of sentences and may quote the service at length: masking keys in
them, and then shortening them, is left to the caller.

A long answer is read by `msgspec`, six times as fast as by `json`, into the shape that its module
declares; whatever does not have that shape is read by `json` again, which says what is wrong."""

from __future__ import annotations

import json
import math
import re
import struct
import threading
from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, TypedDict

from clawmark.model.values import Vector

if TYPE_CHECKING:
    from msgspec.json import Decoder

QUOTED = 8192
"""How much of a service's own words is read."""
SMALLEST = 1e-10
"""A shorter vector has no direction worth keeping; real ones are near 1, unnormalised ones between
0.1 and 100.
"""
UNIT = 1e-6
"""Most services normalise already; what float32 cannot tell from one is left as it is."""
LONG = 1 << 18
"""Bytes from which an answer is worth loading `msgspec` for.

One vector, which a search waits for, is always shorter.
"""

_MAKING = threading.Lock()
"""Two threads that make a decoder of one shape at the same time crash the interpreter (msgspec
0.22).
"""
_USED = re.compile(
    rb'"(?:total_tokens|prompt_eval_count|inputTextTokenCount|prompt_tokens)"\s*:\s*([0-9]{1,9})\b'
)


Numbers = tuple[float, ...]
"""How a shape spells a vector: what is decoded to a tuple holds numbers and nothing else."""


class Shape(TypedDict, total=False):
    """What any answer may complain in; a module declares what it looks for beside it.

    The rest is passed over.
    """

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
    """The JSON object of an answer, or what its shape names of a long one; an error that hides in
    it is raised.
    """
    answer = _read_quickly(body, shape) if shape is not None and len(body) > LONG else None
    if answer is None:
        answer = _read(body)
    if complaint := complaint_of(answer):
        raise ValueError(f'it said "{complaint}"')
    return answer


def _read_quickly(body: bytes, shape: Any) -> dict[str, object] | None:
    import msgspec

    try:
        body.decode()  # msgspec does not look at the characters of what it passes over
        with _MAKING:
            decoder = _decoder(shape)
        found: dict[str, object] = decoder.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return found


@cache
def _decoder(shape: Any) -> Decoder[Any]:
    import msgspec

    return msgspec.json.Decoder(shape)


def _read(body: bytes) -> dict[str, object]:
    try:
        answer = json.loads(body.decode(), parse_constant=_refuse)
    except RecursionError:
        raise ValueError("the answer is nested too deeply") from None
    except UnicodeDecodeError:
        raise ValueError("the answer is not UTF-8") from None
    except json.JSONDecodeError:
        raise ValueError("the answer is not JSON") from None
    except _NoNumber:
        raise
    except ValueError:  # a whole number of more than 4300 digits
        raise ValueError("the answer has a number beyond all measure") from None
    if not isinstance(answer, dict):
        raise ValueError("the answer is not a JSON object")
    return answer


def complaint_of(answer: Mapping[str, object]) -> str:
    """The error message in an answer, on one line; empty when there is none."""
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
    """The vectors of `{"data": [{"index": 0, "embedding": [...]}]}`, the shape of OpenAI, Voyage,
    Mistral and others.
    """
    rows = load(body, _Data).get("data")
    if not isinstance(rows, list):
        raise ValueError("the answer has no list of vectors")
    if not all(isinstance(row, dict) for row in rows):
        raise ValueError("the answer has something else where a vector should be")
    check_count(len(rows), expected)
    places = [row.get("index") for row in rows]
    if any(place is not None for place in places):
        if any(type(place) is not int for place in places) or sorted(places) != list(
            range(expected)
        ):
            raise ValueError("the answer does not number the vectors from first to last, each once")
        rows = [row for _, row in sorted(zip(places, rows, strict=True), key=lambda pair: pair[0])]
    return check_vectors([row.get("embedding") for row in rows], expected)


def check_vectors(values: object, expected: int) -> list[Sequence[float]]:
    """As many vectors as texts, all of one size, all of numbers."""
    if not isinstance(values, list):
        raise ValueError("the answer has no list of vectors")
    check_count(len(values), expected)
    vectors = [_numbers(value) for value in values]
    sizes = {len(vector) for vector in vectors}
    if len(sizes) > 1:
        raise ValueError(f"the answer mixes vectors of {min(sizes)} and {max(sizes)} numbers")
    return vectors


def check_count(found: int, expected: int) -> None:
    if found != expected:
        raise ValueError(f"the answer has {found} vectors for {expected} texts")


def to_unit(values: Sequence[float]) -> Vector:
    """A vector of length one as float32; raises ValueError for what has no direction."""
    try:
        length = math.hypot(*values)
    except OverflowError:
        length = math.inf
    if not math.isfinite(length):
        raise ValueError("the answer has numbers that are not finite or far too large")
    if length < SMALLEST:
        raise ValueError("the answer has a vector of zeros")
    if 0.001 < length < 1000:
        vector = struct.pack(f"<{len(values)}f", *values)
        return vector if abs(length - 1) <= UNIT else _scaled(vector, 1 / length)
    return struct.pack(f"<{len(values)}f", *[value / length for value in values])


def _scaled(vector: Vector, by: float) -> Vector:
    """All numbers of a vector times one, without making them Python's."""
    import simsimd

    numbers: Any = memoryview(vector).cast("f")
    scaled: Any = simsimd.wsum(numbers, numbers, alpha=by, beta=0.0)
    return bytes(memoryview(scaled).cast("B"))


def used_tokens(body: bytes, estimate: int) -> int:
    """What the service says it counted, else the estimate; a count beyond belief may not eat the
    budget.
    """
    found = [int(count) for count in _USED.findall(body[:1024] + b" " + body[-1024:])]
    return found[-1] if found and 0 < found[-1] <= 16 * estimate + 64 else estimate


def _numbers(value: object) -> Sequence[float]:
    if isinstance(value, str):
        value = _from_base64(value)
    if not isinstance(value, list | tuple):
        raise ValueError("the answer has something else where a vector should be")
    if not value:
        raise ValueError("the answer has an empty vector")
    # A boolean is an int to isinstance, so the exact types are asked for.
    if isinstance(value, list) and not {float, int}.issuperset(map(type, value)):
        raise ValueError("the answer has a vector with something that is not a number")
    return value


def _from_base64(text: str) -> list[float]:
    from binascii import a2b_base64

    try:
        packed = a2b_base64(text, strict_mode=True)
    except ValueError:
        raise ValueError("the answer has a vector that is neither numbers nor base64") from None
    if len(packed) % 4:
        raise ValueError("the answer has a vector in base64 that is cut")
    return list(struct.unpack(f"<{len(packed) // 4}f", packed))


class _NoNumber(ValueError):
    """NaN or an infinity, which are no JSON but which Python would read."""


def _refuse(constant: str) -> float:
    raise _NoNumber(f"the answer has {constant} where a number should be")
