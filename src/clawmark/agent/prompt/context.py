"""Read the workspace files that a session is shown in its prompt.

These are the workspace's own files in a fixed order, truncated by section if they are too long, and
the logs of the last days, for private sessions only. Files that cannot be shown get a notice. The
order and the bytes of unchanged files are the same from turn to turn, so that prompt caches hit.
`ContextReader` is used before every turn and reads only files that changed."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import date, timedelta
from typing import NamedTuple

from clawmark.agent.prompt.fit import fit
from clawmark.agent.prompt.trust_gate import LABELS_ONLY, Filtered, TrustGate
from clawmark.model.errors import ClawmarkError, PathDenied
from clawmark.text.dates import date_of
from clawmark.text.transcripts.session_keys import SessionKind, is_private
from clawmark.text.untrusted.invisible_characters import escape
from clawmark.workspace.guard import Folder, open_regular, open_root, reason_of, shown
from clawmark.workspace.places import is_markdown
from clawmark.workspace.read import decode, read_all

MAX_BYTES = 2 * 1024 * 1024
LONG_TERM = ("MEMORY.md", "memory.md")
_SUBAGENT_FILES = ("AGENTS.md", "TOOLS.md")
_SHARED_FILES = ("AGENTS.md", "SOUL.md", "TOOLS.md", "IDENTITY.md")
_PRIVATE_FILES = (*_SHARED_FILES, "USER.md", "BOOTSTRAP.md", *LONG_TERM, "HEARTBEAT.md")

_GRAIN_NS = 2_000_000_000
"""A file read this soon after a change may change again with the same timestamp: read it again."""

_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_HEADING = re.compile(r"^#{1,6}[ \t].*$", re.MULTILINE)


class Limits(NamedTuple):
    """How much is shown, in characters."""

    per_file: int = 20_000
    total: int = 150_000
    log_days: int = 2
    """Including today; 0 for no logs."""
    per_log: int = 4000
    all_logs: int = 12_000


class ContextFile(NamedTuple):
    """A file as a session is shown it."""

    name: str
    text: str
    """Truncated to the limits, with invisible characters escaped."""
    chars: int
    """Length of the whole file."""
    left_out: int = 0
    """How many entries are not shown because they came from outside."""

    @property
    def is_cut(self) -> bool:
        return len(self.text) < self.chars


class Context(NamedTuple):
    """Everything that a session is shown."""

    kind: SessionKind
    files: tuple[ContextFile, ...]
    logs: tuple[ContextFile, ...]
    """Oldest first."""
    notices: tuple[str, ...]
    """Why existing files are not shown, one sentence each."""


class _Seen(NamedTuple):
    stamp: tuple[int, ...]
    text: str


def files_for(kind: SessionKind, *, curates: bool = False) -> tuple[str, ...]:
    """Return the files that a session of this kind may see, those that change often last."""
    if is_private(kind):
        return _PRIVATE_FILES
    if kind == "subagent":
        return _SUBAGENT_FILES
    if kind == "heartbeat":
        return (*_SHARED_FILES, *(LONG_TERM if curates else ()), "HEARTBEAT.md")
    return _SHARED_FILES


class ContextReader:
    """Reads the context of the sessions of one workspace, and caches unchanged files."""

    def __init__(
        self, root: str, now_ns: Callable[[], int] = time.time_ns, gate: TrustGate = LABELS_ONLY
    ) -> None:
        self.root = root
        self._now_ns = now_ns
        self._gate = gate
        self._filtered: dict[str, tuple[str, object, Filtered]] = {}
        self._seen: dict[str, _Seen] = {}
        self._cut: dict[str, tuple[str, int, ContextFile]] = {}

    def read(
        self,
        kind: SessionKind,
        today: str,
        limits: Limits | None = None,
        *,
        curates: bool = False,
    ) -> Context:
        """Return what a session of this kind is shown; `today` is in the user's time zone.

        A heartbeat that `curates` is also shown MEMORY.md and the logs."""
        limits = limits or Limits()
        notices: list[str] = []
        try:
            with open_root(os.path.realpath(self.root)) as folder:
                files = self._files(folder, files_for(kind, curates=curates), limits, notices)
                has_logs = is_private(kind) or (curates and kind == "heartbeat")
                logs = self._logs(folder, today, limits, notices) if has_logs else ()
        except OSError as error:
            notice = f"The workspace cannot be opened: {reason_of(error)}."
            return Context(kind=kind, files=(), logs=(), notices=(notice,))
        return Context(kind=kind, files=files, logs=logs, notices=tuple(notices))

    def _files(
        self, folder: Folder, names: Sequence[str], limits: Limits, notices: list[str]
    ) -> tuple[ContextFile, ...]:
        files: list[ContextFile] = []
        left = limits.total
        inodes = set[tuple[int, int]]()
        for name in names:
            text = self._text(folder, name, name, notices, inodes if name in LONG_TERM else None)
            if not text.strip() or (name == "HEARTBEAT.md" and not _says_something(text)):
                continue
            file = self._shown(text, min(limits.per_file, left), name, is_log=False)
            if file.text or (file.left_out and not file.chars):
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
        """Return the logs and notes of the last days; the newest are preferred."""
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
                if log.text or (log.left_out and not log.chars):
                    logs.append(log)
                    left -= len(log.text)
                elif text.strip():
                    notices.append(
                        f"{shown(path)} is left out: there is room for {limits.all_logs:,} "
                        f"characters of logs."
                    )
        return tuple(sorted(logs))

    def _shown(self, text: str, limit: int, path: str, *, is_log: bool) -> ContextFile:
        """Return a file without entries from outside and truncated to a limit; cached."""
        text, left_out = self._trusted(path, text, is_memory=is_log or path in LONG_TERM)
        known = self._cut.get(path)
        if known is not None and known[0] is text and known[1] == limit:
            return known[2]
        visible = escape(text, joiners=is_log).rstrip()
        cut = fit(visible, limit, path, grows=is_log or path in LONG_TERM)
        made = ContextFile(name=path, text=cut, chars=len(visible), left_out=left_out)
        self._cut[path] = (text, limit, made)
        return made

    def _trusted(self, path: str, text: str, *, is_memory: bool) -> Filtered:
        """Leave entries from outside out of a memory file; other files are the user's own."""
        if not is_memory or not text:
            return Filtered(text)
        version = self._gate.version
        known = self._filtered.get(path)
        if known is None or known[0] is not text or known[1] != version:
            known = (text, version, self._gate.filter_text(path, text))
            self._filtered[path] = known
        return known[2]

    def _text(
        self,
        folder: Folder,
        name: str,
        path: str,
        notices: list[str],
        inodes: set[tuple[int, int]] | None = None,
    ) -> str:
        """Return the text of a file; empty, with a notice, if it cannot be shown."""
        try:
            info = folder.lstat(name)
            if inodes is not None:
                if (info.st_dev, info.st_ino) in inodes:
                    return ""  # MEMORY.md and memory.md are one file if case does not matter
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
    """Check whether a heartbeat list contains more than headings and comments."""
    return bool(_HEADING.sub("", _COMMENT.sub("", text)).strip())


def _days(today: str, count: int) -> list[str]:
    """Return the last days, newest first; empty if `today` is not a date."""
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
    """Return the logs and notes of these days, newest day first, each log before its notes."""
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
