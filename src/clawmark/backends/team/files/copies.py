"""Copies of shared documents in a folder of the workspace: guarded reads, durable writes.

They are not memory of the workspace: no scan lists them, no index holds them, and the journal does
not record them. The caller checks that a path belongs to the folder of copies."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from clawmark.model.documents import Excerpt
from clawmark.model.errors import WorkspaceError
from clawmark.workspace import guard, read, tree, write
from clawmark.workspace.places import Place


class CopyFiles:
    """Reads and writes copies below one folder of a workspace."""

    def __init__(self, root: str, lock_dir: str | None) -> None:
        self._root = root
        self._lock_dir = lock_dir

    def hash_of(self, path: str) -> str | None:
        """Return the SHA-256 of a copy's bytes; None if there is none."""
        with self._opened() as root:
            data = tree.read_current(root, path)
        return None if data is None else write.digest(data)

    def read(
        self, path: str, start: int | None, lines: int | None, max_lines: int, max_chars: int
    ) -> Excerpt:
        """Return lines of a copy; an absent one is `missing`."""
        place = Place(root=self._root, relative=path, path=path, writable=False, anchor=0)
        with self._opened() as root:
            return read.read_place(root, place, start or 1, lines, max_lines, max_chars)

    def write(self, path: str, text: str, base_hash: str) -> str:
        """Write a copy and return its hash; WriteConflict if it is not as `base_hash` says."""
        with self._opened() as root:
            data = write.text_bytes(text, path)
            return write.put(root, path, data, base_hash, lock_dir=self._lock_dir, keep=False)

    def delete(self, path: str, base_hash: str) -> None:
        """Delete a copy that has `base_hash`, and its folders that are empty then."""
        with self._opened() as root:
            tree.delete_file(root, path, self._lock_dir, base_hash, keep=False)
            parts = guard.split_relative(path)[:-1]
            while len(parts) > 1:
                with suppress(OSError), guard.folder_beneath(root, parts[:-1], path, 0) as above:
                    above.remove_folder(parts[-1])  # fails if something is in it
                parts.pop()

    @contextmanager
    def _opened(self) -> Iterator[guard.Folder]:
        try:
            root = guard.open_root(self._root)
        except OSError as error:
            raise WorkspaceError(
                f"The folder {guard.shown(self._root)} cannot be opened: {guard.reason_of(error)}.",
                hint=f"Run clawmark init {self._root}.",
            ) from error
        with root:
            yield root
