"""The journal of writes: which entry was written when, by whom and from what.

It is a file of JSON lines in the state folder. Each write appends a line before it changes a memory
file, so that text from outside never exists without its label, and a second line when it is done.
Entries are found by the hash of their content, which follows a line that is moved to another file.
A journal has an identity, so that one which was lost and begun again is noticed. Losing the journal
loses labels, never memory; damaged lines are skipped and counted."""

from __future__ import annotations

import errno
import hashlib
import json
import mmap
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from clawmark.history.entry_index import HASH_DIGITS, EntryIndex, lines_from, parse_object
from clawmark.history.record_lines import (
    identity_of,
    is_damaged,
    is_open,
    is_outcome,
    outcome_id,
    read_record,
    set_fields,
    with_outcome,
    write_identity,
    write_record,
)
from clawmark.model.errors import ClawmarkError, advice
from clawmark.model.provenance import (
    BY_USER,
    NO_BYTES,
    TRUST_LEVELS,
    Action,
    BytesWritten,
    JournalRecord,
    Origin,
    Provenance,
    Trust,
    lowest,
)
from clawmark.system import shared_json
from clawmark.system.private_files import open_private, sync_folder
from clawmark.text.entry_content import normalize_entry, split_entries
from clawmark.text.entry_times import without_times
from clawmark.text.untrusted.origin_labels import (
    COMMENT_START,
    IMPORTS,
    origin_of,
    without_comments,
)

LOCK_SECONDS = 10.0
MOST_LINE = 16 << 20


def entry_hash(text: str) -> str:
    """Return the hash of an entry's content, without bullet, time, label and case."""
    return _hash(_content(without_comments(text)))


def entry_hashes(text: str) -> tuple[str, ...]:
    """Return the hashes of the entries of a Markdown text, each once."""
    contents = (_content(entry) for _, _, entry in split_entries(text))
    return tuple(dict.fromkeys(_hash(content) for content in contents if content))


def _content(entry: str) -> str:
    """Return what an entry without its label says."""
    return normalize_entry(without_times(entry))


def _hash(content: str) -> str:
    return hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()[:HASH_DIGITS]


def entries_between(text: str, first: int, last: int) -> str:
    """Return the entries of a file that some of its lines belong to, each as a whole."""
    entries = [entry for start, end, entry in split_entries(text) if start <= last and end >= first]
    return "\n\n".join(entries)


