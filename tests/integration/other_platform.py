"""Run `clawmark` in this process without the calls that macOS or Windows lacks.

`python other_platform.py {darwin,win32} WORDS ...` removes the calls from the standard library and
then runs the command line. Libraries that choose by platform are imported before that.
"""

from __future__ import annotations

import asyncio
import builtins
import contextlib
import errno
import importlib
import mmap
import os
import select
import signal
import subprocess
import sys
import types
from collections.abc import Iterable
from typing import Any

import watchfiles

_LINUX_ONLY: dict[types.ModuleType, Iterable[str]] = {
    os: (
        *("O_PATH", "O_TMPFILE", "O_DIRECT", "O_NOATIME"),
        *("sched_getaffinity", "posix_fadvise", "posix_fallocate", "memfd_create", "eventfd"),
        *("copy_file_range", "fdatasync", "getrandom", "pidfd_open", "splice", "setns", "unshare"),
    ),
    select: ("epoll",),
    mmap: ("MADV_HUGEPAGE",),
}
_NOT_ON_WINDOWS: dict[types.ModuleType, Iterable[str]] = {
    os: (
        *("O_NOFOLLOW", "O_DIRECTORY", "O_CLOEXEC", "O_NONBLOCK", "O_NOCTTY", "O_SYNC", "O_DSYNC"),
        *("fork", "forkpty", "getuid", "geteuid", "getgid", "getegid", "getgroups", "fchmod"),
        *("fchown", "chown", "lchown", "pread", "pwrite", "preadv", "pwritev", "statvfs"),
        *("fstatvfs", "mkfifo", "mknod", "killpg", "setsid", "uname", "set_blocking", "sync"),
        *("register_at_fork", "getpgid", "openpty", "sendfile", "getloadavg", "nice", "ttyname"),
    ),
    select: ("poll",),
    signal: ("SIGALRM", "SIGHUP", "SIGUSR1", "SIGUSR2", "SIGKILL", "setitimer", "ITIMER_REAL"),
    mmap: ("MAP_PRIVATE", "MAP_ANONYMOUS"),
}
_NO_MODULES_ON_WINDOWS = ("fcntl", "resource", "termios", "tty", "pty", "pwd", "grp", "readline")


def _remove(names: dict[types.ModuleType, Iterable[str]]) -> None:
    for module, attributes in names.items():
        for name in attributes:
            if hasattr(module, name):
                delattr(module, name)


def _hide_proc() -> None:
    real = builtins.open

    def without_proc(file: Any, *rest: Any, **more: Any) -> Any:
        if isinstance(file, str) and file.startswith("/proc/"):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), file)
        return real(file, *rest, **more)

    builtins.open = without_proc


def _msvcrt() -> types.ModuleType:
    """Windows' way to lock a byte at the position of a descriptor, made of the same of POSIX."""
    module = types.ModuleType("msvcrt")
    lock, try_lock, unlock = os.lockf, os.F_TLOCK, os.F_ULOCK

    def locking(descriptor: int, mode: int, count: int) -> None:
        try:
            lock(descriptor, try_lock if mode == 2 else unlock, count)
        except BlockingIOError as error:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES)) from error

    module.__dict__.update(locking=locking, LK_NBLCK=2, LK_UNLCK=0)
    return module


def _no_signal_handlers(*_: object) -> None:
    raise NotImplementedError


def become(platform: str) -> None:
    """Make this process look like another platform."""
    _ = (asyncio, subprocess, watchfiles)
    for library in ("numpy", "mcp.server.stdio", "uvicorn"):
        with contextlib.suppress(ImportError):
            importlib.import_module(library)
    _remove(_LINUX_ONLY)
    _hide_proc()
    if platform == "win32":
        _remove(_NOT_ON_WINDOWS)
        os.supports_dir_fd.clear()
        os.supports_fd.clear()
        for name in _NO_MODULES_ON_WINDOWS:
            sys.modules[name] = None  # type: ignore[assignment]
        sys.modules["msvcrt"] = _msvcrt()
        asyncio.SelectorEventLoop.add_signal_handler = _no_signal_handlers  # type: ignore[assignment]
    # Only these modules of ours choose by platform when they are imported.
    sys.platform = platform
    import clawmark.system.file_lock
    import clawmark.workspace.watching

    sys.platform = "linux"
    sys.modules.pop("msvcrt", None)
    assert (clawmark.system.file_lock.__dict__.get("fcntl") is None) == (platform == "win32")


if __name__ == "__main__":
    become(sys.argv.pop(1))
    from clawmark.cli import main

    main()
