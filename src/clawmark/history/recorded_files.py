"""The states of the files at the last recording, in a small file next to the history.

They tell which files have to be read for the next version, and whether there is anything to record
at all, without opening the repository."""

from collections.abc import Iterable
from typing import NamedTuple

from clawmark.model.values import FileState
from clawmark.system import shared_json


class RecordedFiles(NamedTuple):
    """What the last recording saw."""

    version: str
    """The id of the newest version after it; the states belong to no other one."""
    files: dict[str, list[object]]
    """Path → size, time and inode of a file, and its blob. A file that had changed a moment before
    is left out, because it may change again without a new time."""
    limited: int = 0
    """When the retention was last applied, in seconds since 1970."""


NOTHING = RecordedFiles("", {})


def state_of(file: FileState) -> list[object]:
    """Return what is compared to notice a change."""
    return [file.size, file.mtime_ns, file.inode]


def load(folder: str) -> RecordedFiles:
    """Read the states of a history; none if the file is absent or damaged."""
    values = _values(folder)
    limited = values.get("limited")
    try:
        return RecordedFiles(
            version=str(values.get("version", "")),
            files=_files(str(values.get("states", "")), str(values.get("blobs", ""))),
            limited=limited if isinstance(limited, int) else 0,
        )
    except ValueError:
        return NOTHING


def save(folder: str, recorded: RecordedFiles) -> None:
    """Replace the states; call it with the lock of the history held."""
    files = dict(
        sorted((_entry(path, *state[:3]), state[3]) for path, state in recorded.files.items())
    )
    values = {
        "version": recorded.version,
        "limited": recorded.limited,
        "states": "//".join(files),
        "blobs": " ".join(map(str, files.values())),
    }
    shared_json.save(_path(folder), values)


def is_recorded(folder: str, files: Iterable[FileState]) -> bool:
    """Whether every file is as it was at the last recording, and none is gone."""
    # Compared as one text: a sync that finds nothing to do need not read the states one by one.
    states = sorted([_entry(path, size, time, inode) for path, _, size, time, inode, _ in files])
    return _values(folder).get("states", "") == "//".join(states)


def _entry(path: str, size: object, time: object, inode: object) -> str:
    """Return the state of a file as it is saved; entries are separated by "//"."""
    return f"{path}/{size}/{time}/{inode}"


def _files(states: str, blobs: str) -> dict[str, list[object]]:
    """Read what `save` has written; ValueError if it is damaged."""
    files = dict[str, list[object]]()
    for entry, blob in zip(states.split("//") if states else (), blobs.split(), strict=True):
        path, size, time, inode = entry.rsplit("/", 3)
        files[path] = [int(size), int(time), int(inode), blob]
    return files


def _values(folder: str) -> dict[str, object]:
    try:
        return shared_json.load(_path(folder)) or {}
    except (ValueError, OSError):
        return {}


def _path(folder: str) -> str:
    return f"{folder}.files.json"
