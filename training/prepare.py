"""Everything both trainings read: token ids, words, and the teacher's vectors of all texts."""

from __future__ import annotations

import lzma
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from clawmark.embed.local.static import split_words
from clawmark.embed.local.weights import Pack, read_pack
from training.model import PAD, Encoder


def device() -> str:
    return "cuda" if torch.cuda.is_available() else "cpu"


def reserve(share: float) -> None:
    """Take a share of the free memory of the GPU at once: asking for it piece by piece takes longer
    than the first thousand steps.
    """
    if torch.cuda.is_available():
        free, _ = torch.cuda.mem_get_info()
        torch.empty(int(free * share), dtype=torch.uint8, device="cuda")


class Bags(NamedTuple):
    """Lists of numbers one after another, and where each starts."""

    ids: Tensor
    starts: Tensor

    def lengths(self) -> Tensor:
        return self.starts[1:] - self.starts[:-1]

    def to(self, device: str) -> Bags:
        return Bags(self.ids.to(device), self.starts.to(device))


def bags(ids: NDArray[np.int32], starts: NDArray[np.int64]) -> Bags:
    return Bags(torch.from_numpy(ids), torch.from_numpy(starts))


def open_teacher(path: Path) -> Pack:
    data = path.read_bytes()
    return read_pack(lzma.decompress(data) if path.suffix == ".xz" else data)


def padded(given: Bags, chosen: Tensor, longest: int) -> Tensor:
    """Some of the lists as a matrix, padded to a multiple of eight."""
    starts = given.starts[chosen]
    lengths = given.starts[chosen + 1] - starts
    places = torch.arange(-(-longest // 8) * 8, device=starts.device)
    inside = places[None] < lengths[:, None]
    at = (starts[:, None] + places[None]).clamp(max=len(given.ids) - 1)
    return torch.where(inside, given.ids[at].long(), PAD)


def parts(lengths: NDArray[np.int64], budget: int) -> list[tuple[int, int]]:
    """Cuts ascending lengths where a padded part would hold more than `budget` numbers."""
    found, at = [], 0
    while at < len(lengths):
        end = at + 1
        while end < len(lengths) and (end + 1 - at) * (int(lengths[end]) + 8) <= budget:
            end += 1
        found.append((at, end))
        at = end
    return found


@torch.no_grad()
def embed(model: Encoder, given: Bags, budget: int = 1 << 17) -> Tensor:
    """The vectors of all lists, computed in batches of similar length."""
    lengths = given.lengths().cpu().numpy()
    order = np.argsort(lengths, kind="stable")
    sizes = lengths[order]
    places = torch.from_numpy(order).to(given.ids.device)
    result = torch.empty(len(order), 384, device=given.ids.device)
    half = given.ids.device.type == "cuda"
    for at, end in parts(sizes, budget):
        chosen = places[at:end]
        with torch.autocast("cuda", torch.float16, enabled=half):
            result[chosen] = model(padded(given, chosen, int(sizes[end - 1])))
    return result


class Words(NamedTuple):
    """The lower-case words of texts by number."""

    bags: Bags
    words: list[str]
    counts: NDArray[np.int64]

    def counter(self) -> Counter[str]:
        return Counter(dict(zip(self.words, self.counts.tolist(), strict=True)))


def words_of(texts: list[str], known: list[str] | None = None) -> Words:
    numbers: dict[bytes, int] = {word.encode(): at for at, word in enumerate(known or [])}
    lists, starts, at = [], [0], 0
    for text in texts:
        found = [numbers.setdefault(word[:64], len(numbers)) for word in split_words(text)]
        at += len(found)
        starts.append(at)
        lists.append(np.array(found, np.int32))
    ids = np.concatenate(lists)
    words = [word.decode(errors="ignore") for word in numbers]
    counts = np.bincount(ids, minlength=len(words))
    return Words(bags(ids, np.array(starts)), words, counts)
