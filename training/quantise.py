"""Rounding weights as they are stored, while training and when exporting.

A row is cut into groups of 64 numbers with one factor each. With 8 bits a number is one of
-127..127 steps, with 4 bits one of -8..7; the factor is stored in half precision.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from training.files import GROUP


def steps(weight: Tensor, bits: int) -> tuple[Tensor, Tensor]:
    """The whole numbers of a matrix as (rows, groups, 64) and the factor of each group."""
    groups = weight.reshape(weight.shape[0], -1, GROUP).float()
    if bits == 8:
        factors = groups.abs().amax(2, keepdim=True) / 127
        least, most = -127, 127
    else:
        # The sign of the factor puts the largest number of a group at -8, the longer end.
        at = groups.abs().argmax(2, keepdim=True)
        factors = groups.gather(2, at) / -8
        least, most = -8, 7
    factors = factors.half().float()
    factors = torch.where(factors == 0, torch.full_like(factors, 1e-7), factors)
    return (groups / factors).round().clamp(least, most), factors


def rounded(weight: Tensor, bits: int) -> Tensor:
    numbers, factors = steps(weight, bits)
    return (numbers * factors).reshape(weight.shape).to(weight.dtype)


class Rounding(nn.Module):
    """Rounds in the forward pass once it is switched on; gradients pass as if it did not."""

    def __init__(self, bits: int) -> None:
        super().__init__()
        self.bits = bits
        self.active = False

    def forward(self, weight: Tensor) -> Tensor:
        if not self.active or not self.bits:
            return weight
        return weight + (rounded(weight, self.bits) - weight).detach()


def switch_rounding(model: nn.Module, active: bool) -> None:
    for module in model.modules():
        if isinstance(module, Rounding):
            module.active = active


def set_bits(model: nn.Module, table: int, matrices: int) -> None:
    """Round with other numbers of bits; 0 leaves the weights as they are."""
    for name, module in model.named_modules():
        if isinstance(module, Rounding):
            module.active, module.bits = True, table if name == "rounding" else matrices
