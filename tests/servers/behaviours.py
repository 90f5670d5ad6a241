"""Every way an embedding server can misbehave, by the words of the hostile `provider` cases.

A behaviour is a whole answer that has nothing to do with the request (`status`, `headers`, `body`),
a right answer that was spoiled (`make`), or a connection that goes wrong (`behave`). {KEY} and
{SELF} in an answer become the key and the address of the request. Whether a socket listens at all
is the server's matter."""

from __future__ import annotations

import base64
import json
import random
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from apis import Answer, Asked, Row, as_base64
from loopback import Gone, Link, head

LISTENING = ("never-accept", "nothing-listens")
"""Behaviours of the listening socket."""
ELSEWHERE = ("name-does-not-resolve",)
"""Behaviours that no server can have: whoever resolves the name must."""
SPLIT_ABOVE = 16

JSON = {"Content-Type": "application/json"}


class Behaviour(NamedTuple):
    """What is done with one request."""

    status: int = 200
    headers: Mapping[str, str] = JSON
    body: bytes | None = None
    make: str = "ok"
    behave: str = ""

    @property
    def is_right(self) -> bool:
        """Whether a client that knows the API must take what comes."""
        return (
            self.body is None
            and not self.behave
            and self.make in ("ok", "reverse-order")
            and self.status == 200
        )


OK = Behaviour()


def behaviour(given: Behaviour | Mapping[str, Any] | str | int) -> Behaviour:
    """A case's `input`, a word of `make` or `behave`, or a status, as a behaviour."""
    if isinstance(given, Behaviour):
        return given
    if isinstance(given, int):
        return (
            OK
            if given == 200
            else Behaviour(given, JSON, b'{"error":{"message":"status %d"}}' % given)
        )
    if isinstance(given, str):
        made = Behaviour(make=given) if given in MAKES else Behaviour(behave=given)
        return _known(made)
    body = given.get("body")
    raw = (
        base64.b64decode(given["body_b64"])
        if "body_b64" in given
        else None
        if body is None
        else str(body).encode()
    )
    return _known(
        Behaviour(
            status=given["status"],
            headers=given["headers"],
            body=raw,
            make=given.get("make", "ok"),
            behave=given.get("behave", ""),
        )
    )


def _known(made: Behaviour) -> Behaviour:
    if made.make not in MAKES or (
        made.behave and made.behave not in (*ACTS, *TRIES, *LISTENING, *ELSEWHERE)
    ):
        raise ValueError(f"no such behaviour: {made.make} {made.behave}")
    return made


def fill_in(given: Behaviour, key: str, url: str) -> tuple[dict[str, str], bytes]:
    """The headers and the body of an answer with {KEY} and {SELF} filled in."""
    headers = {
        name: value.replace("{SELF}", url).replace("{KEY}", key)
        for name, value in given.headers.items()
    }
    return headers, (given.body or b"").replace(b"{SELF}", url.encode()).replace(
        b"{KEY}", key.encode()
    )


# --- answers that are wrong in what they say ------------------------------------------------------

Spoil = Callable[[list[list[str]]], list[Row]]


def spoiled(make: str, asked: Asked, vectors: list[list[str]]) -> Answer:
    """The answer to a request, spoiled in the way that is named."""
    rows = MAKES[make](vectors)
    if asked.base64:
        rows = [_packed(row) for row in rows]
    model = "some-other-model" if make == "another-model-name" else asked.model
    return Answer(rows, model, make == "data-is-object")


def _packed(row: Row) -> Row:
    """A row in base64 where that can be: it holds any float, also one that is none, and nothing
    else.
    """
    try:
        return row._replace(embedding=as_base64(json.loads(row.embedding)))
    except (TypeError, ValueError, OverflowError):
        return row


def _vector(numbers: Sequence[str]) -> str:
    return f"[{','.join(numbers)}]"


def _rows(vectors: Sequence[Sequence[str]]) -> list[Row]:
    return [Row(at, _vector(numbers)) for at, numbers in enumerate(vectors)]


def _last(change: Callable[[Sequence[str]], str]) -> Spoil:
    """Only the last vector is wrong: the others look right, and a question has no others."""

    def spoil(vectors: list[list[str]]) -> list[Row]:
        rows = _rows(vectors)
        return [*rows[:-1], Row(len(rows) - 1, change(vectors[-1]))]

    return spoil


def _one_number(token: str) -> Spoil:
    return _last(lambda numbers: _vector([*numbers[:-1], token]))


