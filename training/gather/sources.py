"""The pinned list of sources in `training/sources.json`."""

import json
from pathlib import Path
from typing import NamedTuple

from training.gather.licences import is_allowed

SOURCES = Path(__file__).parent.parent / "sources.json"


class SourceError(Exception):
    """Raised when a source is not usable: its licence, its package or its evidence is wrong."""


class Source(NamedTuple):
    """One package, and how text is read from it."""

    name: str
    registry: str
    package: str
    version: str
    licence: str
    evidence: str
    attribution: str
    reader: str
    files: tuple[str, ...]
    limit: int


def read_sources(path: Path = SOURCES) -> list[Source]:
    """Read the list and check that every licence is an allowed one."""
    rows = json.loads(path.read_text("utf-8"))["sources"]
    sources = [_source(row) for row in rows]
    for source in sources:
        if not is_allowed(source.licence):
            raise SourceError(
                f"{path.name}: {source.name} has the licence {source.licence!r}, which is not in"
                " training/gather/licences.py. Remove the source or choose another."
            )
    return sources


def _source(row: dict[str, object]) -> Source:
    fields = {name: row[name] for name in Source._fields if name != "files"}
    return Source(files=tuple(row["files"]), **fields)  # type: ignore[arg-type]
