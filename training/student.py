"""Trains the student: an encoder with fewer layers that makes the teacher's vectors.

Each step embeds one batch of texts of all lengths. The loss is the angle to the teacher's vectors,
plus how differently student and teacher see which texts of the batch, and of a bank of other texts,
are alike. Half of a batch are texts with neighbours, so that the similarities say something. For
the last part of the training the weights are rounded as they will be stored.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from training.model import Encoder
from training.prepare import Bags, padded, parts
from training.quantise import switch_rounding
from training.static import relations_loss

BLOCK = 32


class Settings(NamedTuple):
    steps: int = 4864
    batch: int = 1024
    rate: float = 6e-4
    relations: float = 0.3
    temperature: float = 0.05
    bank: float = 0.3
    bank_temperature: float = 0.03
    bank_size: int = 8192
    neighbours: float = 0.5
    """The share of a batch that is drawn in groups of similar texts."""
    rounding: float = 0.3
    """The share of the steps at the end with rounded weights."""
    seconds: float = 0.0
    """If set, the rate follows the clock instead of the steps."""
    seed: int = 1


def clusters(vectors: Tensor, count: int, rounds: int = 8) -> Tensor:
    """The number of the nearest of `count` centres for each vector."""
    centres = vectors[torch.randperm(len(vectors), device=vectors.device)[:count]]
    nearest = vectors.new_zeros(len(vectors), dtype=torch.long)
    for _ in range(rounds):
        for at in range(0, len(vectors), 65_536):
            nearest[at : at + 65_536] = (vectors[at : at + 65_536] @ centres.T).argmax(1)
        sums = torch.zeros_like(centres).index_add_(0, nearest, vectors)
        centres = functional.normalize(sums + 1e-6 * centres, dim=1)
    return nearest


def batches(nearest: Tensor, settings: Settings) -> Tensor:
    """One pass over all texts, as rows of text numbers."""
    count, device = len(nearest), nearest.device
    order = torch.randperm(count, device=device)
    per_batch = int(settings.batch * settings.neighbours) // BLOCK * BLOCK
    rounds = count // settings.batch
    alike = order[: rounds * per_batch]
    alike = alike[nearest[alike].argsort(stable=True)].view(-1, BLOCK)
    alike = alike[torch.randperm(len(alike), device=device)].view(rounds, per_batch)
    others = order[rounds * per_batch : rounds * settings.batch].view(rounds, -1)
    return torch.cat([alike, others], 1)


def vectors_of(
    model: Encoder, given: Bags, chosen: Tensor, lengths: NDArray[np.int64], budget: int = 1 << 16
) -> Tensor:
    """The vectors of texts that are ordered by length, computed in parts of similar length."""
    made = [
        model(padded(given, chosen[at:end], int(lengths[end - 1])))
        for at, end in parts(lengths, budget)
    ]
    return torch.cat(made)


def loss_of(made: Tensor, wanted: Tensor, bank: Tensor, settings: Settings) -> Tensor:
    loss = 1 - (made * wanted).sum(1).mean()
    loss = loss + settings.relations * relations_loss(made, wanted, settings.temperature)
    if settings.bank:
        theirs = (wanted @ bank.T / settings.bank_temperature).log_softmax(1)
        ours = (made @ bank.T / settings.bank_temperature).log_softmax(1)
        loss = loss + settings.bank * functional.kl_div(
            ours, theirs, log_target=True, reduction="batchmean"
        )
    return loss


def train(
    model: Encoder,
    given: Bags,
    vectors: Tensor,
    settings: Settings,
    report: Callable[[str], None] = print,
) -> int:
    """Train in place; returns the number of steps made."""
    torch.manual_seed(settings.seed)
    cuda = vectors.device.type == "cuda"
    nearest = clusters(vectors, max(1, len(vectors) // 800))
    plain = [value for value in model.parameters() if value.dim() < 2]
    matrices = [value for value in model.parameters() if value.dim() >= 2]
    groups = [{"params": matrices, "weight_decay": 0.01}, {"params": plain, "weight_decay": 0.0}]
    optimiser = torch.optim.AdamW(groups, lr=settings.rate, betas=(0.9, 0.98), fused=cuda)
    lengths = given.lengths().cpu().numpy()
    step, begun, shown = 0, time.monotonic(), 0.0
    while True:
        for row in batches(nearest, settings).cpu().numpy():
            spent = time.monotonic() - begun
            done = spent / settings.seconds if settings.seconds else step / settings.steps
            if done >= 1:
                return step
            follow(optimiser, model, done, settings)
            row = row[np.argsort(lengths[row], kind="stable")]
            chosen = torch.from_numpy(row).to(vectors.device)
            bank = vectors[
                torch.randint(len(vectors), (settings.bank_size,), device=vectors.device)
            ]
            with torch.autocast("cuda", torch.bfloat16, enabled=cuda):
                made = vectors_of(model, given, chosen, lengths[row])
            loss = loss_of(made, vectors[chosen], bank, settings)
            optimiser.zero_grad(set_to_none=True)
            loss.backward()  # type: ignore[no-untyped-call]
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimiser.step()
            step += 1
            if spent - shown > 20:
                shown = spent
                report(
                    f"step {step} {spent:.0f} s {done:.2f} loss {loss.item():.4f} "
                    f"cosine {(made * vectors[chosen]).sum(1).mean().item():.4f}"
                )


def follow(
    optimiser: torch.optim.Optimizer, model: Encoder, done: float, settings: Settings
) -> None:
    """Set the rate: a short rise, then a cosine down to a hundredth."""
    rise = 0.03
    if done < rise:
        rate = settings.rate * (done + 1e-3) / rise
    else:
        angle = (done - rise) / (1 - rise) * math.pi
        rate = settings.rate * (0.01 + 0.99 * (1 + math.cos(angle)) / 2)
    for group in optimiser.param_groups:
        group["lr"] = rate
    switch_rounding(model, done >= 1 - settings.rounding)
