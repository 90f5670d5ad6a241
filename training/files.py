"""The layout of the two files that ship inside the package, from numpy arrays.

`clawmark.embed.local.static_table` and `clawmark.embed.local.weights` describe and read them.
"""

from __future__ import annotations

import json
import struct
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from clawmark.embed.local import static_table

GROUP, HEADS, EPSILON = 64, 12, 1e-12
PARTS = {
    "qkv": "qkv",
    "out": "ao",
    "out_norm": "aln",
    "up": "f1",
    "down": "f2",
    "down_norm": "fln",
}
"""The parts of a layer, as in training and as in the file."""


def table_file(steps: NDArray[np.int8], factors: NDArray[np.uint8], pieces: list[str]) -> bytes:
    """The static table: rows of the single bytes first, then one for each piece."""
    names = [piece.encode() + b"\n" for piece in pieces]
    starts, slots, at = [], [0] * static_table.SLOTS, static_table.HEADER.size
    for row, name in enumerate(names, static_table.BYTES):
        starts.append(at)
        at += len(name)
        slot = zlib.crc32(name[:-1]) % static_table.SLOTS
        while slots[slot]:
            slot = (slot + 1) % static_table.SLOTS
        slots[slot] = row
    vocabulary = b"".join(names)
    header = static_table.HEADER.pack(
        static_table.MAGIC, len(steps), steps.shape[1], len(vocabulary)
    )
    return b"".join(
        (
            header,
            vocabulary,
            struct.pack(f"<{len(starts)}I", *starts),
            struct.pack(f"<{static_table.SLOTS}H", *slots),
            factors.tobytes(),
            halves(steps).tobytes(),
        )
    )


def halves(steps: NDArray[np.int8]) -> NDArray[np.uint8]:
    """Two steps of -8..7 per byte: the first half of the last axis in the low bits."""
    low, high = np.split((steps + 8).astype(np.uint8), 2, axis=-1)
    joined: NDArray[np.uint8] = low | (high << np.uint8(4))
    return joined


class Tensors:
    """Collects the tensors of a file and their descriptions."""

    def __init__(self) -> None:
        self.entries: list[dict[str, Any]] = []
        self.parts: list[bytes] = []

    def plain(self, name: str, values: NDArray[Any]) -> None:
        self._add(name, values.shape, values.tobytes(), 0, 8, f"<f{values.dtype.itemsize}")

    def steps(self, name: str, steps: NDArray[np.int8], factors: NDArray[Any], bits: int) -> None:
        data = (halves(steps) if bits == 4 else steps).tobytes() + factors.astype("<f2").tobytes()
        shape = (len(steps), steps.shape[1] * steps.shape[2])
        self._add(name, shape, data, GROUP, bits, "<f2")

    def _add(
        self, name: str, shape: tuple[int, ...], data: bytes, group: int, bits: int, factors: str
    ) -> None:
        entry = {"name": name, "shape": list(shape), "len": len(data), "group": group}
        self.entries.append({**entry, "bits": bits, "factors": factors})
        self.parts.append(data)


def tokenizer_file(vocabulary: dict[str, int], merges: list[str]) -> bytes:
    """A whole `tokenizer.json`, as RoBERTa's."""
    cut = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True}
    whole = {
        "version": "1.0",
        "added_tokens": [
            {"id": number, "content": name, "special": True}
            for name, number in vocabulary.items()
            if name in ("<s>", "<pad>", "</s>")
        ],
        "pre_tokenizer": {**cut, "use_regex": True},
        "post_processor": {
            **cut,
            "type": "RobertaProcessing",
            "sep": ["</s>", 2],
            "cls": ["<s>", 0],
        },
        "decoder": {**cut, "use_regex": True},
        "model": {"type": "BPE", "vocab": vocabulary, "merges": merges},
    }
    return json.dumps(whole, ensure_ascii=False, separators=(",", ":")).encode()


def encoder_file(
    arrays: dict[str, NDArray[Any]], vocabulary: dict[str, int], merges: list[str]
) -> bytes:
    """The student in the layout that `clawmark.embed.local.weights` reads."""
    tensors = Tensors()
    tensors.steps("word_emb", arrays["words.q"], arrays["words.f"], 4)
    tensors.plain("pos_emb", arrays["positions"])
    tensors.plain("emb_ln.w", arrays["norm.weight"])
    tensors.plain("emb_ln.b", arrays["norm.bias"])
    layers = int(arrays["layers"])
    for number in range(layers):
        for part, short in PARTS.items():
            source, target = f"layers.{number}.{part}", f"l{number}.{short}"
            if part.endswith("norm"):
                tensors.plain(f"{target}.w", arrays[f"{source}.weight"])
            else:
                steps, factors = arrays[f"{source}.weight.q"], arrays[f"{source}.weight.f"]
                tensors.steps(f"{target}.w", steps, factors, 8)
            tensors.plain(f"{target}.b", arrays[f"{source}.bias"])
    tokenizer = tokenizer_file(vocabulary, merges)
    arch = {"heads": HEADS, "layers": layers, "layer_norm_eps": EPSILON, "position_offset": 0}
    header = json.dumps(
        {
            "arch": arch,
            "meta": {"max_length": 512},
            "tokenizer_len": len(tokenizer),
            "tensors": tensors.entries,
        }
    ).encode()
    start = struct.pack("<8sQ", b"CLAWENC1", len(header))
    return b"".join((start, header, tokenizer, *tensors.parts))
