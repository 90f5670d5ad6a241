"""One HTTP/1.1 answer read from a stream that may say anything.

In: a `Stream` on which a request was sent. Out: the `Response`, and whether the connection can
carry another one; or `HttpTrouble`. Nothing a server sends costs more than the deadline, 64 KB of
headers and 32 MB of body, compressed or not; who expects more takes it in pieces. It is written by
hand because `http.client` has no limit for the whole, waits through interim answers for ever, takes
a wrong length for none, and loads the mail parser. What the body means is left to the providers.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from clawmark.net.stream import PIECE, HttpTrouble, Stream, Unanswered

if TYPE_CHECKING:
    import zlib

MOST_HEADERS = 64 << 10
"""Bytes of all header lines of an answer, interim answers and trailers included."""
MOST_BODY = 32 << 20

_STATUS = re.compile(rb"HTTP/1\.([01]) ([0-9]{3})(?: .*)?")
_HEADER = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*(.*)")
_CHUNK = re.compile(rb"([0-9A-Fa-f]{1,12})[ \t]*(?:;.*)?")
_INFLATED = 1 << 20  # as much of a bomb as is ever in memory beyond the limit
_GARBLED = "the answer is garbled: "
_CUT = "the answer was cut short"


class Response(NamedTuple):
    """What the server answered; header names are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Head(NamedTuple):
    """Status and headers, before the body is read."""

    status: int
    headers: dict[str, str]
    stays_open: bool
    budget: int
    """Bytes that are left for header lines, should trailers follow."""


def read_answer(stream: Stream, *, has_body: bool = True) -> tuple[Response, bool]:
    """Read one whole answer; the second value is true when the connection may be used again."""
    head = read_head(stream)
    if not has_body or head.status in (204, 304):
        return Response(head.status, head.headers, b""), head.stays_open and not stream.buffer
    body = b"".join(read_body(stream, head, MOST_BODY))
    has_end = "transfer-encoding" in head.headers or "content-length" in head.headers
    return Response(
        head.status, head.headers, body
    ), has_end and head.stays_open and not stream.buffer


def read_head(stream: Stream) -> Head:
    """Read up to the body; interim answers are passed over, as long as they stay within the limit."""
    _expect_http(stream)
    budget = MOST_HEADERS
    while True:
        head = _one_head(stream, budget)
        if head.status >= 200:
            return head
        if head.status == 101:
            raise HttpTrouble("the server wants to speak another protocol")
        budget = head.budget


def read_body(stream: Stream, head: Head, most: int) -> Iterator[bytes]:
    """The body in pieces as it arrives, decompressed, `most` bytes in all; more is a trouble before
    it is memory.
    """
    encoding = head.headers.get("content-encoding", "").strip().lower()
    pieces = _framed(stream, head, most)
    if encoding in ("gzip", "x-gzip", "deflate"):
        # What is packed counts too: empty members inflate to nothing, however many arrive.
        pieces = _inflated(_capped(pieces, most), is_gzip="gzip" in encoding)
    elif encoding not in ("", "identity"):
        raise HttpTrouble("the answer is compressed in a way that was not asked for")
    yield from _capped(pieces, most)


def _capped(pieces: Iterator[bytes], most: int) -> Iterator[bytes]:
    total = 0
    for piece in pieces:
        total += len(piece)
        if total > most:
            raise _too_large(most)
        yield piece


def _too_large(most: int) -> HttpTrouble:
    return HttpTrouble(f"the answer is larger than {most >> 20} MB")


def _expect_http(stream: Stream) -> None:
    """Look at the first bytes before waiting for a line that may never end."""
    while len(stream.buffer) < 5 and b"HTTP/".startswith(stream.buffer):
        if not stream.fill():
            if not stream.received:
                raise Unanswered("the connection was closed before an answer came")
            raise HttpTrouble(_CUT)
    if stream.buffer.startswith((b"\x15\x03", b"\x16\x03")) or bytes(stream.buffer) in (
        b"\x15",
        b"\x16",
    ):
        raise HttpTrouble(
            "the server speaks TLS on this port",
            permanent=True,
            hint="Check whether the address starts with https:// there.",
        )
    if not stream.buffer.startswith(b"HTTP/"):
        raise HttpTrouble("the answer is not HTTP")


