"""Trains the static table: one vector and one weight for each piece of a word.

A text's vector is the normalised sum of its pieces' vectors times their weights. It learns to point
where the teacher's vector of the text points, centred and projected to fewer dimensions.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from clawmark.embed.local.static import split_pieces
from clawmark.embed.local.static_table import NO_PIECE
from training.prepare import Bags, Words, bags
from training.vocabulary import WORD_START


class Settings(NamedTuple):
    dims: int = 256
    pull: float = 1.0
    """How strongly a vector is held at its start, divided by the root of its piece's count."""
    relations: float = 0.3
    """Weight of the in-batch similarities in the loss."""
    temperature: float = 0.05
    centred: float = 1.0
    """How much of the mean of all vectors is removed."""
    frequency: float = 1e-3
    """Pieces more frequent than this start with less than half the weight."""
    dropout: float = 0.1
    rate: float = 2e-3
    epochs: int = 12
    batch: int = 2048
    words: float = 0.3
    """How much the vectors of single words count when the main directions are found."""
    seed: int = 1


class Projection(NamedTuple):
    """From the teacher's vectors to targets: subtract the mean, then keep the main directions."""

    mean: Tensor
    matrix: Tensor

    def __call__(self, vectors: Tensor) -> Tensor:
        return functional.normalize((vectors - self.mean) @ self.matrix, dim=1)


def projection(vectors: Tensor, tokens: Tensor, settings: Settings) -> Projection:
    mean = vectors.mean(0) * settings.centred
    spread = _spread(vectors - mean)
    if settings.words:
        spread = spread + settings.words * _spread(tokens - tokens.mean(0))
    _, directions = torch.linalg.eigh(spread)
    return Projection(mean, directions[:, -settings.dims :].flip(1))


def _spread(shifted: Tensor) -> Tensor:
    unit = functional.normalize(shifted, dim=1)
    return unit.T @ unit / len(unit)


def pieces_of(words: Words, rows: dict[str, int]) -> Bags:
    """The texts as rows of the table."""
    found = [
        split_pieces(lambda piece: rows.get(piece, NO_PIECE), WORD_START + word)
        for word in words.words
    ]
    lengths = np.array([len(one) for one in found])
    flat = np.concatenate([np.array(one, np.int32) for one in found])
    starts = np.concatenate([[0], np.cumsum(lengths)])
    ids = words.bags.ids.numpy()
    counts = lengths[ids]
    ends = np.cumsum(counts)
    inner = np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - counts, counts)
    flat_ids = flat[np.repeat(starts[ids], counts) + inner]
    before = np.concatenate([[0], ends])
    return bags(flat_ids, before[words.bags.starts.numpy()])


def gathered(given: Bags, chosen: Tensor) -> tuple[Tensor, Tensor]:
    """The ids of some texts one after another, and where each starts."""
    starts = given.starts[chosen]
    lengths = given.starts[chosen + 1] - starts
    offsets = lengths.cumsum(0) - lengths
    shift = torch.repeat_interleave(starts - offsets, lengths)
    return given.ids[shift + torch.arange(len(shift), device=shift.device)].long(), offsets


class Table(torch.nn.Module):
    def __init__(self, start: Tensor, weights: Tensor) -> None:
        super().__init__()
        self.start = torch.nn.Parameter(start.clone(), requires_grad=False)
        self.rows = torch.nn.Parameter(start.clone())
        self.weights = torch.nn.Parameter(weights.log())

    def forward(self, ids: Tensor, offsets: Tensor, dropout: float = 0.0) -> Tensor:
        weights = self.weights.exp()[ids]
        if dropout:
            weights = weights * (torch.rand_like(weights) >= dropout)
        return functional.normalize(
            functional.embedding_bag(
                ids, self.rows, offsets, mode="sum", per_sample_weights=weights
            ),
            dim=1,
        )

    def weighted(self) -> Tensor:
        return (self.rows * self.weights.exp()[:, None]).detach()


