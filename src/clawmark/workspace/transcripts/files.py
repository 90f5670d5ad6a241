"""Find and open the transcripts of an agent and of other tools.

Every file is opened by descriptor, component by component and never through a link, so that no name
leads into another agent's folder. The agent's own transcripts are cited as `sessions/<name>`,
others by their path from the workspace, like extra paths."""

# Does not use pathlib, which costs 4 ms in every cold search.

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import NamedTuple

from clawmark.model.errors import PathDenied, WorkspaceError
from clawmark.model.values import FileState, Scan, ScanFailure, Skipped
from clawmark.workspace.guard import (
    MAX_COMPONENTS,
    Folder,
    changed_ns,
    folder_beneath,
    is_utf8,
    kind_of,
    open_regular,
    open_root,
    reason_of,
    shown,
    split_relative,
)
from clawmark.workspace.places import cited, is_below, is_markdown, is_visible_folder

OWN = "sessions"
"""The agent's own transcripts are cited as `sessions/<name>`."""
NAMES_HINT = "Transcripts are the .jsonl files that `clawmark sessions` lists."

_ARCHIVE = re.compile(r"\.jsonl\.(?:reset|deleted)\.\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d(?:\.\d{1,9})?Z?")
# Debugging traces and copies made before a compaction repeat the messages.
_COPY = re.compile(r"\.(?:trajectory|checkpoint\.[0-9a-f-]{8,36})\.jsonl")
_LIST_FILE = "sessions.json"
_OTHER_NAME = "neither a .jsonl file nor an archive of one"


class TranscriptFolder(NamedTuple):
    """A folder of transcripts: what to open, and how its files are cited."""

    root: str
    parts: tuple[str, ...]
    """Folders below the root, opened one by one."""
    prefix: str
    is_own: bool
    """Whether it is the agent's own folder, which is flat; others are walked."""


class OpenTranscript(NamedTuple):
    """A transcript that is open for reading."""

    fd: int
    state: FileState
    """Taken when the file was opened; a growing file is read up to this size."""


