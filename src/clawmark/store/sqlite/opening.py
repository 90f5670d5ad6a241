"""Opens an index for writing, and creates one if necessary.

A new index is created under another name and renamed when it is complete. Everything here happens
under the write lock."""

from __future__ import annotations

import os
from collections.abc import Sequence

import apsw

from clawmark.model.errors import IndexDamaged, IndexStoreError
from clawmark.store.sqlite.db import (
    CHECKSUM_BYTES,
    DRIVER_ERRORS,
    MOST_ATTEMPTS,
    Database,
    authorize,
    check_seal,
    checking_vfs,
    create,
    identify,
    one_line,
    retry_if_replaced,
    set_up,
    translate,
)
from clawmark.store.sqlite.file_stamps import (
    NO_STAMP,
    check_files,
    is_absent,
    read_seal,
    stamp_of,
)
from clawmark.store.sqlite.files import (
    drop_draft,
    install_draft,
    make_draft,
    make_private_folder,
    shared_file_system,
)
from clawmark.store.sqlite.schema import FIX_HINT, PAGE_SIZE

LOG_KEPT_BYTES = 64 * 1024 * 1024


def open_writer(path: str, first_rows: Sequence[tuple[str, str]]) -> Database:
    """Open a connection for writing; requires the write lock.

    A new index starts with `first_rows` in its meta table."""
    for _ in range(MOST_ATTEMPTS):
        found = retry_if_replaced(path, lambda: _open_writer(path))
        if found is not None:
            return found
        _make(path, first_rows)
    raise IndexStoreError(
        f"The index {path} is deleted as soon as it is made.",
        hint="End the program that deletes it.",
    )


def _open_writer(path: str) -> Database | None:
    """Open an existing index; return None if there is none, or one without any table."""
    if is_absent(path):
        return None
    check_files(path)
    seal = read_seal(path)
    try:
        connection = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READWRITE, vfs=checking_vfs())
        try:
            set_up(connection)
            index_id = identify(connection, path)
            if index_id is None:
                connection.close()
                return None
            check_seal(connection, path, seal, index_id)
            if not seal:
                _check_pages(connection, path)
            _set_up_writing(connection, path)
            connection.authorizer = authorize
            stamp = stamp_of(path)
        except BaseException:  # also on KeyboardInterrupt
            connection.close()
            raise
    except DRIVER_ERRORS as error:
        raise translate(error, path) from error
    return Database(connection=connection, path=path, stamp=stamp or NO_STAMP, seconds=None)


def _make(path: str, first_rows: Sequence[tuple[str, str]]) -> None:
    """Create an empty index under another name and rename it, so that it is complete when it
    appears."""
    make_private_folder(os.path.dirname(path))
    draft = make_draft(path)
    try:
        connection = apsw.Connection(draft, flags=apsw.SQLITE_OPEN_READWRITE, vfs=checking_vfs())
        try:
            # Reserve space for the checksum at the end of every page.
            connection.reserve_bytes("main", CHECKSUM_BYTES if checking_vfs() else 0)
            connection.execute(
                f"PRAGMA page_size={PAGE_SIZE}; PRAGMA auto_vacuum=INCREMENTAL; PRAGMA "
                f"journal_mode=MEMORY; "
                "PRAGMA synchronous=NORMAL"
            ).fetchall()
            create(connection, first_rows)
            connection.execute(f"PRAGMA journal_mode={_journal_mode(path)}").fetchall()
        finally:
            connection.close()
        install_draft(draft, path)
    except DRIVER_ERRORS as error:
        if is_absent(draft):
            return  # Deleted while it was created, as if it had never existed.
        raise translate(error, path) from error
    finally:
        drop_draft(draft)


def _set_up_writing(connection: apsw.Connection, path: str) -> None:
    # Without fetching, the driver stops at the first statement that returns a row.
    connection.execute(
        f"PRAGMA journal_mode={_journal_mode(path)}; "
        f"PRAGMA synchronous=NORMAL; PRAGMA wal_autocheckpoint=0; PRAGMA "
        f"journal_size_limit={LOG_KEPT_BYTES}; "
        # Deleted text must not stay in a free page.
        "PRAGMA secure_delete=ON; PRAGMA foreign_keys=ON; PRAGMA recursive_triggers=OFF"
    ).fetchall()


def _journal_mode(path: str) -> str:
    """A write-ahead log on a network file system cannot be shared between machines; a rollback
    journal can."""
    return "DELETE" if shared_file_system(path) else "WAL"


def _check_pages(connection: apsw.Connection, path: str) -> None:
    """Read every page of a main file that was changed from outside, or whose writer died."""
    (found,) = connection.execute("PRAGMA quick_check(1)").fetchall()[0]
    if found != "ok":
        raise IndexDamaged(f"The index {path} is damaged ({one_line(str(found))}).", hint=FIX_HINT)
