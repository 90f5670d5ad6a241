"""The six commands of Anthropic's memory tool over the folder `memory`, without the SDK.

Answers are worded like those of Anthropic's own implementation; errors are `ClawmarkError`s. Files
with another extension are kept as Markdown: `/memories/prefs.txt` is the file `memory/prefs.txt.md`
and has both names."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from clawmark.model.errors import NotText, PathDenied, WorkspaceError, WriteConflict
from clawmark.model.provenance import Origin
from clawmark.workspace import Workspace
from clawmark.workspace.guard import shown
from clawmark.workspace.places import is_markdown
from clawmark.workspace.tree import Entry, Exact

ROOT = "/memories"
BY_AGENT = Origin(actor="agent", kind="tool", trust="agent", source="memory tool")
MOST_LINES = 999_999
_LEVELS = 2
_ATTEMPTS = 5
"""How often an edit is retried if the file changes at the same time."""

_OTHER_ENDING = re.compile(r".\.[A-Za-z][A-Za-z0-9]{0,7}\.md\Z")
_MISSING = "The path {} does not exist. Please provide a valid path."


class _Named(NamedTuple):
    """A path as the model wrote it, and in the workspace."""

    given: str
    folder: str
    """The path as a folder."""
    file: str
    """The path as a memory file; empty if it can only be a folder."""

    @property
    def is_root(self) -> bool:
        return self.folder == "memory"


class Memories:
    """The commands of the tool."""

    def __init__(self, workspace: Workspace, origin: Origin = BY_AGENT) -> None:
        self._workspace = workspace
        self._origin = origin
        """The origin of what is written, for the journal."""

    def view(self, path: str, lines: Sequence[int] | None = None) -> str:
        """List a folder two levels deep, or show a file with line numbers.

        `lines` is the first and the last line; -1 is the end.
        """
        named = _named(path)
        entries = self._folder(named)
        if entries is not None:
            return _listing(named, entries)
        text = self._read(named).text.split("\n")
        if len(text) > MOST_LINES:
            raise WorkspaceError(
                f"File {shown(path)} exceeds maximum line limit of {MOST_LINES:,} lines."
            )
        first, last = 0, len(text)
        if lines and len(lines) == 2:
            first, last = max(1, lines[0]) - 1, len(text) if lines[1] == -1 else lines[1]
        return f"Here's the content of {path} with line numbers:\n" + _numbered(
            text[first:last], first + 1
        )

    def create(self, path: str, text: str) -> str:
        """Write a new file."""
        named = _named(path)
        try:
            if not named.file or self._folder(named) is not None:
                raise _exists(path)
            self._workspace.replace(named.file, text, "", origin=self._origin)
        except WriteConflict as conflict:
            raise _exists(path) from conflict
        except PathDenied as denied:
            raise _refused(named, denied) from denied
        return f"File created successfully at: {path}"

    def str_replace(self, path: str, old: str, new: str) -> str:
        """Replace a text that occurs exactly once."""

        def change(text: str) -> str:
            pattern = f"(?={re.escape(old)})"
            found = [match.start() for match in re.finditer(pattern, text)] if old else []
            if not found:
                raise WorkspaceError(
                    f"No replacement was performed, old_str `{old}` did not appear verbatim in "
                    f"{path}."
                )
            if text.count(old) > 1:
                lines = ", ".join(str(text.count("\n", 0, at) + 1) for at in found)
                raise WorkspaceError(
                    f"No replacement was performed. Multiple occurrences of old_str `{old}` in "
                    f"lines: {lines}. "
                    "Please ensure it is unique"
                )
            return text.replace(old, new)

        before, after = self._edit(path, change)
        line, lines = before.count("\n", 0, before.index(old)), after.split("\n")
        first = max(0, line - 2)
        snippet = _numbered(lines[first : line + 3], first + 1)
        return (
            f"The memory file has been edited. Here is the snippet showing "
            f"the change (with line numbers):\n{snippet}"
        )

    def insert(self, path: str, line: int, text: str) -> str:
        """Insert lines after a line; 0 is the start of the file."""

        def change(before: str) -> str:
            lines = before.split("\n")
            if lines[-1] == "":
                lines.pop()
            if not 0 <= line <= len(lines):
                raise WorkspaceError(
                    f"Invalid `insert_line` parameter: {line}. It should be within the range [0, "
                    f"{len(lines)}]."
                )
            lines.insert(line, text.rstrip("\n"))
            after = "\n".join(lines)
            return after if after.endswith("\n") else after + "\n"

        self._edit(path, change)
        return f"The file {path} has been edited."

    def delete(self, path: str) -> str:
        """Delete a file, or a folder with its notes."""
        named = _named(path)
        if named.is_root:
            raise WorkspaceError(f"Cannot delete the {ROOT} directory itself")
        place = self._place(named)
        if not place or not self._workspace.delete(place, origin=self._origin):
            raise WorkspaceError(f"The path {path} does not exist")
        return f"Successfully deleted {path}"

    def rename(self, old: str, new: str) -> str:
        """Move a file or a folder to a path that does not exist yet."""
        source, target = _named(old), _named(new)
        if source.is_root:
            raise WorkspaceError(f"Cannot rename the {ROOT} directory itself")
        if self._place(target):
            raise WorkspaceError(f"The destination {new} already exists")
        place = self._place(source)
        if not place:
            raise WorkspaceError(f"The path {old} does not exist")
        to = target.folder if self._folder(source) is not None else target.file
        if not to:
            raise WorkspaceError(f"The destination {new} is a folder's name, and {old} is a file")
        try:
            self._workspace.rename(place, to, origin=self._origin)
        except WriteConflict as conflict:
            raise WorkspaceError(f"The destination {new} already exists") from conflict
        except PathDenied as denied:
            raise _refused(target, denied) from denied
        return f"Successfully renamed {old} to {new}"

    def _folder(self, named: _Named) -> list[Entry] | None:
        try:
            found = self._workspace.list_folder(named.folder, _LEVELS)
        except PathDenied as denied:
            if denied.rule == "not-memory":  # a hidden folder, or node_modules
                return None
            raise _refused(named, denied) from denied
        return [Entry("memory", 0, True)] if found is None and named.is_root else found

    def _read(self, named: _Named) -> Exact:
        try:
            found = self._workspace.read_exact(named.file) if named.file else None
        except PathDenied as denied:
            raise _refused(named, denied) from denied
        except NotText as error:
            raise NotText(
                f"The file {shown(named.given)} is not a valid UTF-8 text file."
            ) from error
        if found is None:
            raise WorkspaceError(_MISSING.format(shown(named.given)))
        return found

    def _place(self, named: _Named) -> str:
        """Return the existing path in the workspace; empty if there is none."""
        if self._folder(named) is not None:
            return named.folder
        try:
            self._read(named)
        except NotText:
            return named.file
        except PathDenied:
            raise
        except WorkspaceError:
            return ""
        return named.file

    def _edit(self, path: str, change: Callable[[str], str]) -> tuple[str, str]:
        """Change a file, with retries; return the text before and after."""
        named = _named(path)
        if self._folder(named) is not None:
            raise WorkspaceError(f"The path {path} is not a file.")
        for attempt in range(1, _ATTEMPTS + 1):
            before = self._read(named)
            after = change(before.text)
            try:
                self._workspace.replace(named.file, after, before.hash, origin=self._origin)
            except WriteConflict:
                if attempt == _ATTEMPTS:
                    raise
            else:
                break
        return before.text, after


def _named(path: str) -> _Named:
    """Resolve a path of the model; raises PathDenied if it is not below `/memories`."""
    if path != ROOT and not path.startswith(ROOT + "/"):
        raise PathDenied(
            f"Path must start with {ROOT}, got: {shown(path)}", path=path, rule="outside"
        )
    relative = path[len(ROOT) :].lstrip("/")
    parts = relative.removesuffix("/").split("/") if relative else []
    if any(part.startswith("..") or "\\" in part or not part.isprintable() for part in parts):
        raise PathDenied(
            f"Path {shown(path)} would escape {ROOT} directory", path=path, rule="outside"
        )
    if not parts or relative.endswith("/"):
        return _Named(path, "/".join(["memory", *parts]), "")
    *above, name = parts
    file = name if is_markdown(name) else f"{name}.md"
    return _Named(path, "/".join(["memory", *parts]), "/".join(["memory", *above, file]))


def _refused(named: _Named, denied: PathDenied) -> PathDenied:
    """Return a denial in the tool's words: links and outside paths are an escape."""
    if denied.rule in ("link", "outside"):
        return PathDenied(
            f"Path {shown(named.given)} would escape {ROOT} directory",
            path=named.given,
            rule=denied.rule,
        )
    return PathDenied(denied.message, path=named.given, rule=denied.rule)


def _exists(path: str) -> WorkspaceError:
    return WorkspaceError(f"File {path} already exists")


def _listing(named: _Named, entries: Sequence[Entry]) -> str:
    here = named.given.rstrip("/")
    lines = [
        f"Here're the files and directories up to {_LEVELS} levels deep in {here}, excluding "
        f"hidden items:"
    ]
    for entry in entries:
        below = entry.path[len(named.folder) :]
        name = below[:-3] if not entry.is_folder and _OTHER_ENDING.search(below) else below
        end = "/" if entry.is_folder and below else ""
        lines.append(f"{_size(entry.size)}\t{here}{name}{end}")
    return "\n".join(lines)


def _numbered(lines: Sequence[str], first: int) -> str:
    width = len(str(MOST_LINES))
    return "\n".join(f"{number:{width}}\t{line}" for number, line in enumerate(lines, first))


def _size(count: int) -> str:
    power = min(max(count.bit_length() - 1, 0) // 10, 3)
    size = count / 1024**power
    return f"{size:.0f}{'BKMG'[power]}" if size == int(size) else f"{size:.1f}{'BKMG'[power]}"
