"""The tokenizers of ONNX models, opened from the files in the model's folder.

BERT's WordPiece and RoBERTa's byte-level BPE are implemented here and in `bpe`; they give the same
ids as the `tokenizers` package, which takes six times as long to open a vocabulary and brings
fifteen dependencies. Every other kind needs that package. Special tokens are never read from the
text: a note that contains `[SEP]` contains five characters."""

from __future__ import annotations

import json
import os
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeAlias

from clawmark.embed.local.bpe import CACHED_WORDS, END, START, Tokenizer
from clawmark.embed.local.onnx_folder import read_json

Encode: TypeAlias = Callable[[str, int], list[int]]
"""(text, most tokens) -> the ids, with the model's special tokens around them."""
Frame: TypeAlias = tuple[list[int], list[int]]
_CHINESE = (
    *((0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFAFF), (0x20000, 0x2A6DF)),
    *((0x2A700, 0x2B73F), (0x2B740, 0x2B81F), (0x2B920, 0x2CEAF), (0x2F800, 0x2FA1F)),
)
"""The ranges of BERT's own tokenizer, including its gap before 0x2B920."""


class Normalization(NamedTuple):
    """What happens to a text before it is split into words."""

    lower: bool = True
    accents: bool = False
    """Whether accents are kept."""
    chinese: bool = True
    """Whether each Chinese character is a word."""
    clean: bool = True
    """Whether control characters are removed."""


class WordPiece:
    """BERT's tokenizer: each word is cut into the longest pieces of the vocabulary, from left to
    right; a word that cannot be cut is unknown as a whole. `before` and `after` are the special
    tokens around every text.
    """

    def __init__(
        self,
        vocabulary: Mapping[str, int],
        before: Sequence[int],
        after: Sequence[int],
        *,
        unknown: str = "[UNK]",
        inside: str = "##",
        longest_word: int = 100,
        normalization: Normalization = Normalization(),  # noqa: B008 - immutable
    ) -> None:
        self._vocabulary = vocabulary
        self._before, self._after = list(before), list(after)
        self._unknown = (vocabulary[unknown],)
        self._inside = inside
        self._longest_word = longest_word
        self._longest_piece = max(map(len, vocabulary))
        self._accents = normalization.accents
        self._first = _Replacements(partial(_first_pass, normalization))
        self._second = _Replacements(partial(_second_pass, normalization))
        self._words: dict[str, tuple[int, ...]] = {}

    def encode(self, text: str, limit: int) -> list[int]:
        """The ids between the special tokens, at most `limit` with them."""
        room = limit - len(self._before) - len(self._after)
        tokens: list[int] = []
        for word in self.split(text):
            tokens += self._words.get(word) or self._learn(word)
            if len(tokens) >= room:
                break
        return [*self._before, *tokens[:room], *self._after]

    def split(self, text: str) -> list[str]:
        """The words of a text as the model sees them."""
        cleaned = text.translate(self._first)
        if not self._accents and not cleaned.isascii():
            cleaned = unicodedata.normalize("NFD", cleaned)
        return cleaned.translate(self._second).split()

    def _learn(self, word: str) -> tuple[int, ...]:
        if len(self._words) >= CACHED_WORDS:
            self._words = {}
        tokens = self._words[word] = (
            self._cut(word) if len(word) <= self._longest_word else self._unknown
        )
        return tokens

    def _cut(self, word: str) -> tuple[int, ...]:
        tokens: list[int] = []
        start = 0
        while start < len(word):
            mark = self._inside if start else ""
            for end in range(min(len(word), start + self._longest_piece), start, -1):
                number = self._vocabulary.get(mark + word[start:end])
                if number is not None:
                    break
            else:
                return self._unknown
            tokens.append(number)
            start = end
        return tuple(tokens)


class _Replacements(dict[int, str]):
    """A table for `str.translate` that computes the replacement of a character on first use."""

    def __init__(self, replacement: Callable[[str], str]) -> None:
        super().__init__()
        self._replacement = replacement

    def __missing__(self, code: int) -> str:
        self[code] = result = self._replacement(chr(code))
        return result


def _first_pass(rules: Normalization, char: str) -> str:
    """Remove control characters, and put Chinese characters between spaces."""
    if rules.clean and (char in "\0\ufffd" or _is_control(char)):
        return ""
    if rules.clean and char.isspace():
        return " "
    if rules.chinese and any(first <= ord(char) <= last for first, last in _CHINESE):
        return f" {char} "
    return char


