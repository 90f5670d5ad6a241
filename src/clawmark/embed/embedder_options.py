"""What embedders are made from: the configuration, and what surrounds them."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from clawmark.config.schema import Remote


class EmbeddingOptions(NamedTuple):
    """What the configuration says about embedding."""

    provider: str = "auto"
    model: str = ""
    dims: int = 0
    local_model_path: str = ""
    fallback: tuple[str, ...] = ()
    remote: Remote = Remote()
    entries: Mapping[str, Mapping[str, object]] = {}
    """OpenClaw's `models.providers`: services by name."""


class EmbedderContext(NamedTuple):
    """What an embedder may need besides its options."""

    environ: Mapping[str, str]
    state_dir: str
    """Where the ledger and the circuit breakers are kept."""
    batch_dir: str
    dims_of: Callable[[str, str, str], int]
    """(provider, model, provider key) -> the size of the vectors the index already has, or 0."""
