"""Put an earlier content of a memory file back, byte by byte; the content may also be no file."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress

from clawmark.model.provenance import BytesWritten
from clawmark.system.private_files import open_private
from clawmark.workspace.guard import Folder
from clawmark.workspace.read import read_bytes
from clawmark.workspace.tree import delete_file
from clawmark.workspace.versions import version_folder
from clawmark.workspace.write import ANCHOR, conflict, describe_text, put


def describe(data: bytes | None, base_hash: str) -> BytesWritten:
    """Return what is known about the write before it is made."""
    return BytesWritten(base=base_hash) if data is None else describe_text(data, base_hash)


def put_back(
    root: Folder,
    path: str,
    data: bytes | None,
    base_hash: str,
    *,
    lock_dir: str | None,
    keep: bool,
    on_change: Callable[[], None],
) -> None:
    """Replace the content that has `base_hash` ("" if there is no file); None deletes the file.

    WriteConflict if the content is another one. With `keep`, a version of what is replaced is
    kept. `on_change` is called before the change."""
    if data is not None:
        put(
            root,
            path,
            data,
            base_hash,
            lock_dir=lock_dir,
            keep=keep,
            on_change=lambda _: on_change(),
        )
    elif not delete_file(
        root, path, lock_dir, base_hash, keep=keep, on_change=lambda _: on_change()
    ):
        raise conflict(path, base_hash, "")


def read_current(root: Folder, path: str) -> bytes | None:
    """Return the bytes of a file; None if it does not exist."""
    try:
        return read_bytes(root, path, path, ANCHOR)
    except FileNotFoundError:
        return None


def kept_texts(lock_dir: str | None, root: str, path: str) -> list[bytes]:
    """Return the kept versions of a file, the newest first."""
    if lock_dir is None:
        return []
    folder = version_folder(lock_dir, root, path)
    texts = list[bytes]()
    try:
        names = sorted(os.listdir(folder), reverse=True)
    except FileNotFoundError:
        return []
    for name in names:
        path = os.path.join(folder, name)
        # Another process may just have removed it.
        with suppress(OSError), open(open_private(path, os.O_RDONLY), "rb") as file:
            texts.append(file.read())
    return texts
