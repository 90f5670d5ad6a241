"""Really uses what a search depends on: one short text is embedded, and the vector engine scores
two known vectors.

`doctor` only looks at what is configured; this asks. A service is sent one word, which counts
towards the daily budget."""

from __future__ import annotations

import time

from clawmark.backends.builtin import Parts
from clawmark.config.schema import VectorStore
from clawmark.embed.base import Choice, check_vectors
from clawmark.model.errors import ClawmarkError
from clawmark.model.reports import Probe
from clawmark.store.sqlite.vectors.engine_check import check_engine

TEXT = "ping"


def probe(parts: Parts, choice: Choice, vectors: VectorStore) -> tuple[Probe, Probe]:
    """The outcome for the configured embedder, and for the configured vector engine."""
    return probe_embeddings(parts, choice), probe_vectors(vectors)


def probe_embeddings(parts: Parts, choice: Choice) -> Probe:
    """Have the configured embedder embed one word, even if it failed a moment ago."""
    if choice.degraded is not None:
        name = choice.instead_of or "embedder"
        return Probe(
            "embeddings",
            "failed",
            name,
            reason=choice.degraded.reason,
            next_step=choice.degraded.fix,
        )
    if not parts.embedders:
        return Probe("embeddings", "off", "none", reason=choice.reason)
    embedder = parts.embedders[-1]
    if hasattr(embedder, "forget_failures"):
        embedder.forget_failures()
    began = time.perf_counter()
    try:
        vector = embedder.embed_query(TEXT)
        check_vectors([vector], 1, embedder.identity)
    except ClawmarkError as error:
        return Probe(
            part="embeddings",
            state="failed",
            name=embedder.traits.label,
            reason=error.message,
            next_step=error.hint or "Correct the settings of the provider, or choose another one.",
            model=embedder.identity.model,
        )
    return Probe(
        part="embeddings",
        state="ok",
        name=embedder.traits.label,
        model=embedder.identity.model,
        dims=len(vector) // 4,
        milliseconds=(time.perf_counter() - began) * 1000,
    )


def probe_vectors(vectors: VectorStore) -> Probe:
    """Load the configured vector engine and have it score two known vectors."""
    if not vectors.enabled:
        return Probe("vectors", "off", "none", reason="memorySearch.store.vector.enabled is false")

    began = time.perf_counter()
    try:
        check_engine(vectors.engine)
    except ClawmarkError as error:
        return Probe(
            "vectors", "failed", vectors.engine, reason=error.message, next_step=error.hint
        )
    except ImportError as error:
        reason, step = (
            f"The vector engine {vectors.engine} could not be loaded: {error}.",
            "Install clawmark again.",
        )
        return Probe("vectors", "failed", vectors.engine, reason=reason, next_step=step)
    return Probe("vectors", "ok", vectors.engine, milliseconds=(time.perf_counter() - began) * 1000)
