"""Export transcripts as Markdown for QMD, one line for each message, with secrets masked.

Line 3 of an exported file is the first message, so a line of it leads back to a line of the
transcript."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from hashlib import sha256
from itertools import islice
from typing import NamedTuple

from clawmark.model.errors import WorkspaceError
from clawmark.model.sync_report import FileFailure
from clawmark.model.values import FileState
from clawmark.system.private_files import make_private_folder, open_private
from clawmark.text.transcripts.chunks import render_message
from clawmark.text.transcripts.records import TranscriptMessage
from clawmark.workspace.transcripts.files import OWN, TranscriptFiles
from clawmark.workspace.transcripts.messages import read_messages

FIRST_MESSAGE = 3
"""The line of the first message; a heading and an empty line come before it."""
DAY_NS = 86_400 * 10**9


class Exported(NamedTuple):
    """What an export did."""

    names: tuple[str, ...]
    """The files that are in the folder now and were made by an export."""
    failures: tuple[FileFailure, ...]


def export_name(path: str) -> str:
    """Return the file name for a transcript; transcripts of other tools get a part of a hash."""
    folder, _, name = path.rpartition("/")
    if folder == OWN:
        return f"{name}.md"
    return f"{name}.{sha256(path.encode()).hexdigest()[:8]}.md"


def retained(
    states: Iterable[FileState], now_ns: int, retention_days: int
) -> tuple[FileState, ...]:
    """Return the transcripts that are recent enough; 0 days means no limit."""
    oldest = now_ns - retention_days * DAY_NS if retention_days else 0
    return tuple(state for state in states if state.mtime_ns >= oldest)


def export(
    folder: str,
    transcripts: TranscriptFiles,
    states: Sequence[FileState],
    changed: Iterable[str],
    earlier: Iterable[str],
) -> Exported:
    """Write the transcripts that have changed or are missing, and delete the files of `earlier`
    exports that are not wanted any more. Other files in the folder are not touched.
    """
    make_private_folder(folder)
    wanted = {export_name(state.path): state.path for state in states}
    outdated, failures = set(changed), list[FileFailure]()
    for name, path in wanted.items():
        target = os.path.join(folder, name)
        if path not in outdated and os.path.exists(target):
            continue
        try:
            _write(target, path, transcripts)
        except FileNotFoundError:
            continue  # deleted since the scan; the next one notices
        except (OSError, WorkspaceError) as error:
            failures.append(FileFailure(path, str(error)))
    for name in set(earlier) - set(wanted):
        try:
            os.unlink(os.path.join(folder, os.path.basename(name)))
        except FileNotFoundError:
            continue
    return Exported(tuple(sorted(wanted)), tuple(failures))


def _write(target: str, path: str, transcripts: TranscriptFiles) -> None:
    """Replace one exported file as a whole."""
    temporary = f"{target}.tmp"
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    with (
        transcripts.open(path) as opened,
        open(open_private(temporary, flags), "w", encoding="utf-8", errors="replace") as file,
    ):
        file.write(f"# Session {path.rpartition('/')[2]}\n\n")
        for message in read_messages(opened, transcripts.clean):
            file.write(message_line(message) + "\n")
    os.replace(temporary, target)


def message_line(message: TranscriptMessage) -> str:
    """Return a message on one line."""
    return " ".join(render_message(message).split())


class ExportedLines(NamedTuple):
    """Where some lines of an exported file come from."""

    first: TranscriptMessage
    last: TranscriptMessage


def lines_in_transcript(
    transcripts: TranscriptFiles, path: str, start: int, count: int, shown: Sequence[str]
) -> ExportedLines | None:
    """Return the messages at these lines of an exported file; None if the transcript no longer has
    what is `shown` of them.
    """
    first = max(start, FIRST_MESSAGE)
    with transcripts.open(path) as opened:
        messages = read_messages(opened, transcripts.clean)
        found = list(islice(messages, first - FIRST_MESSAGE, start + count - FIRST_MESSAGE))
    if not found:
        return None
    texts = " ".join(message_line(message) for message in found)
    # QMD may show only the end of the first line and the beginning of the last one.
    seen = " ".join(" ".join(shown[first - start :]).split())
    return ExportedLines(found[0], found[-1]) if seen and seen in texts else None
