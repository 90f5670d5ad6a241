"""Read single keys from the terminal."""

from __future__ import annotations

import os
import sys


def read_key() -> str:
    """Wait for one key and return its character; empty at the end of the input.

    Ctrl-C still interrupts."""
    if os.name == "nt":
        import msvcrt

        return str(msvcrt.getwch())
    # Imported here: Windows does not have them.
    import termios
    import tty

    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    try:
        tty.setcbreak(descriptor)
        data = os.read(descriptor, 1)
        while data and len(data) < 4 and not _is_complete(data):  # a letter of several bytes
            data += os.read(descriptor, 1)
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)
    return data.decode("utf-8", "replace")


def _is_complete(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True
