"""The folder `memory` as a tree: looking into its folders, and deleting and renaming what is in
them.

In: an opened workspace and a path below `memory`. Out: the entries of a folder, a file's exact text
with its hash, or the change, durable. Only what a scan would list exists here: visible folders and
`.md` files, never a link. Every step is taken relative to an opened folder, so that no race leads
outside. Which path is meant is left to `places.py`."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import NamedTuple

from clawmark.model.errors import NotText, PathDenied, WorkspaceError, WriteConflict
from clawmark.workspace.guard import (
    Folder,
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
from clawmark.workspace.write import ANCHOR, exists, folder_for, refuse_read_only, translated
from clawmark.workspace.write_lock import locked


class Entry(NamedTuple):
    """A file or a folder below another one."""

    path: str
    size: int
    is_folder: bool


class Exact(NamedTuple):
    """A file as it is, line ends and all, and the hash to replace it with."""

    text: str
    hash: str


def folder_parts(path: str) -> list[str]:
    """The components of a folder below `memory`, or of `memory` itself; PathDenied for any other."""
    parts = split_relative(path)
    if parts[0] != "memory" or not all(map(is_visible_folder, parts[1:])):
        raise PathDenied(
            f"{shown(path)} is no folder of memory.", path=path, rule="not-memory", hint=MEMORY_HINT
        )
    return parts


def _inner_parts(path: str) -> list[str]:
    """The same without `memory` itself, which is nobody's to delete or to move."""
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
    """The folder itself and what is in it, so many levels deep, in order of names; None when there
    is no such folder.
    """
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
    """Whether there is a folder of memory; PathDenied where none can be.

    A name with a dot before it may be a note's.
    """
    *parents, name = split_relative(path)
    if parents and is_hidden(name):
        folder_parts("/".join(parents))
        return False
    return list_folder(root, path, 1) is not None


def read_exact(root: Folder, path: str) -> Exact | None:
    """The text of a file and its hash; None when there is no such file."""
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


def delete_file(root: Folder, path: str, lock_dir: str | None) -> bool:
    """Delete one file, of which a version is kept; False when there is none."""
    *parents, name = split_relative(path)
    with translated(path), locked(root, path, lock_dir):
        try:
            with folder_beneath(root, parents, path, ANCHOR) as folder:
                _check_file(folder, name, path)
                keep_version(lock_dir, root.path, path, read_bytes(root, path, path, ANCHOR))
                folder.unlink(name)
                folder.sync()
        except FileNotFoundError:
            return False
    return True


def delete_folder(root: Folder, path: str, lock_dir: str | None) -> bool:
    """Delete a folder with its notes; False when there is none.

    One that holds anything else is left as it is.
    """
    parts = _inner_parts(path)
    with translated(path):
        try:
            with folder_beneath(root, parts, path, ANCHOR) as folder:
                entries = _only_notes(folder, path)
        except FileNotFoundError:
            return False
        for entry in reversed(entries):  # what is in a folder comes after it
            if not entry.is_folder:
                delete_file(root, entry.path, lock_dir)
            else:
                _remove_folder(root, entry.path)
        _remove_folder(root, path)
    return True


def rename(root: Folder, old: str, new: str, lock_dir: str | None) -> bool:
    """Give a file or a folder another path, where nothing is yet; False when there is none at the
    old one.
    """
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
        for path in sorted(
            (old, new)
        ):  # always in this order, so that two renames never wait for each other
            held.enter_context(locked(root, path, lock_dir))
        try:
            above = held.enter_context(folder_beneath(root, parents, old, ANCHOR))
            mode = above.lstat(name).st_mode
        except FileNotFoundError:
            return False
        if not stat.S_ISDIR(mode):
            _check_file(above, name, old)
        target, new_name = held.enter_context(folder_for(root, new))
        if exists(target, new_name):
            raise WriteConflict(
                f"{shown(new)} is already there.",
                path=new,
                base_hash="",
                current_hash="",
                hint="Choose another name.",
            )
        _move(above, name, target, new_name)
        target.sync()
        above.sync()
    return True


# --- one folder --------------------------------------------------------------------------------------------------


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
    """Everything below a folder; an error when something there is no note, for that is not ours to
    delete.
    """
    sweep(folder)
    found: list[Entry] = []
    for name, info in _listed(folder):
        here = f"{path}/{name}"
        is_folder = (
            stat.S_ISDIR(info.st_mode) and is_visible_folder(name) and info.st_dev == folder.device
        )
        if not is_folder and not (stat.S_ISREG(info.st_mode) and is_markdown(name)):
            raise WorkspaceError(
                f"{shown(path)} holds {shown(name)}, which is no note.",
                hint="Delete its notes one by one, or ask the user.",
            )
        found.append(Entry(here, info.st_size, is_folder))
        if is_folder:
            with _child(folder, name) as below:
                found += _only_notes(below, here) if below is not None else ()
    return found


def _listed(folder: Folder) -> list[tuple[str, os.stat_result]]:
    """The names in a folder with what they stand for, in order; what vanishes meanwhile is left
    out.
    """
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
    """A folder below this one; None when it went away, or a link came in its place."""
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
        if above.fd is None:
            os.rmdir(os.path.join(above.path, name))
        else:
            os.rmdir(name, dir_fd=above.fd)
        above.sync()


def _move(above: Folder, name: str, target: Folder, new_name: str) -> None:
    if above.fd is None or target.fd is None:
        os.rename(os.path.join(above.path, name), os.path.join(target.path, new_name))
    else:
        os.rename(name, new_name, src_dir_fd=above.fd, dst_dir_fd=target.fd)
