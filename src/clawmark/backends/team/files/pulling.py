"""Decide how the copies of a space on this machine are brought up to date.

A copy that was changed here is never overwritten or deleted. It is reported as a conflict, and the
next pull looks at it again."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from clawmark.backends.team.base import SharedDocument


class CopyWrite(NamedTuple):
    """A copy to write."""

    path: str
    text: str
    base_hash: str
    """The hash of the copy that is replaced; empty for a new one."""


class CopyDelete(NamedTuple):
    """A copy to delete, because its document was withdrawn."""

    path: str
    base_hash: str


class PullPlan(NamedTuple):
    """What has to be done for the copies to match some documents of a space."""

    writes: tuple[CopyWrite, ...] = ()
    deletes: tuple[CopyDelete, ...] = ()
    current: tuple[str, ...] = ()
    """Copies that are up to date."""
    conflicts: tuple[str, ...] = ()
    """Copies that were changed here, while their documents have changed too."""
    kept: tuple[str, ...] = ()
    """Copies that were changed here, and whose documents were withdrawn."""
    gone: tuple[str, ...] = ()
    """Withdrawn documents without a copy."""

    @property
    def steps(self) -> tuple[CopyWrite | CopyDelete, ...]:
        return (*self.writes, *self.deletes)


class Pulled(NamedTuple):
    """What a pull did with one space."""

    space: str
    written: tuple[str, ...] = ()
    deleted: tuple[str, ...] = ()
    conflicts: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    """Why some documents were not written: their path or text cannot be a file here."""
    version: int = 0
    problem: str = ""
    """Why the pull ended early; what was written before stays."""
    next_step: str = ""


def plan_pull(
    documents: Iterable[SharedDocument],
    known: Mapping[str, str],
    on_disk: Callable[[str], str | None],
) -> PullPlan:
    """Compare documents with the copies here.

    `known` has the hashes of the copies as they were written; `on_disk` returns the hash of a copy
    as it is now, or None if there is none."""
    latest = {document.path: document for document in documents}
    writes, deletes = list[CopyWrite](), list[CopyDelete]()
    current, conflicts = list[str](), list[str]()
    kept, gone = list[str](), list[str]()
    for path, document in latest.items():
        now = on_disk(path)
        is_ours = now is not None and now == known.get(path)
        if document.text is None:
            if now is None:
                gone.append(path)
            elif is_ours:
                deletes.append(CopyDelete(path, now))
            else:
                kept.append(path)
        elif now == text_hash(document.text):
            current.append(path)
        elif now is None or is_ours:
            writes.append(CopyWrite(path, document.text, now or ""))
        else:
            conflicts.append(path)
    return PullPlan(
        writes=tuple(writes),
        deletes=tuple(deletes),
        current=tuple(current),
        conflicts=tuple(conflicts),
        kept=tuple(kept),
        gone=tuple(gone),
    )


def text_hash(text: str) -> str:
    """Return the hash of a copy that holds this text."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def resume_version(reached: int, documents: Iterable[SharedDocument], again: Iterable[str]) -> int:
    """Return the version from which the next pull asks for changes.

    It is before the first document that the next pull has to look at again."""
    wanted = set(again)
    return min([reached, *(one.version - 1 for one in documents if one.path in wanted)])
