"""Helpers for local model files: hashes, names, prompts, calibration and errors."""

from __future__ import annotations

import os
import re
import stat
from hashlib import file_digest, sha256
from importlib.machinery import PathFinder
from typing import NamedTuple

from clawmark.embed.models import MODELS, UNKNOWN, prompts_for
from clawmark.model.errors import EmbeddingUnavailable

PROVIDER = "local"
LONGEST_NAME = 120
_FAMILIES = {
    "minilm": "all-minilm",
    "e5-": "multilingual-e5-large",
    "bge-m3": "bge-m3",
    "bge-": "bge-large",
    "granite": "granite-embedding",
    "gemma": "embeddinggemma",
    "qwen3": "qwen3-embedding",
    "nomic": "nomic-embed-text",
    "mxbai": "mxbai-embed-large",
    "arctic-embed": "snowflake-arctic-embed",
}
"""A word in a model's name, and a known model of the same family."""


class Stamp(NamedTuple):
    """The state of a file; while it stays the same, so does the hash of the content."""

    path: str
    size: int
    mtime_ns: int
    inode: int


_KNOWN_HASHES: dict[Stamp, str] = {}


def stamp_of(path: str) -> Stamp:
    """The state of a file; raises OSError if it is missing, ValueError if it is not regular."""
    seen = os.stat(path)
    # Opening a pipe would block.
    if not stat.S_ISREG(seen.st_mode):
        raise ValueError("it is not a file" if not stat.S_ISDIR(seen.st_mode) else "it is a folder")
    return Stamp(
        path=os.path.realpath(path), size=seen.st_size, mtime_ns=seen.st_mtime_ns, inode=seen.st_ino
    )


def sha256_of(stamp: Stamp) -> str:
    """SHA-256 hex of the file, cached per process: a third of a gigabyte takes 0.2 s."""
    known = _KNOWN_HASHES.get(stamp)
    if known is None:
        with open(stamp.path, "rb") as file:
            known = file_digest(file, "sha256").hexdigest()
        if stamp_of(stamp.path) != stamp:
            raise ValueError("it is being written")
        _KNOWN_HASHES[stamp] = known
    return known


def key_of(*facts: str) -> str:
    """The provider key: SHA-256 hex over everything that changes the vectors."""
    return sha256("\n".join((PROVIDER, *facts)).encode()).hexdigest()


def plain(name: str) -> str:
    """A name from a file, made safe to print: one line, printable, of limited length."""
    words = "".join(
        char if char.isprintable() else " " for char in name[: 4 * LONGEST_NAME]
    ).split()
    return " ".join(words)[:LONGEST_NAME]


def slug(name: str) -> str:
    """`Qwen3 Embedding 0.6B` as it is spelled in `embed.models`: `qwen3-embedding-0.6b`."""
    return re.sub(r"[\s_]+", "-", name.strip().lower()).rsplit("/", 1)[-1]


def prompts_of(*names: str) -> tuple[str, str]:
    """The prefixes of questions and passages that the model was trained with, by the first known
    name.
    """
    return next((prompts for name in names if any(prompts := prompts_for(slug(name)))), ("", ""))


def calibration_of(*names: str) -> tuple[float, float]:
    """The cosines of unrelated texts and of a perfect answer: of the family, or of an average
    model.
    """
    for name in map(slug, names):
        family = max((known for known in MODELS if name.startswith(known)), key=len, default="")
        family = family or next((known for word, known in _FAMILIES.items() if word in name), "")
        if family:
            return MODELS[family].floor, MODELS[family].ceiling
    return UNKNOWN.floor, UNKNOWN.ceiling


def wellformed(text: str) -> str:
    """The text with lone surrogates, which UTF-8 cannot encode, replaced by question marks."""
    return text if text.isascii() else text.encode(errors="replace").decode()


def is_installed(package: str) -> bool:
    """Whether a package can be imported, without importing it."""
    return PathFinder.find_spec(package) is not None


def unavailable(message: str, model: str, hint: str) -> EmbeddingUnavailable:
    return EmbeddingUnavailable(message, provider=PROVIDER, model=model, hint=hint)


def reason_of(error: OSError | ValueError) -> str:
    """Why a file could not be used, as the end of a sentence."""
    if isinstance(error, OSError):
        return (error.strerror or type(error).__name__).lower()
    return str(error)
