"""Folders of Markdown in; notes out: what coding agents remember, and any folder of notes.

Claude Code keeps `CLAUDE.md` files and one memory folder for each project, Codex `AGENTS.md` and a
memories folder; both are found below the folder that is named. A file is dated by its path, else
its front matter, else its first lines, else by when it was last changed. Links are not followed,
hidden folders and installed packages are left alone, and a file that is not text is skipped with a
reason."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime

from clawmark.importers.exports import ImportFailed
from clawmark.importers.notes import Note, Skip
from clawmark.text.dates import date_of
from clawmark.workspace.places import is_markdown, is_visible_folder

LARGEST_FILE = 4 * 1024 * 1024
FIRST_LINES = 10
"""How far into a text its own date is looked for."""
_FRONT_MATTER = re.compile(r"\A---[ \t]*\n(?:.*\n)*?---[ \t]*(?:\n|\Z)")
_DAY = re.compile(r"(?<![\d-])\d{4}-\d\d-\d\d(?![\d-])")
_DATED_LINE = re.compile(
    r"[ \t>*_-]*(?:date|created(?:[-_ ]?(?:at|on))?)[*_ \t]*:[*_ \t\"']*(\d{4}-\d\d-\d\d)",
    re.IGNORECASE,
)
MOST_FILES = 100_000


def folder_notes(
    path: str, wanted: Callable[[str], bool] = lambda relative: True
) -> Iterator[Note | Skip]:
    """The Markdown files below a folder that are `wanted` by their path in it, or one file, which
    is always wanted.
    """
    if os.path.isfile(path):
        yield _note(os.path.dirname(path) or ".", os.path.basename(path))
    elif os.path.isdir(path):
        for name in filter(wanted, sorted(_markdown_below(path))):
            yield _note(path, name)
    else:
        raise ImportFailed(
            f"{path} is neither a folder nor a file.", hint="Name the folder that holds the notes."
        )


def claude_code_notes(path: str) -> Iterator[Note | Skip]:
    """What Claude Code remembers: `CLAUDE.md`, and the notes of memory folders,
    `projects/<project>/memory/*.md`.
    """
    return _remembered(path, ("CLAUDE.md", "CLAUDE.local.md"), "memory")


def codex_notes(path: str) -> Iterator[Note | Skip]:
    """What Codex remembers: `AGENTS.md`, and `memories/**/*.md`."""
    return _remembered(path, ("AGENTS.md", "AGENTS.override.md"), "memories")


def _remembered(path: str, names: tuple[str, ...], folder: str) -> Iterator[Note | Skip]:
    """Files of these names, and whatever is in a folder of that name; it may be the very folder
    that was named.
    """

    def is_wanted(relative: str) -> bool:
        *above, name = relative.split("/")
        # Plugins bring instructions and folders of their own, which are nobody's memory.
        return "plugins" not in above and (name in names or folder in above)

    is_named = os.path.basename(os.path.normpath(path)) == folder
    return folder_notes(path) if is_named else folder_notes(path, is_wanted)


def _markdown_below(folder: str) -> Iterator[str]:
    found = 0
    for at, folders, files in os.walk(folder, followlinks=False):
        # The folder that was named may itself be hidden, as ~/.claude is; those in it are
        # somebody's own business.
        folders[:] = sorted(name for name in folders if is_visible_folder(name))
        for name in files:
            if is_markdown(name):
                found += 1
                if found > MOST_FILES:
                    raise ImportFailed(
                        f"{folder} holds more than {MOST_FILES:,} Markdown files.",
                        hint="Import it in parts.",
                    )
                yield os.path.relpath(os.path.join(at, name), folder).replace(os.sep, "/")


def _note(folder: str, name: str) -> Note | Skip:
    full = os.path.join(folder, name)
    try:
        descriptor = os.open(
            full, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
        )
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
    changed = (
        datetime.fromtimestamp(info.st_mtime, UTC).date().isoformat() if info.st_mtime >= 0 else ""
    )
    title, body = _title(text, name)
    return Note(
        id=_place(full),
        title=title,
        date=_date_in_path(name) or _date_in_text(text) or changed,
        body=body,
        folder=os.path.dirname(name),
    )


def _date_in_path(name: str) -> str:
    """The day in a file's name, or else in the innermost folder that has one."""
    for part in reversed(name.split("/")):
        day = next(filter(date_of, _DAY.findall(part)), "")
        if day:
            return day
    return ""


def _date_in_text(text: str) -> str:
    """The day that the front matter, the title or a line `Date: …` near the top gives; other dates
    are just mentioned.
    """
    front = _FRONT_MATTER.match(text)
    lines = front[0].splitlines() if front else []
    lines += text[front.end() if front else 0 :].lstrip("\n").splitlines()[:FIRST_LINES]
    for line in lines:
        dated = _DATED_LINE.match(line)
        days = [dated[1]] if dated else _DAY.findall(line) if line.startswith("# ") else []
        if days and date_of(days[0]):
            return days[0]
    return ""


def _place(path: str) -> str:
    """Where a file is, whichever folder above it was named: notes of the same name in two folders
    are two notes.
    """
    real, home = os.path.realpath(path), os.path.realpath(os.path.expanduser("~"))
    return f"~{real[len(home) :]}" if real.startswith(home + os.sep) else real


def _title(text: str, name: str) -> tuple[str, str]:
    """The file's own first heading and the text without it; the file's name when the text begins
    otherwise.
    """
    front = _FRONT_MATTER.match(text)
    head = front[0] if front else ""
    first, _, rest = text[len(head) :].lstrip("\n").partition("\n")
    if first.startswith("# ") and rest.strip():
        return first[2:].strip(), head + rest
    return os.path.basename(name).removesuffix(".md"), text
