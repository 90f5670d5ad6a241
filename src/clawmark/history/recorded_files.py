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
    try:
        values = shared_json.load(_path(folder)) or {}
    except (ValueError, OSError):
        return NOTHING
    files, limited = values.get("files"), values.get("limited")
    return RecordedFiles(
        version=str(values.get("version", "")),
        files={
            path: state
            for path, state in (files.items() if isinstance(files, dict) else ())
            if isinstance(state, list) and len(state) == 4
        },
        limited=limited if isinstance(limited, int) else 0,
    )


def save(folder: str, recorded: RecordedFiles) -> None:
    """Replace the states; call it with the lock of the history held."""
    shared_json.save(_path(folder), recorded._asdict())


def is_recorded(folder: str, files: Iterable[FileState]) -> bool:
    """Whether every file is as it was at the last recording, and none is gone."""
    known = load(folder).files
    states = {path: [size, time, inode] for path, _, size, time, inode, _ in files}
    return states == {path: state[:3] for path, state in known.items()}


def _path(folder: str) -> str:
    return f"{folder}.files.json"
