"""Network disks are recognised from the mount table."""

from __future__ import annotations

import builtins
import io
from pathlib import Path
from typing import Any

import pytest

from clawmark.store.sqlite.files import shared_file_system
from clawmark.testing.store_samples import any_of

MOUNTS = """\
22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
30 22 0:30 / /home/me rw - nfs4 server:/home rw
31 30 0:31 / /home/me/local rw - ext4 /dev/sdb1 rw
32 22 0:32 / /mnt/with\\040space rw - fuse.sshfs me@there: rw
33 22 0:33 / /mnt/host rw - 9p share rw
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/var/index.sqlite", ""),
        ("/home/me/state/index.sqlite", "nfs4"),
        ("/home/me/local/index.sqlite", ""),
        ("/home/meadow/index.sqlite", ""),
        ("/mnt/with space/index.sqlite", "fuse.sshfs"),
        ("/mnt/host/index.sqlite", "9p"),
    ],
)
def test_the_nearest_mount_decides(path: str, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(builtins, "open", lambda *_, **__: io.StringIO(MOUNTS))
    assert shared_file_system(path) == kind


def test_without_a_mount_table_every_disk_is_local(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any, **__: Any) -> Any:
        raise FileNotFoundError

    monkeypatch.setattr(builtins, "open", refuse)
    assert shared_file_system(str(tmp_path / "index.sqlite")) == ""


def test_an_index_on_a_network_disk_uses_a_rollback_journal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from clawmark.store.sqlite.store import SqliteStore
    from clawmark.testing.vectors import file_of

    monkeypatch.setattr("clawmark.store.sqlite.opening.shared_file_system", lambda path: "nfs4")
    index = SqliteStore(str(tmp_path / "index.sqlite"))
    with index.transaction() as writer:
        writer.put_file(*file_of("a.md", "alpha"))
    with index.snapshot() as reader:
        assert reader.database_facts()["journal_mode"] == "delete"
        assert len(reader.search_keywords(any_of("alpha"), 5)) == 1
    index.close()
    assert not Path(index.path + "-wal").exists()