class Journal:
    """The journal of one agent. Methods may be called by several threads and processes."""

    def __init__(
        self, path: str, now: Callable[[], datetime], *, lock_seconds: float = LOCK_SECONDS
    ) -> None:
        self.path = path
        self._now = now
        self._lock_seconds = lock_seconds
        self._index = EntryIndex(path)

    def begin(
        self,
        origin: Origin | None,
        path: str,
        text: str,
        *,
        before: int = -1,
        after: int = -1,
        old: str = "",
        outside: str = "",
        action: Action = "replace",
        moved_from: str = "",
        written: BytesWritten = NO_BYTES,
        undoes: str = "",
    ) -> JournalRecord:
        """Record durably that a text is about to be written to a file.

        Entries of `old`, the text that is replaced, are left out: they keep their origins.
        `outside` is the part of the text that came from outside."""
        known = frozenset(entry_hashes(old)) if old else frozenset()
        entries = tuple(one for one in entry_hashes(text) if one not in known)
        external = frozenset(entry_hashes(outside)) if outside else frozenset()
        record = JournalRecord(
            id=os.urandom(8).hex(),
            time=self._time(),
            origin=origin or BY_USER,
            path=path,
            entries=entries,
            before=before,
            after=after,
            done=False,
            action=action,
            moved_from=moved_from,
            external=tuple(one for one in entries if one in external),
            written=written,
            undoes=undoes,
        )
        self._append(write_record(record), durable=True)
        return record

    def finish(
        self,
        record: JournalRecord,
        *,
        before: int = -1,
        after: int = -1,
        written: BytesWritten = NO_BYTES,
    ) -> None:
        """Record that the write was done, and where."""
        line: dict[str, object] = {"finished": record.id, "before": before, "after": after}
        self._append(json.dumps(line | set_fields(written), separators=(",", ":")))

    def drop(self, record: JournalRecord) -> None:
        """Record that the write did not happen."""
        self._append(json.dumps({"dropped": record.id}, separators=(",", ":")))

    def add_found(self, files: Sequence[tuple[str, str]]) -> int:
        """Record the entries of some files (path and text) that no record has, as edited by the
        user, and return how many there are.

        A label inside the text proves nothing, so it can only lower the trust. The records are not
        synced to the disk, because a search may be waiting: if they are lost, the text is unknown,
        and the next change of the file records it again."""
        entries = [(path, list(_labelled_entries(path, text))) for path, text in files]
        known = self.known({one for _, found in entries for one, _ in found})
        records = list[JournalRecord]()
        for path, found in entries:
            new = {one: trust for one, trust in found if one not in known}
            for trust in TRUST_LEVELS:
                hashes = tuple(one for one in new if new[one] == trust)
                if hashes:
                    records.append(self._found(path, hashes, trust))
        if records:
            self._append("\n".join(map(write_record, records)))
        return sum(len(record.entries) for record in records)

    def _found(self, path: str, hashes: tuple[str, ...], trust: Trust) -> JournalRecord:
        return JournalRecord(
            id=os.urandom(8).hex(),
            time=self._time(),
            origin=Origin("user", "edited", trust),
            path=path,
            entries=hashes,
            action="found",
        )

    def records(self) -> Iterator[JournalRecord]:
        """Yield every record, the oldest first; damaged lines are skipped."""
        outcomes = dict[str, dict[str, Any]]()
        records = list[JournalRecord]()
        for values in self._lines():
            if is_outcome(values):
                outcomes[outcome_id(values)] = values
                continue
            record = read_record(values)
            if record is not None:
                records.append(record)
        for record in records:
            yield with_outcome(record, outcomes.get(record.id))

    def newest(self) -> Iterator[JournalRecord]:
        """Yield every record, the newest first; only as much of the file is read as needed."""
        outcomes = dict[str, dict[str, Any]]()
        for line in self._lines_backwards():
            values = parse_object(line)
            if is_outcome(values):
                outcomes[outcome_id(values)] = values
                continue
            record = read_record(values)
            if record is not None:
                yield with_outcome(record, outcomes.pop(record.id, None))

    def unfinished(self) -> list[JournalRecord]:
        """Return the records without an outcome: the writer is still busy, or was killed."""
        with self._mapped() as found:
            if found is None:
                return []
            journal, data = found
            covered = self._index.covered(journal, data)
            waiting = {offset: name for name, offset in covered.open.items()}
            for offset, values in lines_from(data, covered.size, len(data)):
                if is_outcome(values):
                    ended = outcome_id(values)
                    waiting = {at: name for at, name in waiting.items() if name != ended}
                elif is_open(values):
                    waiting[offset] = str(values["id"])
            records = (_record_at(data, offset) for offset in sorted(waiting))
            return [record for record in records if record is not None]

    def look_up(self, text: str) -> Provenance:
        """Return where the entries of a text came from.

        An entry that the user wrote or accepted is trusted; otherwise an entry that was written
        several times has the least trusted of its origins."""
        return self.look_up_each((text,))[0]

    def look_up_each(self, texts: Sequence[str]) -> tuple[Provenance, ...]:
        """Return where the entries of each text came from; the journal is opened once."""
        hashes = [entry_hashes(text) for text in texts]
        found = self._find({one for some in hashes for one in some})
        return tuple(_provenance(some, found) for some in hashes)

    def external(self, hashes: Collection[str]) -> frozenset[str]:
        """Return the hashes of entries that came from outside and were never the user's own
        words."""
        decided = {one: decide_origin(records) for one, records in self._find(hashes).items()}
        return frozenset(
            one
            for one, record in decided.items()
            if record is not None and record.origin.trust == "external"
        )

    @property
    def identity(self) -> str:
        """The id of the first record that was ever written to this journal; empty if there is no
        record. A rewrite keeps it."""
        return next(filter(None, map(identity_of, self._lines())), "")

    @property
    def begins(self) -> str:
        """The time of the oldest record; empty if there is none."""
        records = map(read_record, self._lines())
        return next((record.time for record in records if record is not None), "")

    @property
    def version(self) -> tuple[int, int]:
        """Changes when the journal does: the inode and the size of its file."""
        try:
            info = os.stat(self.path)
        except OSError:
            return (0, 0)
        return (info.st_ino, info.st_size)

    def known(self, hashes: Iterable[str]) -> set[str]:
        """Return the hashes that some record has."""
        with self._mapped() as found:
            if found is None:
                return set()
            journal, data = found
            offsets = self._index.offsets(journal, data, tuple(hashes))
            return {one for one, places in offsets.items() if places}

    def damaged_lines(self) -> int:
        """Count the lines that are not records."""
        with self._mapped() as found:
            if found is None:
                return 0
            journal, data = found
            covered = self._index.covered(journal, data)
            rest = lines_from(data, covered.size, len(data))
            return covered.damaged + sum(1 for _, values in rest if is_damaged(values))

    def rewrite(self, keep: Callable[[JournalRecord], bool]) -> None:
        """Remove records, in one step."""
        self.change(lambda record: record if keep(record) else None)

    def change(self, decide: Callable[[JournalRecord], JournalRecord | None]) -> None:
        """Change records or remove them (None), in one step; damaged lines are removed too."""
        with self._locked():
            if not os.path.exists(self.path):
                return
            decided = map(decide, self.records())
            kept = [write_record(record) for record in decided if record is not None]
            identity = [write_identity(name)] if (name := self.identity) else []
            lines = "".join(f"{line}\n" for line in (*identity, *kept))
            new = f"{self.path}.new"
            with open(open_private(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), "wb") as file:
                file.write(lines.encode())
                file.flush()
                os.fsync(file.fileno())
            with suppress(FileNotFoundError):
                os.unlink(self._index.path)  # it has the hashes of what is removed
            os.replace(new, self.path)
            sync_folder(os.path.dirname(self.path))

    def _find(self, hashes: Collection[str]) -> dict[str, list[JournalRecord]]:
        """Return the records of each hash, the oldest first."""
        with self._mapped() as found:
            if found is None or not hashes:
                return {one: [] for one in hashes}
            journal, data = found
            found_at = self._index.offsets(journal, data, hashes)
            # Each line is read once: a record of a large file has thousands of the hashes.
            places = {at for offsets in found_at.values() for at in offsets}
            lines = {at: _Line.read(data, at) for at in places}
            return {
                one: list(_records_of(one, (lines[at] for at in offsets)))
                for one, offsets in found_at.items()
            }

    @contextmanager
    def _mapped(self) -> Iterator[tuple[int, mmap.mmap] | None]:
        """Map the journal into memory; None if there is none."""
        try:
            with open(open_private(self.path, os.O_RDONLY), "rb") as file:
                if not os.fstat(file.fileno()).st_size:
                    yield None
                    return
                with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                    yield file.fileno(), data
        except FileNotFoundError:
            yield None
        except OSError as error:
            raise _unreadable(self.path, error) from error

    def _lines_backwards(self) -> Iterator[bytes]:
        """Yield the lines from the last to the first."""
        with self._mapped() as found:
            if found is None:
                return
            _, data = found
            end = len(data)
            while end > 0:
                start = data.rfind(b"\n", 0, end - 1) + 1
                yield data[start:end]
                end = start

    def age(self, record: JournalRecord) -> timedelta:
        """Return how long ago a write began; none for a time that is not valid or ahead."""
        try:
            return max(timedelta(0), self._moment() - datetime.fromisoformat(record.time))
        except (ValueError, TypeError):
            return timedelta.max

    def _time(self) -> str:
        return self._moment().isoformat(timespec="milliseconds")

    def _moment(self) -> datetime:
        """Return the time of the clock; one without a time zone is that of this machine."""
        now = self._now()
        return now if now.tzinfo is not None else now.astimezone()

    def _lines(self) -> Iterator[dict[str, Any]]:
        """Yield the object of each line; an empty one for a damaged line."""
        try:
            with open(open_private(self.path, os.O_RDONLY), "rb") as file:
                for line in file:
                    yield parse_object(line)
        except FileNotFoundError:
            return
        except OSError as error:
            raise _unreadable(self.path, error) from error

    def _append(self, line: str, *, durable: bool = False) -> None:
        with self._locked():
            is_new = not os.path.exists(self.path)
            descriptor = open_private(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND)
            try:
                size = os.fstat(descriptor).st_size
                # A line that a killed process left unfinished must not swallow this one.
                torn = size > 0 and _last_byte(descriptor, size) != b"\n"
                data = (b"\n" if torn else b"") + line.encode() + b"\n"
                if os.write(descriptor, data) < len(data):
                    os.ftruncate(descriptor, size)
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), self.path)
                if durable:
                    os.fsync(descriptor)
            finally:
                os.close(descriptor)
            if is_new and durable:
                sync_folder(os.path.dirname(self.path))

    @contextmanager
    def _locked(self) -> Iterator[None]:
        with shared_json.locked(self.path, self._lock_seconds) as is_locked:
            if not is_locked:
                raise ClawmarkError(
                    f"Another process keeps the journal {self.path} locked.",
                    hint="Try again in a moment.",
                )
            yield


