"""Let the user edit a text in their own editor, on a private copy in the state folder.

The copy is deleted by `EditedCopy.delete`, which callers use once the text is written or was not
changed. After every other outcome it is kept, so that no edit is lost."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple

from clawmark.cli.arguments import UsageError
from clawmark.cli.layout import short_path
from clawmark.model.errors import ClawmarkError
from clawmark.system.private_files import make_private_folder, open_private

FOLDER = "edits"
"""The folder of the copies, in the state folder."""
_TAKE_LINE = ("vi", "vim", "nvim", "view", "nano", "emacs", "emacsclient", "mg", "joe", "ne", "kak")
"""Editors that open a file at a line with `+12`."""


class EditorFailed(ClawmarkError):
    """Raised when the editor cannot be started or reports a failure."""


class EditedCopy(NamedTuple):
    """The private copy of a text that the user edits."""

    path: str

    def read(self) -> bytes:
        """Return the edited text; EditorFailed if the editor left none."""
        try:
            with open(self.path, "rb") as file:
                return file.read()
        except OSError as error:
            raise EditorFailed(
                f"The edited copy {short_path(self.path)} cannot be read: {error.strerror}.",
                hint="Nothing was changed.",
            ) from error

    def delete(self) -> None:
        """Delete the copy and what the editor left next to it."""
        shutil.rmtree(os.path.dirname(self.path), ignore_errors=True)

    @property
    def hint(self) -> str:
        """Where the edited text is, for the hint of an error."""
        return f"Your edited copy is kept: {short_path(self.path)}"


def editor_command(environ: Mapping[str, str]) -> list[str]:
    """Return the words of $VISUAL or $EDITOR; UsageError without one."""
    for name in ("VISUAL", "EDITOR"):
        if environ.get(name, "").strip():
            try:
                return shlex.split(environ[name])
            except ValueError:
                raise UsageError(
                    f"The value of {name} has a quote that is not closed.", hint=_EXAMPLE
                ) from None
    raise UsageError("There is no editor: neither VISUAL nor EDITOR is set.", hint=_EXAMPLE)


_EXAMPLE = "Set one, for example: export EDITOR=nano"


def make_copy(state_dir: str, name: str, data: bytes) -> EditedCopy:
    """Write a text to a new private copy that has this file name."""
    parent = os.path.join(state_dir, FOLDER)
    make_private_folder(parent)
    path = os.path.join(tempfile.mkdtemp(dir=parent), name)
    with open(open_private(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL), "wb") as file:
        file.write(data)
    return EditedCopy(path)


def run_editor(command: list[str], copy: EditedCopy, before: bytes, *, line: int = 0) -> bytes:
    """Run the editor to its end and return the edited text.

    After a failure the copy is kept if the user had changed it."""
    shows_line = line > 1 and os.path.basename(command[0]) in _TAKE_LINE
    words = [*command, *([f"+{line}"] if shows_line else []), copy.path]
    try:
        # The editor has the terminal; what it prints must not end up in our output.
        process = subprocess.Popen(words, stdout=None if sys.stdout.isatty() else sys.stderr)
    except OSError as error:
        copy.delete()
        raise EditorFailed(
            f"The editor {command[0]!r} cannot be started: {error.strerror}.", hint=_EXAMPLE
        ) from None
    with _interrupts_ignored():
        code = process.wait()
    if code == 0:
        return copy.read()
    how = f"was ended by signal {-code}" if code < 0 else f"ended with exit code {code}"
    if copy.read() == before:
        copy.delete()
        raise EditorFailed(f"The editor {how}; nothing was changed.")
    raise EditorFailed(f"The editor {how}; nothing was changed.", hint=copy.hint)


@contextmanager
def _interrupts_ignored() -> Iterator[None]:
    """Leave Ctrl-C to the editor while it runs."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    previous = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)
