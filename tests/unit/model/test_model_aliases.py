"""Modules that were documented under another path can still be imported from there."""

from __future__ import annotations

from importlib import import_module

import pytest


@pytest.mark.parametrize(
    ("alias", "module", "names"),
    [
        ("clawmark.types", "clawmark.model.values", ("Identity", "Vector", "Hit")),
        ("clawmark.errors", "clawmark.model.errors", ("EmbeddingUnavailable", "ConfigError")),
        ("clawmark.reports", "clawmark.model.reports", ("Status", "SyncReport")),
        ("clawmark.tools", "clawmark.agent.tools", ("as_openai", "as_anthropic", "render")),
    ],
)
def test_an_alias_has_the_names_of_its_module(
    alias: str, module: str, names: tuple[str, ...]
) -> None:
    for name in names:
        assert getattr(import_module(alias), name) is getattr(import_module(module), name)
