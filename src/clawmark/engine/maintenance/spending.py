"""What embedding would cost and what it has cost: due texts with their tokens, the price, the
ledger.

Nothing is sent. The text half of a sync runs first, because only what is cut into chunks can be
counted; it costs nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from clawmark.backends.builtin import BuiltinBackend, Parts
from clawmark.embed.base import Embedder
from clawmark.embed.passage import embeddable
from clawmark.embed.services.ledger import LedgerSummary
from clawmark.embed.services.remote import RemoteEmbedder
from clawmark.engine.sync.run import SyncRequest
from clawmark.text.chunking.tokens import estimate_tokens

PAGE = 1000


class Spending(NamedTuple):
    """What the best embedder has still to do, and for how much."""

    provider: str
    model: str
    due: dict[str, int]
    """Texts by hash with their estimated tokens."""
    cached: frozenset[str]
    """Those whose vectors are known already."""
    price_per_million: float | None
    uses_batches: bool
    tokens_left_today: int | None


def spending(backend: BuiltinBackend) -> Spending:
    """Count what a full sync would send."""
    backend.sync(SyncRequest(instant_only=True))
    embedders = backend.parts.embedders
    if not embedders:
        return Spending(
            provider="none",
            model="fts-only",
            due={},
            cached=frozenset(),
            price_per_million=0.0,
            uses_batches=False,
            tokens_left_today=None,
        )
    best = embedders[-1]
    identity = best.identity
    due, cached = _due(backend.parts, best)
    if not isinstance(best, RemoteEmbedder):
        return Spending(
            provider=identity.provider,
            model=identity.model,
            due=due,
            cached=cached,
            price_per_million=0.0,
            uses_batches=False,
            tokens_left_today=None,
        )
    summary = best.ledger.summary() if best.ledger is not None else None
    left = (
        max(0, summary.daily_tokens - summary.today_tokens)
        if summary is not None and summary.daily_tokens
        else None
    )
    return Spending(
        provider=identity.provider,
        model=identity.model,
        due=due,
        cached=cached,
        price_per_million=best.price_per_million,
        uses_batches=best.uses_batches,
        tokens_left_today=left,
    )


def ledger_of(parts: Parts) -> LedgerSummary | None:
    """What was spent on services; None when nothing remote is configured."""
    for embedder in (*parts.embedders, *parts.fallbacks):
        if isinstance(embedder, RemoteEmbedder) and embedder.ledger is not None:
            return embedder.ledger.summary()
    return None


def _due(parts: Parts, embedder: Embedder) -> tuple[dict[str, int], frozenset[str]]:
    due: dict[str, int] = {}
    cached: set[str] = set()
    identity = embedder.identity
    with parts.store.snapshot() as reader:
        space = next(
            (space for space in reader.spaces() if space.identity[:3] == identity[:3]), None
        )
        if space is not None:
            keys = reader.due_keys(space.id)
            for start in range(0, len(keys), PAGE):
                rows = reader.due_chunks(space.id, keys[start : start + PAGE])
                cached.update(text_hash for _, text_hash, _, vector in rows if vector)
                due.update(_tokens(embedder, ((text_hash, text) for _, text_hash, text, _ in rows)))
            return due, frozenset(cached)
        for path in reader.files():
            due.update(
                _tokens(embedder, ((chunk.hash, chunk.text) for chunk in reader.chunks_of(path)))
            )
        if identity.dims:
            cached.update(reader.cached(identity, list(due)))
    return due, frozenset(cached)


def _tokens(embedder: Embedder, chunks: Iterable[tuple[str, str]]) -> Iterator[tuple[str, int]]:
    """The hash and the size of each chunk that is embedded."""
    for text_hash, chunk in chunks:
        if (text := embeddable(embedder, chunk)) is not None:
            yield text_hash, estimate_tokens(text)
