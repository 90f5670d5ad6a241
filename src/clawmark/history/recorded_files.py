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
    blobs: dict[str, str]
    """`state_of` a file → its blob. A file that had changed a moment before is left out, because it
    may change again without a new time."""
    limited: int = 0
    """When the retention was last applied, in seconds since 1970."""


NOTHING = RecordedFiles("", {})


def state_of(file: FileState) -> str:
    """Return what is compared to notice a change: path, size, time and inode.

    A path has no "//", which separates states in the file."""
    return f"{file.path}/{file.size}/{file.mtime_ns}/{file.inode}"


def load(folder: str) -> RecordedFiles:
    """Read the states of a history; none if the file is absent or damaged."""
    values = _values(folder)
    limited = values.get("limited")
    try:
        return RecordedFiles(
            version=str(values.get("version", "")),
            blobs=_blobs(str(values.get("states", "")), str(values.get("blobs", ""))),
            limited=limited if isinstance(limited, int) else 0,
        )
    except ValueError:
        return NOTHING


def save(folder: str, recorded: RecordedFiles) -> None:
    """Replace the states; call it with the lock of the history held."""
    blobs = dict(sorted(recorded.blobs.items()))
    values = {
        "version": recorded.version,
        "limited": recorded.limited,
        "states": "//".join(blobs),
        "blobs": " ".join(blobs.values()),
    }
    shared_json.save(_path(folder), values)


def is_recorded(folder: str, files: Iterable[FileState]) -> bool:
    """Whether every file is as it was at the last recording, and none is gone."""
    # Compared as one text: a sync that finds nothing to do need not read the states one by one.
    states = sorted(map(state_of, files))
    return _values(folder).get("states", "") == "//".join(states)


def _blobs(states: str, blobs: str) -> dict[str, str]:
    """Read what `save` has written; ValueError if it is damaged."""
    return dict(zip(states.split("//") if states else (), blobs.split(), strict=True))


def _values(folder: str) -> dict[str, object]:
    try:
        return shared_json.load(_path(folder)) or {}
    except (ValueError, OSError):
        return {}


def _path(folder: str) -> str:
    return f"{folder}.files.json"
