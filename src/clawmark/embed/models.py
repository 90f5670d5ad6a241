"""Facts about embedding models by name: vector size, text length, prompts and range of cosines.

The vector size is listed only where every build of that name has it; otherwise the first response
decides. A listed size protects from a service that returns vectors of a wrong size.

The cosines are estimates from experience, not measured here: the floor is that of two unrelated
texts, the ceiling that of a question and its answer. They change scores, never the order."""

from __future__ import annotations

from typing import NamedTuple

from clawmark.model.providers import PROVIDERS


class Known(NamedTuple):
    """What is known about a model; `dims` is 0 when its name is not enough."""

    dims: int = 0
    text_tokens: int = 2048
    cosines: tuple[float, float] = (0.20, 0.80)

    @property
    def floor(self) -> float:
        return self.cosines[0]

    @property
    def ceiling(self) -> float:
        return self.cosines[1]


UNKNOWN = Known()

_OPENAI = (0.10, 0.60)
_ADA = (0.70, 0.90)
_VOYAGE = (0.25, 0.75)
_MISTRAL = (0.60, 0.90)
_GEMINI = (0.50, 0.85)
_NOMIC = (0.45, 0.85)
_BGE_M3 = (0.35, 0.75)
_MXBAI = (0.35, 0.80)
_GEMMA = (0.20, 0.70)
_QWEN = (0.20, 0.75)
_MINILM = (0.05, 0.70)
_E5 = (0.70, 0.90)
_TITAN = (0.05, 0.60)
_COHERE = (0.20, 0.65)

MODELS: dict[str, Known] = {
    "text-embedding-3-small": Known(1536, 8191, _OPENAI),
    "text-embedding-3-large": Known(3072, 8191, _OPENAI),
    "text-embedding-ada-002": Known(1536, 8191, _ADA),
    "voyage-4-large": Known(1024, 32_000, _VOYAGE),
    "voyage-4": Known(1024, 32_000, _VOYAGE),
    "voyage-4-lite": Known(1024, 32_000, _VOYAGE),
    "voyage-3-large": Known(1024, 32_000, _VOYAGE),
    "voyage-3.5": Known(1024, 32_000, _VOYAGE),
    "voyage-3.5-lite": Known(1024, 32_000, _VOYAGE),
    "voyage-3": Known(1024, 32_000, _VOYAGE),
    "voyage-3-lite": Known(512, 32_000, _VOYAGE),
    "voyage-code-3": Known(1024, 32_000, _VOYAGE),
    "voyage-code-2": Known(1536, 16_000, _VOYAGE),
    "voyage-finance-2": Known(1024, 32_000, _VOYAGE),
    "voyage-law-2": Known(1024, 16_000, _VOYAGE),
    "voyage-multilingual-2": Known(1024, 32_000, _VOYAGE),
    "mistral-embed": Known(1024, 8192, _MISTRAL),
    "codestral-embed": Known(1536, 8192, _MISTRAL),
    "gemini-embedding-001": Known(3072, 2048, _GEMINI),
    "gemini-embedding-2-preview": Known(3072, 8192, _GEMINI),
    "gemini-embedding-2": Known(3072, 8192, _GEMINI),
    "text-embedding-004": Known(768, 2048, _GEMINI),
    "amazon.titan-embed-text-v1": Known(1536, 8192, _TITAN),
    "amazon.titan-embed-g1-text-02": Known(1536, 8192, _TITAN),
    "amazon.titan-embed-text-v2": Known(1024, 8192, _TITAN),
    # Bedrock takes 2048 characters per text for the third generation.
    "cohere.embed-english-v3": Known(1024, 512, _COHERE),
    "cohere.embed-multilingual-v3": Known(1024, 512, _COHERE),
    "cohere.embed-v4": Known(1536, 32_000, _COHERE),
    "nomic-embed-text": Known(768, 2048, _NOMIC),
    "nomic-embed-text-v1.5": Known(768, 2048, _NOMIC),
    "nomic-embed-text-v2-moe": Known(768, 512, _NOMIC),
    "mxbai-embed-large": Known(1024, 512, _MXBAI),
    "mxbai-embed-large-v1": Known(1024, 512, _MXBAI),
    "embeddinggemma": Known(768, 2048, _GEMMA),
    "embeddinggemma-300m": Known(768, 2048, _GEMMA),
    "bge-m3": Known(1024, 8192, _BGE_M3),
    "bge-large": Known(1024, 512, _MXBAI),
    "snowflake-arctic-embed2": Known(1024, 8192, _NOMIC),
    "snowflake-arctic-embed": Known(0, 512, _NOMIC),
    "qwen3-embedding": Known(0, 8192, _QWEN),
    "qwen3-embedding-0.6b": Known(1024, 8192, _QWEN),
    "qwen3-embedding-4b": Known(2560, 8192, _QWEN),
    "qwen3-embedding-8b": Known(4096, 8192, _QWEN),
    "all-minilm": Known(384, 256, _MINILM),
    "paraphrase-multilingual": Known(768, 128, _MINILM),
    "granite-embedding": Known(0, 512, (0.45, 0.85)),
    "multilingual-e5-large": Known(1024, 512, _E5),
}

_SEARCHING = "Represent this sentence for searching relevant passages: "

PROMPTS: dict[str, tuple[str, str]] = {
    "nomic-embed-text": ("search_query: ", "search_document: "),
    "mxbai-embed-large": (_SEARCHING, ""),
    "snowflake-arctic-embed2": ("query: ", ""),
    "snowflake-arctic-embed-l-v2": ("query: ", ""),
    "snowflake-arctic-embed-m-v2": ("query: ", ""),
    "snowflake-arctic-embed": (_SEARCHING, ""),
    "qwen3-embedding": (
        "Instruct: Given a web search query, retrieve relevant passages that answer the "
        "query\nQuery:",
        "",
    ),
    "embeddinggemma": ("task: search result | query: ", "title: none | text: "),
    "bge-small-en": (_SEARCHING, ""),
    "bge-base-en": (_SEARCHING, ""),
    "bge-large-en": (_SEARCHING, ""),
    "bge-large": (_SEARCHING, ""),
    "multilingual-e5": ("query: ", "passage: "),
    "e5-": ("query: ", "passage: "),
}
"""Start of a model's name -> its prompts for a query and for a passage; the first match counts.

OpenClaw's fingerprint of Ollama does not include them: a changed entry needs a new fact in that
provider's key."""


def plain_name(model: str) -> str:
    """Return a model's name in lower case, without owner, tag, quantisation and prefixes."""
    name = model.lower().rsplit("/", 1)[-1].split(":", 1)[0].split("@", 1)[0]
    if not name.startswith(("text-embedding-3", "text-embedding-ada", "text-embedding-004")):
        name = name.removeprefix("text-embedding-")
    return name


def look_up(model: str) -> Known:
    """Return what is known about a model; an unknown one gets average cosines."""
    return MODELS.get(plain_name(model), UNKNOWN)


def prompts_for(model: str) -> tuple[str, str]:
    """Return the prompts for a query and for a passage."""
    name = plain_name(model)
    return next((prompts for start, prompts in PROMPTS.items() if name.startswith(start)), ("", ""))


def price_per_million(provider: str, model: str) -> float | None:
    """Return US dollars per million tokens; 0 for a local provider, None when it is not known."""
    facts = PROVIDERS.get(provider)
    if facts is None or facts.is_local:
        return None if facts is None else 0.0
    return facts.prices.get(plain_name(model))
