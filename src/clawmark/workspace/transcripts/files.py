"""Transcripts on disk: which ones there are, and their lines, however large the file.

In: the folder of an agent's sessions, and more folders of other tools' transcripts. Out: file
states for a scan, opened files, lines. As in the rest of the workspace every file is opened by
descriptor, component by component and never through a link, so that no name leads into another
agent's folder. An agent's own transcripts are cited `sessions/<name>`, the others by their path
from the workspace, as extra paths are. Their lines are left to `jsonlines`, what is said on them to
`spoken`."""

# pathlib costs 4 ms on the path of every cold search, and a search looks at the transcripts when
# they are a source.

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
"""How an agent's own transcripts are cited: `sessions/<name>`."""
NAMES_HINT = "Transcripts are the .jsonl files that `clawmark sessions` lists."

_ARCHIVE = re.compile(r"\.jsonl\.(?:reset|deleted)\.\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d(?:\.\d{1,9})?Z?")
# Traces for debugging and the copies that are made before a compaction hold the same words once
# more, and much else.
_NOT_SPOKEN = re.compile(r"\.(?:trajectory|checkpoint\.[0-9a-f-]{8,36})\.jsonl")
_LIST_FILE = "sessions.json"


class Place(NamedTuple):
    """A folder of transcripts: what to open, and how its files are cited."""

    root: str
    parts: tuple[str, ...]
    """The folders below the root, opened one by one."""
    prefix: str
    is_own: bool
    """The agent's own: a flat folder. Others are walked."""


class OpenTranscript(NamedTuple):
    """A transcript, open for reading."""

    fd: int
    state: FileState
    """Taken from the descriptor before the first byte is read: a file that grows meanwhile is read
    up to this size.
    """


class TranscriptFiles:
    """The transcripts of one agent; owns no descriptor between calls."""

    def __init__(
        self, folder: str, paths: Sequence[str], workspace: str, clean: Callable[[str], str]
    ) -> None:
        self._folder = folder
        self._paths = tuple(paths)
        self._workspace = workspace
        self.clean = clean
        """Masks the secrets in what somebody said."""

    def folders(self) -> tuple[str, ...]:
        """The folders transcripts lie in, for whoever watches them."""
        return tuple(os.path.join(place.root, *place.parts) for place in self._places()[0])

    def add_to(self, scan: Scan) -> Scan:
        """A scan of the workspace with the transcripts that are there now."""
        found = self.scan()
        files = sorted([*scan.files, *found.files])
        skipped = sorted({*scan.skipped, *found.skipped})
        failures, roots = (*scan.failures, *found.failures), (*scan.roots, *found.roots)
        return scan._replace(
            files=tuple(files), skipped=tuple(skipped), failures=failures, roots=roots
        )

    def scan(self) -> Scan:
        """The transcripts that are there now; a folder that cannot be listed is a failure, one that
        is absent is empty.
        """
        places, skipped = self._places()
        found = _Found(skipped)
        for place in places:
            try:
                with open_root(place.root) as root, _folder(root, place) as folder:
                    found.roots.append((place.prefix, folder.device, folder.inode))
                    found.walk(folder, place, place.prefix + "/", 0)
            except FileNotFoundError:
                if not place.is_own:
                    found.roots.append((place.prefix, -1, -1))
                    found.skipped.append(Skipped(place.prefix, "folder of transcripts not found"))
            except (OSError, WorkspaceError) as error:
                found.failures.append(ScanFailure(place.prefix, _why_unlisted(error)))
        return Scan(
            files=tuple(found.each_once()),
            skipped=tuple(found.skipped),
            failures=tuple(found.failures),
            taken_ns=0,
            roots=tuple(found.roots),
        )

    def owns(self, path: str) -> bool:
        """Whether a path, as cited, is meant to be a transcript; Markdown beside transcripts is
        none.
        """
        return not is_markdown(path.rpartition("/")[2]) and any(
            _below(path, place) for place in self._places()[0]
        )

    def absolute(self, path: str) -> str:
        """Where a transcript is on disk, by the path it is cited with."""
        found = next(
            (place, below) for place in self._places()[0] if (below := _below(path, place))
        )
        return os.path.join(found[0].root, *found[0].parts, found[1])

    @contextmanager
    def open(self, path: str) -> Iterator[OpenTranscript]:
        """The transcript at a path as cited; FileNotFoundError when there is none, PathDenied when
        it is none.
        """
        place = next((place for place in self._places()[0] if _below(path, place)), None)
        if place is None:
            raise PathDenied(
                f"{shown(path)} is no transcript.", path=path, rule="not-memory", hint=NAMES_HINT
            )
        *folders, name = split_relative(_below(path, place))
        why_not = _why_not(name) or ("in a folder of its own" if place.is_own and folders else "")
        if why_not or not all(map(is_visible_folder, folders)):
            why_not = why_not or "in a folder that is left alone"
            raise PathDenied(
                f"{shown(path)} is no transcript: {why_not}.",
                path=path,
                rule="not-memory",
                hint=NAMES_HINT,
            )
        fd = self._opened(place, folders, name, path)
        try:
            info = os.fstat(fd)
            yield OpenTranscript(
                fd,
                FileState(
                    path=path,
                    source="sessions",
                    size=info.st_size,
                    mtime_ns=changed_ns(info),
                    inode=info.st_ino,
                    device=info.st_dev,
                ),
            )
        finally:
            os.close(fd)

    def _opened(self, place: Place, folders: list[str], name: str, path: str) -> int:
        try:
            root = open_root(place.root)
        except FileNotFoundError:
            raise
        except OSError as error:
            raise WorkspaceError(
                f"{shown(place.root)} cannot be opened: {reason_of(error)}."
            ) from error
        with root, _folder(root, place, folders) as folder:
            return open_regular(folder, name, path, limit=None)

    def _places(self) -> tuple[list[Place], list[Skipped]]:
        """Where transcripts may lie now, and configured folders that cannot be used."""
        home = os.path.realpath(os.path.expanduser("~"))
        root, parts = _three_up(self._folder)
        places, skipped = (
            [Place(root=os.path.realpath(root), parts=parts, prefix=OWN, is_own=True)],
            list[Skipped](),
        )
        for given in self._paths:
            found = _resolve(given.strip(), self._workspace, home)
            if isinstance(found, Skipped):
                skipped.append(found)
            elif found not in places:
                places.append(found)
        return places, skipped


