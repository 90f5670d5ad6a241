"""Encode a question and a passage as one sequence of tokens for a cross-encoder.

The formats of BERT and RoBERTa use our own tokenizers; every other one needs the package
`tokenizers`."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from clawmark.embed.local.onnx_folder import read_json
from clawmark.embed.local.onnx_tokenizer import Encode, frame_of, is_known_kind, open_tokenizer

Pair: TypeAlias = tuple[list[int], list[int]]
"""Token numbers, and for each whether it belongs to the first (0) or the second text (1)."""
EncodePair: TypeAlias = Callable[[str, str, int], Pair]
"""(question, passage, limit) -> the pair; the passage is cut first, then the question."""
Part: TypeAlias = tuple[str | list[int], int]
"""`A`, `B` or the numbers of marks, with their type."""


def open_pair_tokenizer(folder: str) -> EncodePair:
    """Return the pair tokenizer of a folder; raise OSError, ValueError or ImportError."""
    described = read_json(folder, "tokenizer.json")
    if described and not is_known_kind(described):
        return _from_package(folder)
    encode = open_tokenizer(folder)
    try:
        frame = frame_of(described.get("post_processor")) if described else None
        before, after = frame or _frame_of_empty(encode)
        parts = _parts(described.get("post_processor") if described else None, before, after)
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(
            "its tokenizer.json does not say how two texts are put together"
        ) from error

    def encode_pair(first: str, second: str, limit: int) -> Pair:
        marks = sum(len(part) for part, _ in parts if isinstance(part, list))
        room = max(2, limit - marks)
        one = _inner(encode, first, room // 2, before, after)
        texts = {"A": one, "B": _inner(encode, second, room - len(one), before, after)}
        tokens: list[int] = []
        kinds: list[int] = []
        for part, kind in parts:
            numbers = texts[part] if isinstance(part, str) else part
            tokens += numbers
            kinds += [kind] * len(numbers)
        return tokens, kinds

    return encode_pair


def _inner(
    encode: Encode, text: str, limit: int, before: Sequence[int], after: Sequence[int]
) -> list[int]:
    """Return the tokens of a text without the special tokens around it."""
    marks = len(before) + len(after)
    tokens = encode(text, limit + marks)
    return tokens[len(before) : len(tokens) - len(after)]


def _frame_of_empty(encode: Encode) -> tuple[list[int], list[int]]:
    first, last = encode("", 8)
    return [first], [last]


def _parts(processor: dict[str, Any] | None, before: list[int], after: list[int]) -> list[Part]:
    match processor:
        case {"type": "RobertaProcessing"}:
            return [(before, 0), ("A", 0), (after, 0), (after, 0), ("B", 0), (after, 0)]
        case {"type": "TemplateProcessing", "pair": list(items), "special_tokens": dict(special)}:
            return [_template_part(item, special) for item in items]
    return [(before, 0), ("A", 0), (after, 0), ("B", 1), (after, 1)]


def _template_part(item: dict[str, Any], special: dict[str, Any]) -> Part:
    if "Sequence" in item:
        name = item["Sequence"]["id"]
        if name not in ("A", "B"):
            raise KeyError(name)
        return name, int(item["Sequence"]["type_id"])
    mark = item["SpecialToken"]
    return list(special[mark["id"]]["ids"]), int(mark["type_id"])


def _from_package(folder: str) -> EncodePair:
    try:
        import tokenizers
    except ImportError as error:
        raise ImportError("its tokenizer is of a kind that needs the package tokenizers") from error
    try:
        tokenizer = tokenizers.Tokenizer.from_file(os.path.join(folder, "tokenizer.json"))
        tokenizer.no_padding()
        tokenizer.no_truncation()
    except Exception as error:  # the boundary to the package, which raises bare Exceptions
        raise ValueError(
            f"its tokenizer.json cannot be read by the package tokenizers: {error}"
        ) from error

    def encode_pair(first: str, second: str, limit: int) -> Pair:
        found = tokenizer.encode(first, second)
        if len(found.ids) > limit:
            found.truncate(limit)
        return list(found.ids), list(found.type_ids)

    return encode_pair