def relations_loss(made: Tensor, wanted: Tensor, temperature: float) -> Tensor:
    """How differently two sets of vectors see which texts of the batch are alike."""
    self_pairs = torch.eye(len(made), dtype=torch.bool, device=made.device)
    theirs = (wanted @ wanted.T / temperature).masked_fill(self_pairs, -1e4)
    ours = (made @ made.T / temperature).masked_fill(self_pairs, -1e4)
    return functional.kl_div(
        ours.log_softmax(1), theirs.log_softmax(1), log_target=True, reduction="batchmean"
    )


def train(given: Bags, vectors: Tensor, tokens: Tensor, settings: Settings) -> Table:
    """`vectors` are the teacher's of all texts, `tokens` the teacher's of each piece alone."""
    device = vectors.device
    torch.manual_seed(settings.seed)
    project = projection(vectors, tokens, settings)
    wanted = project(vectors)
    counts = torch.bincount(given.ids.long(), minlength=len(tokens)).float()
    share = counts / counts.sum()
    weights = settings.frequency / (settings.frequency + share)
    alone = Projection(tokens.mean(0) * settings.centred, project.matrix)
    table = Table(alone(tokens), weights).to(device)
    optimiser = torch.optim.Adam(table.parameters(), lr=settings.rate)
    holds = settings.pull / (counts + 1).sqrt()
    usable = (given.lengths() > 0).nonzero()[:, 0]
    steps = settings.epochs * (len(usable) // min(settings.batch, len(usable)))
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimiser, settings.rate, total_steps=steps + 1, pct_start=0.05
    )
    for _ in range(settings.epochs):
        order = usable[torch.randperm(len(usable), device=device)]
        for at in range(0, len(order) - settings.batch + 1, settings.batch):
            chosen = order[at : at + settings.batch]
            made = table(*gathered(given, chosen), settings.dropout)
            aim = wanted[chosen]
            loss = 1 - (made * aim).sum(1).mean()
            loss = loss + settings.relations * relations_loss(made, aim, settings.temperature)
            moved = (table.rows - table.start).square().sum(1)
            loss = loss + (holds * moved).mean()
            optimiser.zero_grad(set_to_none=True)
            loss.backward()
            optimiser.step()
            schedule.step()
    return table


def steps(rows: Tensor, bits: int = 4) -> tuple[Tensor, Tensor]:
    """A whole factor of 1..255 per row and whole steps; with whole factors sums are exact."""
    peaks = rows.abs().amax(1)
    unit = peaks.max() / 255
    factors = ((peaks / unit).floor() + 1).clamp(max=255)
    most = 2 ** (bits - 1) - 1
    step = (factors * unit / most)[:, None]
    return (rows / step).round().clamp(-most, most), factors


def stored(rows: Tensor, bits: int = 4) -> Tensor:
    """The rows as the file holds them, in a unit that drops out when vectors are normalised."""
    numbers, factors = steps(rows, bits)
    return numbers * factors[:, None]


def save(rows: Tensor, pieces: list[str], out: Path) -> None:
    numbers, factors = steps(rows)
    np.savez_compressed(
        out,
        steps=numbers.cpu().numpy().astype(np.int8),
        factors=factors.cpu().numpy().astype(np.uint8),
        pieces=np.array("\n".join(pieces)),
    )


def embed(rows: Tensor, given: Bags, at_once: int = 16_384) -> Tensor:
    parts = []
    empty = torch.zeros(1, rows.shape[1], device=rows.device)
    for at in range(0, len(given.starts) - 1, at_once):
        chosen = torch.arange(at, min(at + at_once, len(given.starts) - 1), device=rows.device)
        ids, offsets = gathered(given, chosen)
        parts.append(
            functional.embedding_bag(ids, rows, offsets, mode="sum") if len(ids) else empty
        )
    return functional.normalize(torch.cat(parts), dim=1)
