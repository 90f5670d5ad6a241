"""Read the header of a GGUF file (the model's name, the size of its vectors) without loading it.

The file is not trusted: nothing is read beyond its end, counts that no model has are refused, and
only the needed values are kept. A ValueError says what is wrong as the end of a sentence.

Layout, little-endian: `GGUF`, u32 version, u64 tensors, u64 pairs; the pairs, each a string, a type
and a value; the tensors' names, shapes, types and offsets; padding; the tensors. A string is a u64
length and that many bytes."""

from __future__ import annotations

import struct
from mmap import ACCESS_READ, mmap
from typing import NamedTuple

VERSIONS = (2, 3)
MOST_PAIRS, MOST_TENSORS = 1 << 14, 1 << 16
MOST_ITEMS = 1 << 22
"""In all lists together; the largest vocabularies have a quarter of a million entries and as many
merges."""
LONGEST_KEY, LONGEST_TEXT = 1 << 10, 1 << 12
MOST_LANGUAGES = 256
MOST_DIMS, MOST_CONTEXT = 1 << 16, 1 << 26
TRUNCATED = "it ends in the middle of its header, so it was not copied or downloaded to the end"

_U32, _U64 = struct.Struct("<I"), struct.Struct("<Q")
_NUMBERS = {kind: struct.Struct("<" + code) for kind, code in enumerate("BbHhIif")} | {
    7: struct.Struct("<B"),
    10: struct.Struct("<Q"),
    11: struct.Struct("<q"),
    12: struct.Struct("<d"),
}
_STRING, _ARRAY = 8, 9

Value = int | float | str | tuple[str, ...] | None


class Header(NamedTuple):
    """The values of a GGUF header; 0 or empty where the file has none."""

    architecture: str
    name: str
    dims: int
    context: int
    pooling: int
    """llama.cpp's number: 0 none, 1 mean, 2 first token, 3 last token, 4 ranking; -1 if not given.
    """
    languages: tuple[str, ...]
    parts: int
    """How many files the model is split into."""


def read_header(path: str, *, whole: bool = False) -> Header:
    """Read the header up to the vocabulary, or with `whole` up to the tensors; raises OSError,
    ValueError.

    The vocabulary has hundreds of thousands of strings that can only be skipped one by one, which
    takes too long for a search; by convention everything needed comes before it."""
    with open(path, "rb") as file:
        if not file.read(1):
            raise ValueError("it is empty")
        with mmap(file.fileno(), 0, access=ACCESS_READ) as data:
            cursor = _Cursor(data)
            values, tensors, done = _pairs(cursor, whole)
            if done:
                _check_tensors(cursor, tensors, values)
            return _header(values)


class _Cursor:
    """Reads the bytes in order, never past the end."""

    def __init__(self, data: mmap) -> None:
        self.data = data
        self.size = len(data)
        self.at = 0
        self.items = 0

    def number(self, form: struct.Struct) -> int | float:
        start = self.skip(form.size)
        value: int | float = form.unpack_from(self.data, start)[0]
        return value

    def count(self, form: struct.Struct = _U64) -> int:
        return int(self.number(form))

    def skip(self, size: int) -> int:
        """Skip `size` bytes and return where they begin."""
        start = self.at
        if size > self.size - start:
            raise ValueError(TRUNCATED)
        self.at = start + size
        return start

    def text(self, longest: int) -> str:
        size = self.count()
        start = self.skip(size)
        return self.data[start : start + min(size, longest)].decode(errors="replace")

    def skip_texts(self, count: int) -> None:
        at, size, data, unpack = self.at, self.size, self.data, _U64.unpack_from
        try:
            for _ in range(count):
                at += 8 + unpack(data, at)[0]
        except (struct.error, OverflowError) as error:
            raise ValueError(TRUNCATED) from error
        if at > size:
            raise ValueError(TRUNCATED)
        self.at = at