class _Found:
    """What a scan has seen so far."""

    def __init__(self, skipped: list[Skipped]) -> None:
        self.files: list[FileState] = []
        self.skipped = skipped
        self.failures: list[ScanFailure] = []
        self.roots: list[tuple[str, int, int]] = []

    def walk(self, folder: Folder, place: Place, prefix: str, depth: int) -> None:
        below = list[str]()
        try:
            with folder.listing() as entries:
                for entry in entries:
                    if not entry.is_dir(follow_symlinks=False):
                        self.look(entry, prefix)
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

    def look(self, entry: os.DirEntry[str], prefix: str) -> None:
        """Take in one entry of a folder, or say why not; the list of sessions and what surrounds it
        needs no word.
        """
        name = entry.name
        if name.startswith(_LIST_FILE):
            return
        path = prefix + (name if is_utf8(name) else shown(name))
        why_not = _why_not(name)
        if not why_not and entry.is_symlink():
            why_not = "a link, and links are never followed"
        info = entry.stat(follow_symlinks=False)
        if not why_not and not stat.S_ISREG(info.st_mode):
            why_not = f"{kind_of(info.st_mode)}, not a file"
        if not why_not:
            self.files.append(
                FileState(
                    path=path,
                    source="sessions",
                    size=info.st_size,
                    mtime_ns=changed_ns(info),
                    inode=info.st_ino,
                    device=info.st_dev,
                )
            )
        elif ".jsonl" in name:
            self.skipped.append(Skipped(path, why_not))

    def each_once(self) -> list[FileState]:
        """One file per inode; the first by its path, an agent's own before others."""
        kept: dict[tuple[int, int], FileState] = {}
        for state in sorted(
            self.files, key=lambda state: (state.path.startswith("../"), state.path)
        ):
            first = kept.setdefault((state.device, state.inode), state)
            if first is not state:
                self.skipped.append(Skipped(state.path, f"same file as {shown(first.path)}"))
        return list(kept.values())


def _why_unlisted(error: OSError | WorkspaceError) -> str:
    """The cause alone: whoever tells it says which folder it is."""
    cause = error.__cause__ if isinstance(error, WorkspaceError) else error
    return reason_of(cause) if isinstance(cause, OSError) else str(error).rstrip(".")


def _folder(
    root: Folder, place: Place, below: Sequence[str] = ()
) -> AbstractContextManager[Folder]:
    return folder_beneath(root, [*place.parts, *below], place.prefix, len(place.parts))


def _why_not(name: str) -> str:
    """Why a file of this name is no transcript; empty when it is one."""
    if not is_utf8(name):
        return "the file's name is not valid UTF-8"
    if name.startswith("."):
        return "a hidden file"
    if _NOT_SPOKEN.search(name):
        return "a trace or a copy, not a transcript"
    if name.endswith(".jsonl"):
        return ""
    archive = _ARCHIVE.search(name)
    if archive is not None and archive.end() == len(name):
        return ""
    return "neither a .jsonl file nor an archive of one"


def _three_up(folder: str) -> tuple[str, tuple[str, ...]]:
    """`<state>/agents/<id>/sessions` as the state folder and what is below it: those three may be
    no links.
    """
    agents, sessions = os.path.split(folder)
    state, agent = os.path.split(agents)
    root, middle = os.path.split(state)
    return root, (middle, agent, sessions)


def _below(path: str, place: Place) -> str:
    """The part of a cited path below a place; empty when it does not lie there."""
    rest = path[len(place.prefix) + 1 :] if path.startswith(place.prefix + "/") else ""
    return "" if rest.startswith("../") else rest


def _resolve(given: str, workspace: str, home: str) -> Place | Skipped:
    """A configured folder of transcripts, or why it cannot be used."""
    if not given or "\0" in given or not is_utf8(given):
        return Skipped(shown(given), "not a valid path")
    named = os.path.join(
        workspace, home + given[1:] if given == "~" or given.startswith("~/") else given
    )
    real, plain = os.path.realpath(named), os.path.normpath(named)
    is_inside = is_below(plain, workspace)
    if os.path.islink(plain) or (is_inside and plain != real):
        return Skipped(shown(given), f"a link; name its real location: {shown(real)}")
    if is_below(home, real) or is_below(workspace, real):
        return Skipped(shown(given), "too much: name the very folder the transcripts are in")
    if os.path.lexists(real) and not os.path.isdir(real):
        return Skipped(shown(given), "a file; name its folder")
    prefix = cited(workspace, real)
    return (
        Place(root=workspace, parts=tuple(prefix.split("/")), prefix=prefix, is_own=False)
        if is_inside
        else Place(root=real, parts=(), prefix=prefix, is_own=False)
    )
