"""Run the command `qmd` with its own folders, a time limit and an output limit.

The command is a launcher that starts a second process, so each call has its own process group,
and the whole group is killed."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from typing import IO, NamedTuple

from clawmark.model.errors import BackendMisbehaved, BackendUnavailable
from clawmark.system.cancellation import check_cancelled
from clawmark.system.private_files import make_private_folder

MOST_OUTPUT = 200_000
"""Bytes of standard output; a search that prints more is refused."""
KEPT_ERRORS = 20_000
"""Bytes of standard error that are kept."""
STEP = 0.1
"""Seconds between checks for a cancelled call."""
INSTALL = "npm install -g @tobilu/qmd@2.8.3 installs it; it needs Node.js 22 or newer."
_PASSED_ON = ("PATH", "HOME", "USER", "LANG", "TZ", "TMPDIR", "TEMP", "TMP", "SYSTEMROOT", "CI")
_PASSED_PREFIXES = ("LC_", "QMD_", "NODE_", "HF_", "GGML_", "LLAMA_", "CUDA_")
"""Other variables may hold keys and are not passed on."""


class Output(NamedTuple):
    """What a finished command printed."""

    code: int
    out: str
    err: str


class QmdFolders(NamedTuple):
    """The folders of QMD's own files."""

    root: str

    @property
    def cache(self) -> str:
        return os.path.join(self.root, "xdg-cache")

    @property
    def config(self) -> str:
        return os.path.join(self.root, "xdg-config")

    @property
    def index_file(self) -> str:
        return os.path.join(self.cache, "qmd", "index.sqlite")

    @property
    def collections_file(self) -> str:
        """The file in which QMD lists its collections."""
        return os.path.join(self.config, "qmd", "index.yml")

    def make(self) -> None:
        """Create the folders: QMD fails if the folder of its index is missing."""
        for file in (self.index_file, self.collections_file):
            make_private_folder(os.path.dirname(file))

    def environment(self, environ: Mapping[str, str]) -> dict[str, str]:
        """Return the variables of a QMD process."""
        passed = {
            name: value
            for name, value in environ.items()
            if name.upper() in _PASSED_ON or name.startswith(_PASSED_PREFIXES)
        }
        return passed | {
            "XDG_CACHE_HOME": self.cache,
            "XDG_CONFIG_HOME": self.config,
            "QMD_CONFIG_DIR": os.path.dirname(self.collections_file),
            "INDEX_PATH": self.index_file,
            "NO_COLOR": "1",
        }


