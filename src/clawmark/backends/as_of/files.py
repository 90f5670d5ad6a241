"""The memory files of an earlier version, as a workspace that can be indexed and read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256

from clawmark.history.history import History, VersionFiles
from clawmark.history.repository import Version
from clawmark.model.documents import Document, Excerpt
from clawmark.model.errors import PathDenied, WorkspaceError
from clawmark.model.values import FileStat, FileState, Scan, parse_citation
from clawmark.workspace import Workspace, places
from clawmark.workspace.read import absent, decode, excerpt


class VersionWorkspace(Workspace):
    """The memory files of a version; they are read from the history, and nothing is written.

    Transcripts, extra paths and added folders have no history and are not part of it."""

    def __init__(self, root: str, files: VersionFiles) -> None:
        super().__init__(root)
        self._version = files.version
        self._files = files

    def scan(self) -> Scan:
        """List the memory files of the version."""
        paths = sorted(path for path in self._files.blobs if _is_memory(self.root, path))
        return Scan(
            files=tuple(self._state(path) for path in paths),
            skipped=(),
            failures=(),
            taken_ns=self._version.seconds * 1_000_000_000,
        )

    def read_document(self, state: FileState) -> Document:
        """Read a file of the version."""
        data = self._files.read(state.path)
        if data is None:
            raise WorkspaceError(f"{state.path} is not part of version {self._version.id[:8]}.")
        return Document(state, decode(data, state.path), sha256(data).hexdigest())

    def is_unchanged(self, path: str, indexed: FileStat) -> bool:
        """A version never changes."""
        return True

    def sweep(self, scan: Scan) -> None:
        """Do nothing: there are no temporary files."""

    def read_lines(
        self,
        path: str,
        start: int | None = None,
        lines: int | None = None,
        max_lines: int = 120,
        max_chars: int = 12_000,
    ) -> Excerpt:
        """Read some lines of a path or citation as they were in the version."""
        named = parse_citation(path)
        if start is None:
            start, lines = named.start, named.lines if lines is None else lines
        place = places.locate(self.root, (), (), named.path)
        data = self._files.read(place.path)
        if data is None:
            return absent(place.path, start)
        return excerpt(data, place.path, start, lines, max_lines, max_chars)

    def _state(self, path: str) -> FileState:
        return FileState(
            path=path,
            source="memory",
            size=0,
            mtime_ns=self._version.seconds * 1_000_000_000,
            inode=0,
            device=0,
        )


@contextmanager
def open_version(root: str, history: History, version: Version) -> Iterator[VersionWorkspace]:
    """Open the memory files of a version of the workspace `root`."""
    with history.opened(version) as files:
        yield VersionWorkspace(root, files)


def _is_memory(root: str, path: str) -> bool:
    """Whether a path is a memory file that a scan of the workspace itself would list."""
    if path in places.READABLE_FILES:
        return False
    try:
        return places.locate(root, (), (), path).writable
    except PathDenied:
        return False