def _provenance(hashes: Sequence[str], found: dict[str, list[JournalRecord]]) -> Provenance:
    origins = [record for one in hashes if (record := decide_origin(found[one])) is not None]
    origins.sort(key=lambda record: record.time, reverse=True)
    # Compared by id: a record of a large file has thousands of entries.
    each = {(record.id, record.origin.trust): record for record in origins}
    return Provenance(
        trust=lowest(tuple(record.origin.trust for record in origins)),
        origins=tuple(each.values()),
        unknown=len(hashes) - len(origins),
    )


def decide_origin(records: list[JournalRecord]) -> JournalRecord | None:
    """Return the record that an entry has its origin from: the last one by the user, otherwise the
    least trusted one."""
    owned = [record for record in records if record.origin.trust == "owner"]
    if owned:
        return owned[-1]
    return max(records, key=lambda record: TRUST_LEVELS.index(record.origin.trust), default=None)


class _Line(NamedTuple):
    """A record, with its entries as sets."""

    record: JournalRecord | None
    entries: frozenset[str]
    external: frozenset[str]

    @classmethod
    def read(cls, data: mmap.mmap, offset: int) -> _Line:
        record = _record_at(data, offset)
        if record is None:
            return cls(None, frozenset(), frozenset())
        return cls(record, frozenset(record.entries), frozenset(record.external))


