"""Read lines of text from the data files of R packages."""

import re
import zlib
from collections.abc import Iterator

from training.gather.readers.plain import paragraphs_of
from training.gather.values import Section

_STRING = re.compile(rb"\x00[\x00-\x0f]\x00\x09(\x00\x00..)", re.DOTALL)


def read_r_data(_name: str, content: bytes) -> Iterator[Section]:
    """Give the paragraphs of each character vector in a lazy-load database."""
    for stream in _streams(content):
        paragraphs = paragraphs_of("\n".join(_strings(stream)))
        for start in range(0, len(paragraphs), 12):
            yield Section("", tuple(paragraphs[start : start + 12]))


def _streams(content: bytes) -> Iterator[bytes]:
    """Give what each zlib stream contains; four bytes with its length stand before each."""
    position = 4
    while position < len(content):
        decompressor = zlib.decompressobj()
        try:
            yield decompressor.decompress(content[position:])
        except zlib.error:
            return
        position = len(content) - len(decompressor.unused_data) + 4


def _strings(stream: bytes) -> Iterator[str]:
    position = 0
    while match := _STRING.search(stream, position):
        length = int.from_bytes(match[1], "big")
        yield stream[match.end() : match.end() + length].decode("utf-8", "replace")
        position = match.end() + length
