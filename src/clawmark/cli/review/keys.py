"""Read single keys from the terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

if sys.platform == "win32":
    import msvcrt
else:
    import select
    import termios
    import tty

SPECIAL = "\x1b"
"""Escape, an arrow, or another key that is not a character."""


class Keyboard:
    """The keys of the terminal, without Enter and without an echo. Ctrl-C still interrupts."""

    def read(self) -> str:
        """Wait for one key and return its character; empty at the end of the input.

        Arrows and other special keys send several characters; they are returned as `SPECIAL`."""
        if sys.platform == "win32":
            key = msvcrt.getwch()
            if key in "\x00\xe0":
                msvcrt.getwch()
                return SPECIAL
            return key
        descriptor = sys.stdin.fileno()
        data = os.read(descriptor, 1)
        if data == SPECIAL.encode():
            _skip_sequence(descriptor)
            return SPECIAL
        while data and len(data) < 4 and not _is_complete(data):  # a letter of several bytes
            data += os.read(descriptor, 1)
        return data.decode("utf-8", "replace")

    @contextmanager
    def opened(self) -> Iterator[None]:
        """Deliver keys one by one during a block."""
        with _mode(single_keys=True):
            yield

    @contextmanager
    def released(self) -> Iterator[None]:
        """Give the terminal to another program during a block."""
        with _mode(single_keys=False):
            yield


@contextmanager
def _mode(*, single_keys: bool) -> Iterator[None]:
    if sys.platform == "win32":
        yield
    else:
        descriptor = sys.stdin.fileno()
        before = termios.tcgetattr(descriptor)
        now = termios.tcgetattr(descriptor)
        try:
            if single_keys:
                tty.setcbreak(descriptor, termios.TCSANOW)
            else:
                now[3] |= termios.ICANON | termios.ECHO
                termios.tcsetattr(descriptor, termios.TCSANOW, now)
            yield
        finally:
            termios.tcsetattr(descriptor, termios.TCSANOW, before)


def _skip_sequence(descriptor: int) -> None:
    """Read what follows an escape character: the up arrow is `ESC [ A`, and must not accept."""
    if not _has_input(descriptor) or os.read(descriptor, 1) not in (b"[", b"O"):
        return
    while _has_input(descriptor):
        byte = os.read(descriptor, 1)
        if not byte or 0x40 <= byte[0] <= 0x7E:  # the last character of a sequence
            return


def _has_input(descriptor: int) -> bool:
    if sys.platform == "win32":
        return False
    else:  # noqa: RET505 - mypy checks the lines after a return for Windows too
        return bool(select.select([descriptor], [], [], 0.05)[0])


def _is_complete(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True