def _second_pass(rules: Normalization, char: str) -> str:
    """Drop accents, lower capitals, and put punctuation between spaces."""
    if not rules.accents and unicodedata.category(char) == "Mn":
        return ""
    # One character at a time: Python's lower() treats the Greek final sigma by context, the model's
    # tokenizer does not.
    result = char.lower() if rules.lower else char
    return f" {result} " if _is_punctuation(char) else result


def _is_control(char: str) -> bool:
    return char not in "\t\n\r" and unicodedata.category(char) in ("Cc", "Cf", "Co", "Cs")


def _is_punctuation(char: str) -> bool:
    """Punctuation, and every ASCII character that is neither letter, digit nor space."""
    if char.isascii():
        return char.isprintable() and not char.isalnum() and char != " "
    return unicodedata.category(char).startswith("P")


def open_tokenizer(folder: str) -> Encode:
    """The tokenizer of a model's folder; raises OSError, ImportError without the package that is
    needed, or ValueError with the reason.
    """
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
        raise ValueError("its tokenizer.json does not describe a tokenizer") from error
    return _from_package(folder, kind)


def is_known_kind(described: dict[str, Any]) -> bool:
    """Whether the tokenizer is one of the two that do not need the package `tokenizers`."""
    try:
        kind, frame = _kind(described), frame_of(described.get("post_processor"))
        if kind == "WordPiece":
            return frame is not None and _is_bert(described)
        return kind == "BPE" and frame == ([START], [END]) and _is_roberta(described)
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError("its tokenizer.json does not describe a tokenizer") from error


def _kind(described: dict[str, Any]) -> str:
    model = described["model"]
    return str(model.get("type") or ("WordPiece" if "continuing_subword_prefix" in model else ""))


def _from_vocabulary(folder: str) -> Encode:
    """BERT's `vocab.txt`: one piece per line, numbered from 0."""
    with open(os.path.join(folder, "vocab.txt"), encoding="utf-8") as file:
        pieces = [line.rstrip("\n") for line in file]
    vocabulary = {piece: number for number, piece in enumerate(pieces)}
    missing = [mark for mark in ("[CLS]", "[SEP]", "[UNK]") if mark not in vocabulary]
    if missing:
        raise ValueError(f"its vocab.txt has no {missing[0]}")
    config = read_json(folder, "tokenizer_config.json")
    lower = config.get("do_lower_case", True) is not False
    accents = config.get("strip_accents")
    normalization = Normalization(
        lower,
        not lower if accents is None else not accents,
        config.get("tokenize_chinese_chars") is not False,
    )
    return WordPiece(
        vocabulary, [vocabulary["[CLS]"]], [vocabulary["[SEP]"]], normalization=normalization
    ).encode


def _wordpiece(model: dict[str, Any], frame: Frame, normalizer: dict[str, Any]) -> WordPiece:
    if not all(type(number) is int for number in model["vocab"].values()):
        raise TypeError("the ids of a vocabulary must be numbers")
    lower, accents = normalizer.get("lowercase") is not False, normalizer.get("strip_accents")
    return WordPiece(
        model["vocab"],
        *frame,
        unknown=model.get("unk_token") or "[UNK]",
        inside=model.get("continuing_subword_prefix", "##"),
        longest_word=model.get("max_input_chars_per_word", 100),
        normalization=Normalization(
            lower=lower,
            accents=not lower if accents is None else not accents,
            chinese=normalizer.get("handle_chinese_chars") is not False,
            clean=normalizer.get("clean_text") is not False,
        ),
    )


def _bpe(model: dict[str, Any]) -> Tokenizer:
    """Newer files write a merge as two strings, older ones as one with a space; `Tokenizer` reads
    the latter.
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
    except Exception as error:  # boundary to the package, which raises bare Exceptions
        raise ValueError(
            f"its tokenizer.json cannot be read by the package tokenizers: {error}"
        ) from error

    def encode(text: str, limit: int) -> list[int]:
        tokens: list[int] = tokenizer.encode(text).ids
        # When the text is cut, the special token at the end stays.
        return tokens if len(tokens) <= limit else [*tokens[: limit - 1], tokens[-1]]

    return encode


def _is_bert(described: dict[str, Any]) -> bool:
    parts = described.get("normalizer"), described.get("pre_tokenizer")
    return [part and part.get("type") for part in parts] == ["BertNormalizer", "BertPreTokenizer"]


def _is_roberta(described: dict[str, Any]) -> bool:
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
    """The ids before and after a text; None if the tokenizer gives them in a way not known here."""
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
