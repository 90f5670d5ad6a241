"""The journal of writes: which entry was written when, by whom and from what.

It is a file of JSON lines in the state folder. Each write appends a line before it changes a memory
file, so that text from outside never exists without its label, and a second line when it is done.
Entries are found by the hash of their content, which follows a line that is moved to another file.
Losing the journal loses labels, never memory; damaged lines are skipped and counted."""

from __future__ import annotations

import hashlib
import json
import mmap
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any, NamedTuple, cast, get_args

from clawmark.model.errors import ClawmarkError, advice
from clawmark.model.provenance import (
    BY_USER,
    TRUST_LEVELS,
    Actor,
    JournalRecord,
    Kind,
    Origin,
    Trust,
    lowest,
)
from clawmark.system import shared_json
from clawmark.system.private_files import open_private, sync_folder
from clawmark.text.entry_times import without_times
from clawmark.text.untrusted.origin_labels import without_comments
from clawmark.text.write_check import normalize_entry, split_entries

LOCK_SECONDS = 10.0
HASH_DIGITS = 24
MOST_LINE = 1 << 20
_ACTORS, _KINDS = frozenset(get_args(Actor)), frozenset(get_args(Kind))


def entry_hash(text: str) -> str:
    """Return the hash of an entry's content, without bullet, time, label and case."""
    content = normalize_entry(without_times(without_comments(text)))
    return hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()[:HASH_DIGITS]


def entry_hashes(text: str) -> tuple[str, ...]:
    """Return the hashes of the entries of a Markdown text, each once."""
    entries = (without_comments(entry) for _, _, entry in split_entries(text))
    return tuple(dict.fromkeys(entry_hash(one) for one in entries if normalize_entry(one)))


class Provenance(NamedTuple):
    """What the journal knows about a text."""

    trust: Trust
    origins: tuple[JournalRecord, ...]
    """The record that each known entry has its origin from, the newest first."""
    unknown: int
    """How many entries are not in the journal."""


class Journal:
    """The journal of one agent. Methods may be called by several threads and processes."""

    def __init__(self, path: str, now: Callable[[], datetime]) -> None:
        self.path = path
        self._now = now

    def begin(
        self, origin: Origin | None, path: str, text: str, *, before: int = -1, after: int = -1
    ) -> JournalRecord:
        """Record durably that a text is about to be written to a file."""
        record = JournalRecord(
            id=os.urandom(8).hex(),
            time=self._now().isoformat(timespec="milliseconds"),
            origin=origin or BY_USER,
            path=path,
            entries=entry_hashes(text),
            before=before,
            after=after,
            done=False,
        )
        self._append(_line(record), durable=True)
        return record

    def finish(self, record: JournalRecord, *, before: int = -1, after: int = -1) -> None:
        """Record that the write was done, and where."""
        self._append(json.dumps({"finished": record.id, "before": before, "after": after}))

    def records(self) -> Iterator[JournalRecord]:
        """Yield every record, the oldest first; damaged lines are skipped."""
        done = dict[str, tuple[int, int]]()
        records = list[JournalRecord]()
        for values in self._lines():
            if "finished" in values:
                done[str(values["finished"])] = (_int(values, "before"), _int(values, "after"))
                continue
            record = _record(values)
            if record is not None:
                records.append(record)
        for record in records:
            if record.id in done:
                before, after = done[record.id]
                yield record._replace(before=before, after=after, done=True)
            else:
                yield record

    def look_up(self, text: str) -> Provenance:
        """Return where the entries of a text came from.

        An entry that the user wrote or accepted is trusted; otherwise an entry that was written
        several times has the least trusted of its origins."""
        hashes = entry_hashes(text)
        found = self._find(hashes)
        origins = [record for one in hashes if (record := decide_origin(found[one])) is not None]
        origins.sort(key=lambda record: record.time, reverse=True)
        return Provenance(
            trust=lowest(tuple(record.origin.trust for record in origins)),
            origins=tuple(dict.fromkeys(origins)),
            unknown=len(hashes) - len(origins),
        )

    def known(self, hashes: Iterable[str]) -> set[str]:
        """Return the hashes that some record has."""
        return {one for one, records in self._find(tuple(hashes)).items() if records}

    def damaged_lines(self) -> int:
        """Count the lines that are not records."""
        return sum(1 for values in self._lines() if not values)

    def rewrite(self, keep: Callable[[JournalRecord], bool]) -> None:
        """Remove records, in one step."""
        with self._locked():
            kept = [record for record in self.records() if keep(record)]
            lines = "".join(f"{_line(record)}\n" for record in kept)
            new = f"{self.path}.new"
            with open(open_private(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), "wb") as file:
                file.write(lines.encode())
                file.flush()
                os.fsync(file.fileno())
            os.replace(new, self.path)
            sync_folder(os.path.dirname(self.path))

    def _find(self, hashes: tuple[str, ...]) -> dict[str, list[JournalRecord]]:
        """Return the records of each hash, the oldest first."""
        found: dict[str, list[JournalRecord]] = {one: [] for one in hashes}
        try:
            with open(open_private(self.path, os.O_RDONLY), "rb") as file:
                if not os.fstat(file.fileno()).st_size:
                    return found
                with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                    for one in hashes:
                        found[one] = list(_records_with(data, one))
        except FileNotFoundError:
            pass
        except OSError as error:
            raise _unreadable(self.path, error) from error
        return found

    def _lines(self) -> Iterator[dict[str, Any]]:
        """Yield the object of each line; an empty one for a damaged line."""
        try:
            with open(open_private(self.path, os.O_RDONLY), "rb") as file:
                for line in file:
                    yield _object(line)
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
                torn = size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"
                os.write(descriptor, (b"\n" if torn else b"") + line.encode() + b"\n")
                if durable:
                    os.fsync(descriptor)
            finally:
                os.close(descriptor)
            if is_new and durable:
                sync_folder(os.path.dirname(self.path))

    @contextmanager
    def _locked(self) -> Iterator[None]:
        with shared_json.locked(self.path, LOCK_SECONDS) as is_locked:
            if not is_locked:
                raise ClawmarkError(
                    f"Another process keeps the journal {self.path} locked.",
                    hint="Try again in a moment.",
                )
            yield


