"""`clawmark index --estimate`: what embedding the due texts would cost, before anything is spent.

In: the due texts with their estimated tokens, the ones that the cache already holds, and a price.
Out: one `Estimate`, and its lines for a person; `values.as_json` makes the JSON of it. Finding out
what is due, and the prices, is left to the caller; nothing here sends or writes."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

from clawmark.cli.layout import facts, plural
from clawmark.cli.output import plain

BATCH_DISCOUNTS = {"openai": 0.5, "gemini": 0.5, "voyage": 0.33}
"""What providers take off the price of a batch job, as their documentation says; others are not
known to have one.
"""
BATCH_KEY = "memorySearch.remote.batch.enabled"


class Estimate(NamedTuple):
    """What would be sent, and about what it would cost in US dollars."""

    provider: str
    model: str
    due_texts: int
    cached_texts: int
    """Due texts whose vectors are known already: they are not paid again."""
    texts: int
    """What is left to embed."""
    tokens: int
    """About how many tokens that is."""
    price_per_million: float | None
    """Of plain calls; None when the price of the model is not known."""
    price: float | None
    """Of all of it, by the way that is configured."""
    is_batch: bool
    batch_price: float | None
    """Of all of it as a batch job; None when the provider has no discount for that."""
    tokens_left_today: int | None
    """What is left of the daily budget; None without one."""


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
    """Sum up the due texts (hash → tokens); a text that stands in several files counts once."""
    known = due.keys() & set(cached)
    texts = len(due) - len(known)
    tokens = sum(count for text, count in due.items() if text not in known)
    plain_price = None if price_per_million is None else tokens * price_per_million / 1e6
    discount = BATCH_DISCOUNTS.get(provider)
    # Fewer texts than this are sent by plain calls even when batch jobs are on.
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
    """The estimate for a person."""
    counts = [f"{estimate.texts:,} to embed"]
    if estimate.cached_texts:
        counts.append(f"{estimate.cached_texts:,} known already")
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
                f"{plural(max(left, 0), 'token')} left today: embedding stops there and goes on "
                f"tomorrow",
            )
        )
    return facts(rows)


def _price_lines(estimate: Estimate) -> list[str]:
    rate = estimate.price_per_million
    if not estimate.texts:
        return ["nothing"]
    if rate is None:
        return ["not known for this model"]
    if rate == 0 or estimate.price is None:
        return ["nothing: this model is free to use"]
    per_million = f"{_money(rate)} per million tokens"
    if estimate.is_batch:
        discount = round(100 * BATCH_DISCOUNTS[estimate.provider])
        return [f"{_about(estimate.price)} as a batch job, {discount} % below {per_million}"]
    lines = [f"{_about(estimate.price)} at {per_million}"]
    if estimate.batch_price is not None:
        lines.append(f"{_about(estimate.batch_price)} as a batch job, with {BATCH_KEY}")
    return lines


def _about(dollars: float) -> str:
    """An estimate: `about $0.0082`, `less than $0.0001`."""
    return f"about {_money(dollars)}" if dollars >= 0.0001 else f"less than {_money(0.0001)}"


def _money(dollars: float) -> str:
    """Cents as far as they say something: `$12.34`, `$0.0082`."""
    if dollars >= 1:
        return f"${dollars:,.2f}"
    whole, _, part = f"{dollars:.4f}".partition(".")
    return f"${whole}.{part[:2]}{part[2:].rstrip('0')}"


def _rounded(dollars: float | None) -> float | None:
    """Without the noise of binary fractions: millionths of a dollar are enough."""
    return None if dollars is None else round(dollars, 6)
