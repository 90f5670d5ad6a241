"""The head of a GGUF file: what the model is called and how large its vectors are, without loading
it.

A path in, a `Header` out, or a ValueError that says what is wrong as the end of a sentence. The
file comes from anywhere, so no number in it is believed: nothing is read beyond the file, no list
is walked that no model has, and nothing is kept but the few values asked for. Whether llama.cpp
likes the tensors is left to llama.cpp.

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
"""In all lists together; the largest vocabularies have a quarter of a million entries, and as many
merges.
"""
LONGEST_KEY, LONGEST_TEXT = 1 << 10, 1 << 12
MOST_LANGUAGES = 256
MOST_DIMS, MOST_CONTEXT = 1 << 16, 1 << 26
CUT_SHORT = "it ends in the middle of its header, so it was not copied or downloaded to the end"

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
    """What a GGUF file says about its model; 0 and empty where it says nothing."""

    architecture: str
    name: str
    dims: int
    context: int
    pooling: int
    """As llama.cpp numbers it: 0 none, 1 mean, 2 first token, 3 last token, 4 a ranking; -1 when
    not given.
    """
    languages: tuple[str, ...]
    parts: int
    """How many files the model is split into."""


def read_header(path: str, *, whole: bool = False) -> Header:
    """Read what comes before the vocabulary, or with `whole` everything up to the tensors; raises
    OSError, ValueError.

    The vocabulary has hundreds of thousands of strings that can only be stepped over one by one,
    which takes longer than a question is allowed to; by custom all that matters comes before it.
    """
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
    """Walks through the bytes and never past their end."""

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
        """Step over `size` bytes and give the place where they begin."""
        start = self.at
        if size > self.size - start:
            raise ValueError(CUT_SHORT)
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
            raise ValueError(CUT_SHORT) from error
        if at > size:
            raise ValueError(CUT_SHORT)
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
    """Every tensor begins inside the file; a download that broke off is found here, before
    llama.cpp maps it.
    """
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
    """A few models give out vectors of another size than they compute with."""
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
