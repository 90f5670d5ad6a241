"""Turns the driver's exceptions into ours, in one function: what happened, where, and what to do
next.
"""

from __future__ import annotations

import errno
import os

import apsw

from clawmark.model.errors import ClawmarkError, IndexBusy, IndexDamaged, IndexStoreError
from clawmark.store.sqlite.schema import FIX_HINT, QUERY_SECONDS

# A wrong checksum, a file shorter than its head says, and what file systems with checksums of their
# own report.
_DAMAGE = (apsw.SQLITE_IOERR_DATA, apsw.SQLITE_IOERR_SHORT_READ, apsw.SQLITE_IOERR_CORRUPTFS)
FILES_NEEDED = 5
"""The index, its log, the memory shared over it, the folder, and one to spare."""
_WAIT_HINT = "Wait for it to finish and try again."
_FOLDER_HINT = "Check the permissions of the folder, or choose another --state-dir."


def translate(error: Exception, path: str) -> ClawmarkError:
    """The error to raise instead of `error`, which came from using the database at `path`."""
    match error:
        case apsw.BusyError() | apsw.LockedError() | apsw.ProtocolError():
            return IndexBusy(f"Another process keeps the index {path} busy.", hint=_WAIT_HINT)
        case (
            apsw.CorruptError() | apsw.NotADBError() | apsw.FormatError() | apsw.SchemaChangeError()
        ):
            return IndexDamaged(f"The index {path} is damaged ({error}).", hint=FIX_HINT)
        case apsw.SQLError() if str(error).startswith("invalid fts5 file format"):
            return IndexDamaged(f"The index {path} is damaged ({error}).", hint=FIX_HINT)
        case apsw.FullError():
            return IndexStoreError(
                f"The disk is full: {path} needs more room and its file system has "
                f"{_free_bytes(path):,} bytes free.",
                hint="Free some space and run `clawmark index`; "
                "what was indexed before is unharmed.",
            )
        case apsw.ReadOnlyError() | apsw.PermissionsError():
            return IndexStoreError(
                f"The index {path} cannot be written to ({error}).", hint=_FOLDER_HINT
            )
        case apsw.CantOpenError() if _has_no_descriptor_left():
            return IndexStoreError(
                f"The index {path} cannot be opened: this process has too many files open.",
                hint="Raise the limit (ulimit -n) and try again.",
            )
        case apsw.CantOpenError():
            return IndexStoreError(
                f"The index {path} cannot be opened ({error}).", hint=_FOLDER_HINT
            )
        case apsw.IOError() if getattr(error, "extendedresult", 0) in _DAMAGE:
            return IndexDamaged(
                f"The index {path} is damaged (a page is not as it was written).", hint=FIX_HINT
            )
        case apsw.IOError():
            return IndexStoreError(
                f"Reading or writing the index {path} failed ({error}).",
                hint="Check the disk, then run `clawmark doctor`.",
            )
        case apsw.InterruptError():
            return IndexStoreError(
                f"A question to the index {path} took longer than {QUERY_SECONDS:g} seconds and "
                f"was stopped.",
                hint="Ask with fewer or rarer words.",
            )
        case apsw.NoMemError():
            return IndexStoreError(
                "There was not enough memory to use the index.",
                hint="Close something and try again.",
            )
        case apsw.TooBigError() | apsw.RangeError() | OverflowError():
            return IndexStoreError(
                f"A value is too big for the index {path} ({error}).",
                hint="Split the file it came from.",
            )
        case ValueError() if not isinstance(error, UnicodeEncodeError):
            return IndexDamaged(f"The index {path} is damaged ({error}).", hint=FIX_HINT)
        case UnicodeEncodeError():
            return IndexStoreError(
                f"A text or name is not valid Unicode and cannot go into the index {path}.",
                hint="Rename or mend the file.",
            )
        case apsw.ExtensionLoadingError():
            return IndexStoreError(
                f"An SQLite extension could not be loaded ({error}).",
                hint="pip install 'clawmark[sqlite-vec]'",
            )
        case apsw.ThreadingViolationError() | apsw.ForkingViolationError():
            return IndexStoreError(
                f"The index {path} was used from two threads or across a fork at once.",
                hint="Open one snapshot per thread.",
            )
        case apsw.ConnectionClosedError() | apsw.CursorClosedError():
            return IndexStoreError(
                f"The index {path} was closed while in use.", hint="Open it again."
            )
        case apsw.AuthError():
            return IndexStoreError(
                f"The index {path} refused a statement it never needs ({error}).", hint=FIX_HINT
            )
        case _:
            return IndexStoreError(
                f"The index {path} could not be used ({error}).", hint="Run `clawmark doctor`."
            )


def _has_no_descriptor_left() -> bool:
    """Whether as many files as the driver needs could not be opened; it does not say why it could
    not.
    """
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
    import shutil  # Imported late: only an error needs it.

    try:
        return shutil.disk_usage(os.path.dirname(path) or ".").free
    except OSError:
        return 0