def _every(change: Callable[[Sequence[str]], Sequence[str]]) -> Spoil:
    return lambda vectors: _rows([change(numbers) for numbers in vectors])


def _indexed(last_index: Callable[[int], int]) -> Spoil:
    def spoil(vectors: list[list[str]]) -> list[Row]:
        rows = _rows(vectors)
        return [*rows[:-1], rows[-1]._replace(place=last_index(len(rows)))]

    return spoil


def _duplicate_index(vectors: list[list[str]]) -> list[Row]:
    """The first index twice; a lone vector comes twice."""
    rows = _rows(vectors)
    return [*rows[:-1], rows[-1]._replace(place=0)] if len(rows) > 1 else [*rows, *rows]


MAKES: dict[str, Spoil] = {
    "ok": _rows,
    "reverse-order": lambda vectors: _rows(vectors)[::-1],
    "no-index-field": lambda vectors: [row._replace(place=None) for row in _rows(vectors)],
    "base64-floats": lambda vectors: [
        Row(at, as_base64(numbers)) for at, numbers in enumerate(vectors)
    ],
    "one-fewer": lambda vectors: _rows(vectors)[:-1],
    "one-more": lambda vectors: _rows([*vectors, vectors[-1]]),
    "empty-list": lambda vectors: [],
    "half-dims": _every(lambda numbers: numbers[: len(numbers) // 2]),
    "double-dims": _every(lambda numbers: [*numbers, *numbers]),
    "mixed-dims": _last(lambda numbers: _vector(numbers[: len(numbers) // 2])),
    "zero-dims": _every(lambda numbers: []),
    "one-nan": _one_number("NaN"),
    "one-infinity": _one_number("Infinity"),
    "one-null": _one_number("null"),
    "one-string": _one_number('"0.1"'),
    "one-bool": _one_number("true"),
    "nested-lists": _last(lambda numbers: f"[{_vector(numbers)}]"),
    "all-zero": _every(lambda numbers: ["0.0"] * len(numbers)),
    "1e308-values": _every(lambda numbers: ["1e308"] * len(numbers)),
    "5e-324-values": _every(lambda numbers: ["5e-324"] * len(numbers)),
    "all-the-same-vector": lambda vectors: _rows([vectors[0]] * len(vectors)),
    "duplicate-index": _duplicate_index,
    "index-out-of-range": _indexed(lambda count: count + 5),
    "negative-index": _indexed(lambda count: -1),
    "null-vector": _last(lambda numbers: "null"),
    "data-is-object": _rows,
    "another-model-name": _rows,
}


# --- answers that depend on how many came before, or on how many texts were asked for -------------


def _fails_every_third(number: int, texts: int) -> Behaviour:
    return behaviour(500) if number % 3 == 0 else OK


def _too_large(number: int, texts: int) -> Behaviour:
    body = b'{"error":{"message":"Request Entity Too Large"}}'
    return Behaviour(413, JSON, body) if texts > SPLIT_ABOVE else OK


def _too_many(number: int, texts: int) -> Behaviour:
    body = b'{"error":{"message":"batch size %d is above the limit of %d for this deployment"}}' % (
        texts,
        SPLIT_ABOVE,
    )
    return Behaviour(400, JSON, body) if texts > SPLIT_ABOVE else OK


TRIES: dict[str, Callable[[int, int], Behaviour]] = {
    "fails-every-third": _fails_every_third,
    "413-over-16-inputs": _too_large,
    "400-too-many-inputs-worded-otherwise": _too_many,
}
"""(how many requests came, how many texts this one has) -> what to do with it."""


# --- connections that go wrong --------------------------------------------------------------------

Act = Callable[[Link, bytes, float], bool]
"""(the client, the right body, how long a second is) -> whether the answer was right; raises Gone
to cut the line.
"""


def _length(body: bytes) -> dict[str, str]:
    return {**JSON, "Content-Length": str(len(body))}


def _say_nothing(link: Link, right: bytes, second: float) -> bool:
    link.wait(None)
    raise Gone


def _stop_halfway(link: Link, right: bytes, second: float) -> bool:
    link.send(head(200, _length(right)) + right[: len(right) // 2])
    link.wait(None)
    raise Gone


def _drip(link: Link, right: bytes, second: float) -> bool:
    link.send(head(200, _length(right)))
    for at in range(len(right)):
        link.send(right[at : at + 1])
        link.wait(second)
    return True


def _reset(link: Link, right: bytes, second: float) -> bool:
    link.send(head(200, _length(right)))
    link.reset()
    return False


def _close_early(link: Link, right: bytes, second: float) -> bool:
    link.send(head(200, _length(right)) + right[: len(right) // 2])
    raise Gone


def _with_length(length: Callable[[bytes], int]) -> Act:
    """The whole body under a wrong Content-Length, on a connection that stays open."""

    def act(link: Link, right: bytes, second: float) -> bool:
        link.send(head(200, {**JSON, "Content-Length": str(length(right))}) + right)
        link.wait(None)
        raise Gone

    return act


def _cut_chunk(link: Link, right: bytes, second: float) -> bool:
    link.send(head(200, {**JSON, "Transfer-Encoding": "chunked"}))
    link.send(b"%x\r\n" % len(right) + right[: len(right) // 2])
    raise Gone


def _bad_chunk(link: Link, right: bytes, second: float) -> bool:
    link.send(
        head(200, {**JSON, "Transfer-Encoding": "chunked"}) + b"zz\r\n" + right + b"\r\n0\r\n\r\n"
    )
    link.wait(None)
    raise Gone


def _bomb(link: Link, right: bytes, second: float) -> bool:
    """10 GB of blanks in 10 MB: one compressed megabyte, again and again, which a full flush
    allows.
    """
    squeeze = zlib.compressobj(9, zlib.DEFLATED, -15)
    megabyte = squeeze.compress(b" " * (1 << 20)) + squeeze.flush(zlib.Z_FULL_FLUSH)
    link.send(head(200, {**JSON, "Content-Encoding": "gzip", "Connection": "close"}))
    link.send(b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03")
    for _ in range(10 * 1024):
        link.send(megabyte)
    raise Gone


def _not_gzip(link: Link, right: bytes, second: float) -> bool:
    link.send(head(200, {**_length(right), "Content-Encoding": "gzip"}) + right)
    return False


def _endless_body(link: Link, right: bytes, second: float) -> bool:
    link.send(head(200, {**JSON, "Connection": "close"}) + b'{"object":"list","data":[')
    while True:
        link.send(b'{"object":"embedding","index":0,"embedding":[0.1]},' * 1000)


def _endless_headers(link: Link, right: bytes, second: float) -> bool:
    link.send(b"HTTP/1.1 200 OK\r\n")
    for number in range(1 << 40):
        link.send(b"X-More-%d: and more\r\n" % number)
    return False


def _continue_for_ever(link: Link, right: bytes, second: float) -> bool:
    while True:
        link.send(b"HTTP/1.1 100 Continue\r\n\r\n")
        link.wait(second / 100)


def _no_status_line(link: Link, right: bytes, second: float) -> bool:
    link.send(right)
    raise Gone


def _tls(link: Link, right: bytes, second: float) -> bool:
    """The start of a TLS handshake, which a plain client cannot read."""
    link.send(b"\x16\x03\x03\x00\x51\x02\x00\x00\x4d\x03\x03" + random.Random(1).randbytes(76))
    link.wait(second)
    raise Gone


def _late(link: Link, right: bytes, second: float) -> bool:
    link.wait(20 * second)
    if link.is_gone():
        raise Gone
    link.answer(200, right)
    return True


def _500_in_the_middle(link: Link, right: bytes, second: float) -> bool:
    """Half of a good answer, and then the answer of a server that fell over."""
    half = right[: len(right) // 2]
    body = b'{"error":{"message":"The server had an error while processing your request."}}'
    link.send(
        head(200, {**JSON, "Transfer-Encoding": "chunked"}) + b"%x\r\n" % len(half) + half + b"\r\n"
    )
    link.send(head(500, _length(body)) + body)
    raise Gone


ACTS: dict[str, Act] = {
    "accept-then-silence": _say_nothing,
    "half-a-body-then-silence": _stop_halfway,
    "one-byte-a-second": _drip,
    "reset-after-headers": _reset,
    "close-before-content-length": _close_early,
    "content-length-too-small": _with_length(lambda body: len(body) // 2),
    "content-length-negative": _with_length(lambda body: -1),
    "content-length-10-EB": _with_length(lambda body: 10 * 10**18),
    "chunked-cut": _cut_chunk,
    "chunked-bad-size": _bad_chunk,
    "gzip-10-MB-to-10-GB": _bomb,
    "gzip-header-plain-body": _not_gzip,
    "endless-body": _endless_body,
    "endless-headers": _endless_headers,
    "1xx-for-ever": _continue_for_ever,
    "http-0.9": _no_status_line,
    "tls-hello": _tls,
    "ok-after-20-s": _late,
    "ok-then-500-in-the-middle": _500_in_the_middle,
}
