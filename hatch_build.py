"""Puts the static word table into the package when it is built.

The table comes from the `wordllama` package. It is a requirement of the build only, and only while
`static.bin` is missing, so neither it nor its dependencies reach the user's environment. None of
its code is imported; its two data files are read and checked by hash. What is made of them is
described in `src/clawmark/embed/local/static_table.py`; the licences are in
`src/clawmark/embed/local/NOTICE.md`.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

EMBED = Path("src", "clawmark", "embed", "local")


class StaticTableHook(BuildHookInterface):  # type: ignore[type-arg]
    """Makes `src/clawmark/embed/local/data/static.bin` when it is missing or not as expected."""

    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        table = load_table_module(self.root)
        return [] if table.is_packed(self.target) else [f"{table.PACKAGE}=={table.VERSION}"]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        table = load_table_module(self.root)
        if table.is_packed(self.target):
            return
        folder = find_package(table.PACKAGE)
        if folder is None:
            needed = f"{table.PACKAGE}=={table.VERSION}"
            raise RuntimeError(
                f"Building Clawmark needs {needed}: install it, or build with isolation, which "
                f"does."
            )
        made = table.pack(
            str(folder / table.WEIGHTS[0]), str(folder / table.TOKENIZER[0]), self.target
        )
        if made != table.SHA256:
            raise RuntimeError(
                f"The packed word table has the hash {made}; {table.SHA256} was expected."
            )

    @property
    def target(self) -> str:
        return str(Path(self.root) / EMBED / "data" / "static.bin")


def load_table_module(root: str) -> ModuleType:
    """The module that knows the file's layout.

    It is loaded from its path, because the package cannot be imported yet.
    """
    spec = importlib.util.spec_from_file_location(
        "clawmark_static_table", Path(root) / EMBED / "static_table.py"
    )
    if spec is None or spec.loader is None:
        raise RuntimeError(f"{EMBED}/static_table.py is missing from the source tree.")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def find_package(name: str) -> Path | None:
    """The folder of an installed package; finding a top-level package does not run it."""
    spec = importlib.util.find_spec(name)
    return (
        Path(spec.submodule_search_locations[0])
        if spec and spec.submodule_search_locations
        else None
    )
