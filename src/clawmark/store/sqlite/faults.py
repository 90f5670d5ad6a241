"""Translates the driver's exceptions into ours: what happened, where, and what to do next."""

from __future__ import annotations

import errno
import os
import shutil

import apsw

from clawmark.model.errors import ClawmarkError, IndexBusy, IndexDamaged, IndexStoreError
from clawmark.store.sqlite.schema import FIX_HINT, QUERY_SECONDS

# A wrong checksum, a file shorter than its header says, and errors of file systems with checksums.
_DAMAGE = (apsw.SQLITE_IOERR_DATA, apsw.SQLITE_IOERR_SHORT_READ, apsw.SQLITE_IOERR_CORRUPTFS)
FILES_NEEDED = 5
"""The index, its log, its shared memory, the folder, and one to spare."""
_WAIT_HINT = "Wait for it to finish and try again."
_FOLDER_HINT = "Check the permissions of the folder, or choose another --state-dir."


def translate(error: Exception, path: str) -> ClawmarkError:
    """Return the error to raise for `error`, which came from the database at `path`."""
    if isinstance(error, (apsw.BusyError, apsw.LockedError, apsw.ProtocolError)):
        return IndexBusy(f"Another process keeps the index {path} busy.", hint=_WAIT_HINT)
    if isinstance(error, apsw.IOError) and getattr(error, "extendedresult", 0) in _DAMAGE:
        what = "a page is not as it was written"
        return IndexDamaged(f"The index {path} is damaged ({what}).", hint=FIX_HINT)
    if _is_damage(error):
        return IndexDamaged(f"The index {path} is damaged ({error}).", hint=FIX_HINT)
    message, hint = _describe(error, path)
    return IndexStoreError(message, hint=hint)


def _is_damage(error: Exception) -> bool:
    match error:
        case apsw.CorruptError() | apsw.NotADBError() | apsw.FormatError():
            return True
        case apsw.SchemaChangeError():
            return True
        case apsw.SQLError():
            return str(error).startswith("invalid fts5 file format")
        case _:
            return isinstance(error, ValueError) and not isinstance(error, UnicodeEncodeError)


def _describe(error: Exception, path: str) -> tuple[str, str]:
    """Return a message and a hint."""
    match error:
        case apsw.FullError():
            return (
                f"The disk is full: {path} needs more room and its file system has "
                f"{_free_bytes(path):,} bytes free.",
                "Free some space and run `clawmark index`; what was indexed before is unharmed.",
            )
        case apsw.ReadOnlyError() | apsw.PermissionsError():
            return f"The index {path} cannot be written to ({error}).", _FOLDER_HINT
        case apsw.CantOpenError() if _has_no_descriptor_left():
            what = "this process has too many files open"
            return (
                f"The index {path} cannot be opened: {what}.",
                "Raise the limit (ulimit -n) and try again.",
            )
        case apsw.CantOpenError():
            return f"The index {path} cannot be opened ({error}).", _FOLDER_HINT
        case apsw.IOError():
            return (
                f"Reading or writing the index {path} failed ({error}).",
                "Check the disk, then run `clawmark doctor`.",
            )
        case apsw.InterruptError():
            return (
                f"A query of the index {path} took longer than {QUERY_SECONDS:g} seconds and was "
                "stopped.",
                "Search for fewer or rarer words.",
            )
        case apsw.NoMemError():
            return "There was not enough memory to use the index.", "Close something and try again."
        case apsw.TooBigError() | apsw.RangeError() | OverflowError():
            return (
                f"A value is too big for the index {path} ({error}).",
                "Split the file it came from.",
            )
        case UnicodeEncodeError():
            return (
                f"A text or name is not valid Unicode and cannot go into the index {path}.",
                "Rename or repair the file.",
            )
        case apsw.ExtensionLoadingError():
            return (
                f"An SQLite extension could not be loaded ({error}).",
                "pip install 'clawmark[sqlite-vec]'",
            )
        case apsw.ThreadingViolationError() | apsw.ForkingViolationError():
            return (
                f"The index {path} was used from two threads or across a fork at once.",
                "Open one snapshot per thread.",
            )
        case apsw.ConnectionClosedError() | apsw.CursorClosedError():
            return f"The index {path} was closed while in use.", "Open it again."
        case apsw.AuthError():
            return f"The index {path} refused a statement it never needs ({error}).", FIX_HINT
        case _:
            return f"The index {path} could not be used ({error}).", "Run `clawmark doctor`."


def _has_no_descriptor_left() -> bool:
    """Return whether the process cannot open as many files as the driver needs; the driver does not
    say why it failed."""
    opened: list[int] = []
    try:
        while len(opened) < FILES_NEEDED:
            opened.append(os.open(os.devnull, os.O_RDONLY))
    except OSError as error:
        return error.errno in (errno.EMFILE, errno.ENFILE)
    finally:
        for descriptor in opened:
            os.close(descriptor)
    return False


def _free_bytes(path: str) -> int:

    try:
        return shutil.disk_usage(os.path.dirname(path) or ".").free
    except OSError:
        return 0
