"""The register of running batch jobs on disk: their ids at the provider and the texts they cover.

One process at a time holds the lock of the file. An entry is written before each step that cannot
be undone, so a killed process leaves at most one superfluous upload and never a job that is paid
for twice."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterable
from typing import NamedTuple

from clawmark.embed.batch.calls import is_id
from clawmark.system import shared_json

_VERSION = 1
_HASH = re.compile(r"[0-9a-f]{64}")


class Entry(NamedTuple):
    """One job: planned without an upload, uploaded without a job, then running, then done."""

    hashes: tuple[str, ...]
    since: float
    """Unix time."""
    upload: str = ""
    job: str = ""
    output: str = ""
    is_done: bool = False
    """All vectors are stored; only the files at the provider remain to be deleted."""


class Register:
    """The jobs of one provider key; the user holds the lock of the file."""

    def __init__(self, path: str, identity: tuple[str, str, str]) -> None:
        self._path = path
        self._identity = list(identity)
        self.entries: list[Entry] = []

    def load(self) -> None:
        """Read the jobs of an earlier run; a damaged file is renamed and ignored."""
        try:
            self.entries = self._parsed(shared_json.load(self._path))
        except ValueError:
            shared_json.set_aside(self._path)
        except OSError:
            return  # the first save will fail as well

    def add(self, entry: Entry) -> bool:
        self.entries.append(entry)
        return self._save()

    def replace(self, old: Entry, new: Entry) -> Entry:
        """Replace an entry; when it cannot be written, the run continues."""
        self.entries[self.entries.index(old)] = new
        self._save()
        return new

    def drop(self, gone: Iterable[Entry]) -> None:
        names = {id(entry) for entry in gone}
        if names:
            self.entries = [entry for entry in self.entries if id(entry) not in names]
            self._save()

    def _save(self) -> bool:
        jobs = [entry._asdict() for entry in self.entries]
        try:
            if jobs:
                shared_json.save(
                    self._path,
                    {"version": _VERSION, "identity": self._identity, "jobs": jobs},
                    durable=True,
                )
            else:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(self._path)
        except OSError:
            return False
        return True

    def _parsed(self, value: dict[str, object] | None) -> list[Entry]:
        if value is None:
            return []
        jobs = value.get("jobs")
        if (
            value.get("version") != _VERSION
            or value.get("identity") != self._identity
            or not isinstance(jobs, list)
        ):
            raise ValueError("not a register of this provider")
        return [_entry(job) for job in jobs]


def hashes_in(path: str, identity: tuple[str, str, str]) -> set[str]:
    """Return the texts that running jobs cover, for a process without the lock."""
    register = Register(path, identity)
    try:
        found = register._parsed(shared_json.load(path))
    except (OSError, ValueError):
        return set()
    return {text for entry in found for text in entry.hashes}


def _entry(job: object) -> Entry:
    if not isinstance(job, dict) or job.keys() != set(Entry._fields):
        raise ValueError("not a job")
    entry = Entry(
        **{**job, "hashes": tuple(job["hashes"]) if isinstance(job["hashes"], list) else ()}
    )
    are_hashes = all(isinstance(text, str) and _HASH.fullmatch(text) for text in entry.hashes)
    are_names = all(name == "" or is_id(name) for name in (entry.upload, entry.job, entry.output))
    if not entry.hashes or not are_hashes or not are_names or type(entry.since) not in (int, float):
        raise ValueError("not a job")
    return entry
