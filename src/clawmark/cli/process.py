"""The process around a command: its three streams, its encoding, its signals, and a quick end.

Called by `main()` when it is the program itself; a test or a program that calls `main([...])` keeps
its own."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence
from types import FrameType
from typing import NoReturn

from clawmark.cli.output import Stopped


def prepare(argv: Sequence[str]) -> None:
    """Make the process fit for any surroundings: closed streams, an ASCII locale, signals."""
    # Almost nothing we make is cyclic; looking for cycles while modules load costs a search 2 ms.
    gc.set_threshold(100_000, 20, 20)
    _use_utf8()
    _fill_streams()
    for stream in (sys.stdout, sys.stderr):
        # Names and notes may hold what is no text at all; an escape is better than no answer.
        stream.reconfigure(encoding="utf-8", errors="backslashreplace")  # type: ignore[union-attr]
    if argv[:1] != ["search"] or "--batch" in argv:
        # One search is over before anyone could stop it, and must not pay for handlers.
        _end_cleanly_on_signals()


def end(code: int) -> NoReturn:
    """Leave now: everything is closed and flushed, and taking the interpreter apart would cost 3
    ms.
    """
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            continue
    os._exit(code)


def _use_utf8() -> None:
    """Start again in UTF-8 mode where the locale would misread file names.

    With LC_ALL=C Python takes the name `café.md` for ASCII and odd bytes: the index would hold each
    file under a second name, and forget the first. File names are UTF-8 on every system we know,
    whatever the locale says."""
    if (
        sys.getfilesystemencoding() == "utf-8"
        or "utf8" in sys._xoptions
        or not hasattr(os, "execv")
    ):
        return
    if os.name == "posix" and sys.executable and sys.orig_argv:
        os.execv(sys.executable, [sys.executable, "-X", "utf8", *sys.orig_argv[1:]])


def _fill_streams() -> None:
    """Open the null device for each standard stream that is closed, before a file of ours takes its
    number.
    """
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
    import signal

    def stop(number: int, frame: FrameType | None) -> None:
        raise Stopped(128 + number)

    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        if (
            number is not None and signal.getsignal(number) == signal.SIG_DFL
        ):  # nohup's choice is kept
            signal.signal(number, stop)
