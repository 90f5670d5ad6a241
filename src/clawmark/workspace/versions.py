"""Check a replacement of a memory file, and keep the versions it replaces.

The newest three versions are kept as `<state>/versions/<file>-<digits>/<time>.md`, next to the
folder of locks. A version is on disk before its file is replaced. Without a state folder nothing is
kept.
"""

from __future__ import annotations

import hashlib
import os
import re
import time
from collections import Counter
from contextlib import suppress

from clawmark.model.errors import WorkspaceError
from clawmark.system.private_files import make_private_folder, open_private, sync_folder
from clawmark.text.write_check import check_write
from clawmark.workspace.guard import shown

KEPT = 3
FEW_LINES = 3
"""A file this short may lose all of its lines without `force`."""


def check_replacement(path: str, text: str, current: str, *, force: bool) -> None:
    """Raise WorkspaceError for a text that contains redaction masks or drops most lines."""
    problem = check_write(text, current=current)
    if problem is not None:
        raise WorkspaceError(f"{shown(path)}: {problem.message}", hint=problem.hint)
    before = Counter(line for line in current.split("\n") if line.strip())
    total = before.total()
    lost = (before - Counter(text.split("\n"))).total()
    if not force and total > FEW_LINES and lost * 2 > total:
        raise WorkspaceError(
            f"The text for {shown(path)} drops {lost} of its {total} lines.",
            hint="If that is intended, replace it with force.",
        )


def keep_version(lock_dir: str | None, root: str, path: str, data: bytes) -> None:
    """Keep the bytes of a file that is about to be replaced, and delete the oldest versions."""
    if lock_dir is None or not data:
        return
    folder = version_folder(lock_dir, root, path)
    make_private_folder(folder)
    name = os.path.join(folder, f"{time.time_ns():020d}.md")
    descriptor = open_private(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    with open(descriptor, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(descriptor)
    sync_folder(folder)
    for old in sorted(os.listdir(folder))[:-KEPT]:
        os.unlink(os.path.join(folder, old))


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


def version_folder(lock_dir: str, root: str, path: str) -> str:
    """Return the folder for the versions of one file of one workspace."""
    digits = hashlib.sha256(f"{root}\0{path}".encode("utf-8", "surrogateescape")).hexdigest()[:8]
    readable = re.sub(r"[^A-Za-z0-9._-]+", "_", path)[-80:].strip("._") or "file"
    return os.path.join(
        os.path.dirname(os.path.abspath(lock_dir)), "versions", f"{readable}-{digits}"
    )
