"""The record of what QMD has indexed: the states of the files before its last update.

A scan is compared with it to find what is due. It belongs to one index file: if that is deleted or
replaced, nothing counts as indexed."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import NamedTuple

from clawmark.model.values import FileStat
from clawmark.system import shared_json


class Record(NamedTuple):
    """What the last update has indexed."""

    files: Mapping[str, FileStat] = {}
    """By cited path."""
    collections: tuple[tuple[str, str, str], ...] = ()
    """Name, folder and mask."""
    exported: tuple[str, ...] = ()
    """The exported transcripts."""
    roots: Mapping[str, list[int]] = {}
    last_sync: Mapping[str, object] = {}
    embedded_at: float = 0.0
    """When `qmd embed` last succeeded, in seconds since 1970."""


NOTHING = Record()


def load_record(path: str, index: str, listing: str) -> Record:
    """Return the record of this index; an empty one if QMD's files are not those it was made for.

    What is no longer indexed may still be known: the collections and the exported files."""
    try:
        stored = shared_json.load(path)
    except (OSError, ValueError):
        return NOTHING
    if stored is None:
        return NOTHING
    try:
        record = Record(
            files={name: _stat(stat) for name, stat in _object(stored, "files").items()},
            collections=tuple(_texts(one) for one in _list(stored, "collections")),
            exported=tuple(map(str, _list(stored, "exported"))),
            roots={name: _numbers(root) for name, root in _object(stored, "roots").items()},
            last_sync=_object(stored, "lastSync"),
            embedded_at=float(stored.get("embeddedAt", 0.0)),  # type: ignore[arg-type]
        )
        is_current = stored.get("index") == _identity(index) and _identity(index) is not None
        is_current = is_current and stored.get("listing") == _content_state(listing)
    except (TypeError, ValueError, AttributeError):
        return NOTHING
    if is_current:
        return record
    return Record(exported=record.exported, roots=record.roots)


def save_record(path: str, index: str, listing: str, record: Record) -> None:
    """Store the record for the index as it is now."""
    shared_json.save(
        path,
        {
            "index": _identity(index),
            "listing": _content_state(listing),
            "files": {name: list(stat) for name, stat in record.files.items()},
            "collections": [list(one) for one in record.collections],
            "exported": list(record.exported),
            "roots": dict(record.roots),
            "lastSync": dict(record.last_sync),
            "embeddedAt": record.embedded_at,
        },
    )


def _identity(path: str) -> list[int] | None:
    try:
        info = os.stat(path)
    except OSError:
        return None
    return [info.st_dev, info.st_ino]


def _content_state(path: str) -> list[int] | None:
    try:
        info = os.stat(path)
    except OSError:
        return None
    return [info.st_size, info.st_mtime_ns]


def _stat(value: object) -> FileStat:
    size, mtime_ns, inode, device, seen_ns = _numbers(value)
    return size, mtime_ns, inode, device, seen_ns


def _texts(value: object) -> tuple[str, str, str]:
    if not isinstance(value, list):
        raise ValueError("not a list")
    name, folder, mask = map(str, value)
    return name, folder, mask


def _numbers(value: object) -> list[int]:
    return [int(one) for one in value] if isinstance(value, list) else []


def _object(stored: Mapping[str, object], name: str) -> dict[str, object]:
    value = stored.get(name)
    return value if isinstance(value, dict) else {}


def _list(stored: Mapping[str, object], name: str) -> list[object]:
    value = stored.get(name)
    return value if isinstance(value, list) else []
