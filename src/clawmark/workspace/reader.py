"""Reading a workspace: scans and guarded reads of its folder, its extra paths and its sources.

No descriptor stays open between calls: each call opens the root again, so that a replaced folder is
noticed and several threads can read at once. Modules that a cold search does without are imported
in the methods that need them.
"""

from __future__ import annotations

import os
import stat
from _thread import allocate_lock  # a lock without `threading`, which costs a cold search 1 ms
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from clawmark.model.errors import PathDenied, WorkspaceError
from clawmark.model.values import (
    FileStat,
    FileState,
    MediaRules,
    Scan,
    ScanFailure,
    Skipped,
    parse_citation,
)
from clawmark.workspace import guard, places
from clawmark.workspace.scan import scan_workspace

if TYPE_CHECKING:
    from clawmark.model.documents import Document, Excerpt
    from clawmark.system.counters import SharedCounts
    from clawmark.workspace.transcripts.files import TranscriptFiles
    from clawmark.workspace.tree import Entry, Exact


class WorkspaceReader:
    """Safe reading of a folder of Markdown; `Workspace` adds the writing."""

    def __init__(
        self,
        root: str,
        extra_paths: Sequence[str],
        sessions: TranscriptFiles | None,
        has_memory: bool,
        extra_patterns: Mapping[str, tuple[str, ...]] | None,
        sources: Callable[[], tuple[places.Source, ...]],
        media: MediaRules | None,
        counts: SharedCounts | None,
        copies: str = "",
    ) -> None:
        given = os.path.abspath(root)
        self.root = os.path.realpath(given)
        self.extra_paths = tuple(extra_paths)
        self._extra_patterns = extra_patterns
        self.media = media
        """Which images and audio files of extra paths and sources are memory; None for none."""
        self.sources = sources
        """Returns the added folders; called for each scan, because another process may add one."""
        self.sessions = sessions
        """The transcripts, if they are a source."""
        self._has_memory = has_memory
        self._copies = copies
        """A folder of the workspace with copies of other people's files, which no scan lists."""
        self._counts = counts
        self.denied = 0
        """How many paths were refused, for `status`."""
        self._aliases = (given,) if given != self.root else ()
        self._counting = allocate_lock()
        self._home = os.path.realpath(os.path.expanduser("~"))
        self._extras, _ = self._resolved()

    @property
    def containment(self) -> str:
        """How paths are kept inside the workspace: `descriptor` or `best-effort`."""
        return guard.containment()

    def scan(self) -> Scan:
        """List the files and their states."""
        scan = self._scan_memory()
        if self.sessions is None:
            return scan
        return self.sessions.add_to(
            scan if self._has_memory else scan._replace(files=(), skipped=())
        )

    def _resolved(self) -> tuple[tuple[places.Extra, ...], tuple[Skipped | ScanFailure, ...]]:
        extras, skipped = places.resolve_extras(
            self.root, self.extra_paths, self._home, self._extra_patterns, self.media
        )
        added, missing = places.resolve_sources(self.root, self.sources(), self.media)
        return (*extras, *added), (*skipped, *missing)

    def extras(self) -> tuple[places.Extra, ...]:
        """Return the extra paths and sources that can be used now."""
        return self._resolved()[0]

    def _scan_memory(self) -> Scan:
        self._extras, reported = self._resolved()
        scan = scan_workspace(self.root, self._extras, reported, self._copies)
        if not reported:
            return scan
        absent = places.absent_extras(self.root, self.extra_paths, self._home, self._extras)
        usable = {extra.prefix for extra in self._extras}
        absent += [
            prefix for source in self.sources() if (prefix := f"{source.name}:") not in usable
        ]
        return scan._replace(roots=(*scan.roots, *((prefix, -1, -1) for prefix in absent)))

    def absolute(self, path: str) -> str:
        """Return the path on disk of a path or citation, which need not exist."""
        named = parse_citation(path).path.removeprefix("./")
        if self.sessions is not None and self.sessions.owns(named):
            return self.sessions.absolute(named)
        place = places.locate(self.root, self._aliases, self.extras(), named)
        return os.path.join(place.root, place.relative)

    def read_document(self, state: FileState) -> Document:
        """Read a file that a scan listed; if it has changed since, with its newer state."""
        from clawmark.workspace import read

        with self._place(state.path, self._extras) as (root, place):
            try:
                return read.read_document(root, place.relative, place.path, place.anchor)
            except FileNotFoundError as error:
                raise _gone(state.path) from error

    def read_media(self, path: str) -> tuple[FileState, bytes]:
        """Read an image or audio file that a scan listed; the state is that of these bytes."""
        from clawmark.workspace import read

        limit = self.media.max_file_bytes if self.media is not None else guard.MAX_FILE_BYTES
        with self._place(path, self._extras) as (root, place):
            try:
                return read.read_media(root, place.relative, place.path, place.anchor, limit)
            except FileNotFoundError as error:
                raise _gone(path) from error

    def is_unchanged(self, path: str, indexed: FileStat) -> bool:
        """Whether a cited memory file is as it was indexed; a quick check, False if in doubt.

        A link on the way is harmless: nothing is opened, and inode and time would differ."""
        try:
            info = os.lstat(f"{self.root}/{path}")
        except (OSError, ValueError):
            return False
        return (info.st_size, guard.changed_ns(info), info.st_ino, info.st_dev) == indexed[:4]

    def state_of(self, path: str) -> FileState | None:
        """Return the state of one cited file; None if a scan would not list it."""
        try:
            if self.sessions is not None and self.sessions.owns(path):
                with self.sessions.open(path) as opened:
                    return opened.state
            place = places.locate(self.root, self._aliases, self._extras, path)
            *folders, name = guard.split_relative(place.relative)
            with (
                guard.open_root(place.root) as root,
                guard.folder_beneath(root, folders, path, place.anchor) as folder,
            ):
                info = folder.lstat(name)
        except (FileNotFoundError, PathDenied):
            return None
        if not stat.S_ISREG(info.st_mode) or info.st_size > guard.MAX_FILE_BYTES:
            return None
        return guard.file_state(path, "memory", info)

    def read_lines(
        self,
        path: str,
        start: int | None = None,
        lines: int | None = None,
        max_lines: int = 120,
        max_chars: int = 12_000,
    ) -> Excerpt:
        """Read some lines of a path or citation; a missing file gives an empty excerpt."""
        from clawmark.workspace import read

        named = parse_citation(path)
        if start is None:
            start, lines = named.start, named.lines if lines is None else lines
        own = named.path.removeprefix("./")
        if self.sessions is not None and self.sessions.owns(own):
            try:
                return self._read_transcript(self.sessions, own, start, lines, max_lines, max_chars)
            except FileNotFoundError:
                return read.absent(own, start)
        # Extra paths may have come or gone since the last scan.
        extras, _ = self._resolved()
        with self._place(named.path, extras) as (root, place):
            return read.read_place(root, place, start, lines, max_lines, max_chars)

    def _read_transcript(
        self,
        sessions: TranscriptFiles,
        path: str,
        start: int,
        lines: int | None,
        max_lines: int,
        max_chars: int,
    ) -> Excerpt:
        from clawmark.workspace.transcripts.messages import read_excerpt

        with self._counted(), sessions.open(path) as opened:
            return read_excerpt(opened, sessions.clean, start, lines, max_lines, max_chars)

    def read_exact(self, path: str) -> Exact | None:
        """Read a memory file unchanged, with the hash to replace it; None if it does not exist."""
        from clawmark.workspace import tree

        with self._place(path, self._extras, writing=True) as (root, place):
            return tree.read_exact(root, place.relative)

    def read_bytes(self, path: str) -> bytes | None:
        """Return the bytes of one of the workspace's own files; None if it does not exist."""
        # Imported here: only `clawmark restore` and `clawmark undo` need it.
        from clawmark.workspace import tree

        with self._place(path, self._extras, writing=True) as (root, place):
            return tree.read_current(root, place.relative)

    def list_folder(self, path: str, depth: int = 1) -> list[Entry] | None:
        """List a folder of memory, `depth` levels deep; None if it does not exist."""
        from clawmark.workspace import tree

        with self._counted(), self._opened(self.root) as root:
            return tree.list_folder(root, path, depth)

    def exists(self, path: str) -> bool:
        """Whether there is a memory file or a folder of memory with this path."""
        with suppress(PathDenied):
            if self.list_folder(path, 1) is not None:
                return True
        with suppress(PathDenied):
            return self.read_bytes(path) is not None
        return False

    def hard_linked(self, scan: Scan) -> list[str]:
        """Return the listed files that have a second (hard-linked) name, for `doctor`."""
        linked = []
        for state in scan.files:
            try:
                if os.lstat(self.absolute(state.path)).st_nlink > 1:
                    linked.append(state.path)
            except (OSError, PathDenied):
                continue
        return linked

    @contextmanager
    def _place(
        self, path: str, extras: Sequence[places.Extra], writing: bool = False
    ) -> Iterator[tuple[guard.Folder, places.Place]]:
        """Find a path and open its root; refusals are counted."""
        with self._counted(reading=not writing):
            place = places.locate(self.root, self._aliases, extras, path)
            if writing and not place.writable:
                what = "belongs to an extra path, and those are only read"
                if place.path in places.READABLE_FILES:
                    what = "is not a memory file, and it is only read"
                hint = "Write to MEMORY.md or below memory/."
                raise guard.denied(path, what, "not-memory", hint)
            with self._opened(place.root) as root:
                yield root, place

    @contextmanager
    def _counted(self, *, reading: bool = True) -> Iterator[None]:
        try:
            yield
        except PathDenied:
            with self._counting:
                self.denied += 1
            if self._counts is not None:
                self._counts.add("denied")
            raise
        except WorkspaceError as error:
            if reading and self._counts is not None and _is_failed_read(error):
                self._counts.add("readErrors")
            raise

    def _opened(self, root: str) -> guard.Folder:
        try:
            return guard.open_root(root)
        except OSError as error:
            hint = (
                f"Run clawmark init {self.root}."
                if root == self.root
                else "Check memorySearch.extraPaths."
            )
            raise WorkspaceError(
                f"The folder {guard.shown(root)} cannot be opened: {guard.reason_of(error)}.",
                hint=hint,
            ) from error


def _gone(path: str) -> WorkspaceError:
    return WorkspaceError(f"{guard.shown(path)} is gone.", hint="Run the sync again.")


def _is_failed_read(error: WorkspaceError) -> bool:
    """Whether the system failed to read a file that is there."""
    cause = error.__cause__
    return isinstance(cause, OSError) and not isinstance(cause, FileNotFoundError)