def _pairs(cursor: _Cursor, whole: bool) -> tuple[dict[str, Value], int, bool]:
    """The values, the number of tensors, and whether all pairs were read."""
    if cursor.data[:4] != b"GGUF":
        raise ValueError("it does not begin like a GGUF file")
    cursor.skip(4)
    version = cursor.count(_U32)
    if version not in VERSIONS:
        raise ValueError(
            f"its format has the version {version}, and only {VERSIONS[0]} and {VERSIONS[1]} are "
            f"known"
        )
    tensors, pairs = cursor.count(), cursor.count()
    if tensors > MOST_TENSORS or pairs > MOST_PAIRS:
        raise ValueError(
            f"its header announces {tensors} tensors and {pairs} values, which no model has"
        )
    values: dict[str, Value] = {}
    for _ in range(pairs):
        size = cursor.count()
        if size > LONGEST_KEY:
            raise ValueError(f"its header has a key of {size} bytes, which no model has")
        start = cursor.skip(size)
        key = cursor.data[start : start + size].decode(errors="replace")
        if key.startswith("tokenizer.") and not whole and _dims(values):
            return values, tensors, False
        values[key] = _value(cursor, cursor.count(_U32))
    return values, tensors, True


def _value(cursor: _Cursor, kind: int) -> Value:
    if kind in _NUMBERS:
        return cursor.number(_NUMBERS[kind])
    if kind == _STRING:
        return cursor.text(LONGEST_TEXT)
    if kind != _ARRAY:
        raise ValueError(f"its header has a value of the unknown type {kind}")
    kind, count = cursor.count(_U32), cursor.count()
    cursor.items += count
    if cursor.items > MOST_ITEMS:
        raise ValueError(f"its header has a list of {count} entries, which no model has")
    if kind in _NUMBERS:
        cursor.skip(count * _NUMBERS[kind].size)
        return None
    if kind != _STRING:
        raise ValueError(f"its header has a list of the unknown type {kind}")
    if count <= MOST_LANGUAGES:
        return tuple([cursor.text(LONGEST_TEXT) for _ in range(count)])
    cursor.skip_texts(count)
    return None


def _check_tensors(cursor: _Cursor, tensors: int, values: dict[str, Value]) -> None:
    """Refuse an incomplete download before llama.cpp maps it: every tensor begins in the file."""
    last = 0
    for _ in range(tensors):
        cursor.skip(cursor.count())
        dimensions = cursor.count(_U32)
        if dimensions > 8:
            raise ValueError(f"it has a tensor of {dimensions} dimensions, which no model has")
        cursor.skip(8 * dimensions + 4)
        last = max(last, cursor.count())
    alignment = max(1, _whole_number(values, "general.alignment") or 32)
    start = -(-cursor.at // alignment) * alignment
    if tensors and start + last >= cursor.size:
        raise ValueError(
            "its last tensors are missing, so it was not copied or downloaded to the end"
        )


def _header(values: dict[str, Value]) -> Header:
    architecture = _text(values, "general.architecture")
    if not architecture:
        raise ValueError("its header names no architecture")
    dims, context = _dims(values), _whole_number(values, f"{architecture}.context_length")
    if not 0 < dims <= MOST_DIMS:
        raise ValueError(f"its header gives no usable size of its vectors ({dims})")
    if not 0 <= context <= MOST_CONTEXT:
        raise ValueError(f"its header gives no usable length of texts ({context})")
    pooling = values.get(f"{architecture}.pooling_type")
    languages = values.get("general.languages")
    return Header(
        architecture=architecture,
        name=_text(values, "general.name") or _text(values, "general.basename"),
        dims=dims,
        context=context,
        pooling=pooling if isinstance(pooling, int) else -1,
        languages=languages if isinstance(languages, tuple) else (),
        parts=_whole_number(values, "split.count"),
    )


def _dims(values: dict[str, Value]) -> int:
    """The size of the vectors; a few models compute with another size than they output."""
    architecture = _text(values, "general.architecture")
    return _whole_number(values, f"{architecture}.embedding_length_out") or _whole_number(
        values, f"{architecture}.embedding_length"
    )


def _text(values: dict[str, Value], key: str) -> str:
    value = values.get(key)
    return value if isinstance(value, str) else ""


def _whole_number(values: dict[str, Value], key: str) -> int:
    value = values.get(key)
    return value if isinstance(value, int) else 0
