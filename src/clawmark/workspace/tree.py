"""List, delete, rename and put back what is in the folder `memory`.

Only what a scan would list exists here: visible folders and `.md` files, never a link. Every step
is taken relative to an opened folder, so that no race leads outside.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import NamedTuple

from clawmark.model.errors import NotText, PathDenied, WorkspaceError, WriteConflict
from clawmark.model.provenance import BytesWritten
from clawmark.workspace.guard import (
    Folder,
    denied,
    folder_beneath,
    is_utf8,
    not_a_file,
    shown,
    split_relative,
)
from clawmark.workspace.places import MEMORY_HINT, is_hidden, is_markdown, is_visible_folder
from clawmark.workspace.read import read_bytes
from clawmark.workspace.temporary import sweep
from clawmark.workspace.versions import keep_version
from clawmark.workspace.write import (
    ANCHOR,
    conflict,
    describe_text,
    digest,
    folder_for,
    put,
    refuse_read_only,
    replace,
    translated,
)
from clawmark.workspace.write_lock import locked

ERASE_ATTEMPTS = 5
"""How often to rewrite a file that another program changes at the same time."""


def _nothing(*_: bytes) -> None:
    """Do nothing before a change."""


class Entry(NamedTuple):
    """A file or a folder in a listing."""

    path: str
    size: int
    is_folder: bool


class Exact(NamedTuple):
    """The unchanged text of a file, and the hash to replace it with."""

    text: str
    hash: str


def folder_parts(path: str) -> list[str]:
    """Return the components of `memory` or a folder below it; PathDenied for any other."""
    parts = split_relative(path)
    if parts[0] != "memory" or not all(map(is_visible_folder, parts[1:])):
        raise denied(path, "is not a folder of memory", "not-memory", MEMORY_HINT)
    return parts


def _inner_parts(path: str) -> list[str]:
    """Return the same, but refuse `memory` itself, which cannot be deleted or moved."""
    parts = folder_parts(path)
    if len(parts) == 1:
        raise PathDenied(
            "The folder memory itself stays where it is.",
            path=path,
            rule="not-memory",
            hint=MEMORY_HINT,
        )
    return parts


def list_folder(root: Folder, path: str, depth: int) -> list[Entry] | None:
    """Return a folder and what is in it, `depth` levels deep, sorted; None if it does not exist."""
    parts = folder_parts(path)
    try:
        with folder_beneath(root, parts, path, ANCHOR) as folder:
            size = os.fstat(folder.fd).st_size if folder.fd is not None else 0
            return [Entry(path, size, True), *_below(folder, path, depth)]
    except FileNotFoundError:
        return None
    except PathDenied as denied:
        if denied.rule == "not-a-file":
            return None
        raise


def is_folder(root: Folder, path: str) -> bool:
    """Whether a folder of memory exists; PathDenied where there cannot be one.

    A name that starts with a dot may be a note's."""
    *parents, name = split_relative(path)
    if parents and is_hidden(name):
        folder_parts("/".join(parents))
        return False
    return list_folder(root, path, 1) is not None


def read_exact(root: Folder, path: str) -> Exact | None:
    """Read a file and its hash; None if it does not exist."""
    try:
        data = read_bytes(root, path, path, ANCHOR)
    except FileNotFoundError:
        return None
    try:
        return Exact(data.decode(), hashlib.sha256(data).hexdigest())
    except UnicodeDecodeError as error:
        raise NotText(
            f"{shown(path)} is not UTF-8 text.", hint="Save it as UTF-8 to have it indexed."
        ) from error


def delete_file(
    root: Folder,
    path: str,
    lock_dir: str | None,
    base_hash: str = "",
    *,
    keep: bool = True,
    on_change: Callable[[bytes], None] = _nothing,
) -> bool:
    """Delete a file; False if it does not exist. With `keep`, a version of it is kept.

    With `base_hash`, only a file with that content is deleted; WriteConflict for any other.
    `on_change` is called with the content before the change, when nothing else stands in its way.
    """
    *parents, name = split_relative(path)
    with translated(path), locked(root, path, lock_dir):
        try:
            with folder_beneath(root, parents, path, ANCHOR) as folder:
                _check_file(folder, name, path)
                data = read_bytes(root, path, path, ANCHOR)
                if base_hash and digest(data) != base_hash:
                    raise conflict(path, base_hash, digest(data))
                on_change(data)
                if keep:
                    keep_version(lock_dir, root.path, path, data)
                folder.unlink(name)
                folder.sync()
        except FileNotFoundError:
            return False
    return True


def erase(root: Folder, path: str, change: Callable[[str], str], lock_dir: str | None) -> bool:
    """Change a text, or delete the file if it becomes empty, without keeping a version; return
    whether it was changed."""
    for _ in range(ERASE_ATTEMPTS):
        current = read_exact(root, path)
        text = change(current.text) if current is not None else ""
        if current is None or text == current.text:
            return False
        with suppress(WriteConflict):  # it was changed between the two calls
            if not text:
                return delete_file(root, path, lock_dir, current.hash, keep=False)
            replace(root, path, text, current.hash, lock_dir=lock_dir, keep=False)
            return True
    raise WorkspaceError(
        f"{shown(path)} kept changing while it was rewritten.",
        hint="Close the program that rewrites it, and try again.",
    )


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


