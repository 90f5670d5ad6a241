"""Write imported notes to `memory/imports/<source>/`, or plan to.

A note is identified by its id in the source, so importing twice changes nothing, and a conversation
that was continued is updated in its file. A file that was edited since the import is not changed.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Literal, NamedTuple, TypeAlias

from clawmark.model.errors import ClawmarkError, WriteConflict
from clawmark.text.untrusted.origin_labels import IMPORTS

Action: TypeAlias = Literal["new", "changed", "same", "edited", "skipped"]

FOLDER = IMPORTS.rstrip("/")
LONGEST_NOTE = 4 * 1024 * 1024
"""Characters. A longer conversation is truncated at a message."""
DEEPEST = 12
"""Nested folders of a source that are kept."""
_MARK = re.compile(r"<!-- clawmark: origin=import source=\S+ id=\S+ body=([0-9a-f]{16}) -->")


class Note(NamedTuple):
    """A conversation or a file of another tool."""

    id: str
    """Its id or path in the source; must not change."""
    title: str
    date: str
    """YYYY-MM-DD, or empty if unknown."""
    body: str
    """Markdown without a title."""
    folder: str = ""
    """Its folder in the source, which is kept."""


class Skip(NamedTuple):
    """An entry of the source that is not imported, and why."""

    id: str
    reason: str


class Imported(NamedTuple):
    """What happened, or would happen, to an entry."""

    action: Action
    path: str
    """Empty if the entry was skipped."""
    what: str
    """The title of the note, or why it was not changed."""


class Target(NamedTuple):
    """Access to the files that notes are written to."""

    existing: Mapping[str, str]
    """The paths below `memory/imports/<source>/` by the digits at their end."""
    read: Callable[[str], tuple[str, str]]
    """(path) → the text of a memory file and its hash."""
    replace: Callable[[str, str, str], object]
    """Writes (path, text, base hash); the base hash of a new file is empty."""


def import_notes(
    source: str,
    found: Iterable[Note | Skip],
    target: Target,
    *,
    dry_run: bool,
    overwrite: bool = False,
) -> Iterator[Imported]:
    """Write each note once; continue if one of them cannot be written."""
    for entry in found:
        if isinstance(entry, Skip):
            yield Imported("skipped", "", f"{entry.id}: {entry.reason}")
            continue
        try:
            yield _import_one(source, entry, target, dry_run=dry_run, overwrite=overwrite)
        except ClawmarkError as error:
            yield Imported("skipped", "", f"{entry.title or entry.id}: {error.message}")


def digits_of(note_id: str) -> str:
    """Return the twelve hex digits of a note's id, used at the end of its file name."""
    return hashlib.sha256(note_id.encode("utf-8", "surrogatepass")).hexdigest()[:12]


def digits_in(path: str) -> str:
    """Return the digits at the end of a path; empty if it has none."""
    match = re.search(r"-([0-9a-f]{12})\.md$", path)
    return match[1] if match else ""


def render(source: str, note: Note) -> str:
    """Return the text of the file; a later import checks the comment under the title."""
    body = note.body.strip("\n")
    if len(body) > LONGEST_NOTE:
        cut = body.rfind("\n\n", 0, LONGEST_NOTE)
        body = body[: cut if cut > 0 else LONGEST_NOTE] + "\n\n(The rest was too long to import.)"
    title = " ".join(note.title.split()) or note.id
    label = re.sub(r"[^A-Za-z0-9._:/@+~-]|-(?=-)", "_", note.id)[:120].rstrip("-") or "unknown"
    mark = (
        f"<!-- clawmark: origin=import source={source} id={label} body={_digest(title, body)} -->"
    )
    dated = f"\nDate: {note.date}\n" if note.date else ""
    return f"# {title}\n{mark}\n{dated}\n{body}\n"


def path_for(source: str, note: Note) -> str:
    """Return `memory/imports/chatgpt/<folders>/2025-03-04-rate-limiter-1a2b3c4d5e6f.md`."""
    words = re.findall(r"[^\W_]+", note.title.lower())
    slug = "-".join(words)[:48].strip("-") or "note"
    stem = f"{note.date}-{slug}" if note.date else slug
    return "/".join((FOLDER, source, *_folders(note.folder), f"{stem}-{digits_of(note.id)}.md"))


def _folders(path: str) -> list[str]:
    """Return the folders of a source as safe and visible names."""
    names = [
        re.sub(r"[^\w .-]", "-", part).strip(" .")[:48].rstrip(" .") for part in path.split("/")
    ]
    return [name for name in names if name][:DEEPEST]


def _import_one(
    source: str, note: Note, target: Target, *, dry_run: bool, overwrite: bool
) -> Imported:
    text = render(source, note)
    path = target.existing.get(digits_of(note.id), "")
    if not path:
        path = path_for(source, note)
        if not dry_run:
            _create(target, path, text)
        return Imported("new", path, note.title)
    current, base = target.read(path)
    if current == text:
        return Imported("same", path, note.title)
    if not (overwrite or _is_untouched(current)):
        return Imported(
            "edited", path, "changed here since it was imported; --overwrite replaces it"
        )
    if not dry_run:
        target.replace(path, text, base)
    return Imported("changed", path, note.title)


def _create(target: Target, path: str, text: str) -> None:
    try:
        target.replace(path, text, "")
    except WriteConflict:
        # Another process may have imported the same note.
        if target.read(path)[0] != text:
            raise


def _is_untouched(text: str) -> bool:
    """Check whether a file is unchanged since its import, by the digest in its comment."""
    match = _MARK.search(text)
    if match is None:
        return False
    title = text.split("\n", 1)[0].removeprefix("# ")
    body = re.sub(r"\A\n?Date: \S+\n", "", text[match.end() :].lstrip("\n"), count=1).strip("\n")
    return _digest(title, body) == match[1]


def _digest(title: str, body: str) -> str:
    return hashlib.sha256(f"{title}\n{body}".encode("utf-8", "surrogatepass")).hexdigest()[:16]
