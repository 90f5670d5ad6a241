"""Read folders of Markdown: the memory of coding agents, or any folder of notes.

Claude Code has `CLAUDE.md` files and a memory folder per project, Codex `AGENTS.md` and a memories
folder. The date of a file comes from its path, its front matter, its first lines, or its last
change. Links are not followed; hidden folders and installed packages are ignored; files that are
not text are skipped."""

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
"""Lines in which the date of a text is searched."""
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
    """Yield the Markdown files below a folder whose relative path is `wanted`, or a single file."""
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
    """Yield the memory of Claude Code: `CLAUDE.md` and `projects/<project>/memory/*.md`."""
    return _remembered(path, ("CLAUDE.md", "CLAUDE.local.md"), "memory")


def codex_notes(path: str) -> Iterator[Note | Skip]:
    """Yield the memory of Codex: `AGENTS.md` and `memories/**/*.md`."""
    return _remembered(path, ("AGENTS.md", "AGENTS.override.md"), "memories")


def _remembered(path: str, names: tuple[str, ...], folder: str) -> Iterator[Note | Skip]:
    """Yield files with these names, and all files in folders with that name."""

    def is_wanted(relative: str) -> bool:
        *above, name = relative.split("/")
        # Plugins contain instructions that are not the user's memory.
        return "plugins" not in above and (name in names or folder in above)

    is_named = os.path.basename(os.path.normpath(path)) == folder
    return folder_notes(path) if is_named else folder_notes(path, is_wanted)


def _markdown_below(folder: str) -> Iterator[str]:
    found = 0
    for at, folders, files in os.walk(folder, followlinks=False):
        # The given folder may be hidden, such as ~/.claude; hidden folders in it are ignored.
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
                return Skip(name, f"{info.st_size:,} bytes, which is too large for a note")
            data = file.read(LARGEST_FILE)
    except OSError as error:
        return Skip(name, f"cannot be read: {(error.strerror or str(error)).lower()}")
    if b"\0" in data:
        return Skip(name, "is not text")
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
    """Return the date in the file name, or in the innermost folder that has one."""
    for part in reversed(name.split("/")):
        day = next(filter(date_of, _DAY.findall(part)), "")
        if day:
            return day
    return ""


def _date_in_text(text: str) -> str:
    """Return the date in the front matter, the title or a line `Date: …` near the top."""
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
    """Return the absolute path of a file, with `~` for the home folder, as a unique id."""
    real, home = os.path.realpath(path), os.path.realpath(os.path.expanduser("~"))
    return f"~{real[len(home) :]}" if real.startswith(home + os.sep) else real


def _title(text: str, name: str) -> tuple[str, str]:
    """Return the first heading and the text without it, or the file's name and the text."""
    front = _FRONT_MATTER.match(text)
    head = front[0] if front else ""
    first, _, rest = text[len(head) :].lstrip("\n").partition("\n")
    if first.startswith("# ") and rest.strip():
        return first[2:].strip(), head + rest
    return os.path.basename(name).removesuffix(".md"), text
