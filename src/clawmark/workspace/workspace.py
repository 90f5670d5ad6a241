"""The workspace: one folder of Markdown, its extra paths and its sources.

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
from importlib import import_module
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
from clawmark.workspace import daily, guard, places
from clawmark.workspace.scan import scan_workspace

if TYPE_CHECKING:
    from clawmark.model.documents import Document, Excerpt, Written
    from clawmark.model.provenance import (
        Origin,
        Provenance,
        WriteAction,
        WriteJournal,
        WriteReview,
    )
    from clawmark.system.counters import SharedCounts
    from clawmark.workspace.recording import Recorder
    from clawmark.workspace.transcripts.files import TranscriptFiles
    from clawmark.workspace.tree import Entry, Exact


class Workspace:
    """Safe reading and durable writing of a folder of Markdown."""

    def __init__(
        self,
        root: str,
        extra_paths: Sequence[str] = (),
        lock_dir: str | None = None,
        sessions: TranscriptFiles | None = None,
        has_memory: bool = True,
        extra_patterns: Mapping[str, tuple[str, ...]] | None = None,
        sources: Callable[[], tuple[places.Source, ...]] = tuple,
        media: MediaRules | None = None,
        counts: SharedCounts | None = None,
        journal: Callable[[], WriteJournal] | None = None,
        is_forgotten: Callable[[str], bool] = lambda _: False,
        review: Callable[[], WriteReview] | None = None,
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
        self._counts = counts
        self._journal = journal
        """Opens the journal that every write is recorded in."""
        self.is_forgotten = is_forgotten
        """Whether the user had a text forgotten; automatic writes leave such text out."""
        self._review = review
        """Opens what keeps the writes of agents for the user's decision."""
        self.denied = 0
        """How many paths were refused, for `status`."""
        self.changes = 0
        """How often this object has changed a file; each change makes the last scan outdated."""
        self.on_change: Callable[[], None] | None = None
        """Called after each change of this object, in the thread that made it."""
        self._aliases = (given,) if given != self.root else ()
        self._lock_dir = lock_dir
        self._counting = allocate_lock()
        self._home = os.path.realpath(os.path.expanduser("~"))
        self._extras, _ = self._resolved()

    def __enter__(self) -> Workspace:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Do nothing: no descriptor stays open between calls."""

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
        scan = scan_workspace(self.root, self._extras, reported)
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

    def append(
        self,
        path: str,
        text: str,
        *,
        header: str = "",
        origin: Origin | None = None,
        outside: str = "",
    ) -> Written:
        """Add lines to a memory file, durably; a new file starts with `header`.

        `origin` is recorded in the journal; `outside` is the part of the text that came from
        outside."""
        from clawmark.workspace import write

        with self._changing(), self._place(path, self._extras, writing=True) as (root, place):
            self.hold(origin, "append", place.path, text, header=header)
            recording = self.recorder.write(
                origin,
                place.path,
                text,
                action="append",
                header=header,
                outside=outside,
                written=write.describe_entry(text, place.path),
            )
            appended = write.append(
                root,
                place.relative,
                text,
                header=header,
                lock_dir=self._lock_dir,
                on_change=recording.start,
            )
            recording.finish(
                before=appended.before, after=appended.after, written=appended.bytes_written
            )
            return appended.written

    def remember(
        self, text: str, day: str, time: str = "", *, origin: Origin | None = None
    ) -> Written:
        """Add an entry to the daily log of a day (`YYYY-MM-DD`), which may start with the time."""
        return self.append(
            daily.daily_path(day),
            daily.format_entry(text, time),
            header=daily.daily_header(day),
            origin=origin,
        )

    def replace(
        self,
        path: str,
        text: str,
        base_hash: str,
        *,
        origin: Origin | None = None,
        outside: str = "",
    ) -> str:
        """Replace the text that has `base_hash` ("" if there is none) and return the new hash.

        Entries that the old text had keep their origins."""
        from clawmark.workspace import write

        with self._changing(), self._place(path, self._extras, writing=True) as (root, place):
            data = write.text_bytes(text, place.path)
            self.hold(origin, "replace", place.path, text, base_hash=base_hash)
            recording = self.recorder.write(
                origin,
                place.path,
                text,
                action="replace",
                outside=outside,
                written=write.describe_text(data, base_hash),
            )
            new_hash = write.put(
                root,
                place.relative,
                data,
                base_hash,
                lock_dir=self._lock_dir,
                on_change=recording.start,
            )
            recording.finish()
            return new_hash

    def erase(self, path: str, change: Callable[[str], str]) -> bool:
        """Change a text without a trace: no version is kept and nothing is journalled.

        A file whose text becomes empty is deleted. Return whether the file was changed."""
        # Imported here: a search writes nothing.
        tree = import_module("clawmark.workspace.tree")
        with self._changing(), self._place(path, self._extras, writing=True) as (root, place):
            is_changed: bool = tree.erase(root, place.relative, change, self._lock_dir)
            return is_changed

    def put_back(
        self,
        path: str,
        data: bytes | None,
        base_hash: str,
        *,
        origin: Origin,
        undoes: str = "",
        keep: bool = True,
    ) -> None:
        """Replace the content that has `base_hash` by an earlier one; None deletes the file.

        With `keep`, what is replaced is kept as one of the last three texts. The entries of the
        earlier content keep the origins that the journal has for them."""
        # Imported here, as below: only `clawmark restore` and `clawmark undo` need it.
        earlier = import_module("clawmark.workspace.earlier_content")
        with self._changing(), self._place(path, self._extras, writing=True) as (root, place):
            recording = self.recorder.write(
                origin,
                place.path,
                action="delete" if data is None else "replace",
                written=earlier.describe(data, base_hash),
                undoes=undoes,
            )
            earlier.put_back(
                root,
                place.relative,
                data,
                base_hash,
                lock_dir=self._lock_dir,
                keep=keep,
                on_change=recording.start,
            )
            recording.finish()

    def read_bytes(self, path: str) -> bytes | None:
        """Return the bytes of one of the workspace's own files; None if it does not exist."""
        earlier = import_module("clawmark.workspace.earlier_content")
        with self._place(path, self._extras, writing=True) as (root, place):
            data: bytes | None = earlier.read_current(root, place.relative)
            return data

    def kept_texts(self, path: str) -> list[bytes]:
        """Return the last texts of a file that were replaced or deleted, the newest first."""
        earlier = import_module("clawmark.workspace.earlier_content")
        with self._place(path, self._extras, writing=True) as (root, place):
            texts: list[bytes] = earlier.kept_texts(self._lock_dir, root.path, place.relative)
            return texts

    @property
    def recorder(self) -> Recorder:
        """Records writes in the journal, for code that changes files of the workspace itself."""
        made: Recorder = import_module("clawmark.workspace.recording").Recorder(
            self._journal, self._counts
        )
        return made

    def look_up(self, text: str) -> Provenance | None:
        """Return what the journal knows about a text; None if there is no journal."""
        return None if self._journal is None else self._journal().look_up(text)

    def hold(
        self,
        origin: Origin | None,
        action: WriteAction,
        path: str,
        text: str = "",
        *,
        header: str = "",
        base_hash: str = "",
    ) -> None:
        """Raise KeptForReview if this write has to wait for the user; it is kept as a proposal.

        Called by every write, and by code that changes files of the workspace itself."""
        if self._review is not None and origin is not None:
            self._review().hold(origin, action, path, text, header=header, base_hash=base_hash)

    def read_exact(self, path: str) -> Exact | None:
        """Read a memory file unchanged, with the hash to replace it; None if it does not exist."""
        from clawmark.workspace import tree

        with self._place(path, self._extras, writing=True) as (root, place):
            return tree.read_exact(root, place.relative)

    def list_folder(self, path: str, depth: int = 1) -> list[Entry] | None:
        """List a folder of memory, `depth` levels deep; None if it does not exist."""
        from clawmark.workspace import tree

        with self._counted(), self._opened(self.root) as root:
            return tree.list_folder(root, path, depth)

    def delete(self, path: str, *, origin: Origin | None = None) -> bool:
        """Delete a memory file or a folder that holds only such; False if it does not exist."""
        from clawmark.workspace import tree

        self.hold(origin, "delete", path)
        with self._counted(), self._opened(self.root) as root:
            is_folder = tree.is_folder(root, path)
        if is_folder:
            with self._changing(), self._opened(self.root) as root:
                recording = self.recorder.write(origin, path, action="delete", is_file=False)
                was_there = tree.delete_folder(root, path, self._lock_dir, recording.start)
        else:
            with self._changing(), self._place(path, self._extras, writing=True) as (root, place):
                recording = self.recorder.write(origin, place.path, action="delete")
                was_there = tree.delete_file(
                    root, place.relative, self._lock_dir, on_change=recording.start
                )
        recording.finish()
        return was_there

    def rename(self, old: str, new: str, *, origin: Origin | None = None, undoes: str = "") -> bool:
        """Rename a memory file or folder to a free path; False if it does not exist."""
        from clawmark.workspace import tree

        self.hold(origin, "rename", old)
        with self._counted(), self._opened(self.root) as root:
            is_folder = tree.is_folder(root, old)
        recording = self.recorder.write(origin, new, action="rename", moved_from=old, undoes=undoes)
        if is_folder:
            with self._changing(), self._counted(), self._opened(self.root) as root:
                to = "/".join(tree.folder_parts(new))
                was_there = tree.rename(root, old, to, self._lock_dir, recording.start)
        else:
            with (
                self._changing(),
                self._place(new, self._extras, writing=True) as (_, there),
                self._place(old, self._extras, writing=True) as (root, place),
            ):
                was_there = tree.rename(
                    root, place.relative, there.relative, self._lock_dir, recording.start
                )
        recording.finish()
        return was_there

    def sweep(self, scan: Scan) -> None:
        """Remove the temporary files that killed writers left in the workspace."""
        from clawmark.workspace import temporary

        with suppress(WorkspaceError, OSError), self._opened(self.root) as root:
            temporary.sweep(root)
            for path in scan.temporary:
                *parents, name = path.split("/")
                with (
                    suppress(PathDenied, WorkspaceError, OSError),
                    guard.folder_beneath(root, parents, path, 1) as folder,
                ):
                    temporary.sweep(folder, [name])

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
    def _changing(self) -> Iterator[None]:
        try:
            yield
        finally:  # a write may have happened before it failed
            with self._counting:
                self.changes += 1
            if self.on_change is not None:
                self.on_change()

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
