"""Makes GGUF files for tests: whole real models from our own weights, and headers
that lie.

The format: magic, version, two counts, typed key/value pairs, tensor descriptions, then the
tensors' bytes, each aligned. The model that comes out is the one `TransformerEmbedder` computes by
itself, so both have to say the same."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path

from clawmark.embed.local.weights import Pack, find_pack, open_pack

U32, I32, F32, BOOL, STRING, ARRAY, U64 = 4, 5, 6, 7, 8, 9, 10
PLAIN, EIGHT_BIT = 0, 8
"""Tensor types: float32, and 32 bytes with one half-precision factor."""
ALIGNMENT = 32
WHOLE_WORD, CONTROL = 1, 3

Value = bool | int | float | str | Sequence[str] | Sequence[int]
Tensor = tuple[str, tuple[int, ...], int, bytes]


def text(value: str | bytes) -> bytes:
    data = value if isinstance(value, bytes) else value.encode()
    return struct.pack("<Q", len(data)) + data


def pair(key: str, value: Value) -> bytes:
    """One key with its value, typed as the value is."""
    match value:
        case bool():
            body = struct.pack("<I?", BOOL, value)
        case int():
            body = struct.pack("<II", U32, value)
        case float():
            body = struct.pack("<If", F32, value)
        case str():
            body = struct.pack("<I", STRING) + text(value)
        case _:
            items = list(value)
            strings = [text(item) for item in items if isinstance(item, str)]
            numbers = [struct.pack("<i", item) for item in items if isinstance(item, int)]
            body = struct.pack("<IIQ", ARRAY, STRING if strings else I32, len(items)) + b"".join(
                strings or numbers
            )
    return text(key) + body


def write_gguf(path: Path, values: Mapping[str, Value], tensors: Sequence[Tensor] = ()) -> Path:
    """A well-formed file."""
    header = struct.pack("<4sIQQ", b"GGUF", 3, len(tensors), len(values))
    header += b"".join(pair(key, value) for key, value in values.items())
    offset = 0
    for name, shape, kind, data in tensors:
        header += text(name) + struct.pack(
            f"<I{len(shape)}QIQ", len(shape), *shape[::-1], kind, offset
        )
        offset += _padded(len(data))
    with path.open("wb") as file:
        file.write(header.ljust(_padded(len(header)), b"\0"))
        for *_, data in tensors:
            file.write(data.ljust(_padded(len(data)), b"\0"))
    return path


def write_transformer(path: Path, **changed: Value) -> Path:
    """Our own model as a GGUF of 17 MB; `changed` replaces general keys."""
    pack = open_pack(find_pack())
    tokenizer = json.loads(pack.tokenizer)["model"]
    words = sorted(tokenizer["vocab"], key=tokenizer["vocab"].__getitem__)
    special = {"<s>", "<pad>", "</s>"}
    values: dict[str, Value] = {
        "general.architecture": "bert",
        "general.name": "Clawmark Encoder 1",
        **{f"general.{key}": value for key, value in changed.items()},
        "bert.block_count": pack.layers,
        "bert.context_length": pack.max_tokens,
        "bert.embedding_length": pack.tensors["word_emb"].shape[1],
        "bert.feed_forward_length": pack.tensors["l0.f1.b"].shape[0],
        "bert.attention.head_count": pack.heads,
        "bert.attention.layer_norm_epsilon": float(pack.epsilon),
        "bert.attention.causal": False,
        "bert.pooling_type": 2,
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "roberta-bpe",
        "tokenizer.ggml.token_type_count": 1,
        "tokenizer.ggml.tokens": words,
        "tokenizer.ggml.token_type": [CONTROL if word in special else WHOLE_WORD for word in words],
        "tokenizer.ggml.merges": tokenizer["merges"],
        "tokenizer.ggml.bos_token_id": 0,
        "tokenizer.ggml.eos_token_id": 2,
        "tokenizer.ggml.unknown_token_id": 1,
        "tokenizer.ggml.seperator_token_id": 2,
        "tokenizer.ggml.padding_token_id": 1,
        "tokenizer.ggml.cls_token_id": 0,
        "tokenizer.ggml.add_bos_token": True,
        "tokenizer.ggml.add_eos_token": True,
    }
    return write_gguf(path, values, _tensors(pack))


def _tensors(pack: Pack) -> list[Tensor]:
    parts = {
        "ao": "attn_output",
        "aln": "attn_output_norm",
        "f1": "ffn_up",
        "f2": "ffn_down",
        "fln": "layer_output_norm",
    }
    hidden = pack.tensors["word_emb"].shape[1]
    tensors = [
        _eight_bit(pack, "word_emb", "token_embd.weight"),
        ("token_types.weight", (1, hidden), PLAIN, bytes(4 * hidden)),
        _plain(pack, "emb_ln.w", "token_embd_norm.weight"),
        _plain(pack, "emb_ln.b", "token_embd_norm.bias"),
        _plain(pack, "pos_emb", "position_embd.weight"),
    ]
    for layer in range(pack.layers):
        for place, letter in enumerate("qkv"):
            rows = (place * hidden, (place + 1) * hidden)
            tensors.append(
                _eight_bit(pack, f"l{layer}.qkv.w", f"blk.{layer}.attn_{letter}.weight", *rows)
            )
            tensors.append(
                _plain(pack, f"l{layer}.qkv.b", f"blk.{layer}.attn_{letter}.bias", *rows)
            )
        for source, target in parts.items():
            make = _plain if source in ("aln", "fln") else _eight_bit
            tensors.append(make(pack, f"l{layer}.{source}.w", f"blk.{layer}.{target}.weight"))
            tensors.append(_plain(pack, f"l{layer}.{source}.b", f"blk.{layer}.{target}.bias"))
    return tensors


def _plain(pack: Pack, source: str, name: str, start: int = 0, end: int | None = None) -> Tensor:
    """Some rows of a tensor that is not quantised."""
    from clawmark.embed.local.encoder import _floats

    rows = _floats(pack, source)[start:end]
    return name, rows.shape, PLAIN, rows.tobytes()


def _eight_bit(
    pack: Pack, source: str, name: str, start: int = 0, end: int | None = None
) -> Tensor:
    """Some rows of a quantised tensor: the same steps, with the factor of 64 numbers given to both
    halves.
    """
    import numpy as np

    from clawmark.embed.local.encoder import quantised

    tensor = pack.tensors[source]
    rows, columns = tensor.shape
    steps, factors = quantised(pack, tensor)
    blocks = np.empty((rows, columns // 32, 34), np.uint8)
    blocks[:, :, :2] = (
        np.repeat(factors[:, :, 0], tensor.group // 32, axis=1)
        .astype("<f2")[:, :, None]
        .view(np.uint8)
    )
    blocks[:, :, 2:] = steps.reshape(rows, -1, 32).view(np.uint8)
    chosen = blocks[start:end]
    return name, (len(chosen), columns), EIGHT_BIT, chosen.tobytes()


def _padded(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT
