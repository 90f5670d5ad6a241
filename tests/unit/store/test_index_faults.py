"""Every exception of the driver becomes one of ours, with a message and a next step."""

from __future__ import annotations

import apsw
import pytest

from clawmark.model.errors import ClawmarkError, IndexBusy, IndexDamaged, IndexStoreError
from clawmark.store.sqlite.faults import translate

ALL = sorted(
    (
        kind
        for kind in vars(apsw).values()
        if isinstance(kind, type) and issubclass(kind, apsw.Error)
    ),
    key=lambda kind: kind.__name__,
)


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.__name__)
def test_every_driver_error_is_translated(kind: type[apsw.Error]) -> None:
    error = translate(kind("details"), "/state/memory/main.sqlite")
    assert isinstance(error, IndexStoreError)
    assert error.message.endswith(".")
    assert error.hint


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (apsw.BusyError, IndexBusy),
        (apsw.LockedError, IndexBusy),
        (apsw.CorruptError, IndexDamaged),
        (apsw.NotADBError, IndexDamaged),
        (apsw.FullError, IndexStoreError),
        (apsw.ReadOnlyError, IndexStoreError),
        (apsw.CantOpenError, IndexStoreError),
    ],
)
def test_errors_that_callers_handle_have_their_own_type(
    kind: type[apsw.Error], expected: type[ClawmarkError]
) -> None:
    assert type(translate(kind("details"), "/state/main.sqlite")) is expected


def test_a_full_text_index_that_has_lost_its_version_is_damaged() -> None:
    said = "invalid fts5 file format (found 0, expected 4 or 5) - run 'rebuild'"
    assert type(translate(apsw.SQLError(said), "/state/main.sqlite")) is IndexDamaged
    assert (
        type(translate(apsw.SQLError("no such module: vec0"), "/state/main.sqlite"))
        is IndexStoreError
    )


def test_damage_names_the_command_that_repairs_it() -> None:
    assert "clawmark index" in translate(apsw.CorruptError("malformed"), "/state/main.sqlite").hint


def test_a_full_disk_is_reported_with_path_and_free_space() -> None:
    message = translate(apsw.FullError("full"), "/tmp/main.sqlite").message
    assert "/tmp/main.sqlite" in message
    assert "bytes free" in message
