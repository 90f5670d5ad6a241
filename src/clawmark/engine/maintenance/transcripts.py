"""List the transcripts of an agent, with how far they are indexed, and read one."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Literal

from clawmark.engine.parts import IndexParts
from clawmark.engine.sync.transcript_progress import Reached, decode
from clawmark.model.errors import FileMissing, WorkspaceError
from clawmark.model.reports import Transcript
from clawmark.model.values import FileRow, FileState
from clawmark.text.transcripts.records import TranscriptMessage, format_of, parse_line
from clawmark.workspace.transcripts.files import OWN, OpenTranscript, TranscriptFiles
from clawmark.workspace.transcripts.json_lines import read_lines
from clawmark.workspace.transcripts.messages import read_messages

LINES_TO_DETECT = 100
"""How many lines are read to detect the format; the first ones may be internal to the host."""

_KINDS = {"openclaw": "OpenClaw", "claude-code": "Claude Code", "codex": "Codex"}


def list_transcripts(parts: IndexParts, sessions: TranscriptFiles) -> tuple[Transcript, ...]:
    """Return every transcript, the latest conversation first."""
    is_source = parts.workspace.sessions is not None
    with parts.store.snapshot() as reader:
        indexed = reader.files()
    found = [_facts(state, indexed, sessions, is_source) for state in sessions.scan().files]
    return tuple(sorted(found, key=lambda one: (one.last, one.path), reverse=True))


def read_transcript(
    sessions: TranscriptFiles, name: str
) -> tuple[str, tuple[TranscriptMessage, ...]]:
    """Return the path of a transcript and its messages.

    `name` is its path, its file name, or the beginning of that."""
    paths = [state.path for state in sessions.scan().files]
    exact = [path for path in paths if path in (name, f"{OWN}/{name}", f"{OWN}/{name}.jsonl")]
    named = exact or [path for path in paths if path.rpartition("/")[2].startswith(name)]
    if len(named) != 1 or not name:
        what = (
            f"{len(named)} transcripts begin with {name}."
            if named and name
            else f"There is no transcript {name}."
        )
        kind = WorkspaceError if named and name else FileMissing
        raise kind(what, hint="`clawmark sessions` lists them.")
    try:
        with sessions.open(named[0]) as opened:
            return named[0], tuple(read_messages(opened, sessions.clean))
    except FileNotFoundError:
        raise FileMissing(
            f"{named[0]} is gone.", hint="`clawmark sessions` lists what is there."
        ) from None


def _facts(
    state: FileState, indexed: Mapping[str, FileRow], sessions: TranscriptFiles, is_source: bool
) -> Transcript:
    row = indexed.get(state.path)
    is_current = row is not None and row[3:7] == state[2:]
    reached = decode(row.progress) if row is not None and is_current else None
    if reached is None or reached.loose:
        reached = _counted(state, sessions)
    status: Literal["indexed", "due", "not a source"] = "indexed" if is_current else "due"
    return Transcript(
        path=state.path,
        kind=_KINDS.get(reached.kind, ""),
        size=state.size,
        messages=reached.said,
        first=reached.first,
        last=reached.last,
        status=status if is_source else "not a source",
    )


def _counted(state: FileState, sessions: TranscriptFiles) -> Reached:
    """Read a transcript whose facts are not in the index."""
    try:
        with sessions.open(state.path) as opened:
            kind = _kind(opened)
            count, first, last = 0, "", ""
            for said in read_messages(opened, str):
                count, first, last = count + 1, first or said.time, said.time or last
            return Reached(said=count, first=first, last=last, kind=kind)
    except (OSError, WorkspaceError):
        return Reached()


def _kind(opened: OpenTranscript) -> str:
    """Return the host that wrote a transcript, by the first line that shows it."""
    for line in islice(read_lines(opened.fd, 0, 1, opened.state.size), LINES_TO_DETECT):
        if line.data is not None:
            kind = format_of(parse_line(line.data.decode("utf-8", "replace")))
            if kind:
                return kind
    return ""
