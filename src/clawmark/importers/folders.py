"""Folders of Markdown in; notes out: what coding agents remember, and any folder of notes.

Claude Code keeps `CLAUDE.md` files and one memory folder for each project, Codex `AGENTS.md` and a memories folder; both are
found below the folder that is named. A file's date is the one its name begins with, else when it was last changed. Links are
not followed, hidden folders and installed packages are left alone, and what is no text is skipped with a reason.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from datetime import UTC, datetime

from clawmark.importers.exports import ImportFailed
from clawmark.importers.notes import Note, Skip
from clawmark.text.dates import date_of
from clawmark.workspace.places import is_markdown, is_visible_folder

LARGEST_FILE = 4 * 1024 * 1024
MOST_FILES = 100_000


def folder_notes(path: str, wanted: Callable[[str], bool] = lambda relative: True) -> Iterator[Note | Skip]:
    """The Markdown files below a folder that are `wanted` by their path in it, or one file, which is always wanted."""
    if os.path.isfile(path):
        yield _note(os.path.dirname(path) or ".", os.path.basename(path))
    elif os.path.isdir(path):
        for name in filter(wanted, sorted(_markdown_below(path))):
            yield _note(path, name)
    else:
        raise ImportFailed(f"{path} is neither a folder nor a file.", hint="Name the folder that holds the notes.")


def claude_code_notes(path: str) -> Iterator[Note | Skip]:
    """What Claude Code remembers: `CLAUDE.md`, and the notes of memory folders, `projects/<project>/memory/*.md`."""
    return _remembered(path, ("CLAUDE.md", "CLAUDE.local.md"), "memory")


def codex_notes(path: str) -> Iterator[Note | Skip]:
    """What Codex remembers: `AGENTS.md`, and `memories/**/*.md`."""
    return _remembered(path, ("AGENTS.md", "AGENTS.override.md"), "memories")


def _remembered(path: str, names: tuple[str, ...], folder: str) -> Iterator[Note | Skip]:
    """Files of these names, and whatever is in a folder of that name; it may be the very folder that was named."""

    def is_wanted(relative: str) -> bool:
        *above, name = relative.split("/")
        # Plugins bring instructions and folders of their own, which are nobody's memory.
        return "plugins" not in above and (name in names or folder in above)

    is_named = os.path.basename(os.path.normpath(path)) == folder
    return folder_notes(path) if is_named else folder_notes(path, is_wanted)


def _markdown_below(folder: str) -> Iterator[str]:
    found = 0
    for at, folders, files in os.walk(folder, followlinks=False):
        # The folder that was named may itself be hidden, as ~/.claude is; those in it are somebody's own business.
        folders[:] = sorted(name for name in folders if is_visible_folder(name))
        for name in files:
            if is_markdown(name):
                found += 1
                if found > MOST_FILES:
                    raise ImportFailed(
                        f"{folder} holds more than {MOST_FILES:,} Markdown files.", hint="Import it in parts."
                    )
                yield os.path.relpath(os.path.join(at, name), folder).replace(os.sep, "/")


def _note(folder: str, name: str) -> Note | Skip:
    full = os.path.join(folder, name)
    try:
        descriptor = os.open(full, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
        with open(descriptor, "rb") as file:
            info = os.fstat(descriptor)
            if info.st_size > LARGEST_FILE:
                return Skip(name, f"{info.st_size:,} bytes, which is more than a note has")
            data = file.read(LARGEST_FILE)
    except OSError as error:
        return Skip(name, f"cannot be read: {(error.strerror or str(error)).lower()}")
    if b"\0" in data:
        return Skip(name, "is no text")
    text = data.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "replace").replace("\r\n", "\n")
    if not text.strip():
        return Skip(name, "is empty")
    changed = datetime.fromtimestamp(info.st_mtime, UTC).date().isoformat() if info.st_mtime >= 0 else ""
    title, body = _title(text, name)
    return Note(_place(full), title, date_of(name) or changed, body)


def _place(path: str) -> str:
    """Where a file is, whichever folder above it was named: notes of the same name in two folders are two notes."""
    real, home = os.path.realpath(path), os.path.realpath(os.path.expanduser("~"))
    return f"~{real[len(home) :]}" if real.startswith(home + os.sep) else real


def _title(text: str, name: str) -> tuple[str, str]:
    """The file's own first heading and what follows it; the name when it begins otherwise."""
    first, _, rest = text.lstrip("\n").partition("\n")
    if first.startswith("# ") and rest.strip():
        return first[2:].strip(), rest
    return name.removesuffix(".md"), text
