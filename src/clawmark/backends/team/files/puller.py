"""Keep copies of shared spaces in the folder `spaces` of the workspace.

How far each space was pulled, and the hash of each copy, is in a file of the state folder. It is
saved after each page of changes, so an interrupted pull continues where it stopped."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import NamedTuple

from clawmark.backends.team.base import Changes, SharedDocument, TeamSpaces
from clawmark.backends.team.files.copies import CopyFiles
from clawmark.backends.team.files.local_paths import local_path
from clawmark.backends.team.files.pulling import (
    CopyWrite,
    Pulled,
    PullPlan,
    plan_pull,
    resume_version,
    text_hash,
)
from clawmark.model.errors import (
    ClawmarkError,
    SpaceDenied,
    SpacesUnavailable,
    WorkspaceError,
    WriteConflict,
)
from clawmark.system import shared_json

PAGE = 100
LOCK_SECONDS = 30.0


class _State(NamedTuple):
    """How far a space was pulled."""

    version: int
    files: dict[str, str]
    """The hash of each copy as it was written, by path."""


class Puller:
    """Pulls spaces into one workspace."""

    def __init__(self, team: TeamSpaces, copies: CopyFiles, folder: str) -> None:
        """`folder` is where the state of each space is kept."""
        self._team = team
        self._copies = copies
        self._folder = folder

    def pull(self, space: str) -> Pulled:
        """Bring the copies of a space up to date.

        A space that does not answer ends the pull, and the report says why; `SpaceDenied` is
        raised. A damaged state file is replaced: the copies are compared one by one then."""
        path = os.path.join(self._folder, f"{space}.json")
        with shared_json.locked(path, LOCK_SECONDS) as is_held:
            if not is_held:
                return Pulled(
                    space,
                    problem=f"Another process is pulling the space {space}.",
                    next_step="Try again when it has finished.",
                )
            return self._pull(space, path)

    def _pull(self, space: str, state_path: str) -> Pulled:
        state = _load(state_path)
        if any(self._look(path) is None for path in state.files):
            state = state._replace(version=0)  # a copy was deleted here, and is written again
        since, resume, done = state.version, state.version, Pulled(space, version=state.version)
        is_held_back = False
        while True:
            try:
                changes = self._team.changes(space, since, PAGE)
                page, again = self._apply(space, changes, state.files)
            except SpaceDenied:
                raise
            except ClawmarkError as error:
                return done._replace(problem=error.message, next_step=error.hint)
            done = _joined(done, page)
            if not is_held_back:
                resume = resume_version(changes.version, changes.documents, again)
                is_held_back = bool(again)
            done = done._replace(version=resume)
            _save(state_path, _State(resume, state.files))
            if changes.is_complete or changes.version <= since:
                return done
            since = changes.version

    def _apply(
        self, space: str, changes: Changes, files: dict[str, str]
    ) -> tuple[Pulled, tuple[str, ...]]:
        """Write and delete copies, and return the paths that the next pull looks at again."""
        documents, refused = _usable(space, changes.documents)
        plan = plan_pull(documents, files, self._look)
        texts = {one.path: one.text or "" for one in documents}
        files |= {path: text_hash(texts[path]) for path in plan.current}
        done = self._write(plan, files)
        for path in (*done.deleted, *plan.kept, *plan.gone):
            files.pop(path, None)
        page = done._replace(
            space=space,
            conflicts=(*plan.conflicts, *done.conflicts),
            kept=plan.kept,
            refused=(*refused, *done.refused),
        )
        changed = {*page.written, *page.deleted}
        planned = (*plan.conflicts, *(one.path for one in plan.steps))
        return page, tuple(path for path in planned if path not in changed)

    def _look(self, path: str) -> str | None:
        """Return the hash of a copy; what cannot be read, such as a link, is not one of ours."""
        try:
            return self._copies.hash_of(path)
        except WorkspaceError:
            return "unreadable"

    def _write(self, plan: PullPlan, files: dict[str, str]) -> Pulled:
        written, deleted = list[str](), list[str]()
        conflicts, refused = list[str](), list[str]()
        for one in plan.steps:
            try:
                if isinstance(one, CopyWrite):
                    files[one.path] = self._copies.write(one.path, one.text, one.base_hash)
                    written.append(one.path)
                else:
                    self._copies.delete(one.path, one.base_hash)
                    deleted.append(one.path)
            except WriteConflict:  # it was changed after the look
                conflicts.append(one.path)
            except WorkspaceError as error:
                refused.append(error.message)
        return Pulled(
            "",
            written=tuple(written),
            deleted=tuple(deleted),
            conflicts=tuple(conflicts),
            refused=tuple(refused),
        )


def _usable(
    space: str, documents: Sequence[SharedDocument]
) -> tuple[list[SharedDocument], list[str]]:
    """Return the documents that can be files of this space here, and why others cannot."""
    usable, refused = list[SharedDocument](), list[str]()
    for document in documents:
        try:
            if local_path(document.path).space != space:
                raise SpacesUnavailable(f"{document.path[:100]!a} belongs to another space.")
        except ClawmarkError as error:
            if document.text is not None:  # a withdrawn one was not written here before
                refused.append(error.message)
            continue
        if document.text is not None and "\0" in document.text:
            refused.append(f"The text of {document.path} has NUL characters.")
            continue
        usable.append(document)
    return usable, refused


def _joined(first: Pulled, second: Pulled) -> Pulled:
    def both(one: tuple[str, ...], other: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*one, *other)))

    return first._replace(
        written=both(first.written, second.written),
        deleted=both(first.deleted, second.deleted),
        conflicts=both(first.conflicts, second.conflicts),
        kept=both(first.kept, second.kept),
        refused=both(first.refused, second.refused),
    )


def _load(path: str) -> _State:
    try:
        found = shared_json.load(path) or {}
    except ValueError:
        shared_json.set_aside(path)
        found = {}
    version, files = found.get("version"), found.get("files")
    if not isinstance(version, int) or not isinstance(files, dict):
        return _State(0, {})
    known = {name: digest for name, digest in files.items() if isinstance(digest, str)}
    return _State(version, known) if len(known) == len(files) else _State(0, {})


def _save(path: str, state: _State) -> None:
    shared_json.save(path, {"version": state.version, "files": state.files}, durable=True)