def delete_folder(
    root: Folder, path: str, lock_dir: str | None, on_change: Callable[[], None] = _nothing
) -> bool:
    """Delete a folder and its notes; False if it does not exist. Other files in it are an error."""
    parts = _inner_parts(path)
    with translated(path):
        try:
            with folder_beneath(root, parts, path, ANCHOR) as folder:
                entries = _only_notes(folder, path)
        except FileNotFoundError:
            return False
        on_change()
        for entry in reversed(entries):  # what is in a folder comes after it
            if not entry.is_folder:
                delete_file(root, entry.path, lock_dir)
            else:
                _remove_folder(root, entry.path)
        _remove_folder(root, path)
    return True


def rename(
    root: Folder, old: str, new: str, lock_dir: str | None, on_change: Callable[[], None] = _nothing
) -> bool:
    """Rename a file or a folder; False if it does not exist. The new path must be free."""
    if new == old or new.startswith(old + "/"):
        raise WorkspaceError(
            f"{shown(old)} cannot be moved to {shown(new)}.", hint="Name a place outside of itself."
        )
    *parents, name = split_relative(old)
    if not parents:
        _inner_parts(old)  # refuses it
    folder_parts("/".join(parents))
    with ExitStack() as held:
        held.enter_context(translated(old))
        for path in sorted((old, new)):  # in a fixed order, so that two renames cannot deadlock
            held.enter_context(locked(root, path, lock_dir))
        try:
            above = held.enter_context(folder_beneath(root, parents, old, ANCHOR))
            mode = above.lstat(name).st_mode
        except FileNotFoundError:
            return False
        if not stat.S_ISDIR(mode):
            _check_file(above, name, old)
        target, new_name = held.enter_context(folder_for(root, new))
        if target.exists(new_name):
            raise WriteConflict(
                f"{shown(new)} is already there.",
                path=new,
                base_hash="",
                current_hash="",
                hint="Choose another name.",
            )
        on_change()
        above.rename(name, new_name, target)
        target.sync()
        above.sync()
    return True


# --- one folder ---


def _below(folder: Folder, path: str, depth: int) -> Iterator[Entry]:
    for name, info in _listed(folder):
        here = f"{path}/{name}"
        if stat.S_ISREG(info.st_mode) and is_markdown(name):
            yield Entry(here, info.st_size, False)
        elif (
            stat.S_ISDIR(info.st_mode) and is_visible_folder(name) and info.st_dev == folder.device
        ):
            yield Entry(here, info.st_size, True)
            if depth > 1:
                with _child(folder, name) as below:
                    yield from _below(below, here, depth - 1) if below is not None else ()


def _only_notes(folder: Folder, path: str) -> list[Entry]:
    """Return everything below a folder; an error if something in it is not a note."""
    sweep(folder)
    found: list[Entry] = []
    for name, info in _listed(folder):
        here = f"{path}/{name}"
        is_folder = (
            stat.S_ISDIR(info.st_mode) and is_visible_folder(name) and info.st_dev == folder.device
        )
        if not is_folder and not (stat.S_ISREG(info.st_mode) and is_markdown(name)):
            raise WorkspaceError(
                f"{shown(path)} holds {shown(name)}, which is not a note.",
                hint="Delete its notes one by one, or ask the user.",
            )
        found.append(Entry(here, info.st_size, is_folder))
        if is_folder:
            with _child(folder, name) as below:
                found += _only_notes(below, here) if below is not None else ()
    return found


def _listed(folder: Folder) -> list[tuple[str, os.stat_result]]:
    """Return the names in a folder and their states, sorted; without deleted ones."""
    with folder.listing() as entries:
        names = sorted(entry.name for entry in entries if is_utf8(entry.name))
    found = []
    for name in names:
        try:
            found.append((name, folder.lstat(name)))
        except FileNotFoundError:
            continue
    return found


@contextmanager
def _child(folder: Folder, name: str) -> Iterator[Folder | None]:
    """Open a folder below this one; None if it is gone or is a link now."""
    try:
        below = folder.child(name)
    except OSError:
        yield None
        return
    with below:
        yield below


def _check_file(folder: Folder, name: str, path: str) -> None:
    mode = folder.lstat(name).st_mode
    if not stat.S_ISREG(mode):
        raise not_a_file(path, mode, name)
    refuse_read_only(folder, name, path)


def _remove_folder(root: Folder, path: str) -> None:
    *parents, name = split_relative(path)
    with folder_beneath(root, parents, path, ANCHOR) as above:
        above.remove_folder(name)
        above.sync()
