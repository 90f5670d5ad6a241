"""A small memory for the models of the pages."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from clawmark import Memory

NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)
IN_UTC = {"agents.defaults.userTimezone": "UTC"}


def write(root: Path, path: str, text: str) -> None:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(text.encode())


@contextmanager
def opened(folder: Path, files: dict[str, str] | None = None) -> Iterator[Memory]:
    """Open a memory with these files; it is noon on 15 November 2026."""
    root = folder / "agent"
    root.mkdir(exist_ok=True)
    for path, text in (files or {}).items():
        write(root, path, text)
    with Memory.open(
        root,
        state_dir=folder / "state",
        provider="none",
        clock=lambda: NOON,
        overrides=IN_UTC,
        background=False,
    ) as memory:
        yield memory
