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
    """The Markdown files below a folder, or one file; `wanted` is asked with each path relative to the folder."""
    if os.path.isfile(path):
        folder, names = os.path.dirname(path) or ".", [os.path.basename(path)]
    elif os.path.isdir(path):
        folder, names = path, sorted(_markdown_below(path))
    else:
        raise ImportFailed(f"{path} is neither a folder nor a file.", hint="Name the folder that holds the notes.")
    for name in names:
        if wanted(name):
            yield _note(folder, name)


def is_claude_code(relative: str) -> bool:
    """What Claude Code remembers: `CLAUDE.md`, and `projects/<project>/memory/*.md`."""
    parts = relative.split("/")
    return parts[-1] in ("CLAUDE.md", "CLAUDE.local.md") or (len(parts) > 1 and "memory" in parts[:-1])


def is_codex(relative: str) -> bool:
    """What Codex remembers: `AGENTS.md`, and `memories/**/*.md`."""
    parts = relative.split("/")
    return parts[-1] in ("AGENTS.md", "AGENTS.override.md") or "memories" in parts[:-1]


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
    return Note(name, title, date_of(name) or changed, body)


def _title(text: str, name: str) -> tuple[str, str]:
    """The file's own first heading and what follows it; the name when it begins otherwise."""
    first, _, rest = text.lstrip("\n").partition("\n")
    if first.startswith("# ") and rest.strip():
        return first[2:].strip(), rest
    return name.removesuffix(".md"), text