class TranscriptFiles:
    """The transcripts of one agent; no file stays open between calls."""

    def __init__(
        self, folder: str, paths: Sequence[str], workspace: str, clean: Callable[[str], str]
    ) -> None:
        self._folder = folder
        self._paths = tuple(paths)
        self._workspace = workspace
        self.clean = clean
        """Masks the secrets in a message."""

    def folders(self) -> tuple[str, ...]:
        """Return the folders to watch."""
        return tuple(os.path.join(folder.root, *folder.parts) for folder in self._folders()[0])

    def add_to(self, scan: Scan) -> Scan:
        """Return a scan of the workspace with the current transcripts added."""
        found = self.scan()
        return scan._replace(
            files=tuple(sorted([*scan.files, *found.files])),
            skipped=tuple(sorted({*scan.skipped, *found.skipped})),
            failures=(*scan.failures, *found.failures),
            roots=(*scan.roots, *found.roots),
        )

    def scan(self) -> Scan:
        """Return the current transcripts; a folder that cannot be listed is a failure."""
        folders, skipped = self._folders()
        found = _Found(skipped)
        for place in folders:
            try:
                with open_root(place.root) as root, _open_folder(root, place) as folder:
                    found.roots.append((place.prefix, folder.device, folder.inode))
                    found.walk(folder, place, place.prefix + "/", 0)
            except FileNotFoundError:
                if not place.is_own:
                    found.roots.append((place.prefix, -1, -1))
                    found.skipped.append(Skipped(place.prefix, "folder of transcripts not found"))
            except (OSError, WorkspaceError) as error:
                found.failures.append(ScanFailure(place.prefix, _failure_reason(error)))
        return Scan(
            files=tuple(found.each_once()),
            skipped=tuple(found.skipped),
            failures=tuple(found.failures),
            taken_ns=0,
            roots=tuple(found.roots),
        )

    def owns(self, path: str) -> bool:
        """Check whether a cited path belongs to a folder of transcripts and is not Markdown."""
        return not is_markdown(path.rpartition("/")[2]) and self._folder_of(path) is not None

    def absolute(self, path: str) -> str:
        """Return the location of a transcript on disk, by its cited path."""
        folder = self._folder_of(path)
        assert folder is not None
        return os.path.join(folder.root, *folder.parts, _below(path, folder))

    @contextmanager
    def open(self, path: str) -> Iterator[OpenTranscript]:
        """Open the transcript at a cited path.

        Raises FileNotFoundError if it does not exist, PathDenied if the path is not a transcript.
        """
        place = self._folder_of(path)
        if place is None:
            raise _denied(path, "")
        *folders, name = split_relative(_below(path, place))
        reason = _skip_reason(name)
        if not reason and place.is_own and folders:
            reason = "it is in a subfolder"
        if not reason and not all(map(is_visible_folder, folders)):
            reason = "it is in an ignored folder"
        if reason:
            raise _denied(path, f": {reason}")
        fd = self._open_file(place, folders, name, path)
        try:
            yield OpenTranscript(fd, _state(path, os.fstat(fd)))
        finally:
            os.close(fd)

    def _open_file(self, place: TranscriptFolder, folders: list[str], name: str, path: str) -> int:
        try:
            root = open_root(place.root)
        except FileNotFoundError:
            raise
        except OSError as error:
            raise WorkspaceError(
                f"{shown(place.root)} cannot be opened: {reason_of(error)}."
            ) from error
        with root, _open_folder(root, place, folders) as folder:
            return open_regular(folder, name, path, limit=None)

    def _folder_of(self, path: str) -> TranscriptFolder | None:
        return next((folder for folder in self._folders()[0] if _below(path, folder)), None)

    def _folders(self) -> tuple[list[TranscriptFolder], list[Skipped]]:
        """Return the folders of transcripts, and configured folders that cannot be used."""
        home = os.path.realpath(os.path.expanduser("~"))
        root, parts = _split_own_folder(self._folder)
        own = TranscriptFolder(root=os.path.realpath(root), parts=parts, prefix=OWN, is_own=True)
        folders, skipped = [own], list[Skipped]()
        for given in self._paths:
            found = _resolve(given.strip(), self._workspace, home)
            if isinstance(found, Skipped):
                skipped.append(found)
            elif found not in folders:
                folders.append(found)
        return folders, skipped


class _Found:
    """Collects the results of a scan."""

    def __init__(self, skipped: list[Skipped]) -> None:
        self.files: list[FileState] = []
        self.skipped = skipped
        self.failures: list[ScanFailure] = []
        self.roots: list[tuple[str, int, int]] = []

    def walk(self, folder: Folder, place: TranscriptFolder, prefix: str, depth: int) -> None:
        below = list[str]()
        try:
            with folder.listing() as entries:
                for entry in entries:
                    if not entry.is_dir(follow_symlinks=False):
                        self.add(entry, prefix)
                    elif not place.is_own and is_visible_folder(entry.name) and is_utf8(entry.name):
                        below.append(entry.name)
        except OSError as error:
            self.failures.append(ScanFailure(prefix.rstrip("/"), reason_of(error)))
        for name in below if depth < MAX_COMPONENTS else ():
            try:
                child = folder.child(name)
            except OSError as error:
                self.failures.append(ScanFailure(prefix + name, reason_of(error)))
                continue
            with child:
                if child.device == folder.device:
                    self.walk(child, place, f"{prefix}{name}/", depth + 1)

    def add(self, entry: os.DirEntry[str], prefix: str) -> None:
        """Add an entry of a folder, or the reason why it is skipped; ignore sessions.json."""
        name = entry.name
        if name.startswith(_LIST_FILE):
            return
        path = prefix + (name if is_utf8(name) else shown(name))
        reason = _skip_reason(name)
        if not reason and entry.is_symlink():
            reason = "a link, and links are never followed"
        info = entry.stat(follow_symlinks=False)
        if not reason and not stat.S_ISREG(info.st_mode):
            reason = f"{kind_of(info.st_mode)}, not a file"
        if not reason:
            self.files.append(_state(path, info))
        elif ".jsonl" in name:
            self.skipped.append(Skipped(path, reason))

    def each_once(self) -> list[FileState]:
        """Return one file per inode; the agent's own are preferred, then the first by path."""
        kept: dict[tuple[int, int], FileState] = {}
        for state in sorted(
            self.files, key=lambda state: (state.path.startswith("../"), state.path)
        ):
            first = kept.setdefault((state.device, state.inode), state)
            if first is not state:
                self.skipped.append(Skipped(state.path, f"same file as {shown(first.path)}"))
        return list(kept.values())