def _records_of(entry: str, lines: Iterable[_Line]) -> Iterator[JournalRecord]:
    """Yield the records that have an entry, each with the trust of that entry."""
    for record, entries, external in lines:
        if record is not None and entry in entries:
            yield (
                record._replace(origin=record.origin._replace(trust="external"))
                if entry in external
                else record
            )


def _record_at(data: mmap.mmap, offset: int) -> JournalRecord | None:
    """Return the record whose line starts at an offset."""
    end = data.find(b"\n", offset, offset + MOST_LINE)
    return read_record(parse_object(data[offset : len(data) if end < 0 else end]))


def _labelled_entries(path: str, text: str) -> Iterator[tuple[str, Trust]]:
    """Yield the hash of each entry of a file, and how far an entry without a record is trusted."""
    is_labelled = COMMENT_START in text or path.startswith(IMPORTS)
    lines = text.split("\n") if is_labelled else []
    for first, last, entry in split_entries(text):
        content = _content(entry)
        if content:
            label = origin_of("\n".join(lines[first - 1 : last]), path) if is_labelled else ""
            yield _hash(content), _LABEL_TRUST.get(label, "owner")


_LABEL_TRUST: dict[str, Trust] = {
    "user": "agent",  # only tools of agents write labels
    "agent": "agent",
    "tool": "external",
    "import": "external",
}


def _last_byte(descriptor: int, size: int) -> bytes:
    os.lseek(descriptor, size - 1, os.SEEK_SET)  # Windows has no `pread`
    return os.read(descriptor, 1)


def _unreadable(path: str, error: OSError) -> ClawmarkError:
    return ClawmarkError(
        f"The journal {path} cannot be read: {error.strerror}.",
        hint=advice(error, "Check its permissions; labels are missing until then."),
    )
