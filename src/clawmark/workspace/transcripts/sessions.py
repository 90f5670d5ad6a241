"""Find and open the transcripts of an agent.

As in the rest of the workspace, every file is opened by descriptor, component by component and
never through a link, so that no name leads into another agent's folder. An agent's own transcripts
are cited as `sessions/<name>`, those of other tools by their path from the workspace.
"""

# No pathlib: it adds 4 ms to every cold search.

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import NamedTuple

from clawmark.model.errors import WorkspaceError
from clawmark.model.values import FileState, Scan, ScanFailure, Skipped
from clawmark.workspace.guard import (
    MAX_COMPONENTS,
    Folder,
    denied,
    file_state,
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
# Debugging traces and copies made before a compaction, which repeat the messages of a transcript.
_COPY = re.compile(r"\.(?:trajectory|checkpoint\.[0-9a-f-]{8,36})\.jsonl")
_LIST_FILE = "sessions.json"


class Place(NamedTuple):
    """A folder of transcripts: the root to open, and how its files are cited."""

    root: str
    parts: tuple[str, ...]
    """The folders from the root to it."""
    prefix: str
    is_own: bool
    """Whether it is the agent's own folder, which is flat; others are walked."""


class Opened(NamedTuple):
    """A transcript, open for reading."""

    fd: int
    state: FileState
    """Taken before the first byte is read; a growing file is read up to this size."""


class Sessions:
    """The transcripts of one agent; no descriptor stays open between calls."""

    def __init__(
        self, folder: str, paths: Sequence[str], workspace: str, clean: Callable[[str], str]
    ) -> None:
        self._folder = folder
        self._paths = tuple(paths)
        self._workspace = workspace
        self.clean = clean
        """Masks the secrets in a message."""

    def folders(self) -> tuple[str, ...]:
        """Return the folders that transcripts are in."""
        return tuple(os.path.join(place.root, *place.parts) for place in self._places()[0])

    def add_to(self, scan: Scan) -> Scan:
        """Add the transcripts to a scan of the workspace."""
        found = self.scan()
        files = sorted([*scan.files, *found.files])
        skipped = sorted({*scan.skipped, *found.skipped})
        failures, roots = (*scan.failures, *found.failures), (*scan.roots, *found.roots)
        return scan._replace(
            files=tuple(files), skipped=tuple(skipped), failures=failures, roots=roots
        )

    def scan(self) -> Scan:
        """List the transcripts; a folder that exists but cannot be listed is a failure."""
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
        """Whether a cited path is that of a transcript; Markdown files next to them are not."""
        return not is_markdown(path.rpartition("/")[2]) and any(
            _below(path, place) for place in self._places()[0]
        )

    def absolute(self, path: str) -> str:
        """Return the path on disk of a cited transcript."""
        found = next(
            (place, below) for place in self._places()[0] if (below := _below(path, place))
        )
        return os.path.join(found[0].root, *found[0].parts, found[1])

    @contextmanager
    def open(self, path: str) -> Iterator[Opened]:
        """Open a cited transcript; FileNotFoundError or PathDenied if there is none."""
        place = next((place for place in self._places()[0] if _below(path, place)), None)
        if place is None:
            raise denied(path, "is not a transcript", "not-memory", NAMES_HINT)
        *folders, name = split_relative(_below(path, place))
        why_not = _why_not(name) or ("in a folder of its own" if place.is_own and folders else "")
        if why_not or not all(map(is_visible_folder, folders)):
            why_not = why_not or "in a folder that is skipped"
            raise denied(path, f"is not a transcript: {why_not}", "not-memory", NAMES_HINT)
        fd = self._opened(place, folders, name, path)
        try:
            info = os.fstat(fd)
            yield Opened(
                fd,
                file_state(path, "sessions", info),
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
        """Return the folders of transcripts, and the configured ones that cannot be used."""
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
    """What the scan has found so far."""

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
        """Add one entry of a folder, or report why not, except for the list of sessions."""
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
            self.files.append(file_state(path, "sessions", info))
        elif ".jsonl" in name:
            self.skipped.append(Skipped(path, why_not))

    def each_once(self) -> list[FileState]:
        """Keep one file per inode: the agent's own before others, then by path."""
        kept: dict[tuple[int, int], FileState] = {}
        for state in sorted(
            self.files, key=lambda state: (state.path.startswith("../"), state.path)
        ):
            first = kept.setdefault((state.device, state.inode), state)
            if first is not state:
                self.skipped.append(Skipped(state.path, f"same file as {shown(first.path)}"))
        return list(kept.values())


def _why_unlisted(error: OSError | WorkspaceError) -> str:
    """Return the cause without the folder, which the report names."""
    cause = error.__cause__ if isinstance(error, WorkspaceError) else error
    return reason_of(cause) if isinstance(cause, OSError) else str(error).rstrip(".")


def _folder(
    root: Folder, place: Place, below: Sequence[str] = ()
) -> AbstractContextManager[Folder]:
    return folder_beneath(root, [*place.parts, *below], place.prefix, len(place.parts))


def _why_not(name: str) -> str:
    """Return why a file of this name is not a transcript; empty if it is one."""
    if not is_utf8(name):
        return "the file's name is not valid UTF-8"
    if name.startswith("."):
        return "a hidden file"
    if _COPY.search(name):
        return "a trace or a copy, not a transcript"
    if name.endswith(".jsonl"):
        return ""
    archive = _ARCHIVE.search(name)
    if archive is not None and archive.end() == len(name):
        return ""
    return "neither a .jsonl file nor an archive of one"


def _three_up(folder: str) -> tuple[str, tuple[str, ...]]:
    """Split `<state>/agents/<id>/sessions` after the state folder; the rest may not be links."""
    agents, sessions = os.path.split(folder)
    state, agent = os.path.split(agents)
    root, middle = os.path.split(state)
    return root, (middle, agent, sessions)


def _below(path: str, place: Place) -> str:
    """Return the part of a cited path below a place; empty if it is not below."""
    rest = path[len(place.prefix) + 1 :] if path.startswith(place.prefix + "/") else ""
    return "" if rest.startswith("../") else rest


def _resolve(given: str, workspace: str, home: str) -> Place | Skipped:
    """Return a configured folder of transcripts, or why it cannot be used."""
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
        return Skipped(shown(given), "too much; name the folder that the transcripts are in")
    if os.path.lexists(real) and not os.path.isdir(real):
        return Skipped(shown(given), "a file; name its folder")
    prefix = cited(workspace, real)
    return (
        Place(root=workspace, parts=tuple(prefix.split("/")), prefix=prefix, is_own=False)
        if is_inside
        else Place(root=real, parts=(), prefix=prefix, is_own=False)
    )