def _state(path: str, info: os.stat_result) -> FileState:
    return FileState(
        path=path,
        source="sessions",
        size=info.st_size,
        mtime_ns=changed_ns(info),
        inode=info.st_ino,
        device=info.st_dev,
    )


def _denied(path: str, reason: str) -> PathDenied:
    message = f"{shown(path)} is not a transcript{reason}."
    return PathDenied(message, path=path, rule="not-memory", hint=NAMES_HINT)


def _failure_reason(error: OSError | WorkspaceError) -> str:
    """Return the cause without the name of the folder."""
    cause = error.__cause__ if isinstance(error, WorkspaceError) else error
    return reason_of(cause) if isinstance(cause, OSError) else str(error).rstrip(".")


def _open_folder(
    root: Folder, place: TranscriptFolder, below: Sequence[str] = ()
) -> AbstractContextManager[Folder]:
    return folder_beneath(root, [*place.parts, *below], place.prefix, len(place.parts))


def _skip_reason(name: str) -> str:
    """Return why a file of this name is not a transcript; empty if it is one."""
    if not is_utf8(name):
        return "the file's name is not valid UTF-8"
    if name.startswith("."):
        return "a hidden file"
    if _COPY.search(name):
        return "a trace or a copy, not a transcript"
    archive = _ARCHIVE.search(name)
    is_archive = archive is not None and archive.end() == len(name)
    return "" if name.endswith(".jsonl") or is_archive else _OTHER_NAME


def _split_own_folder(folder: str) -> tuple[str, tuple[str, ...]]:
    """Split `<state>/agents/<id>/sessions` into the state folder and three parts, which must not be
    links.
    """
    agents, sessions = os.path.split(folder)
    state, agent = os.path.split(agents)
    root, middle = os.path.split(state)
    return root, (middle, agent, sessions)


def _below(path: str, place: TranscriptFolder) -> str:
    """Return the part of a cited path below a folder; empty if it is not below it."""
    rest = path[len(place.prefix) + 1 :] if path.startswith(place.prefix + "/") else ""
    return "" if rest.startswith("../") else rest


def _resolve(given: str, workspace: str, home: str) -> TranscriptFolder | Skipped:
    """Resolve a configured folder of transcripts, or return why it cannot be used."""
    if not given or "\0" in given or not is_utf8(given):
        return Skipped(shown(given), "not a valid path")
    is_in_home = given == "~" or given.startswith("~/")
    named = os.path.join(workspace, home + given[1:] if is_in_home else given)
    real, plain = os.path.realpath(named), os.path.normpath(named)
    is_inside = is_below(plain, workspace)
    if os.path.islink(plain) or (is_inside and plain != real):
        return Skipped(shown(given), f"a link; name its real location: {shown(real)}")
    if is_below(home, real) or is_below(workspace, real):
        return Skipped(shown(given), "too large: name the folder that contains the transcripts")
    if os.path.lexists(real) and not os.path.isdir(real):
        return Skipped(shown(given), "a file; name its folder")
    prefix = cited(workspace, real)
    root, parts = (workspace, tuple(prefix.split("/"))) if is_inside else (real, ())
    return TranscriptFolder(root=root, parts=parts, prefix=prefix, is_own=False)
