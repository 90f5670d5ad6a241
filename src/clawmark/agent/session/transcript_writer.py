"""Write a transcript in OpenClaw's format: JSON lines, a header first, each with its parent's id.

Each line is appended in one piece and is on disk when the call returns. A partial line left by a
crash is ended before the next one is written."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Callable, Mapping
from datetime import UTC, datetime

from clawmark.agent.session.transcript_reader import last_line
from clawmark.model.errors import WorkspaceError
from clawmark.system.private_files import make_private_folder, sync_folder
from clawmark.text.chunking.tokens import well_formed
from clawmark.text.transcripts.records import Role, parse_line

VERSION = 3


class TranscriptWriter:
    """Appends to one transcript, which is created with the first record."""

    def __init__(self, path: str, session_id: str, cwd: str, now: Callable[[], datetime]) -> None:
        self.path = path
        self._session_id = session_id
        self._cwd = cwd
        self._now = now
        self._parent: str | None = None
        self._is_open = False

    def add_message(self, role: Role, text: str, **more: object) -> str:
        """Add a message with further fields, such as `usage`; return the id of its record."""
        message = {"role": role, "content": [{"type": "text", "text": well_formed(text)}], **more}
        return self.add_record("message", {"message": message})

    def add_record(self, kind: str, fields: Mapping[str, object]) -> str:
        """Add a record of any type, such as `compaction`; return its id."""
        if not self._is_open:
            self._open()
        record_id = secrets.token_hex(4)
        head = {"type": kind, "id": record_id, "parentId": self._parent}
        self._write({**head, "timestamp": self._timestamp(), **fields})
        self._parent = record_id
        return record_id

    def _open(self) -> None:
        """Start the file, or continue where it ends."""
        self._is_open = True
        last = parse_line(last_line(self.path)) if os.path.exists(self.path) else {}
        found = last.get("id")
        if last.get("type") not in (None, "session") and isinstance(found, str):
            self._parent = found
        elif not os.path.exists(self.path) or os.path.getsize(self.path) == 0:
            head = {"type": "session", "version": VERSION, "id": self._session_id}
            self._write({**head, "timestamp": self._timestamp(), "cwd": self._cwd})

    def _write(self, record: Mapping[str, object]) -> None:
        text = json.dumps(record, ensure_ascii=False, separators=(",", ":")) + "\n"
        data = text.encode("utf-8", "replace")
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND
        flags |= getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0)
        try:
            make_private_folder(os.path.dirname(self.path))
            descriptor = os.open(self.path, flags, 0o600)
            try:
                size = os.lseek(descriptor, 0, os.SEEK_END)
                if size and _byte_at(descriptor, size - 1) != b"\n":
                    data = b"\n" + data
                while data:  # a full disk accepts part of a line and fails on the next write
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
