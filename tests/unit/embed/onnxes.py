"""Makes ONNX models for tests: our own weights as a whole transformer, and small
graphs with known answers.

An ONNX file is a protobuf message; the few fields a graph needs are written here by hand, which
spares the tests a package. onnxruntime's own fused operators keep the transformer to eight nodes a
layer. What comes out is the model that `TransformerEmbedder` computes by itself, so both have to
say the same."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from clawmark.embed.local.encoder import _floats, positions, quantised
from clawmark.embed.local.weights import find_pack, open_pack

FLOAT, INT8, INT64 = 1, 3, 7
KINDS = {"float32": FLOAT, "int8": INT8, "int64": INT64}
FUSED = "com.microsoft"
Shape = Sequence[int | str]


def number(field: int, value: int) -> bytes:
    return varint(field << 3) + varint(value & (1 << 64) - 1)


def message(field: int, body: bytes | str) -> bytes:
    data = body.encode() if isinstance(body, str) else body
    return varint(field << 3 | 2) + varint(len(data)) + data


def varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def node(
    kind: str,
    inputs: Sequence[str],
    outputs: Sequence[str],
    domain: str = "",
    **attributes: int | float,
) -> bytes:
    body = b"".join(message(1, name) for name in inputs) + b"".join(
        message(2, name) for name in outputs
    )
    body += message(4, kind) + message(7, domain)
    for name, value in attributes.items():
        if isinstance(value, float):
            body += message(
                5,
                message(1, name) + varint(2 << 3 | 5) + np.float32(value).tobytes() + number(20, 1),
            )
        else:
            body += message(5, message(1, name) + number(3, value) + number(20, 2))
    return message(1, body)


def tensor(name: str, array: Any) -> bytes:
    dims = b"".join(number(1, size) for size in array.shape)
    return message(
        5,
        dims + number(2, KINDS[array.dtype.name]) + message(8, name) + message(9, array.tobytes()),
    )


def value(field: int, name: str, kind: int, shape: Shape) -> bytes:
    dims = b"".join(
        message(1, number(1, size) if isinstance(size, int) else message(2, size)) for size in shape
    )
    return message(
        field, message(1, name) + message(2, message(1, number(1, kind) + message(2, dims)))
    )


def model(
    nodes: Sequence[bytes],
    tensors: Mapping[str, Any],
    inputs: Mapping[str, int],
    outputs: Mapping[str, Shape],
) -> bytes:
    """A whole ONNX file."""
    graph = (
        b"".join(nodes)
        + message(2, "test")
        + b"".join(tensor(name, array) for name, array in tensors.items())
    )
    graph += b"".join(value(11, name, kind, ("batch", "sequence")) for name, kind in inputs.items())
    graph += b"".join(value(12, name, FLOAT, shape) for name, shape in outputs.items())
    opsets = message(8, number(2, 17)) + message(8, message(1, FUSED) + number(2, 1))
    return number(1, 8) + opsets + message(7, graph)


def write_json(file: Path, content: object) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(content), encoding="utf-8")


def write_rows(
    folder: Path, words: Sequence[str], rows: Any, *, dims: int | str = 0, **more: int
) -> Path:
    """A model that gives each token its row, regardless of the others; `more` adds inputs."""
    folder.mkdir(parents=True, exist_ok=True)
    inputs = {"input_ids": INT64, **more}
    nodes = [node("Gather", ["rows", "input_ids"], ["last_hidden_state"])]
    outputs = {"last_hidden_state": ("batch", "sequence", dims or rows.shape[1])}
    (folder / "model.onnx").write_bytes(model(nodes, {"rows": rows}, inputs, outputs))
    (folder / "vocab.txt").write_text("".join(f"{word}\n" for word in words), encoding="utf-8")
    write_json(
        folder / "config.json", {"hidden_size": rows.shape[1], "max_position_embeddings": 64}
    )
    return folder


def write_transformer(folder: Path) -> Path:
    """Our own model in a folder as sentence-transformers writes it, 32 MB."""
    pack = open_pack(find_pack())
    words, factors = quantised(pack, pack.tensors["word_emb"])
    tensors: dict[str, Any] = {
        "words": words.reshape(len(words), -1),
        "factors": factors.reshape(len(words), -1, 1),
        "positions": positions(pack),
        "emb.w": _floats(pack, "emb_ln.w"),
        "emb.b": _floats(pack, "emb_ln.b"),
        "split": np.array([0, 0, factors.shape[1], -1]),
        "joined": np.array([0, 0, words.shape[1] * words.shape[2]]),
        "one": np.array(1),
    }
    nodes = [
        node("Gather", ["words", "input_ids"], ["bytes"]),
        node("Cast", ["bytes"], ["numbers"], to=FLOAT),
        node("Reshape", ["numbers", "split"], ["groups"]),
        node("Gather", ["factors", "input_ids"], ["scales"]),
        node("Mul", ["groups", "scales"], ["scaled"]),
        node("Reshape", ["scaled", "joined"], ["embedded"]),
        node("CumSum", ["attention_mask", "one"], ["counted"]),
        node("Sub", ["counted", "one"], ["places"]),
        node("Gather", ["positions", "places"], ["placed"]),
        node("Add", ["embedded", "placed"], ["summed"]),
        node(
            "LayerNormalization", ["summed", "emb.w", "emb.b"], ["s0"], epsilon=float(pack.epsilon)
        ),
    ]
    for layer in range(pack.layers):
        name = f"l{layer}."
        layers = ("qkv", "ao", "aln", "f1", "f2", "fln")
        parts = [f"{part}.{kind}" for part in layers for kind in "wb"]
        tensors |= {name + part: _floats(pack, name + part) for part in parts}
        source, middle, target = (
            f"s{layer}",
            f"m{layer}",
            f"s{layer + 1}" if layer + 1 < pack.layers else "last_hidden_state",
        )
        epsilon = float(pack.epsilon)
        nodes += [
            node(
                "Attention",
                [source, name + "qkv.w", name + "qkv.b"],
                [name + "a"],
                FUSED,
                num_heads=pack.heads,
            ),
            node("MatMul", [name + "a", name + "ao.w"], [name + "o"]),
            _normalised(name + "o", source, name + "aln", name + "ao.b", middle, epsilon),
            node("MatMul", [middle, name + "f1.w"], [name + "u"]),
            node("BiasGelu", [name + "u", name + "f1.b"], [name + "g"], FUSED),
            node("MatMul", [name + "g", name + "f2.w"], [name + "d"]),
            _normalised(name + "d", middle, name + "fln", name + "f2.b", target, epsilon),
        ]
    hidden = words.shape[1] * words.shape[2]
    outputs = {"last_hidden_state": ("batch", "sequence", hidden)}
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model.onnx").write_bytes(
        model(nodes, tensors, {"input_ids": INT64, "attention_mask": INT64}, outputs)
    )
    (folder / "tokenizer.json").write_bytes(pack.tokenizer)
    write_json(
        folder / "config.json",
        {"model_type": "roberta", "hidden_size": hidden, "max_position_embeddings": 514},
    )
    write_json(
        folder / "1_Pooling" / "config.json",
        {"word_embedding_dimension": hidden, "pooling_mode_cls_token": True},
    )
    return folder


def _normalised(
    step: str, skipped: str, norm: str, bias: str, target: str, epsilon: float
) -> bytes:
    inputs = [step, skipped, f"{norm}.w", f"{norm}.b", bias]
    return node("SkipLayerNormalization", inputs, [target], FUSED, epsilon=epsilon)
