"""A BERT-style encoder in numpy: one unit vector for the token ids of a text.

Texts are encoded one at a time without padding, so a vector does not depend on other texts.

Optimisations, none of which changes a result beyond rounding: only the first token's vector is
needed, so the last layer is computed for that token alone; the key's bias adds the same number to a
whole row of scores and cancels in the softmax; the value's bias passes the softmax unchanged and is
added to the output's bias beforehand; the softmax is divided after the weighted sum; scores and
activations are computed in blocks that fit the cache. The rest is matrix multiplication."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from clawmark.embed.local.weights import Pack, Tensor

Floats = NDArray[np.float32]

_GELU = [
    np.float32(number)
    for number in (1.11263617e-06, -3.04672718e-05, -1.25475857e-04, 3.64699303e-02, 7.97827577e-01)
]
"""The exact GELU is x * (1 + erf(x / sqrt 2)) / 2. With p, this polynomial of x * x (highest power
first), x * (1 + tanh(x * p)) / 2 is within 3.4e-6 of it and takes half the time; fitted to the
largest error over -12..12."""
_GELU_LIMIT = np.float32(25.0)
_ROWS_AT_ONCE = 64


class Layer(NamedTuple):
    """One layer's weights as (in, out) matrices, with the scale of the scores and the value's bias
    folded in.
    """

    qkv: Floats
    query_bias: Floats
    out: Floats
    out_bias: Floats
    out_norm: tuple[Floats, Floats]
    up: Floats
    up_bias: Floats
    down: Floats
    down_bias: Floats
    down_norm: tuple[Floats, Floats]


class Buffers:
    """Arrays for one text at a time; allocating them for every layer would cost a tenth of the time
    in page faults.
    """

    def __init__(self, tokens: int, hidden: int, wide: int) -> None:
        self.states = np.empty((tokens, hidden), np.float32)
        self.middle = np.empty((tokens, hidden), np.float32)
        self.context = np.empty((tokens, hidden), np.float32)
        self.mixed = np.empty((tokens, 3 * hidden), np.float32)
        self.wide = np.empty((tokens, wide), np.float32)
        self.scores = np.empty(tokens * tokens, np.float32)
        self.ones = np.ones(tokens, np.float32)


class Encoder:
    """Holds the weights as float32, except the word table, of which a text needs a few rows."""

    def __init__(self, pack: Pack) -> None:
        self._heads = pack.heads
        self._epsilon = np.float32(pack.epsilon)
        self._words = _stored(pack, pack.tensors["word_emb"])
        self._positions = positions(pack)
        self._norm = _floats(pack, "emb_ln.w"), _floats(pack, "emb_ln.b")
        self._layers = [self._layer(pack, f"l{number}.") for number in range(pack.layers)]
        self._free_buffers: list[Buffers] = []

    def _layer(self, pack: Pack, name: str) -> Layer:
        def get(part: str) -> Floats:
            return _floats(pack, name + part)

        qkv, bias, out = get("qkv.w"), get("qkv.b"), get("ao.w")
        hidden = out.shape[1]
        scale = np.float32(1 / math.sqrt(hidden / self._heads))
        qkv[:, :hidden] *= scale
        out_bias = get("ao.b") + bias[2 * hidden :] @ out
        return Layer(
            qkv=qkv,
            query_bias=bias[:hidden] * scale,
            out=out,
            out_bias=out_bias,
            out_norm=(get("aln.w"), get("aln.b")),
            up=get("f1.w"),
            up_bias=get("f1.b"),
            down=get("f2.w"),
            down_bias=get("f2.b"),
            down_norm=(get("fln.w"), get("fln.b")),
        )

    def encode(self, tokens: Sequence[int]) -> bytes:
        """The unit vector of a text, packed as little-endian float32. Thread-safe."""
        try:
            buffers = self._free_buffers.pop()
        except IndexError:
            buffers = Buffers(len(self._positions), *self._layers[0].up.shape)
        vector = self._encode(np.array(tokens), buffers)
        self._free_buffers.append(buffers)
        return bytes(vector.astype("<f4").tobytes())

    def _encode(self, tokens: NDArray[np.int64], buffers: Buffers) -> Floats:
        rows, factors = self._words
        states = buffers.states[: len(tokens)]
        groups = states.reshape(len(tokens), factors.shape[1], -1)
        np.multiply(_steps(rows[tokens]), factors[tokens], out=groups)
        states += self._positions[: len(tokens)]
        self._normalise(states, self._norm)
        for layer in self._layers[:-1]:
            self._finish(layer, self._attention(layer, states, buffers), states, buffers)
        last, first = self._layers[-1], states[:1]
        self._finish(last, self._first_attention(last, states), first, buffers)
        vector: Floats = first[0] / np.sqrt(first[0] @ first[0])
        return vector

    def _attention(self, layer: Layer, states: Floats, buffers: Buffers) -> Floats:
        """For every token the mean of the values, weighted by its scores, head by head."""
        count, hidden = states.shape
        mixed, context, ones = buffers.mixed[:count], buffers.context[:count], buffers.ones[:count]
        np.matmul(states, layer.qkv, out=mixed)
        mixed[:, :hidden] += layer.query_bias
        query, key, value = mixed.reshape(count, 3, self._heads, -1).transpose(1, 2, 0, 3)
        heads = context.reshape(count, self._heads, -1)
        scores = buffers.scores[: count * count].reshape(count, count)
        for head in range(self._heads):
            np.matmul(query[head], key[head].T, out=scores)
            scores -= scores.max(axis=1, keepdims=True)
            np.exp(scores, out=scores)
            np.divide(scores @ value[head], (scores @ ones)[:, None], out=heads[:, head])
        return context

    def _first_attention(self, layer: Layer, states: Floats) -> Floats:
        """The same for the first token only, whose query is multiplied with the weights of the
        keys, so that no keys are computed.
        """
        hidden = states.shape[1]
        _, keys, values = layer.qkv.reshape(hidden, 3, self._heads, -1).transpose(1, 2, 0, 3)
        query = (states[0] @ layer.qkv[:, :hidden] + layer.query_bias).reshape(self._heads, -1, 1)
        scores: Floats = np.matmul(keys, query)[:, :, 0] @ states.T
        scores -= scores.max(axis=1, keepdims=True)
        np.exp(scores, out=scores)
        scores /= scores.sum(axis=1, keepdims=True)
        context: Floats = np.matmul((scores @ states)[:, None, :], values)
        return context.reshape(1, hidden)

    def _finish(self, layer: Layer, context: Floats, states: Floats, buffers: Buffers) -> None:
        """Two dense steps after the attention, in place, each added to its input and normalised."""
        middle, wide = buffers.middle[: len(states)], buffers.wide[: len(states)]
        np.matmul(context, layer.out, out=middle)
        middle += layer.out_bias
        middle += states
        self._normalise(middle, layer.out_norm)
        np.matmul(middle, layer.up, out=wide)
        _activate(wide, layer.up_bias)
        np.matmul(wide, layer.down, out=states)
        states += layer.down_bias
        states += middle
        self._normalise(states, layer.down_norm)

    def _normalise(self, rows: Floats, norm: tuple[Floats, Floats]) -> None:
        rows -= rows.mean(axis=1, keepdims=True)
        variance: Floats = np.einsum("ij,ij->i", rows, rows)
        variance /= np.float32(rows.shape[1])
        variance += self._epsilon
        rows *= (np.float32(1) / np.sqrt(variance))[:, None]
        rows *= norm[0]
        rows += norm[1]


def _activate(rows: Floats, bias: Floats) -> None:
    """Add the bias and apply GELU, in place."""
    square, inner = np.empty((2, min(_ROWS_AT_ONCE, len(rows)), rows.shape[1]), np.float32)
    for start in range(0, len(rows), _ROWS_AT_ONCE):
        block = rows[start : start + _ROWS_AT_ONCE]
        block += bias
        squares, gates = square[: len(block)], inner[: len(block)]
        np.multiply(block, block, out=squares)
        np.minimum(squares, _GELU_LIMIT, out=squares)
        np.multiply(squares, _GELU[0], out=gates)
        for number in _GELU[1:-1]:
            gates += number
            gates *= squares
        gates += _GELU[-1]
        gates *= block
        np.tanh(gates, out=gates)
        gates += np.float32(1)
        block *= np.float32(0.5)
        block *= gates


def _floats(pack: Pack, name: str) -> Floats:
    """A tensor as a float32 array; matrices, which are stored as (out, in), are transposed.

    Multiplying by contiguous rows is a tenth faster for a passage and twice as fast for a question.
    """
    tensor = pack.tensors[name]
    if not tensor.group:
        plain = np.frombuffer(pack.data, tensor.factors, math.prod(tensor.shape), tensor.start)
        return plain.astype(np.float32).reshape(tensor.shape)
    rows, factors = quantised(pack, tensor)
    # Transposed while the numbers are still bytes: a quarter of the memory traffic.
    result = np.ascontiguousarray(rows.transpose(1, 2, 0)).astype(np.float32)
    result *= factors.transpose(1, 2, 0)
    return result.reshape(-1, tensor.shape[0])


def positions(pack: Pack) -> Floats:
    """The row of each place; every token has the same type, whose row is added once."""
    rows = _floats(pack, "pos_emb")[pack.position_offset :]
    return rows + _floats(pack, "type_emb")[0] if "type_emb" in pack.tensors else rows


def quantised(pack: Pack, tensor: Tensor) -> tuple[NDArray[np.int8], Floats]:
    """The steps of a quantised tensor as (row, group, place) and the factor of each group."""
    rows, factors = _stored(pack, tensor)
    return _steps(rows), factors


def _stored(pack: Pack, tensor: Tensor) -> tuple[NDArray[np.integer], Floats]:
    """The bytes of a quantised tensor as (row, group, place), and the factor of each group."""
    count = math.prod(tensor.shape)
    size = count * tensor.bits // 8
    kind = np.int8 if tensor.bits == 8 else np.uint8
    rows = np.frombuffer(pack.data, kind, size, tensor.start).reshape(
        tensor.shape[0], -1, tensor.group * tensor.bits // 8
    )
    factors = np.frombuffer(
        pack.data, tensor.factors, count // tensor.group, tensor.start + size
    ).astype(np.float32)
    return rows, factors.reshape(tensor.shape[0], -1, 1)


def _steps(rows: NDArray[np.integer]) -> NDArray[np.int8]:
    """Bytes as steps: with 4 bits the low halves are the first half of a group, 0..15 is -8..7."""
    if rows.dtype == np.uint8:
        rows = np.concatenate([rows & 15, rows >> 4], axis=2).view(np.int8) - np.int8(8)
    return rows.view(np.int8)
