"""Writing a transcript as OpenClaw does: one JSON object a line, a head first, each message knowing
the one before it.

In: what is said, while it is said. Out: a file that grows. A line is written in one piece at the
end and is on disk when the call returns; half a line that a crash left behind is closed before the
next one. Reading is `text.transcript`'s part."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Literal

from clawmark.agent.session.recent_messages import last_line
from clawmark.model.errors import WorkspaceError
from clawmark.system.private_files import make_private_folder, sync_folder
from clawmark.text.chunking.tokens import well_formed
from clawmark.text.transcripts.records import parse_line

VERSION = 3


class TranscriptLog:
    """One transcript; it is made with the first thing that is said."""

    def __init__(self, path: str, session_id: str, cwd: str, now: Callable[[], datetime]) -> None:
        self.path = path
        self._session_id = session_id
        self._cwd = cwd
        self._now = now
        self._parent: str | None = None
        self._is_open = False

    def said(self, role: Literal["user", "assistant"], text: str, **more: object) -> str:
        """Add a message; `more` joins it, as the `usage` of an answer. The id of its line."""
        message = {"role": role, "content": [{"type": "text", "text": well_formed(text)}], **more}
        return self.add("message", {"message": message})

    def add(self, kind: str, fields: Mapping[str, object]) -> str:
        """Add a line of any kind, as `compaction` with its summary; the id of the line."""
        if not self._is_open:
            self._open()
        line_id = secrets.token_hex(4)
        self._write(
            {
                "type": kind,
                "id": line_id,
                "parentId": self._parent,
                "timestamp": self._timestamp(),
                **fields,
            }
        )
        self._parent = line_id
        return line_id

    def _open(self) -> None:
        """Begin the file, or go on where it ends."""
        self._is_open = True
        last = parse_line(last_line(self.path)) if os.path.exists(self.path) else {}
        found = last.get("id")
        if last.get("type") not in (None, "session") and isinstance(found, str):
            self._parent = found
        elif not os.path.exists(self.path) or os.path.getsize(self.path) == 0:
            head = {
                "type": "session",
                "version": VERSION,
                "id": self._session_id,
                "timestamp": self._timestamp(),
            }
            self._write({**head, "cwd": self._cwd})

    def _write(self, record: Mapping[str, object]) -> None:
        data = (
            json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
            + b"\n"
        )
        flags = (
            os.O_RDWR
            | os.O_CREAT
            | os.O_APPEND
            | getattr(os, "O_CLOEXEC", 0)
            | getattr(os, "O_NOFOLLOW", 0)
        )
        try:
            make_private_folder(os.path.dirname(self.path))
            descriptor = os.open(self.path, flags, 0o600)
            try:
                size = os.lseek(descriptor, 0, os.SEEK_END)
                if size and _byte_at(descriptor, size - 1) != b"\n":
                    data = b"\n" + data
                while data:  # a full disk takes the beginning of a line and says nothing until it is asked again
                    data = data[os.write(descriptor, data) :]
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
            if not size:
                sync_folder(os.path.dirname(self.path))
        except OSError as error:
            raise WorkspaceError(
                f"The transcript {self.path} cannot be written: "
                f"{error.strerror or type(error).__name__}.",
                hint="Check the state folder and its disk.",
            ) from error

    def _timestamp(self) -> str:
        return self._now().astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _byte_at(descriptor: int, place: int) -> bytes:
    os.lseek(descriptor, place, os.SEEK_SET)
    return os.read(descriptor, 1)
