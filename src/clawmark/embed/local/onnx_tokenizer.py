"""The tokenizer of an ONNX model: a folder in, a function from text to token numbers out.

BERT's WordPiece and RoBERTa's byte-level BPE are read by code of ours, which cuts as the
`tokenizers` package does and spares its fifteen dependencies. Every other kind needs that package.
What cannot be used is a ValueError that says why; a missing package is an ImportError."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import Any, TypeAlias

from clawmark.embed.local.bpe import END, START, Tokenizer
from clawmark.embed.local.onnx_folder import read_json
from clawmark.embed.local.wordpiece import Habits, WordPiece

Encode: TypeAlias = Callable[[str, int], list[int]]
"""(text, most tokens) -> the numbers with the model's marks around them."""
Frame: TypeAlias = tuple[list[int], list[int]]


def open_tokenizer(folder: str) -> Encode:
    """The tokenizer whose files lie in the folder; raises OSError, ValueError, ImportError."""
    described = read_json(folder, "tokenizer.json")
    if not described:
        return _from_vocabulary(folder)
    try:
        model, frame = described["model"], frame_of(described.get("post_processor"))
        kind = _kind(described)
        if frame and kind == "WordPiece" and is_known_kind(described):
            return _wordpiece(model, frame, described["normalizer"]).encode
        if kind == "BPE" and is_known_kind(described):
            return _bpe(model).encode
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError("its tokenizer.json describes no tokenizer") from error
    return _from_package(folder, kind)


def is_known_kind(described: dict[str, Any]) -> bool:
    """Whether a tokenizer is one of the two that are read without the package `tokenizers`."""
    try:
        kind, frame = _kind(described), frame_of(described.get("post_processor"))
        if kind == "WordPiece":
            return frame is not None and _is_berts(described)
        return kind == "BPE" and frame == ([START], [END]) and _is_robertas(described)
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError("its tokenizer.json describes no tokenizer") from error


def _kind(described: dict[str, Any]) -> str:
    model = described["model"]
    return str(model.get("type") or ("WordPiece" if "continuing_subword_prefix" in model else ""))


def _from_vocabulary(folder: str) -> Encode:
    """A `vocab.txt` of BERT's: a piece per line, numbered from 0."""
    with open(os.path.join(folder, "vocab.txt"), encoding="utf-8") as file:
        pieces = [line.rstrip("\n") for line in file]
    vocabulary = {piece: number for number, piece in enumerate(pieces)}
    missing = [mark for mark in ("[CLS]", "[SEP]", "[UNK]") if mark not in vocabulary]
    if missing:
        raise ValueError(f"its vocab.txt has no {missing[0]}")
    config = read_json(folder, "tokenizer_config.json")
    lower = config.get("do_lower_case", True) is not False
    accents = config.get("strip_accents")
    habits = Habits(
        lower,
        not lower if accents is None else not accents,
        config.get("tokenize_chinese_chars") is not False,
    )
    return WordPiece(vocabulary, [vocabulary["[CLS]"]], [vocabulary["[SEP]"]], habits=habits).encode


def _wordpiece(model: dict[str, Any], frame: Frame, normalizer: dict[str, Any]) -> WordPiece:
    if not all(type(number) is int for number in model["vocab"].values()):
        raise TypeError("a vocabulary numbers its pieces")
    lower, accents = normalizer.get("lowercase") is not False, normalizer.get("strip_accents")
    return WordPiece(
        model["vocab"],
        *frame,
        unknown=model.get("unk_token") or "[UNK]",
        inside=model.get("continuing_subword_prefix", "##"),
        longest_word=model.get("max_input_chars_per_word", 100),
        habits=Habits(
            lower=lower,
            accents=not lower if accents is None else not accents,
            chinese=normalizer.get("handle_chinese_chars") is not False,
            clean=normalizer.get("clean_text") is not False,
        ),
    )


def _bpe(model: dict[str, Any]) -> Tokenizer:
    """Newer files write a merge as two strings, older ones as one with a space between; our reader
    knows the latter.
    """
    merges = [" ".join(merge) if isinstance(merge, list) else merge for merge in model["merges"]]
    parts = {"vocab": model["vocab"], "merges": merges}
    tokenizer = Tokenizer(json.dumps(parts, ensure_ascii=False, separators=(",", ":")).encode())
    tokenizer.prepare()
    return tokenizer


def _from_package(folder: str, kind: str) -> Encode:
    try:
        import tokenizers
    except ImportError as error:
        raise ImportError(
            f"its tokenizer is of the kind {kind or 'unknown'}, which needs the package tokenizers"
        ) from error
    try:
        tokenizer = tokenizers.Tokenizer.from_file(os.path.join(folder, "tokenizer.json"))
        tokenizer.no_padding()
        tokenizer.no_truncation()
    except Exception as error:  # the package raises bare Exceptions
        raise ValueError(
            f"its tokenizer.json cannot be read by the package tokenizers: {error}"
        ) from error

    def encode(text: str, limit: int) -> list[int]:
        tokens: list[int] = tokenizer.encode(text).ids
        # The mark at the end stays there when the middle is cut.
        return tokens if len(tokens) <= limit else [*tokens[: limit - 1], tokens[-1]]

    return encode


def _is_berts(described: dict[str, Any]) -> bool:
    parts = described.get("normalizer"), described.get("pre_tokenizer")
    return [part and part.get("type") for part in parts] == ["BertNormalizer", "BertPreTokenizer"]


def _is_robertas(described: dict[str, Any]) -> bool:
    before, model = described.get("pre_tokenizer") or {}, described["model"]
    return (
        described.get("normalizer") is None
        and before.get("type") == "ByteLevel"
        and not before.get("add_prefix_space")
        and before.get("use_regex") is not False
        and not any(
            model.get(key)
            for key in ("byte_fallback", "ignore_merges", "continuing_subword_prefix", "dropout")
        )
    )


def frame_of(processor: dict[str, Any] | None) -> Frame | None:
    """The numbers before and after a text, if the tokenizer says them in one of the ways that are
    known here.
    """
    match processor:
        case {
            "type": "BertProcessing" | "RobertaProcessing",
            "cls": [_, int(first)],
            "sep": [_, int(last)],
        }:
            return [first], [last]
        case {"type": "TemplateProcessing", "single": list(items), "special_tokens": dict(special)}:
            sides: Frame = ([], [])
            texts = 0
            for item in items:
                if "Sequence" in item:
                    texts += 1
                else:
                    sides[min(texts, 1)].extend(special[item["SpecialToken"]["id"]]["ids"])
            return sides if texts == 1 else None
    return None
