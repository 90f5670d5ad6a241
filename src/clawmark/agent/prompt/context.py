"""What a session sees of its workspace without asking, by its kind.

In: a workspace folder, a kind of session, today's date and the limits. Out: a `Context`: the
workspace's own files in an order that never changes, cut along their sections where they are too
long; the logs of the last days, for private sessions only; and a notice for every file that is
there and could not be shown, with the reason. The order, and the bytes of a file that did not
change, stay the same from turn to turn, so that a prompt cache hits.

`ContextReader` is asked before every turn: it looks at each file and reads only those that changed.
Who may see what is decided in `kinds.py`, cutting in `fit.py`, and the words around it in
`prompt.py`."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date, timedelta
from typing import NamedTuple

from clawmark.agent.prompt.fit import fit
from clawmark.agent.prompt.session_files import LONG_TERM, SessionKind, files_for, is_private
from clawmark.model.errors import ClawmarkError, PathDenied
from clawmark.text.dates import date_of
from clawmark.text.untrusted.invisible_characters import escape
from clawmark.workspace.guard import Folder, open_regular, open_root, reason_of, shown
from clawmark.workspace.places import is_markdown
from clawmark.workspace.read import decode, read_all

MAX_BYTES = 2 * 1024 * 1024
"""A file that an agent should know by heart is never this long."""

_GRAIN_NS = 2_000_000_000
"""A file read this soon after its last change may change again without a trace in its times: it is
read again.
"""

_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_HEADING = re.compile(r"^#{1,6}[ \t].*$", re.MULTILINE)


class Limits(NamedTuple):
    """How much may be shown, in characters."""

    per_file: int = 20_000
    total: int = 150_000
    log_days: int = 2
    """Today and the days before it; 0 for no logs."""
    per_log: int = 4000
    all_logs: int = 12_000


class ContextFile(NamedTuple):
    """One file as a session sees it."""

    name: str
    text: str
    """Cut to the limits; invisible characters written out."""
    chars: int
    """How long the whole file is."""

    @property
    def is_cut(self) -> bool:
        return len(self.text) < self.chars


class Context(NamedTuple):
    """Everything a session sees, finished."""

    kind: SessionKind
    files: tuple[ContextFile, ...]
    logs: tuple[ContextFile, ...]
    """The oldest first."""
    notices: tuple[str, ...]
    """Why a file that is there is not shown: one sentence each."""


class _Seen(NamedTuple):
    stamp: tuple[int, ...]
    text: str


class ContextReader:
    """Reads what sessions of one workspace see, again and again, cheaply."""

    def __init__(self, root: str, now_ns: Callable[[], int] = time.time_ns) -> None:
        self.root = root
        self._now_ns = now_ns
        self._seen: dict[str, _Seen] = {}
        self._cut: dict[str, tuple[str, int, ContextFile]] = {}

    def read(self, kind: SessionKind, today: str, limits: Limits | None = None) -> Context:
        """What a session of this kind sees now; `today` is YYYY-MM-DD where the user lives."""
        limits = limits or Limits()
        notices: list[str] = []
        try:
            with open_root(os.path.realpath(self.root)) as folder:
                files = self._files(folder, kind, limits, notices)
                logs = self._logs(folder, today, limits, notices) if is_private(kind) else ()
        except OSError as error:
            return Context(
                kind=kind,
                files=(),
                logs=(),
                notices=(f"The workspace cannot be opened: {reason_of(error)}.",),
            )
        return Context(kind=kind, files=files, logs=logs, notices=tuple(notices))

    def _files(
        self, folder: Folder, kind: SessionKind, limits: Limits, notices: list[str]
    ) -> tuple[ContextFile, ...]:
        files: list[ContextFile] = []
        left = limits.total
        inodes = set[tuple[int, int]]()
        for name in files_for(kind):
            text = self._text(folder, name, name, notices, inodes if name in LONG_TERM else None)
            if not text.strip() or (name == "HEARTBEAT.md" and not _says_something(text)):
                continue
            file = self._shown(text, min(limits.per_file, left), name, is_log=False)
            if file.text:
                files.append(file)
                left -= len(file.text)
            else:
                notices.append(
                    f"{name} is left out: there is room for {limits.total:,} characters of all "
                    f"files."
                )
        return tuple(files)

    def _logs(
        self, folder: Folder, today: str, limits: Limits, notices: list[str]
    ) -> tuple[ContextFile, ...]:
        """The logs of the last days and the notes beside them; the newest have the first right to
        the budget.
        """
        days = _days(today, limits.log_days)
        logs: list[ContextFile] = []
        left = limits.all_logs
        with _memory_folder(folder, notices) as memory:
            names = _names_of(memory, days) if memory is not None and days else []
            for name in names:
                assert memory is not None
                path = f"memory/{name}"
                text = self._text(memory, name, path, notices)
                log = self._shown(text, min(limits.per_log, left), path, is_log=True)
                if log.text:
                    logs.append(log)
                    left -= len(log.text)
                elif text.strip():
                    notices.append(
                        f"{shown(path)} is left out: there is room for {limits.all_logs:,} "
                        f"characters of logs."
                    )
        return tuple(sorted(logs))

    def _shown(self, text: str, limit: int, path: str, *, is_log: bool) -> ContextFile:
        """A file as it is shown within a limit; made again only when its text or the limit is
        another one.
        """
        known = self._cut.get(path)
        if known is not None and known[0] is text and known[1] == limit:
            return known[2]
        visible = escape(text, joiners=is_log).rstrip()
        cut = fit(visible, limit, path, grows=is_log or path in LONG_TERM)
        made = ContextFile(path, cut, len(visible))
        self._cut[path] = (text, limit, made)
        return made

    def _text(
        self,
        folder: Folder,
        name: str,
        path: str,
        notices: list[str],
        inodes: set[tuple[int, int]] | None = None,
    ) -> str:
        """The text of a file; empty, with a notice, when it is there and cannot be shown."""
        try:
            info = folder.lstat(name)
            if inodes is not None:
                if (info.st_dev, info.st_ino) in inodes:
                    return ""  # MEMORY.md and memory.md are one file where case does not matter
                inodes.add((info.st_dev, info.st_ino))
            stamp = (info.st_dev, info.st_ino, info.st_size, info.st_mtime_ns, info.st_ctime_ns)
            seen = self._seen.get(path)
            if seen is not None and seen.stamp == stamp:
                return seen.text
            text = _read(folder, name, path)
        except FileNotFoundError:
            return ""
        except ClawmarkError as error:
            notices.append(error.message)
            return ""
        except OSError as error:
            notices.append(f"{shown(path)} cannot be read: {reason_of(error)}.")
            return ""
        if self._now_ns() - max(info.st_mtime_ns, info.st_ctime_ns) > _GRAIN_NS:
            self._seen[path] = _Seen(stamp, text)
        return text


def load_context(root: str, kind: SessionKind, today: str, limits: Limits | None = None) -> Context:
    """What a session of this kind sees, read once."""
    return ContextReader(root).read(kind, today, limits)


def _read(folder: Folder, name: str, path: str) -> str:
    fd = open_regular(folder, name, path)
    try:
        size = os.fstat(fd).st_size
        if size > MAX_BYTES:
            raise PathDenied(
                f"{shown(path)} has {size:,} bytes, and no file of more than {MAX_BYTES:,} "
                f"enters a prompt.",
                path=path,
                rule="too-large",
            )
        return decode(read_all(fd, path), path)
    finally:
        os.close(fd)


def _says_something(text: str) -> bool:
    """Whether a heartbeat list holds more than headings and comments."""
    return bool(_HEADING.sub("", _COMMENT.sub("", text)).strip())


def _days(today: str, count: int) -> list[str]:
    """The newest first; none for a date that is no date."""
    try:
        first = date.fromisoformat(today)
    except ValueError:
        return []
    return [(first - timedelta(days=back)).isoformat() for back in range(count)]


@contextmanager
def _memory_folder(folder: Folder, notices: list[str]) -> Iterator[Folder | None]:
    try:
        memory = folder.child("memory")
    except FileNotFoundError:
        yield None
    except OSError as error:
        notices.append(
            f"The folder memory cannot be opened ({reason_of(error)}); links are not followed."
        )
        yield None
    else:
        with memory:
            yield memory


def _names_of(memory: Folder, days: list[str]) -> list[str]:
    """The logs and notes of these days: each day's log before its notes, the newest day first."""
    with memory.listing() as entries:
        names = [
            entry.name
            for entry in entries
            if entry.name.startswith(tuple(days)) and is_markdown(entry.name)
        ]
    of_days = [name for name in names if date_of(name) in days]
    return sorted(
        of_days, key=lambda name: (days.index(date_of(name)), name != f"{date_of(name)}.md", name)
    )
