"""The services that can embed, and where `auto` looks for their keys."""

from __future__ import annotations

from clawmark.model.providers import PROVIDERS

_EMBEDDING = {name: row.embedding for name, row in PROVIDERS.items() if row.embedding}
REMOTE = tuple(name for name, facts in _EMBEDDING.items() if not facts.is_compatible)
COMPATIBLE = tuple(name for name, facts in _EMBEDDING.items() if facts.is_compatible)
NAMES = (*REMOTE, *COMPATIBLE)
LADDER = {
    name: PROVIDERS[name].keys + PROVIDERS[name].other_secrets
    for name, facts in _EMBEDDING.items()
    if facts.is_auto
}
"""Where `auto` looks for keys; the first one found decides."""
