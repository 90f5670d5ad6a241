"""Use what a search depends on once: embed one word, and score two known vectors.

`doctor` reports what is configured; a probe calls it. A service is sent one word, which counts
towards the daily budget."""

from __future__ import annotations

import time

from clawmark.embed.base import Choice, check_vectors
from clawmark.model.errors import ClawmarkError
from clawmark.model.reports import Probe
from clawmark.store.base import ManagedStore

TEXT = "ping"


def probe_embeddings(choice: Choice) -> Probe:
    """Embed one word with the configured embedder, even if it failed a moment ago."""
    if choice.degraded is not None:
        return Probe(
            part="embeddings",
            state="failed",
            name=choice.instead_of or "embedder",
            reason=choice.degraded.reason,
            next_step=choice.degraded.fix,
        )
    if not choice.embedders:
        return Probe("embeddings", "off", "none", reason=choice.reason)
    embedder = choice.embedders[-1]
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


def probe_vectors(engine: str, store: ManagedStore) -> Probe:
    """Load a vector engine and score two known vectors; an empty name means vectors are off."""
    if not engine:
        return Probe("vectors", "off", "none", reason="memorySearch.store.vector.enabled is false")
    began = time.perf_counter()
    try:
        store.check_vectors()
    except ClawmarkError as error:
        return Probe("vectors", "failed", engine, reason=error.message, next_step=error.hint)
    except ImportError as error:
        return Probe(
            part="vectors",
            state="failed",
            name=engine,
            reason=f"The vector engine {engine} could not be loaded: {error}.",
            next_step="Install clawmark again.",
        )
    return Probe("vectors", "ok", engine, milliseconds=(time.perf_counter() - began) * 1000)
