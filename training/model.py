"""The encoder in PyTorch: the teacher as it is, and students with fewer layers.

It computes what `clawmark.embed.local.encoder` computes in numpy: a RoBERTa-like encoder whose
first token's vector, normalised, represents the text.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from clawmark.embed.local.weights import Pack
from training.files import EPSILON, HEADS
from training.quantise import Rounding

HIDDEN, WIDE, PAD = 384, 1536, 1


class Shape(NamedTuple):
    """What a student keeps of its teacher."""

    layers: tuple[int, ...] = (0, 1, 2, 3, 4, 5)
    words: int = 50265
    table_bits: int = 8
    matrix_bits: int = 8


class Dense(nn.Module):
    """A matrix and a bias; the matrix may be rounded as it will be stored."""

    def __init__(self, inputs: int, outputs: int, bits: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(outputs, inputs))
        self.bias = nn.Parameter(torch.zeros(outputs))
        self.rounding = Rounding(bits)

    def forward(self, states: Tensor) -> Tensor:
        return functional.linear(states, self.rounding(self.weight), self.bias)


class Layer(nn.Module):
    """Attention, then two dense steps; each is added to its input and normalised."""

    def __init__(self, bits: int) -> None:
        super().__init__()
        self.qkv = Dense(HIDDEN, 3 * HIDDEN, bits)
        self.out = Dense(HIDDEN, HIDDEN, bits)
        self.out_norm = nn.LayerNorm(HIDDEN, EPSILON)
        self.up = Dense(HIDDEN, WIDE, bits)
        self.down = Dense(WIDE, HIDDEN, bits)
        self.down_norm = nn.LayerNorm(HIDDEN, EPSILON)

    def forward(self, states: Tensor, mask: Tensor, wanted: int) -> Tensor:
        """The new states of the first `wanted` tokens."""
        batch, count, _ = states.shape
        mixed = self.qkv(states).view(batch, count, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        query, key, value = mixed
        context = functional.scaled_dot_product_attention(
            query[:, :, :wanted], key, value, attn_mask=mask
        )
        context = context.transpose(1, 2).reshape(batch, wanted, HIDDEN)
        states = states[:, :wanted]
        states = self.out_norm(states + self.out(context))
        result: Tensor = self.down_norm(states + self.down(functional.gelu(self.up(states))))
        return result


class Encoder(nn.Module):
    """Token ids, padded with PAD, to unit vectors."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        self.words = nn.Parameter(torch.zeros(shape.words, HIDDEN))
        self.rounding = Rounding(shape.table_bits)
        self.positions = nn.Parameter(torch.zeros(512, HIDDEN))
        self.norm = nn.LayerNorm(HIDDEN, EPSILON)
        self.layers = nn.ModuleList(Layer(shape.matrix_bits) for _ in shape.layers)

    def forward(self, tokens: Tensor) -> Tensor:
        mask = (tokens != PAD)[:, None, None, :]
        states = functional.embedding(tokens, self.rounding(self.words))
        states = self.norm(states + self.positions[: tokens.shape[1]])
        last = len(self.layers) - 1
        for number, layer in enumerate(self.layers):
            states = layer(states, mask, 1 if number == last else tokens.shape[1])
        return functional.normalize(states[:, 0].float(), dim=1)


def tensor(pack: Pack, name: str) -> Tensor:
    """A tensor of a pack as float32."""
    entry = pack.tensors[name]
    if not entry.group:
        plain = np.frombuffer(pack.data, "<f4", entry.size // 4, entry.start)
        return torch.from_numpy(plain.astype(np.float32)).reshape(entry.shape)
    count = int(np.prod(entry.shape))
    rows = np.frombuffer(pack.data, np.int8, count, entry.start).astype(np.float32)
    factors = np.frombuffer(pack.data, "<f4", count // entry.group, entry.start + count)
    rows = rows.reshape(-1, entry.group) * factors[:, None]
    return torch.from_numpy(rows).reshape(entry.shape)


@torch.no_grad()
def teacher_of(pack: Pack) -> Encoder:
    """The whole teacher."""
    model = Encoder(Shape(layers=tuple(range(pack.layers)), table_bits=0, matrix_bits=0))
    model.words.copy_(tensor(pack, "word_emb"))
    positions = tensor(pack, "pos_emb")[pack.position_offset :] + tensor(pack, "type_emb")[0]
    model.positions.copy_(positions[:512])
    model.norm.weight.copy_(tensor(pack, "emb_ln.w"))
    model.norm.bias.copy_(tensor(pack, "emb_ln.b"))
    for number, layer in enumerate(model.layers):
        for part, name in (("qkv", "qkv"), ("out", "ao"), ("up", "f1"), ("down", "f2")):
            dense = getattr(layer, part)
            dense.weight.copy_(tensor(pack, f"l{number}.{name}.w"))
            dense.bias.copy_(tensor(pack, f"l{number}.{name}.b"))
        for part, name in (("out_norm", "aln"), ("down_norm", "fln")):
            norm = getattr(layer, part)
            norm.weight.copy_(tensor(pack, f"l{number}.{name}.w"))
            norm.bias.copy_(tensor(pack, f"l{number}.{name}.b"))
    return model


@torch.no_grad()
def student_of(teacher: Encoder, shape: Shape, kept: Tensor) -> Encoder:
    """A student that starts from some of the teacher's layers and words.

    `kept` has the teacher's id of each word of the student.
    """
    model = Encoder(shape)
    model.words.copy_(teacher.words[kept])
    model.positions.copy_(teacher.positions)
    model.norm.load_state_dict(teacher.norm.state_dict())
    for number, layer in zip(shape.layers, model.layers, strict=True):
        layer.load_state_dict(teacher.layers[number].state_dict())
    return model
