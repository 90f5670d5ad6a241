"""The batch jobs under way, on disk: what was sent, as what it is known to the provider, and which
texts it covers.

In: the file of one provider key, held under its lock by one process at a time. Out: the jobs a
killed run left behind. A job is written down before each step that could not be undone, so that a
kill leaves one upload too many at the worst and never a job that is paid for twice. Talking to the
provider is left to `batch`."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterable
from typing import NamedTuple

from clawmark.embed.batch.calls import is_id
from clawmark.system import shared_json as statefile

_VERSION = 1
_HASH = re.compile(r"[0-9a-f]{64}")


class Entry(NamedTuple):
    """One job: planned while it has no upload, uploaded while it has no job, then running, then
    done.
    """

    hashes: tuple[str, ...]
    since: float
    """Unix time."""
    upload: str = ""
    job: str = ""
    output: str = ""
    is_done: bool = False
    """Every vector is stored: all that is left is to delete the files at the provider."""


class Register:
    """The jobs of one provider key; whoever uses it holds the lock of the file."""

    def __init__(self, path: str, identity: tuple[str, str, str]) -> None:
        self._path = path
        self._identity = list(identity)
        self.entries: list[Entry] = []

    def load(self) -> None:
        """Read what an earlier run left; a damaged file is set aside, and what it knew is lost."""
        try:
            self.entries = self._parsed(statefile.load(self._path))
        except ValueError:
            statefile.set_aside(self._path)
        except OSError:
            return  # the first save will tell

    def add(self, entry: Entry) -> bool:
        self.entries.append(entry)
        return self._save()

    def replace(self, old: Entry, new: Entry) -> Entry:
        """Put a job a step further; without a disk that takes it, this run goes on and only a kill
        would cost.
        """
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
                statefile.save(
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
    """The texts that jobs under way cover, for a process that does not hold the lock."""
    register = Register(path, identity)
    try:
        found = register._parsed(statefile.load(path))
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
