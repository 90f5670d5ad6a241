"""The facts about every provider: key variables, addresses, default models, limits and prices.

This is the only table of its kind. Embedding, batch jobs, reranking, chat models and the list of
secrets all read it, so a new embedding provider is one module in `embed.services` and one row here.
What is known about single models is in `embed.models`."""

from collections.abc import Mapping
from typing import NamedTuple, TypeVar

T = TypeVar("T")


class EmbeddingFacts(NamedTuple):
    """How a provider embeds."""

    base_url: str = ""
    model: str = ""
    """The default."""
    texts: int = 32
    """Texts in one request. Servers refuse more than they are configured for; 32 is usual."""
    tokens: int = 0
    """Tokens in one request; 0 when no limit is known."""
    model_tokens: Mapping[str, int] = {}
    """The models whose limit differs from `tokens`."""
    concurrency: int = 4
    """Requests at the same time."""
    needs_key: bool = True
    is_auto: bool = False
    """Whether the provider "auto" takes this one when its key is set."""
    is_compatible: bool = False
    """Whether it speaks OpenAI's protocol and needs no module of its own."""


class BatchFacts(NamedTuple):
    """What one batch job takes."""

    requests: int = 50_000
    bytes: int = 100_000_000
    """An upload is held in memory. OpenAI takes 200 MB, Voyage and Gemini more."""
    window: str = ""
    """The time that is ordered for a job, where the provider asks for one."""


class ChatFacts(NamedTuple):
    """How a provider chats."""

    base_url: str
    context_tokens: int = 128_000
    """What its models hold when nothing is known about them."""
    needs_key: bool = True


class RerankFacts(NamedTuple):
    """How a provider reranks."""

    base_url: str
    model: str
    """The default."""
    count_field: str
    """The field of the request with the number of results."""
    results_field: str
    """The field of the response with the results."""


class ProviderFacts(NamedTuple):
    """One row of the table."""

    keys: tuple[str, ...] = ()
    """The environment variables that may hold its key, the usual one first."""
    other_secrets: tuple[str, ...] = ()
    """More variables with secrets; GEMINI_API_KEYS holds several keys."""
    embedding: EmbeddingFacts | None = None
    batch: BatchFacts | None = None
    chat: ChatFacts | None = None
    rerank: RerankFacts | None = None
    is_local: bool = False
    """It runs on the user's machine and costs nothing."""
    price_host: str = ""
    """The end of the host names for which the prices hold."""
    prices: Mapping[str, float] = {}
    """Embedding model -> US dollars per million tokens.

    List prices of November 2025 (Voyage 4: January 2026), for an estimate before indexing; batch
    jobs usually cost half."""


MODEL_KEY = "CLAWMARK_MODEL_API_KEY"
"""The variable with the key for a chat model at an address of the user's own."""

