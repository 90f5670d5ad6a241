"""Store and forget captured entries: first the file, then the table.

A process that is killed in between leaves a file without its row, or a row without its line. The
next sync repairs both, because it compares the two."""

from __future__ import annotations

import re
import uuid
from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from clawmark.backends.lancedb.backend import FRESHEN_SECONDS, LanceBackend, embed_entries
from clawmark.backends.lancedb.entries import Captured, one_line
from clawmark.embed.base import Embedder
from clawmark.model.errors import BackendUnavailable, EmbeddingError, IndexDamaged
from clawmark.model.provenance import Origin as Provenance
from clawmark.model.values import Degraded, Vector
from clawmark.text.entry_content import normalize_entry
from clawmark.text.untrusted.origin_labels import Origin

SAME = 0.95
"""Two texts with at least this cosine are duplicates."""
_NEAR = 20
_DETAIL = re.compile(r"[\w.+-]{1,64}@[\w.-]{1,64}|\w*\d[\w.:/-]*")
_NEGATION = re.compile(
    r"\b(?:not|never|no|none|without|neither|nor|cannot)\b|n['’]t\b|\bne\w{4,}", re.IGNORECASE
)


class Note(NamedTuple):
    """A text to be kept."""

    text: str
    category: str
    importance: float
    origin: Origin
    written_by: Provenance | None = None
    """Who writes it, for the journal; None for the user."""


class Stored(NamedTuple):
    """The result of storing a note."""

    entry: Captured
    is_new: bool
    """False if `entry` was there before and says the same."""
    pending: Degraded | None = None
    """Why the entry has no row yet; it is found by its words, and a later sync adds the row."""


def store(backend: LanceBackend, note: Note, now: datetime, session_key: str) -> Stored:
    """Keep a note unless an entry says the same."""
    text = one_line(note.text)
    embedder, pending = backend.embedder()
    vector = None
    if embedder is not None and embedder.covers(text):
        # Duplicates are found among rows, so these are brought up to date first.
        pending = backend.sync(seconds=FRESHEN_SECONDS).degraded
        if pending is None:
            vector, pending = _embedded(embedder, text)
    with backend.locked():
        entries = backend.files.look().entries
        known = _exact(text, entries) or _similar(backend, text, entries, vector)
        if known is not None:
            return Stored(known, is_new=False)
        entry = _entry(note, text, now, backend.files.path_of(f"{now:%Y-%m-%d}"))
        written = backend.files.append(entry, session_key, note.written_by)
        entry = entry._replace(start_line=written.start_line, end_line=written.end_line)
        if embedder is not None and vector is not None:
            pending = _put(backend, entry, vector, embedder)
    return Stored(entry, is_new=True, pending=pending)


def forget(
    backend: LanceBackend, entry_id: str, origin: Provenance | None = None
) -> Captured | None:
    """Remove an entry from its file and from the table; None if no file has it."""
    with backend.locked():
        removed = backend.files.remove(entry_id, origin)
        try:
            backend.table.delete([entry_id])
            backend.table.tidy()
        except (BackendUnavailable, IndexDamaged):
            backend.table.drop()  # the text must not stay on the disk; the table is derived
    return removed


def says_the_same(cosine: float, one: str, other: str) -> bool:
    """Decide whether two texts are duplicates.

    A changed digit or a "not" hardly changes a vector, so texts with different numbers, addresses
    or counts of negations are always different facts."""
    if cosine < SAME:
        return False
    return _details(one) == _details(other) and _negations(one) == _negations(other)


def _details(text: str) -> set[str]:
    return {found.casefold().strip(".:/-") for found in _DETAIL.findall(text)}


def _negations(text: str) -> int:
    return len(_NEGATION.findall(text))


def _exact(text: str, entries: Sequence[Captured]) -> Captured | None:
    plain = normalize_entry(text)
    return next((one for one in entries if normalize_entry(one.text) == plain), None)


def _entry(note: Note, text: str, now: datetime, path: str) -> Captured:
    return Captured(
        id=str(uuid.uuid4()),
        text=text,
        category=note.category,
        importance=note.importance,
        origin=note.origin,
        created=now.isoformat(timespec="seconds"),
        path=path,
        start_line=0,
        end_line=0,
    )


def _embedded(embedder: Embedder, text: str) -> tuple[Vector | None, Degraded | None]:
    try:
        (vector,) = embed_entries(embedder, [text])
    except EmbeddingError as error:
        return None, Degraded(error.message, error.hint)
    return vector, None


def _similar(
    backend: LanceBackend, text: str, entries: Sequence[Captured], vector: Vector | None
) -> Captured | None:
    """Return an entry that says the same; None also if vectors cannot be compared."""
    if vector is None:
        return None
    try:
        nearest, rows = backend.table.nearest(vector, _NEAR), backend.table.rows()
    except (BackendUnavailable, IndexDamaged):
        return None
    for entry in entries:
        cosine, row = nearest.get(entry.id, 0.0), rows.get(entry.id)
        if row is not None and row.text == entry.text and says_the_same(cosine, text, entry.text):
            return entry
    return None


def _put(
    backend: LanceBackend, entry: Captured, vector: Vector, embedder: Embedder
) -> Degraded | None:
    """Add the row; the entry is on disk already, so a failure is only reported."""
    try:
        backend.table.put([entry], [vector], embedder.identity)
    except (BackendUnavailable, IndexDamaged) as error:
        return Degraded(error.message, "The next sync adds the row.")
    return None