def _one_head(stream: Stream, budget: int) -> Head:
    line, budget = _header_line(stream, budget)
    status = _STATUS.fullmatch(line)
    if not status:
        raise HttpTrouble("the answer is not HTTP/1.1")
    headers: dict[str, str] = {}
    while True:
        line, budget = _header_line(stream, budget)
        if not line:
            break
        header = _HEADER.fullmatch(line)
        if not header:
            raise HttpTrouble(_GARBLED + "a header line is none")
        name, value = header[1].decode("ascii").lower(), header[2].strip().decode("latin-1")
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    wish = headers.get("connection", "").lower()
    stays_open = "close" not in wish if status[1] == b"1" else "keep-alive" in wish
    return Head(status=int(status[2]), headers=headers, stays_open=stays_open, budget=budget)


def _header_line(stream: Stream, budget: int) -> tuple[bytes, int]:
    line = stream.line(budget)
    if line is not None:
        return line, budget - len(line) - 1
    if len(stream.buffer) > budget or budget <= 0:
        raise HttpTrouble(f"the headers of the answer are larger than {MOST_HEADERS >> 10} KB")
    raise HttpTrouble(_CUT)


def _framed(stream: Stream, head: Head, most: int) -> Iterator[bytes]:
    """The body as it arrives, without what frames it."""
    headers = head.headers
    if "transfer-encoding" in headers:
        if headers["transfer-encoding"].lower() != "chunked":
            raise HttpTrouble(_GARBLED + "its body is framed in an unknown way")
        yield from _chunks(stream, head.budget, most)
    elif "content-length" in headers:
        yield from _exactly(stream, _length(headers["content-length"], most))
        if stream.buffer:
            raise HttpTrouble("the answer is longer than it says")
    else:
        while piece := stream.take(PIECE):
            yield piece


def _length(text: str, most: int) -> int:
    # A server behind a proxy may say it twice; that is no lie while both say the same.
    said = {part.strip() for part in text.split(",")}
    length = said.pop()
    if said or not (length.isascii() and length.isdigit()):
        raise HttpTrouble(_GARBLED + "its length is no number")
    if len(length) > 18 or int(length) > most:
        raise _too_large(most)
    return int(length)


def _exactly(stream: Stream, length: int) -> Iterator[bytes]:
    while length:
        piece = stream.take(length)
        if not piece:
            raise HttpTrouble(_CUT)
        length -= len(piece)
        yield piece


def _chunks(stream: Stream, budget: int, most: int) -> Iterator[bytes]:
    while True:
        # Sizes are no headers, but an endless line is as bad here as there.
        line = stream.line(1024)
        size = _CHUNK.fullmatch(line) if line is not None else None
        if not size:
            raise HttpTrouble(
                _CUT
                if line is None and len(stream.buffer) <= 1024
                else _GARBLED + "a piece has no size"
            )
        length = int(size[1], 16)
        if length > most:
            raise _too_large(most)
        if not length:
            break
        yield from _exactly(stream, length)
        if stream.line(2) != b"":
            raise HttpTrouble(_GARBLED + "a piece is not as long as it says")
    while True:
        line, budget = _header_line(stream, budget)
        if not line:
            return


def _inflated(pieces: Iterator[bytes], *, is_gzip: bool) -> Iterator[bytes]:
    decoder: zlib._Decompress | None = None
    try:
        for piece in pieces:
            data = piece
            while data:
                decoder = decoder or zlib.decompressobj(_window(data, is_gzip))
                yield decoder.decompress(data, _INFLATED)
                data = decoder.unconsumed_tail
                if decoder.eof:
                    data, decoder = decoder.unused_data, None
    except zlib.error:
        raise HttpTrouble(_GARBLED + "it cannot be decompressed") from None
    if decoder is not None:
        raise HttpTrouble(_CUT)


def _window(data: bytes, is_gzip: bool) -> int:
    """zlib's name for the format: gzip, or one of the two things that servers call deflate."""
    if is_gzip:
        return 31
    return 15 if data[0] & 0x0F == 8 else -15
