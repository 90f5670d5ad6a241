"""The encoder in PyTorch: the teacher as it is, and students with fewer and narrower layers.

It computes what `clawmark.embed.local.encoder` computes in numpy: a RoBERTa-like encoder whose
first token's vector, normalised, represents the text.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from clawmark.embed.local.weights import Pack
from training.quantise import Rounding

HIDDEN, HEADS, EPSILON, PAD = 384, 12, 1e-12, 1


class Shape(NamedTuple):
    """What a student keeps of its teacher."""

    layers: tuple[int, ...] = (0, 1, 2, 3, 4, 5)
    wide: int = 1536
    words: int = 50265
    table: int = HIDDEN
    """Numbers per row of the word table; below 384 a matrix widens them."""
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

    def __init__(self, wide: int, bits: int) -> None:
        super().__init__()
        self.qkv = Dense(HIDDEN, 3 * HIDDEN, bits)
        self.out = Dense(HIDDEN, HIDDEN, bits)
        self.out_norm = nn.LayerNorm(HIDDEN, EPSILON)
        self.up = Dense(HIDDEN, wide, bits)
        self.down = Dense(wide, HIDDEN, bits)
        self.down_norm = nn.LayerNorm(HIDDEN, EPSILON)

    def forward(self, states: Tensor, mask: Tensor) -> Tensor:
        batch, count, _ = states.shape
        mixed = self.qkv(states).view(batch, count, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        context = functional.scaled_dot_product_attention(*mixed, attn_mask=mask)
        context = context.transpose(1, 2).reshape(batch, count, HIDDEN)
        states = self.out_norm(states + self.out(context))
        return self.down_norm(states + self.down(functional.gelu(self.up(states))))


class Encoder(nn.Module):
    """Token ids, padded with PAD, to unit vectors."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        self.words = nn.Parameter(torch.zeros(shape.words, shape.table))
        self.rounding = Rounding(shape.table_bits)
        self.widen = (
            Dense(shape.table, HIDDEN, shape.matrix_bits) if shape.table != HIDDEN else None
        )
        self.positions = nn.Parameter(torch.zeros(512, HIDDEN))
        self.norm = nn.LayerNorm(HIDDEN, EPSILON)
        self.layers = nn.ModuleList(Layer(shape.wide, shape.matrix_bits) for _ in shape.layers)

    def forward(self, tokens: Tensor) -> Tensor:
        mask = (tokens != PAD)[:, None, None, :]
        states = functional.embedding(tokens, self.rounding(self.words))
        if self.widen is not None:
            states = self.widen(states)
        states = self.norm(states + self.positions[: tokens.shape[1]])
        for layer in self.layers:
            states = layer(states, mask)
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
def student_of(teacher: Encoder, shape: Shape, kept: Tensor, activity: list[Tensor]) -> Encoder:
    """A student that starts from some of the teacher's layers, words and inner neurons.

    `kept` has the teacher's id of each word of the student; `activity` says for each of the
    teacher's layers how much each inner neuron contributes.
    """
    model = Encoder(shape)
    rows = teacher.words[kept]
    if model.widen is None:
        model.words.copy_(rows)
    else:
        mean = rows.mean(0)
        left, values, right = torch.linalg.svd(rows - mean, full_matrices=False)
        root = values[: shape.table].sqrt()
        model.words.copy_(left[:, : shape.table] * root)
        model.widen.weight.copy_((root[:, None] * right[: shape.table]).T)
        model.widen.bias.copy_(mean)
    model.positions.copy_(teacher.positions)
    model.norm.load_state_dict(teacher.norm.state_dict())
    for number, layer in zip(shape.layers, model.layers, strict=True):
        source = teacher.layers[number]
        neurons = activity[number].topk(shape.wide).indices.sort().values
        for part in ("qkv", "out", "out_norm", "down_norm"):
            getattr(layer, part).load_state_dict(getattr(source, part).state_dict())
        layer.up.weight.copy_(source.up.weight[neurons])
        layer.up.bias.copy_(source.up.bias[neurons])
        layer.down.weight.copy_(source.down.weight[:, neurons])
        layer.down.bias.copy_(source.down.bias)
    return model


@torch.no_grad()
def activity_of(teacher: Encoder, batches: list[Tensor]) -> list[Tensor]:
    """How much each inner neuron adds to its layer's output on average."""
    sums = [
        torch.zeros(layer.up.weight.shape[0], device=teacher.words.device)
        for layer in teacher.layers
    ]
    for tokens in batches:
        mask = (tokens != PAD)[:, None, None, :]
        present = (tokens != PAD)[:, :, None]
        states = teacher.norm(teacher.words[tokens] + teacher.positions[: tokens.shape[1]])
        for layer, total in zip(teacher.layers, sums, strict=True):
            hook = layer.down.register_forward_pre_hook(partial(_count, total, present))
            states = layer(states, mask)
            hook.remove()
    return sums


def _count(total: Tensor, present: Tensor, down: Dense, given: tuple[Tensor]) -> None:
    total += (given[0].abs() * present).sum((0, 1)).float() * down.weight.norm(dim=0)
