"""The list of folders added to a memory, in a small JSON file of the state folder.

There is one file per memory, `<state>/sources/<agent id>.json`, so that a folder added to one
workspace is not searched in another. Every look at the disk reads the file again if it has changed:
a folder added by one process is searched by the others too. `sources` decides what may be added."""

from __future__ import annotations

import os
import re
from collections.abc import Callable

from clawmark.model.errors import ConfigError
from clawmark.system import shared_json
from clawmark.workspace.places import Source

MOST_SOURCES = 1000
LOCK_SECONDS = 10.0
"""How long to wait for another process that changes the list."""


class SourceFile:
    """The sources of one memory."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._seen: tuple[int, int, int] | None = None
        self._sources: tuple[Source, ...] = ()

    def read(self) -> tuple[Source, ...]:
        """Return the current sources; empty when there is no file."""
        try:
            info = os.stat(self.path)
        except (FileNotFoundError, NotADirectoryError):
            return ()
        except OSError as error:
            raise self._damaged(error.strerror or str(error)) from error
        seen = (info.st_mtime_ns, info.st_size, info.st_ino)
        if seen != self._seen:
            self._sources, self._seen = self._parsed(), seen
        return self._sources

    def change(self, decide: Callable[[tuple[Source, ...]], tuple[Source, ...]]) -> None:
        """Replace the sources by what `decide` returns, under a lock; durable on return."""
        try:
            with shared_json.locked(self.path, LOCK_SECONDS) as is_held:
                if not is_held:
                    raise ConfigError(
                        f"Another process is changing {self.path}.",
                        file=self.path,
                        hint="Try again.",
                    )
                rows = [
                    {"name": one.name, "path": one.path, "patterns": list(one.patterns)}
                    for one in decide(self._parsed())
                ]
                shared_json.save(self.path, {"version": 1, "sources": rows}, durable=True)
                _sync_folder(os.path.dirname(self.path))
        except OSError as error:
            raise ConfigError(
                f"{self.path} could not be written: {error.strerror or error}.",
                file=self.path,
                hint="Check the state folder and its disk.",
            ) from error

    def _parsed(self) -> tuple[Source, ...]:
        try:
            rows = (shared_json.load(self.path) or {"sources": []}).get("sources")
            if not isinstance(rows, list) or len(rows) > MOST_SOURCES:
                raise ValueError("it does not hold a list of sources")
            return tuple(_source(row) for row in rows)
        except (ValueError, OSError) as error:
            raise self._damaged(str(error)) from error

    def _damaged(self, reason: str) -> ConfigError:
        return ConfigError(
            f"The list of sources {self.path} cannot be read: {reason}.",
            file=self.path,
            hint="Delete it, and add the folders again with `clawmark add`.",
        )


def is_source_name(text: str) -> bool:
    """Whether a source may have this name: at least two characters, because one looks like a drive
    letter."""
    return re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{1,63}", text) is not None


def _source(row: object) -> Source:
    match row:
        case {"name": str(name), "path": str(path), **rest} if is_source_name(
            name
        ) and os.path.isabs(path):
            patterns = rest.get("patterns", [])
            if isinstance(patterns, list) and all(isinstance(one, str) for one in patterns):
                return Source(name, path, tuple(patterns))
    raise ValueError("an entry is not a source")


def _sync_folder(folder: str) -> None:
    """Make a renamed file durable; not every system can open a folder."""
    if hasattr(os, "O_DIRECTORY"):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
