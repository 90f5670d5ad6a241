"""Set up the process of a command: standard streams, encoding, signals, and a quick exit.

Only used when Clawmark is the program itself, not by callers of `main([...])`."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence
from types import FrameType
from typing import NoReturn

from clawmark.cli.output import Stopped


def prepare(argv: Sequence[str]) -> None:
    """Prepare the process for closed streams, an ASCII locale and signals."""
    # We make almost no reference cycles; looking for them while modules load costs 2 ms.
    gc.set_threshold(100_000, 20, 20)
    _use_utf8()
    _fill_streams()
    for stream in (sys.stdout, sys.stderr):
        # File names may not be valid text; an escape is better than an error.
        stream.reconfigure(encoding="utf-8", errors="backslashreplace")  # type: ignore[union-attr]
    if argv[:1] != ["search"] or "--batch" in argv:
        # A single search is over before it could be stopped.
        _end_cleanly_on_signals()


def end(code: int) -> NoReturn:
    """Exit at once after flushing; the interpreter's own shutdown would take 3 ms."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            continue
    os._exit(code)


def _use_utf8() -> None:
    """Restart in UTF-8 mode if the locale would misread file names.

    With LC_ALL=C Python decodes `café.md` as ASCII, and the index would hold each file under a
    second name."""
    if (
        sys.getfilesystemencoding() == "utf-8"
        or "utf8" in sys._xoptions
        or not hasattr(os, "execv")
    ):
        return
    if os.name == "posix" and sys.executable and sys.orig_argv:
        os.execv(sys.executable, [sys.executable, "-X", "utf8", *sys.orig_argv[1:]])


def _fill_streams() -> None:
    """Open the null device for each closed standard stream, before a file takes its number."""
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest free number, which is this one
    if sys.stdin is None:
        sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: SIM115 - it stays open
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115


def _end_cleanly_on_signals() -> None:
    # Imported late: a cold search does without it.
    import signal

    def stop(number: int, frame: FrameType | None) -> None:
        raise Stopped(128 + number)

    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        if (
            number is not None and signal.getsignal(number) == signal.SIG_DFL
        ):  # not ignored by nohup
            signal.signal(number, stop)