class QmdProcess:
    """Runs `qmd` commands; several threads may do so at once."""

    def __init__(
        self, command: str, folders: QmdFolders, cwd: str, environ: Mapping[str, str]
    ) -> None:
        self.command = _first_word(command)
        self.folders = folders
        self._cwd = cwd
        self._environ = folders.environment(environ)
        self._running: set[subprocess.Popen[bytes]] = set()
        self._closed = False

    def run(
        self, arguments: Sequence[str], seconds: float, *, most_output: int | None = None
    ) -> Output:
        """Run a command to its end; a non-zero exit code is not an error here.

        Raises BackendUnavailable if it does not start or takes longer than `seconds`, and
        BackendMisbehaved if it prints more than `most_output` bytes. Without that limit, only the
        end of the output is kept."""
        check_cancelled()
        process = self._start(arguments)
        self._running.add(process)
        assert process.stdout is not None and process.stderr is not None
        out = _Reader(process.stdout, most_output, KEPT_ERRORS)
        err = _Reader(process.stderr, None, KEPT_ERRORS)
        try:
            self._wait(process, (out, err), arguments, seconds)
            return Output(process.wait(), out.text(), err.text())
        finally:
            if process.poll() is None:
                kill_group(process)
            self._running.discard(process)

    def close(self) -> None:
        """Kill what is running; later calls fail."""
        self._closed = True
        for process in tuple(self._running):
            kill_group(process)

    def _start(self, arguments: Sequence[str]) -> subprocess.Popen[bytes]:
        if self._closed:
            raise BackendUnavailable("QMD was closed.", backend="qmd")
        path = self._environ.get("PATH")
        program = shutil.which(os.path.expanduser(self.command), path=path)
        if program is None:
            raise BackendUnavailable(
                f"The command {self.command} was not found.", backend="qmd", hint=INSTALL
            )
        if shutil.which("node", path=path) is None and shutil.which("bun", path=path) is None:
            raise BackendUnavailable(
                "QMD needs Node.js, and the command node was not found.",
                backend="qmd",
                hint="Install Node.js 22 or newer.",
            )
        try:
            return subprocess.Popen(
                [program, *arguments],
                cwd=self._cwd,
                env=self._environ,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
                umask=-1 if sys.platform == "win32" else 0o077,
            )
        except (OSError, ValueError) as error:
            raise BackendUnavailable(
                f"The command {self.command} cannot be started: {error}.",
                backend="qmd",
                hint=INSTALL,
            ) from error

    def _wait(
        self,
        process: subprocess.Popen[bytes],
        readers: Sequence[_Reader],
        arguments: Sequence[str],
        seconds: float,
    ) -> None:
        """Wait until the process has ended and its output is read."""
        deadline = time.monotonic() + seconds
        for reader in readers:
            while reader.is_alive() and not readers[0].is_too_long:
                check_cancelled()
                if process.poll() is not None:
                    # A member of the group may outlive the launcher and keep the output open.
                    reader.join(STEP)
                    kill_group(process)
                left = deadline - time.monotonic()
                if left <= 0:
                    raise BackendUnavailable(
                        f"`qmd {arguments[0]}` took longer than {seconds:g} s and was stopped.",
                        backend="qmd",
                        hint="Raise memory.qmd.limits.timeoutMs or memory.qmd.update.*.",
                    )
                reader.join(min(STEP, left))
        if readers[0].is_too_long:
            raise BackendMisbehaved(
                f"`qmd {arguments[0]}` printed more than {MOST_OUTPUT:,} bytes.", backend="qmd"
            )


class _Reader(threading.Thread):
    """Reads a pipe to its end, and keeps all of it or the last bytes."""

    def __init__(self, pipe: IO[bytes], most: int | None, kept: int) -> None:
        super().__init__(name="clawmark-qmd", daemon=True)
        self._pipe = pipe
        self._most = most
        self._kept = kept
        self._data = bytearray()
        self.is_too_long = False
        self.start()

    def run(self) -> None:
        with self._pipe:
            while piece := os.read(self._pipe.fileno(), 65_536):
                self._data += piece
                if self._most is None:
                    del self._data[: -self._kept]
                elif len(self._data) > self._most:
                    self.is_too_long = True
                    return

    def text(self) -> str:
        return self._data.decode("utf-8", "replace")


def kill_group(process: subprocess.Popen[bytes]) -> None:
    """Kill a process and everything it started, and wait for it."""
    try:
        if sys.platform == "win32":
            process.kill()
        else:
            os.killpg(process.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass  # all of it has ended
    process.wait()


def failed(output: Output, arguments: Sequence[str]) -> BackendUnavailable:
    """Return the error for a failed command: its signal, or the last error it printed."""
    command = f"`qmd {arguments[0]}`"
    if output.code < 0 or output.code > 128:
        number = -output.code if output.code < 0 else output.code - 128
        name = signal.Signals(number).name if number in set(signal.Signals) else str(number)
        hint = "QMD needs Node.js 22 or newer: `node --version`." if name == "SIGSEGV" else ""
        return BackendUnavailable(f"{command} was ended by {name}.", backend="qmd", hint=hint)
    lines = [line.strip() for line in output.err.splitlines() if line.strip()]
    said = next((line for line in lines if "Error: " in line), lines[-1] if lines else "")
    hint = ""
    if "SQLITE_NOTADB" in output.err or "SQLITE_CORRUPT" in output.err:
        hint = "`clawmark index --force` builds QMD's index again."
    message = f"{command} failed with exit code {output.code}"
    message += f": {said[:200].rstrip('.')}." if said else "."
    return BackendUnavailable(message, backend="qmd", hint=hint)


def _first_word(command: str) -> str:
    try:
        words = shlex.split(command)
    except ValueError:
        words = command.split()
    return words[0] if words else "qmd"
