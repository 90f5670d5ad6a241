"""The steps of forgetting. Each removes what is still there and may be repeated at any time."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Callable, Iterable
from functools import partial
from typing import Protocol

from clawmark.agent.forget.parts import (
    ForgetParts,
    damaged_histories,
    read_file,
    transcript_files,
    version_files,
)
from clawmark.agent.forget.scan import memory_paths
from clawmark.agent.forget.values import ForgetReport
from clawmark.agent.heartbeat.state import remove_seen
from clawmark.agent.session.session import SessionStore
from clawmark.backends.as_of.kept import forget_as_of
from clawmark.engine.maintenance.sources import remove_source
from clawmark.history.history import set_aside
from clawmark.history.tombstones import Tombstones
from clawmark.model.errors import ClawmarkError, HistoryDamaged, NotText
from clawmark.model.provenance import NO_BYTES, JournalRecord, Origin
from clawmark.system import shared_json
from clawmark.system.private_files import open_private, sync_folder
from clawmark.text.forgetting import (
    IsForgotten,
    mask_line,
    mask_value,
    remove_entries,
    units_of,
)
from clawmark.workspace.places import is_below
from clawmark.workspace.versions import version_folder

ATTEMPTS = 5
"""How often to rewrite a transcript that grows at the same time."""
BY_FORGETTING = Origin(actor="user", kind="forget", trust="owner")


class Wanted(Protocol):
    """What to remove: the fields of `ForgetPlan` that have no text."""

    @property
    def entries(self) -> tuple[str, ...]: ...
    @property
    def local(self) -> tuple[tuple[str, str], ...]: ...
    @property
    def files(self) -> tuple[str, ...]: ...
    @property
    def paths(self) -> tuple[str, ...]: ...
    @property
    def transcripts(self) -> tuple[str, ...]: ...
    @property
    def sessions(self) -> tuple[str, ...]: ...
    @property
    def sources(self) -> tuple[str, ...]: ...
    @property
    def copies(self) -> tuple[str, ...]: ...
    @property
    def journal(self) -> tuple[str, ...]: ...
    @property
    def keeps_transcripts(self) -> bool: ...


class Erasure:
    """Decides entry by entry, with hashes alone."""

    def __init__(self, wanted: Wanted, tombstones: Tombstones) -> None:
        self.wanted = wanted
        self._entries = frozenset(wanted.entries)
        self._tombstones = tombstones
        self._known: dict[str, str] = {}

    def is_forgotten(self, content: str) -> bool:
        """Decide about an entry anywhere."""
        return self._hash(content) in self._entries

    def in_file(self, path: str) -> IsForgotten:
        """Return what decides about the entries of one memory file."""
        local = {name for at, name in self.wanted.local if at == path}
        if not local:
            return self.is_forgotten
        return lambda content: self.is_forgotten(content) or self._hash(content) in local

    def _hash(self, content: str) -> str:
        known = self._known.get(content)
        if known is None:
            known = self._known[content] = self._tombstones.hash_entry(content)
        return known


# --- Files ---


def change_files(parts: ForgetParts, erasure: Erasure, report: ForgetReport) -> ForgetReport:
    """Delete memory files, and remove entries from the others."""
    deleted = changed = 0
    for path in memory_paths(parts):
        if path in erasure.wanted.files:
            change: Callable[[str], str] = _nothing
        else:
            change = partial(remove_entries, is_forgotten=erasure.in_file(path))
        try:
            is_changed = parts.workspace.erase(path, change)
        except NotText:
            continue  # the plan has reported it
        if is_changed and parts.workspace.read_exact(path) is None:
            deleted += 1
        elif is_changed:
            changed += 1
            # The record says that something was forgotten here, not what.
            record = parts.journal.begin(BY_FORGETTING, path, "")
            parts.journal.finish(record)
    parts.workspace.sweep(parts.workspace.scan())
    return report._replace(files_deleted=deleted, files_changed=changed)


def change_transcripts(parts: ForgetParts, erasure: Erasure, report: ForgetReport) -> ForgetReport:
    """Delete the transcripts of forgotten sessions, and mask entries in the others."""
    if erasure.wanted.keeps_transcripts:
        return report
    known = transcript_files(parts)
    deleted = sum(_unlink(path) for path in erasure.wanted.transcripts if path in known)
    changed = 0
    for path in transcript_files(parts) if erasure.wanted.entries else ():
        changed += _rewrite(path, lambda data: _masked(data, erasure.is_forgotten))
    return report._replace(transcripts_deleted=deleted, transcripts_changed=changed)


def change_sessions(parts: ForgetParts, erasure: Erasure, report: ForgetReport) -> ForgetReport:
    """Remove sessions from `sessions.json`, and mask entries in the fields of the others."""
    for folder in parts.session_folders if not erasure.wanted.keeps_transcripts else ():
        SessionStore(folder).remove(lambda entry: entry.session_id in erasure.wanted.sessions)
        path = os.path.join(folder, "sessions.json")
        if not os.path.exists(path):
            continue
        with shared_json.locked(path, 10.0) as is_locked:
            if not is_locked:
                raise ClawmarkError(f"Another process keeps {path} locked.", hint="Try again.")
            try:
                before = shared_json.load(path) or {}
                after = mask_value(before, erasure.is_forgotten)
            except (ValueError, RecursionError):
                continue  # damaged: the next change of a session sets it aside
            if after != before:
                shared_json.save(path, after, durable=True)
    return report


def remove_sources(parts: ForgetParts, erasure: Erasure, report: ForgetReport) -> ForgetReport:
    """Stop searching added folders."""
    known = {one.name for one in parts.sources.read()}
    for name in erasure.wanted.sources:
        if name in known:
            remove_source(parts.sources, name)
            parts.workspace.changes += 1
    return report


# --- The state folder ---


def change_proposals(parts: ForgetParts, erasure: Erasure, report: ForgetReport) -> ForgetReport:
    """Remove hunks from proposals, also from those that the user has decided about."""
    names = (*erasure.wanted.files, *erasure.wanted.sessions)

    def keep(text: str) -> bool:
        return not (
            any(name in text for name in names)
            or parts.tombstones.is_forgotten(text)
            or any(erasure.is_forgotten(unit.content) for unit in units_of(text))
        )

    changed = parts.proposals.rewrite(keep)
    return report._replace(versions=report.versions + changed)


def change_copies(parts: ForgetParts, erasure: Erasure, report: ForgetReport) -> ForgetReport:
    """Delete states and other files that repeat a text."""
    deleted, damaged = 0, damaged_histories(parts)
    for path in erasure.wanted.copies:
        is_own = is_below(os.path.abspath(path), os.path.abspath(parts.state_dir))
        if not is_own and path not in damaged:
            continue  # not planned by us: the intent was changed
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path)
            deleted += 1
        else:
            deleted += _unlink(path)
    return report._replace(versions=report.versions + deleted)


def change_versions(parts: ForgetParts, erasure: Erasure, report: ForgetReport) -> ForgetReport:
    """Remove entries from the kept versions of files and from edited copies."""
    locks = os.path.join(parts.state_dir, "locks")
    root, changed = parts.workspace.root, 0
    for path in erasure.wanted.files:
        folder = version_folder(locks, root, path)
        if os.path.isdir(folder):
            shutil.rmtree(folder)
            changed += 1
    local = {version_folder(locks, root, path): path for path, _ in erasure.wanted.local}
    for path in version_files(parts):
        decide = erasure.in_file(local.get(os.path.dirname(path), ""))
        changed += _rewrite(path, partial(_without, is_forgotten=decide))
    return report._replace(versions=report.versions + changed)


def change_history(parts: ForgetParts, erasure: Erasure, report: ForgetReport) -> ForgetReport:
    """Rewrite every version of the workspace that has a forgotten file or entry, and delete the
    indexes of earlier versions."""

    def change(path: str, data: bytes) -> bytes | None:
        if path in erasure.wanted.files or path.startswith(_prefixes(erasure.wanted.sources)):
            return None
        return _without(data, erasure.in_file(path)) or None

    forget_as_of(parts.as_of_folder)
    history = parts.history
    try:
        is_due = any(change(path, data) != data for _, path, data in history.contents())
        if is_due or history.has_leftovers:
            history.rewrite(change)
    except HistoryDamaged as error:  # since the plan was made; what it holds cannot be removed
        aside = set_aside(history.folder)
        sentence = f"{error.message} It was set aside as {aside}: delete it, it may hold the text."
        return report._replace(unreachable=(*report.unreachable, sentence))
    return report._replace(history_rewritten=is_due)


def change_journal(parts: ForgetParts, erasure: Erasure, report: ForgetReport) -> ForgetReport:
    """Remove the hashes of forgotten entries, which are not keyed, and records without any."""
    gone, files = frozenset(erasure.wanted.journal), frozenset(erasure.wanted.files)
    sessions, paths = erasure.wanted.sessions, frozenset(erasure.wanted.paths)
    changed = list[str]()
    rewritten = {one.path for one in parts.journal.records() if one.origin.kind == "forget"}

    def is_named(source: str) -> bool:
        """Whether a source names a forgotten session or file, or says a forgotten text."""
        return any(one in source for one in (*sessions, *files)) or (
            bool(source) and parts.tombstones.is_forgotten(source)
        )

    def decide(record: JournalRecord) -> JournalRecord | None:
        is_its_own = record.origin.session in sessions or is_named(record.origin.source)
        left = tuple(one for one in record.entries if one not in gone)
        if files.intersection((record.path, record.moved_from)) or (record.entries and not left):
            changed.append(record.id)
            return None
        if left != record.entries or (record.path in paths and record.action != "append"):
            record = record._replace(written=NO_BYTES)  # hashes of bytes with forgotten text
        if record.path in rewritten and record.before >= 0:
            # The sizes of the file no longer say where the write was.
            record = record._replace(before=-1, after=-1)
        if left == record.entries and not is_its_own:
            return record
        changed.append(record.id)
        origin = record.origin._replace(session="", source="") if is_its_own else record.origin
        external = tuple(one for one in record.external if one not in gone)
        return record._replace(entries=left, external=external, origin=origin)

    if any(decide(record) != record for record in parts.journal.records()):
        changed.clear()
        parts.journal.change(decide)
    return report._replace(journal_records=len(changed))


def change_states(parts: ForgetParts, erasure: Erasure, report: ForgetReport) -> ForgetReport:
    """Remove hashes of forgotten entries and files from what consolidation and the heartbeat
    remember."""
    parts.usage.remove(erasure.wanted.journal)
    remove_seen(parts.heartbeat_file, (*erasure.wanted.files, *erasure.wanted.paths))
    return report


def erase_from_index(parts: ForgetParts, erasure: Erasure, report: ForgetReport) -> ForgetReport:
    """Remove rows, words and vectors of text that is gone from the files."""
    parts.clear_backends()
    if not parts.store.exists():
        parts.store.erase_deleted()
        return report
    parts.sync_index()
    return report._replace(vectors=parts.store.erase_deleted())


# --- One file ---


def _rewrite(path: str, change: Callable[[bytes], bytes]) -> bool:
    """Replace the bytes of a file in one step; False if they stay the same.

    A file that grows at the same time is read again."""
    for _ in range(ATTEMPTS):
        before = read_file(path)
        after = change(before) if before is not None else None
        if before is None or after is None or after == before:
            return False
        info = os.stat(path)
        folder, name = os.path.split(path)
        new = os.path.join(folder, f".{name}.forget")  # reused by the next run after a kill
        with open(open_private(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), "wb") as file:
            file.write(after)
            file.flush()
            if hasattr(os, "fchmod"):
                os.fchmod(file.fileno(), stat.S_IMODE(info.st_mode))
            os.fsync(file.fileno())
        if os.stat(path).st_size != len(before):
            os.unlink(new)
            continue
        os.replace(new, path)
        sync_folder(folder)
        return True
    raise ClawmarkError(
        f"{path} kept growing while it was rewritten.", hint="End the session, and try again."
    )


def _masked(data: bytes, is_forgotten: IsForgotten) -> bytes:
    """Mask the entries of a transcript; every line stays a line."""
    lines = data.decode("utf-8", "surrogateescape").split("\n")
    masked = (mask_line(line, is_forgotten).replace("\n", " ") for line in lines)
    return "\n".join(masked).encode("utf-8", "surrogateescape")


def _without(data: bytes, is_forgotten: IsForgotten) -> bytes:
    text = data.decode("utf-8", "surrogateescape")
    return remove_entries(text, is_forgotten).encode("utf-8", "surrogateescape")


def _nothing(_: str) -> str:
    return ""


def _unlink(path: str) -> bool:
    """Delete a file; False if it is already gone."""
    try:
        os.unlink(path)
    except FileNotFoundError:
        return False
    sync_folder(os.path.dirname(path))
    return True


def _prefixes(sources: Iterable[str]) -> tuple[str, ...]:
    return tuple(f"{name}:" for name in sources)
