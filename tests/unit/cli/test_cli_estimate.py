"""The estimate of `clawmark index --estimate`: counts, prices and their text."""

from __future__ import annotations

import pytest

from clawmark.cli.as_json import as_json
from clawmark.cli.estimate import Estimate, estimate_lines, make_estimate

DUE = {f"{number:064x}": 400 for number in range(1000)}


def openai(
    price: float | None = 0.02, *, cached: int = 0, batch: bool = False, left: int | None = None
) -> Estimate:
    return make_estimate(
        DUE,
        list(DUE)[:cached],
        provider="openai",
        model="text-embedding-3-small",
        price_per_million=price,
        batch=batch,
        tokens_left_today=left,
    )


def test_texts_tokens_and_price_are_summed() -> None:
    found = openai()
    assert (found.due_texts, found.texts, found.tokens, found.price) == (1000, 1000, 400_000, 0.008)


def test_cached_texts_are_not_counted() -> None:
    found = openai(cached=600)
    assert (found.due_texts, found.cached_texts, found.texts, found.tokens, found.price) == (
        1000,
        600,
        400,
        160_000,
        0.0032,
    )


def test_cached_texts_that_are_not_due_are_ignored() -> None:
    found = make_estimate({"a": 5}, ["b", "c"], provider="openai", model="m", price_per_million=1.0)
    assert (found.cached_texts, found.texts, found.tokens) == (0, 1, 5)


@pytest.mark.parametrize(
    ("provider", "price"), [("openai", 0.2), ("gemini", 0.2), ("voyage", 0.268)]
)
def test_a_batch_job_is_cheaper_if_the_provider_has_a_discount(provider: str, price: float) -> None:
    found = make_estimate(DUE, (), provider=provider, model="m", price_per_million=1.0, batch=True)
    assert (found.is_batch, found.price, found.batch_price) == (True, price, price)


def test_a_provider_without_batch_jobs_has_no_discount() -> None:
    found = make_estimate(DUE, (), provider="mistral", model="m", price_per_million=1.0, batch=True)
    assert (found.is_batch, found.price, found.batch_price) == (False, 0.4, None)


def test_too_few_texts_for_a_batch_job_cost_the_full_price() -> None:
    found = openai(cached=801, batch=True)
    assert (found.texts, found.is_batch, found.batch_price, found.price) == (
        199,
        False,
        None,
        0.001592,
    )


def test_an_unknown_price_is_not_guessed() -> None:
    found = openai(None)
    assert (found.price, found.batch_price) == (None, None)
    assert estimate_lines(found)[-1] == "Price   unknown for this model"


def test_the_lines_show_what_is_due_and_what_it_costs() -> None:
    assert estimate_lines(openai(cached=500)) == [
        "Model   text-embedding-3-small (openai)",
        "Texts   1,000 due · 500 to embed · 500 already in the cache",
        "Tokens  about 200,000",
        "Price   about $0.004 at $0.02 per million tokens",
        "        about $0.002 as a batch job, with memorySearch.remote.batch.enabled",
    ]


def test_the_lines_of_a_batch_job_name_the_discount() -> None:
    assert (
        estimate_lines(openai(batch=True))[-1]
        == "Price   about $0.004 as a batch job, 50 % below $0.02 per million tokens"
    )


def test_nothing_due_costs_nothing() -> None:
    found = make_estimate({}, (), provider="openai", model="m", price_per_million=0.02)
    assert estimate_lines(found) == [
        "Model   m (openai)",
        "Texts   0 due · 0 to embed",
        "Tokens  none",
        "Price   nothing",
    ]


def test_a_model_with_price_zero_is_free() -> None:
    found = make_estimate(DUE, (), provider="ollama", model="nomic", price_per_million=0.0)
    assert found.price == 0
    assert estimate_lines(found)[-1] == "Price   free: this model costs nothing to use"


@pytest.mark.parametrize(
    ("price", "said"),
    [
        (0.0001, "Price   less than $0.0001"),
        (0.02, "about $0.008"),
        (0.13, "about $0.052"),
        (3.0, "about $1.20"),
        (12_345.0, "about $4,938.00"),
    ],
)
def test_prices_have_only_significant_digits(price: float, said: str) -> None:
    assert f"{said} at" in "\n".join(estimate_lines(openai(price)))


def test_an_exceeded_budget_is_shown() -> None:
    assert estimate_lines(openai(left=100_000))[-1] == (
        "Budget  100,000 tokens left today: embedding stops there and continues tomorrow"
    )
    assert not any(line.startswith("Budget") for line in estimate_lines(openai(left=400_000)))


def test_a_models_name_cannot_harm_the_terminal() -> None:
    found = make_estimate({}, (), provider="openai", model="m\x1b[2J", price_per_million=None)
    assert "\x1b" not in "".join(estimate_lines(found))


def test_the_estimate_as_json_has_camel_case_names() -> None:
    assert as_json(openai(cached=500, left=9)) == {
        "provider": "openai",
        "model": "text-embedding-3-small",
        "dueTexts": 1000,
        "cachedTexts": 500,
        "texts": 500,
        "tokens": 200_000,
        "pricePerMillion": 0.02,
        "price": 0.004,
        "isBatch": False,
        "batchPrice": 0.002,
        "tokensLeftToday": 9,
    }