PROVIDERS: dict[str, ProviderFacts] = {
    "openai": ProviderFacts(
        keys=("OPENAI_API_KEY",),
        embedding=EmbeddingFacts(
            base_url="https://api.openai.com/v1",
            model="text-embedding-3-small",
            texts=2048,
            tokens=300_000,
            is_auto=True,
        ),
        batch=BatchFacts(window="24h"),
        chat=ChatFacts(base_url="https://api.openai.com/v1"),
        price_host="api.openai.com",
        prices={
            "text-embedding-3-small": 0.02,
            "text-embedding-3-large": 0.13,
            "text-embedding-ada-002": 0.10,
        },
    ),
    "gemini": ProviderFacts(
        keys=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
        other_secrets=("GEMINI_API_KEYS",),
        embedding=EmbeddingFacts(
            base_url="https://generativelanguage.googleapis.com/v1beta",
            model="gemini-embedding-001",
            texts=100,  # "at most 100 requests can be in one batch"
            is_auto=True,
        ),
        batch=BatchFacts(),
        chat=ChatFacts(base_url="https://generativelanguage.googleapis.com/v1beta/openai"),
        price_host="generativelanguage.googleapis.com",
        prices={"gemini-embedding-001": 0.15},
    ),
    "voyage": ProviderFacts(
        keys=("VOYAGE_API_KEY",),
        embedding=EmbeddingFacts(
            base_url="https://api.voyageai.com/v1",
            model="voyage-4-large",
            texts=1000,
            tokens=120_000,
            model_tokens={
                "voyage-4-lite": 1_000_000,
                "voyage-3.5-lite": 1_000_000,
                "voyage-4": 320_000,
                "voyage-3.5": 320_000,
                "voyage-2": 320_000,
            },
            is_auto=True,
        ),
        batch=BatchFacts(window="12h"),
        rerank=RerankFacts(
            base_url="https://api.voyageai.com/v1",
            model="rerank-2.5",
            count_field="top_k",
            results_field="data",
        ),
        price_host="api.voyageai.com",
        prices={
            "voyage-4-large": 0.12,
            "voyage-4": 0.06,
            "voyage-4-lite": 0.02,
            "voyage-3-large": 0.18,
            "voyage-3.5": 0.06,
            "voyage-3.5-lite": 0.02,
            "voyage-code-3": 0.18,
            "voyage-finance-2": 0.12,
            "voyage-law-2": 0.12,
        },
    ),
    "mistral": ProviderFacts(
        keys=("MISTRAL_API_KEY",),
        embedding=EmbeddingFacts(
            base_url="https://api.mistral.ai/v1",
            model="mistral-embed",
            texts=512,  # "Too many inputs in request" beyond it
            tokens=16_384,  # "Max is 16384"
            is_auto=True,
        ),
        price_host="api.mistral.ai",
        prices={"mistral-embed": 0.10, "codestral-embed": 0.15},
    ),
    "ollama": ProviderFacts(
        keys=("OLLAMA_API_KEY",),
        embedding=EmbeddingFacts(
            base_url="http://127.0.0.1:11434",
            model="nomic-embed-text",
            texts=16,  # seconds without a graphics card
            concurrency=2,  # keeps a home machine usable
            needs_key=False,
        ),
        chat=ChatFacts(
            base_url="http://127.0.0.1:11434/v1", context_tokens=32_768, needs_key=False
        ),
        is_local=True,
    ),
    "bedrock": ProviderFacts(
        keys=("AWS_BEARER_TOKEN_BEDROCK",),
        other_secrets=("AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"),
        embedding=EmbeddingFacts(
            model="amazon.titan-embed-text-v2:0",
            texts=96,  # for Cohere's models; Titan takes one
            needs_key=False,
        ),
        price_host=".amazonaws.com",
        prices={
            "amazon.titan-embed-text-v1": 0.10,
            "amazon.titan-embed-text-v2": 0.02,
            "cohere.embed-english-v3": 0.10,
            "cohere.embed-multilingual-v3": 0.10,
        },
    ),
    "openai-compatible": ProviderFacts(
        embedding=EmbeddingFacts(needs_key=False, is_compatible=True),
    ),
    "lmstudio": ProviderFacts(
        keys=("LMSTUDIO_API_KEY",),
        embedding=EmbeddingFacts(
            base_url="http://127.0.0.1:1234/v1",
            model="text-embedding-nomic-embed-text-v1.5",
            concurrency=2,
            needs_key=False,
            is_compatible=True,
        ),
        is_local=True,
    ),
    "vllm": ProviderFacts(
        keys=("VLLM_API_KEY",),
        embedding=EmbeddingFacts(
            base_url="http://127.0.0.1:8000/v1", needs_key=False, is_compatible=True
        ),
        is_local=True,
    ),
    "llamacpp": ProviderFacts(
        keys=("LLAMA_API_KEY",),
        embedding=EmbeddingFacts(
            base_url="http://127.0.0.1:8080/v1",
            concurrency=2,
            needs_key=False,
            is_compatible=True,
        ),
        is_local=True,
    ),
    "deepinfra": ProviderFacts(
        keys=("DEEPINFRA_API_KEY",),
        embedding=EmbeddingFacts(
            base_url="https://api.deepinfra.com/v1/openai",
            model="BAAI/bge-m3",
            texts=128,
            is_compatible=True,
        ),
        price_host="api.deepinfra.com",
        prices={"bge-m3": 0.01},
    ),
    "anthropic": ProviderFacts(
        keys=("ANTHROPIC_API_KEY",),
        chat=ChatFacts(base_url="https://api.anthropic.com", context_tokens=200_000),
    ),
    "cohere": ProviderFacts(
        keys=("COHERE_API_KEY", "CO_API_KEY"),
        rerank=RerankFacts(
            base_url="https://api.cohere.com/v2",
            model="rerank-v3.5",
            count_field="top_n",
            results_field="results",
        ),
    ),
    "jina": ProviderFacts(
        keys=("JINA_API_KEY",),
        rerank=RerankFacts(
            base_url="https://api.jina.ai/v1",
            model="jina-reranker-v2-base-multilingual",
            count_field="top_n",
            results_field="results",
        ),
    ),
}


def embedding_facts(name: str) -> EmbeddingFacts:
    """Return how a provider embeds; raise KeyError for one that does not."""
    return _present(PROVIDERS[name].embedding, name)


def batch_facts(name: str) -> BatchFacts:
    """Return what a provider's batch jobs take; raise KeyError for one without them."""
    return _present(PROVIDERS[name].batch, name)


def rerank_facts(name: str) -> RerankFacts:
    """Return how a provider reranks; raise KeyError for one that does not."""
    return _present(PROVIDERS[name].rerank, name)


def _present(facts: T | None, name: str) -> T:
    if facts is None:
        raise KeyError(name)
    return facts


def secret_variables() -> frozenset[str]:
    """Return the environment variables that may hold a secret of any provider."""
    rows = PROVIDERS.values()
    return frozenset({MODEL_KEY, *(name for row in rows for name in row.keys + row.other_secrets)})
