"""`clawmark index --estimate`: compute what embedding the due texts would cost."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

from clawmark.cli.layout import facts, plural
from clawmark.cli.output import plain

BATCH_DISCOUNTS = {"openai": 0.5, "gemini": 0.5, "voyage": 0.33}
"""The documented discounts of providers for batch jobs."""
BATCH_KEY = "memorySearch.remote.batch.enabled"


class Estimate(NamedTuple):
    """What would be sent, and about what it would cost in US dollars."""

    provider: str
    model: str
    due_texts: int
    cached_texts: int
    """Due texts whose vectors are in the cache."""
    texts: int
    """Texts that must be embedded."""
    tokens: int
    price_per_million: float | None
    """Of plain calls; None if the price of the model is unknown."""
    price: float | None
    """Of all texts, as configured."""
    is_batch: bool
    batch_price: float | None
    """Of all texts as a batch job; None if the provider has no discount."""
    tokens_left_today: int | None
    """The rest of the daily budget; None without one."""


def make_estimate(
    due: Mapping[str, int],
    cached: Collection[str],
    *,
    provider: str,
    model: str,
    price_per_million: float | None,
    batch: bool = False,
    smallest_batch: int = 200,
    tokens_left_today: int | None = None,
) -> Estimate:
    """Sum up the due texts (hash → tokens); a text in several files counts once."""
    known = due.keys() & set(cached)
    texts = len(due) - len(known)
    tokens = sum(count for text, count in due.items() if text not in known)
    plain_price = None if price_per_million is None else tokens * price_per_million / 1e6
    discount = BATCH_DISCOUNTS.get(provider)
    # Fewer texts are sent by plain calls even if batch jobs are enabled.
    has_batch = discount is not None and texts >= smallest_batch
    batch_price = (
        plain_price * (1 - discount) if has_batch and discount and plain_price is not None else None
    )
    is_batch = batch and has_batch
    return Estimate(
        provider=provider,
        model=model,
        due_texts=len(due),
        cached_texts=len(known),
        texts=texts,
        tokens=tokens,
        price_per_million=price_per_million,
        price=_rounded(batch_price if is_batch else plain_price),
        is_batch=is_batch,
        batch_price=_rounded(batch_price),
        tokens_left_today=tokens_left_today,
    )


def estimate_lines(estimate: Estimate) -> list[str]:
    """Return the estimate as lines of text."""
    counts = [f"{estimate.texts:,} to embed"]
    if estimate.cached_texts:
        counts.append(f"{estimate.cached_texts:,} already in the cache")
    rows = [
        ("Model", plain(f"{estimate.model} ({estimate.provider})")),
        ("Texts", " · ".join([f"{estimate.due_texts:,} due", *counts])),
        ("Tokens", f"about {estimate.tokens:,}" if estimate.texts else "none"),
        ("Price", "\n".join(_price_lines(estimate))),
    ]
    left = estimate.tokens_left_today
    if left is not None and estimate.tokens > left:
        rows.append(
            (
                "Budget",
                f"{plural(max(left, 0), 'token')} left today: embedding stops there and continues "
                f"tomorrow",
            )
        )
    return facts(rows)


def _price_lines(estimate: Estimate) -> list[str]:
    rate = estimate.price_per_million
    if not estimate.texts:
        return ["nothing"]
    if rate is None:
        return ["unknown for this model"]
    if rate == 0 or estimate.price is None:
        return ["free: this model costs nothing to use"]
    per_million = f"{_money(rate)} per million tokens"
    if estimate.is_batch:
        discount = round(100 * BATCH_DISCOUNTS[estimate.provider])
        return [f"{_about(estimate.price)} as a batch job, {discount} % below {per_million}"]
    lines = [f"{_about(estimate.price)} at {per_million}"]
    if estimate.batch_price is not None:
        lines.append(f"{_about(estimate.batch_price)} as a batch job, with {BATCH_KEY}")
    return lines


def _about(dollars: float) -> str:
    """Format as `about $0.0082` or `less than $0.0001`."""
    return f"about {_money(dollars)}" if dollars >= 0.0001 else f"less than {_money(0.0001)}"


def _money(dollars: float) -> str:
    """Format as `$12.34` or `$0.0082`."""
    if dollars >= 1:
        return f"${dollars:,.2f}"
    whole, _, part = f"{dollars:.4f}".partition(".")
    return f"${whole}.{part[:2]}{part[2:].rstrip('0')}"


def _rounded(dollars: float | None) -> float | None:
    """Round to millionths of a dollar."""
    return None if dollars is None else round(dollars, 6)
