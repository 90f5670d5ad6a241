"""The log file of the state folder: what ran, what was degraded, and which errors were raised.

A process logs after `start`, which the command line calls when it has opened a memory. Every event
is appended in one write, so several processes can share the file. Errors are logged by their kind
and by where they were raised. Their messages are not logged, since they may quote a memory or a
key. Writing never fails: what cannot be written is lost."""

# No `logging` here: importing it takes longer than a search by words.

from __future__ import annotations

import errno
import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress

from clawmark.model.errors import ClawmarkError
from clawmark.system.private_files import make_private_folder, open_private

LEVELS = ("off", "error", "warning", "info")
"""The values of `memory.log`; each one includes those before it."""
MAX_BYTES = 1_000_000
KEPT = 2
"""How many full files are kept next to the current one, as `clawmark.log.1` and so on."""
MAX_FRAMES = 40
MAX_WIDTH = 500
_FACTS = ("key", "file", "rule", "provider", "model", "backend", "plugin")
"""Fields of our errors that name settings, files and parts."""


class LogFile:
    """The log of a state folder, and the least important level that it takes."""

    def __init__(self, path: str, level: str = "info") -> None:
        self.path, self.level = path, level

    def takes(self, level: str) -> bool:
        """Return whether events of this level are logged."""
        return LEVELS.index(level) <= LEVELS.index(self.level)

    def write(self, level: str, event: str, details: Sequence[str] = ()) -> None:
        """Append an event; its details are indented below it."""
        if not self.takes(level):
            return
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        lines = [f"{now} {level} {os.getpid()} {_on_one_line(event)}"]
        lines += [f"    {_on_one_line(detail)}" for detail in details]
        with suppress(OSError, ValueError):  # a full or read-only disk
            self._append("".join(f"{line}\n" for line in lines).encode("utf-8", "replace"))

    def _append(self, data: bytes) -> None:
        folder = os.path.dirname(self.path)
        if not os.path.isdir(os.path.dirname(folder)):
            return  # the state folder was removed
        make_private_folder(folder)
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_NONBLOCK", 0)
        descriptor = open_private(self.path, flags)
        try:
            is_full = os.fstat(descriptor).st_size + len(data) > MAX_BYTES
            if not is_full:
                os.write(descriptor, data)
        finally:
            os.close(descriptor)
        if is_full:
            rotate(self.path, len(data))
            with open(open_private(self.path, flags), "wb") as file:
                file.write(data)


_current: LogFile | None = None


def log_path(state_dir: str) -> str:
    """Return the path of the log of a state folder."""
    return os.path.join(state_dir, "logs", "clawmark.log")


def start(state_dir: str, level: str) -> None:
    """Log what this process does from now on."""
    global _current
    _current = LogFile(log_path(state_dir), level) if level != "off" else None
    if "logging" in sys.modules:
        from clawmark.system import log_records

        log_records.attach()


def stop() -> None:
    """Log nothing any more."""
    global _current
    if _current is not None and "clawmark.system.log_records" in sys.modules:
        from clawmark.system import log_records

        log_records.detach()
    _current = None


def current() -> LogFile | None:
    """Return the log that was started; None if nothing is logged."""
    return _current


def write(level: str, event: str, details: Sequence[str] = ()) -> None:
    """Append an event to the log that was started, if there is one."""
    if _current is not None:
        _current.write(level, event, details)


def level_of(error: BaseException | None) -> str:
    """Return the level of a command that ended with this error; one of ours was expected."""
    if error is None:
        return "info"
    return "warning" if isinstance(error, ClawmarkError) else "error"


def error_lines(error: BaseException) -> list[str]:
    """Return the kind of an error, its facts and its frames; then those of its causes."""
    return list(_error_lines(error, set()))


def _error_lines(error: BaseException, seen: set[int]) -> Iterator[str]:
    if id(error) in seen:
        return
    seen.add(id(error))
    yield f"{type(error).__module__}.{type(error).__qualname__}{_facts(error)}"
    frames, trace = list[str](), error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        frames.append(f"  {_shortened(code.co_filename)}:{trace.tb_lineno} in {code.co_qualname}")
        trace = trace.tb_next
    yield from frames[-MAX_FRAMES:]
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from _error_lines(inner, seen)
    cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    if cause is not None:
        yield "caused by"
        yield from _error_lines(cause, seen)


def _facts(error: BaseException) -> str:
    if isinstance(error, OSError):
        return f" ({errno.errorcode.get(error.errno or 0, 'no number')})"
    if not isinstance(error, ClawmarkError):
        return ""
    facts = [f"{name} {given}" for name in _FACTS if (given := getattr(error, name, ""))]
    return f" ({', '.join(facts)})" if facts else ""


def _shortened(path: str) -> str:
    """Return the path of a module below the folder that packages are in."""
    parts = path.replace("\\", "/").split("/")
    for folder in ("site-packages", "src"):
        if folder in parts:
            return "/".join(parts[len(parts) - parts[::-1].index(folder) :])
    return "/".join(parts[-2:])


def _on_one_line(text: str) -> str:
    shown = text[: MAX_WIDTH + 1].replace("\n", " ")
    shown = "".join(letter if letter.isprintable() else "?" for letter in shown)
    return shown if len(shown) <= MAX_WIDTH else f"{shown[: MAX_WIDTH - 1]}…"


def rotate(path: str, needed: int) -> None:
    """Rename a full log, unless another process has just done that."""
    from clawmark.system import file_lock

    held = file_lock.acquire(f"{path}.lock", 1.0)
    if held is None:
        return
    try:
        if not os.path.exists(path) or os.path.getsize(path) + needed <= MAX_BYTES:
            return
        for number in range(KEPT, 1, -1):
            with suppress(FileNotFoundError):
                os.replace(f"{path}.{number - 1}", f"{path}.{number}")
        os.replace(path, f"{path}.1")
    finally:
        file_lock.release(held)
