"""Somebody at a terminal: types lines and keys into a real process, and waits for what it says."""

from __future__ import annotations

import os
import pty
import re
import select
import subprocess
import time
from collections.abc import Mapping, Sequence
from types import TracebackType

from commands import HANG_SECONDS

_CLEARED = re.compile(r"[^\n]*\r\x1b\[K")
_CODES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|[\x01\x02]")


class Typist:
    """One process on a terminal of its own, 100 columns wide."""

    def __init__(self, command: Sequence[str], env: Mapping[str, str]) -> None:
        self._ours, theirs = pty.openpty()
        self.running = subprocess.Popen(
            command,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env={**env, "TERM": "xterm", "COLUMNS": "100", "NO_COLOR": "1"},
            # The terminal becomes the process's own, so that Ctrl-C reaches it as a signal.
            preexec_fn=_own_terminal,
        )
        os.close(theirs)
        self._heard = b""
        self._read_to = 0

    def __enter__(self) -> Typist:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.running.poll() is None:
            self.running.kill()
        self.running.wait(HANG_SECONDS)
        os.close(self._ours)

    @property
    def screen(self) -> str:
        """Everything that was shown, without colours and without what was taken away again."""
        shown = _CLEARED.sub("", self._heard.decode("utf-8", "replace").replace("\r\n", "\n"))
        return _CODES.sub("", shown)

    def type(self, line: str) -> None:
        os.write(self._ours, line.encode() + b"\r")

    def press(self, key: bytes) -> None:
        os.write(self._ours, key)

    def wait_for(self, text: str) -> str:
        """Wait until a text is shown, after the one that was waited for before; what was shown up
        to it.
        """
        deadline = time.monotonic() + HANG_SECONDS
        while True:
            at = self.screen.find(text, self._read_to)
            if at >= 0:
                shown = self.screen[self._read_to : at + len(text)]
                self._read_to = at + len(text)
                return shown
            if not self._listen(deadline):
                raise AssertionError(
                    f"{text!r} was never shown; shown was:\n{self.screen[self._read_to :]}"
                )

    def end(self) -> int:
        """Wait for the end of the process; its exit code."""
        deadline = time.monotonic() + HANG_SECONDS
        while self._listen(deadline):
            continue
        assert "Traceback" not in self.screen
        return self.running.wait(HANG_SECONDS)

    def _listen(self, deadline: float) -> bool:
        """Take in what comes; False when nothing will."""
        ready, _, _ = select.select([self._ours], [], [], max(0.0, deadline - time.monotonic()))
        try:
            piece = os.read(self._ours, 65536) if ready else b""
        except OSError:  # the other side of the terminal is gone
            return False
        self._heard += piece
        return bool(piece)


def _own_terminal() -> None:
    import fcntl
    import termios

    os.setsid()
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
