"""Clawmark: a memory for AI agents made of plain Markdown files, and the search that finds what is
in them.

    from clawmark import Memory

    with Memory.open("~/agent") as memory:
        found = memory.search("which database did we pick?")

The names below are loaded when they are first used: importing the package costs nothing by itself.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from clawmark.aio import AsyncMemory as AsyncMemory
    from clawmark.memory import Memory as Memory
    from clawmark.model.errors import ClawmarkError as ClawmarkError
    from clawmark.model.errors import ConfigError as ConfigError
    from clawmark.model.errors import EmbeddingError as EmbeddingError
    from clawmark.model.errors import IndexStoreError as IndexStoreError
    from clawmark.model.errors import PathDenied as PathDenied
    from clawmark.model.errors import ToolInputError as ToolInputError
    from clawmark.model.errors import WorkspaceError as WorkspaceError

__version__ = "0.1.0"

_HOMES = {
    "Memory": "clawmark.memory",
    "AsyncMemory": "clawmark.aio",
    "ClawmarkError": "clawmark.model.errors",
    "ConfigError": "clawmark.model.errors",
    "WorkspaceError": "clawmark.model.errors",
    "PathDenied": "clawmark.model.errors",
    "EmbeddingError": "clawmark.model.errors",
    "IndexStoreError": "clawmark.model.errors",
    "ToolInputError": "clawmark.model.errors",
}

__all__ = [
    "AsyncMemory",
    "ClawmarkError",
    "ConfigError",
    "EmbeddingError",
    "IndexStoreError",
    "Memory",
    "PathDenied",
    "ToolInputError",
    "WorkspaceError",
    "__version__",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'clawmark' has no attribute {name!r}")

    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