def decide_origin(records: list[JournalRecord]) -> JournalRecord | None:
    """Return the record that an entry has its origin from: the last one by the user, otherwise the
    least trusted one."""
    owned = [record for record in records if record.origin.trust == "owner"]
    if owned:
        return owned[-1]
    return max(records, key=lambda record: TRUST_LEVELS.index(record.origin.trust), default=None)


def _records_with(data: mmap.mmap, entry: str) -> Iterator[JournalRecord]:
    """Yield the records that have an entry, the oldest first."""
    wanted = f'"{entry}"'.encode()
    at = data.find(wanted)
    while at >= 0:
        start = data.rfind(b"\n", 0, at) + 1
        end = data.find(b"\n", at)
        end = len(data) if end < 0 else end
        record = _record(_object(data[start:end])) if end - start <= MOST_LINE else None
        if record is not None and entry in record.entries:
            yield record
        at = data.find(wanted, end)


def _object(line: bytes) -> dict[str, Any]:
    try:
        values = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return values if isinstance(values, dict) else {}


def _record(values: dict[str, Any]) -> JournalRecord | None:
    """Return the record of a line, or None if the line is damaged."""
    match values:
        case {
            "id": str(name),
            "time": str(time),
            "actor": str(actor),
            "kind": str(kind),
            "trust": str(trust),
            "path": str(path),
            "entries": list(entries),
        } if actor in _ACTORS and kind in _KINDS and trust in TRUST_LEVELS:
            origin = Origin(
                actor=cast(Actor, actor),
                kind=cast(Kind, kind),
                trust=trust,
                session=str(values.get("session", "")),
                source=str(values.get("source", "")),
            )
            return JournalRecord(
                id=name,
                time=time,
                origin=origin,
                path=path,
                entries=tuple(one for one in entries if isinstance(one, str)),
                before=_int(values, "before"),
                after=_int(values, "after"),
                done=values.get("done") is True,
            )
    return None


def _line(record: JournalRecord) -> str:
    values = {
        "id": record.id,
        "time": record.time,
        **record.origin._asdict(),
        "path": record.path,
        "entries": record.entries,
        "before": record.before,
        "after": record.after,
    }
    if record.done:
        values["done"] = True
    return json.dumps(values, separators=(",", ":"))


def _int(values: dict[str, Any], name: str) -> int:
    value = values.get(name)
    return value if isinstance(value, int) else -1


def _unreadable(path: str, error: OSError) -> ClawmarkError:
    return ClawmarkError(
        f"The journal {path} cannot be read: {error.strerror}.",
        hint=advice(error, "Check its permissions; labels are missing until then."),
    )
