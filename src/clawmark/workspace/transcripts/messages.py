"""Read the messages of an open transcript, with secrets masked.

Excerpts use the line numbers of the file, as citations do. The file itself is never changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from clawmark.model.documents import Excerpt
from clawmark.text.transcripts.chunks import render_message
from clawmark.text.transcripts.records import TranscriptMessage, read_message
from clawmark.workspace.transcripts.files import OpenTranscript
from clawmark.workspace.transcripts.json_lines import (
    Line,
    count_lines,
    find_line,
    read_at,
    read_lines,
)


def message_on(line: Line, clean: Callable[[str], str]) -> TranscriptMessage | None:
    """Return the message on a line, masked; None if there is none or the line is too long."""
    if line.data is None:
        return None
    message = read_message(line.data.decode("utf-8", "replace"), line.number)
    return None if message is None else message._replace(text=clean(message.text))


def read_messages(
    opened: OpenTranscript, clean: Callable[[str], str]
) -> Iterator[TranscriptMessage]:
    """Yield all messages of a transcript in order."""
    for line in read_lines(opened.fd, 0, 1, opened.state.size):
        message = message_on(line, clean)
        if message is not None:
            yield message


def read_excerpt(
    opened: OpenTranscript,
    clean: Callable[[str], str],
    start: int,
    lines: int | None,
    max_lines: int,
    max_chars: int,
) -> Excerpt:
    """Return the messages from line `start` of the file on.

    `lines` counts lines of the file, as citations do. Without it the returned text has at most
    `max_lines` lines."""
    fd, state = opened
    start = max(1, start)
    total = _total_lines(fd, state.size)
    asked = lines is not None and lines > 0
    last = start + lines - 1 if lines is not None and asked else total
    page = _Page(None if asked else max_lines, max_chars)
    following = start
    offset = find_line(fd, start, state.size)
    for line in read_lines(fd, offset, start, state.size) if offset is not None else ():
        message = message_on(line, clean)
        if line.number > last or (message is not None and not page.add(render_message(message))):
            break
        following = line.number + 1
    more = start <= total and following <= total
    is_short = more and (not asked or following <= last)
    return Excerpt(
        path=state.path,
        text=page.text,
        start=start,
        lines=following - start,
        total_lines=total,
        truncated=is_short or page.is_cut,
        next_start=following if more else None,
    )


class _Page:
    """Collects text up to a number of lines and characters."""

    def __init__(self, max_lines: int | None, max_chars: int) -> None:
        self._lines_left = max_lines
        self._max_chars = max_chars
        self.text = ""
        self.is_cut = False

    def add(self, text: str) -> bool:
        """Add a message if it fits; the first one is truncated to fit."""
        joined = f"{self.text}\n{text}" if self.text else text
        too_many = self._lines_left is not None and joined.count("\n") >= self._lines_left
        if self.text and (too_many or len(joined) > self._max_chars):
            return False
        self.is_cut = self.is_cut or len(joined) > self._max_chars
        self.text = joined[: self._max_chars]
        return True


def _total_lines(fd: int, size: int) -> int:
    """Count the lines of the file, including a last line without a line end."""
    return count_lines(fd, 0, size) + (size > 0 and read_at(fd, size - 1, 1) != b"\n")
