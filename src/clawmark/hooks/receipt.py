"""What an installation changed, kept so that it can be undone: a folder of our state in, a receipt
out and back.

For each file: whether it and its folders were made, and each piece of text that was put in, with
its place in the document. Beside the receipt lie copies of every file as it was before we changed
it; they are never overwritten and never sent away."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from typing import NamedTuple

from clawmark.model.errors import ConfigError
from clawmark.system import shared_json as statefile
from clawmark.system.private_files import make_private_folder


class Piece(NamedTuple):
    """One thing that was put into a file."""

    form: str
    path: tuple[str, ...]
    made: tuple[str, ...]
    """The first object or list that had to be made for it."""
    text: str


class Entry(NamedTuple):
    """What was done to one file."""

    created: bool
    folders: tuple[str, ...]
    """The folders that were made for it, outermost first."""
    pieces: tuple[Piece, ...]


Receipt = Mapping[str, Entry]
"""By the path of the file."""


def load(folder: str) -> dict[str, Entry]:
    """The receipt of an installation; empty when there was none."""
    path = os.path.join(folder, "receipt.json")
    try:
        found = (statefile.load(path) or {}).get("files")
        return (
            {file: _entry(given) for file, given in found.items()}
            if isinstance(found, dict)
            else {}
        )
    except (ValueError, TypeError, KeyError):
        raise ConfigError(
            f"{path} is damaged.",
            file=path,
            hint="Move it away; then --remove looks for our entries by their names.",
        ) from None


def save(folder: str, receipt: Receipt) -> None:
    """Keep a receipt; an empty one is no receipt any more."""
    path = os.path.join(folder, "receipt.json")
    if not receipt:
        if os.path.lexists(path):
            os.unlink(path)
        return
    make_private_folder(folder)
    files = {
        file: {**entry._asdict(), "pieces": [piece._asdict() for piece in entry.pieces]}
        for file, entry in receipt.items()
    }
    statefile.save(path, {"version": 1, "files": files}, durable=True)


def back_up(folder: str, file: str, content: bytes) -> str:
    """Keep a copy of a file as it is now; its path. The same content is kept once."""
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


def _entry(given: dict[str, object]) -> Entry:
    pieces = given["pieces"]
    folders = given["folders"]
    assert isinstance(pieces, list) and isinstance(folders, list)
    return Entry(
        bool(given["created"]), tuple(map(str, folders)), tuple(_piece(one) for one in pieces)
    )


def _piece(given: dict[str, object]) -> Piece:
    path, made = given["path"], given["made"]
    assert isinstance(path, list) and isinstance(made, list)
    return Piece(
        form=str(given["form"]),
        path=tuple(map(str, path)),
        made=tuple(map(str, made)),
        text=str(given["text"]),
    )
