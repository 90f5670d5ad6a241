"""What embedding the due texts would cost, and what has been spent. Nothing is sent."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from clawmark.embed.base import Embedder
from clawmark.embed.passage import embeddable
from clawmark.embed.services.ledger import LedgerSummary
from clawmark.embed.services.packing import file_tokens
from clawmark.embed.services.remote import RemoteEmbedder
from clawmark.engine.parts import IndexParts
from clawmark.model.values import is_media
from clawmark.text.chunking.tokens import estimate_tokens

PAGE = 1000


class Spending(NamedTuple):
    """What a full sync would send to the best embedder."""

    provider: str
    model: str
    due: dict[str, int]
    """Estimated tokens of each text, by hash."""
    cached: frozenset[str]
    """Hashes of texts whose vectors are in the cache."""
    price_per_million: float | None = 0.0
    uses_batches: bool = False
    tokens_left_today: int | None = None


def spending(parts: IndexParts) -> Spending:
    """Count what is due in an index whose text is up to date: only chunks can be counted."""
    if not parts.embedders:
        return Spending(provider="none", model="fts-only", due={}, cached=frozenset())
    best = parts.embedders[-1]
    due, cached = _due(parts, best)
    media = _media_tokens(parts, due) if best.traits.media else {}
    due |= media
    counted = Spending(
        provider=best.identity.provider, model=best.identity.model, due=due, cached=cached
    )
    if not isinstance(best, RemoteEmbedder):
        return counted
    summary = best.ledger.summary() if best.ledger is not None else None
    left = (
        max(0, summary.daily_tokens - summary.today_tokens)
        if summary is not None and summary.daily_tokens
        else None
    )
    return counted._replace(
        # Images and audio have other prices than text.
        price_per_million=None if media.keys() - cached else best.price_per_million,
        uses_batches=best.uses_batches,
        tokens_left_today=left,
    )


def ledger_of(parts: IndexParts) -> LedgerSummary | None:
    """Return what was spent on services; None when no service is configured."""
    for embedder in (*parts.embedders, *parts.fallbacks):
        if isinstance(embedder, RemoteEmbedder) and embedder.ledger is not None:
            return embedder.ledger.summary()
    return None


def _due(parts: IndexParts, embedder: Embedder) -> tuple[dict[str, int], frozenset[str]]:
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


def _media_tokens(parts: IndexParts, due: Mapping[str, int]) -> dict[str, int]:
    """Return the estimated tokens of the due images and audio files, by hash."""
    rules = parts.workspace.media
    if rules is None:
        return {}
    with parts.store.snapshot() as reader:
        rows = [row for row in reader.files().values() if row.hash in due and is_media(row.path)]
    return {
        row.hash: due[row.hash] + file_tokens(rules.modality_of(row.path), row.size) for row in rows
    }


def _tokens(embedder: Embedder, chunks: Iterable[tuple[str, str]]) -> Iterator[tuple[str, int]]:
    """Yield the hash and the estimated tokens of each chunk that is embedded."""
    for text_hash, chunk in chunks:
        if (text := embeddable(embedder, chunk)) is not None:
            yield text_hash, estimate_tokens(text)
