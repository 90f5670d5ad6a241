"""The receipt of an installation, used to undo it.

It records for each file whether it and its folders were created, and each inserted piece of text.
The folder of the receipt also keeps a backup of every file before it was changed."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from clawmark.model.errors import ConfigError
from clawmark.system import shared_json as statefile
from clawmark.system.private_files import make_private_folder


class Piece(NamedTuple):
    """A piece of text that was inserted into a file."""

    form: str
    path: tuple[str, ...]
    made: tuple[str, ...]
    """Path of the outermost object or list that was created for it."""
    text: str


class Entry(NamedTuple):
    """What was done to a file."""

    created: bool
    folders: tuple[str, ...]
    """Folders that were created for it, outermost first."""
    pieces: tuple[Piece, ...]


Receipt = Mapping[str, Entry]
"""By file path."""


def load(folder: str) -> dict[str, Entry]:
    """Return the receipt of an installation; empty if there is none."""
    path = os.path.join(folder, "receipt.json")
    try:
        found = (statefile.load(path) or {}).get("files")
        files = found.items() if isinstance(found, dict) else ()
        return {file: _entry(given) for file, given in files}
    except (ValueError, TypeError, KeyError):
        raise ConfigError(
            f"{path} is damaged.",
            file=path,
            hint="Move it away; then --remove looks for our entries by their names.",
        ) from None


def save(folder: str, receipt: Receipt) -> None:
    """Save a receipt; an empty one deletes the file."""
    path = os.path.join(folder, "receipt.json")
    if not receipt:
        with suppress(FileNotFoundError):
            os.unlink(path)
        return
    make_private_folder(folder)
    files = {
        file: {**entry._asdict(), "pieces": [piece._asdict() for piece in entry.pieces]}
        for file, entry in receipt.items()
    }
    statefile.save(path, {"version": 1, "files": files}, durable=True)


def back_up(folder: str, file: str, content: bytes) -> str:
    """Keep a copy of a file and return its path; the same content is kept once."""
    name = f"{os.path.basename(file)}.{hashlib.sha256(content).hexdigest()[:12]}"
    path = os.path.join(folder, "backups", name)
    make_private_folder(os.path.dirname(path))
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return path
    with open(descriptor, "wb") as out:
        out.write(content)
        out.flush()
        os.fsync(out.fileno())
    return path


def _entry(given: dict[str, Any]) -> Entry:
    pieces = tuple(
        Piece(
            form=str(piece["form"]),
            path=tuple(map(str, piece["path"])),
            made=tuple(map(str, piece["made"])),
            text=str(piece["text"]),
        )
        for piece in given["pieces"]
    )
    return Entry(bool(given["created"]), tuple(map(str, given["folders"])), pieces)
