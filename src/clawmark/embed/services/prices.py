"""What embedding costs: a provider and a model in, US dollars per million tokens out.

List prices for calls that are answered at once, as published by the providers and noted in November
2025 (Voyage 4: January 2026). They are there to say "about 12 cents" before an index is built, not
to check a bill; batches usually cost half. What is not listed is not guessed."""

from __future__ import annotations

from clawmark.embed.models import plain_name

LOCAL = ("ollama", "lmstudio", "llamacpp", "vllm", "local", "static")
"""Run on a machine of the user's: nothing is paid per token."""

PRICES: dict[tuple[str, str], float] = {
    ("openai", "text-embedding-3-small"): 0.02,
    ("openai", "text-embedding-3-large"): 0.13,
    ("openai", "text-embedding-ada-002"): 0.10,
    ("gemini", "gemini-embedding-001"): 0.15,
    ("voyage", "voyage-4-large"): 0.12,
    ("voyage", "voyage-4"): 0.06,
    ("voyage", "voyage-4-lite"): 0.02,
    ("voyage", "voyage-3-large"): 0.18,
    ("voyage", "voyage-3.5"): 0.06,
    ("voyage", "voyage-3.5-lite"): 0.02,
    ("voyage", "voyage-code-3"): 0.18,
    ("voyage", "voyage-finance-2"): 0.12,
    ("voyage", "voyage-law-2"): 0.12,
    ("mistral", "mistral-embed"): 0.10,
    ("mistral", "codestral-embed"): 0.15,
    ("bedrock", "amazon.titan-embed-text-v1"): 0.10,
    ("bedrock", "amazon.titan-embed-text-v2"): 0.02,
    ("bedrock", "cohere.embed-english-v3"): 0.10,
    ("bedrock", "cohere.embed-multilingual-v3"): 0.10,
    ("deepinfra", "bge-m3"): 0.01,
}


def price_per_million(provider: str, model: str) -> float | None:
    """US dollars for a million tokens; 0 for what runs at home, None for what is not known."""
    if provider in LOCAL:
        return 0.0
    return PRICES.get((provider, plain_name(model)))
