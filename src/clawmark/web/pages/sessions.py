"""Sessions: transcripts, what was recalled into each, and what was flushed and noted from it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple
from urllib.parse import quote, urlencode

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from clawmark.agent.session.memory_use import MemoryUse
from clawmark.composition.history.session_reports import SessionReport, known_sessions
from clawmark.memory import Memory
from clawmark.model.errors import WorkspaceError
from clawmark.model.provenance import LogEntry
from clawmark.model.values import parse_citation
from clawmark.text.transcripts.records import ROLE_NAMES, utc_time
from clawmark.web.entries import TRUST_WORDS
from clawmark.web.markdown import file_address
from clawmark.web.pages.view_as import address_of as view_as_address
from clawmark.web.render import page
from clawmark.workspace.transcripts.messages import read_messages

ON_A_PAGE = 50
LONGEST_TITLE = 90
MOST_CHARS = 60_000
"""Characters of messages on one page."""
LONGEST_MESSAGE = 6_000
"""A longer message is cut, with a link to all of it."""
LONGEST_SHOWN = 100_000
"""Even alone, not more of a message is shown."""
MOST_CITED = 12

HOW = {"recalled": "recalled unasked", "searched": "searched by the model", "read": "read by it"}
WRITTEN = {
    "flush": "flushed before a compaction",
    "note": "session note",
    "tool": "written by a tool of the agent",
    "capture": "captured by a plugin",
}
NOT_KNOWN = (
    "This is what the transcript records: blocks of recalled memory, calls of the memory tools, "
    "and the sources of what Clawmark recalled in its own conversations. Not known is what a host "
    "sent to its model without recording it, such as the system prompt, and what Clawmark recalled "
    "before it recorded sources."
)


class Link(NamedTuple):
    """A text that leads to another view; without an address it leads nowhere."""

    text: str
    address: str


class SessionRow(NamedTuple):
    """One transcript in the list."""

    path: str
    address: str
    title: str
    """The beginning of the user's first message."""
    key: str
    kind: str
    host: str
    first: str
    last: str
    messages: int
    flushed: str
    status: str


class SessionsPage(NamedTuple):
    """The model of the list."""

    rows: tuple[SessionRow, ...]
    total: int
    newer: str
    older: str
    folder: str
    is_searched: bool


class UseRow(NamedTuple):
    """What was taken from the memory at one place of a session."""

    line: int
    time: str
    how: str
    query: str
    sources: tuple[Link, ...]
    more: int
    """Sources that are not shown."""


class WriteRow(NamedTuple):
    """What was written to the memory from a session."""

    time: str
    what: str
    trust: str
    file: Link
    texts: tuple[str, ...]


class MessageRow(NamedTuple):
    """A message, and what was taken from the memory after it."""

    line: int
    role: str
    time: str
    text: str
    cut: int
    """Characters that are not shown."""
    whole: str
    """The address that shows all of it; empty if it is shown whole."""
    uses: tuple[UseRow, ...]


class SessionPage(NamedTuple):
    """The model of one session."""

    path: str
    title: str
    key: str
    kind: str
    view_as: str
    note: Link | None
    total: int
    uses: tuple[UseRow, ...]
    writes: tuple[WriteRow, ...]
    journal_problem: str
    not_known: str
    messages: tuple[MessageRow, ...]
    first: str
    """The address of the first page; empty on it."""
    next: str


def sessions_page(memory: Memory, start: int = 0) -> SessionsPage:
    """Return one page of transcripts, the latest first."""
    found = memory.sessions()
    start = max(0, min(start, len(found) - 1)) // ON_A_PAGE * ON_A_PAGE
    known = {one.file: one for one in known_sessions(memory.places)}
    rows = list[SessionRow]()
    for one in found[start : start + ON_A_PAGE]:
        session = known.get(one.path.rpartition("/")[2])
        rows.append(
            SessionRow(
                path=one.path,
                address=session_address(one.path),
                title=_first_words(memory, one.path),
                key=session.key if session else "",
                kind=session.kind if session else "",
                host=one.kind,
                first=_when(one.first),
                last=_when(one.last),
                messages=one.messages,
                flushed=_when(one.flush.last) if one.flush else "",
                status=one.status,
            )
        )
    older = start + ON_A_PAGE
    return SessionsPage(
        rows=tuple(rows),
        total=len(found),
        newer=f"/sessions?start={start - ON_A_PAGE}" if start else "",
        older=f"/sessions?start={older}" if older < len(found) else "",
        folder=memory.places.sessions_dir,
        is_searched="sessions" in memory.settings.memory_search.sources,
    )


def session_page(report: SessionReport, start: int = 0, whole: int = 0) -> SessionPage:
    """Describe a session; `start` is the line of the first message, `whole` one shown in full."""
    here = session_address(report.path)
    shown = list(_messages(report, here, start, whole))
    after = shown[-1].line if shown else 0
    is_more = any(one.line > after for one in report.messages) and not whole
    is_first = not shown or shown[0].line == report.messages[0].line
    return SessionPage(
        path=report.path,
        title=_title(next((one.text for one in report.messages if one.role == "user"), "")),
        key=report.key,
        kind=report.kind or "",
        view_as=view_as_address(report.key) if report.key else "",
        note=cited(report.note) if report.note else None,
        total=len(report.messages),
        uses=tuple(map(_use, report.uses)),
        writes=tuple(map(_write, report.writes)),
        journal_problem=report.journal_problem,
        not_known=NOT_KNOWN,
        messages=tuple(shown),
        first="" if is_first else here,
        next=_with(here, start=after + 1) if is_more else "",
    )


def session_address(path: str, line: int = 0) -> str:
    """Return the address of a session, by the path of its transcript, or of one of its lines."""
    address = f"/session/{quote(path.encode('utf-8', 'surrogateescape'))}"
    if path.startswith("../"):  # browsers remove the dots from an address
        address = f"/session?{urlencode({'path': path})}"
    return f"{_with(address, start=line)}#L{line}" if line else address


def address_of_key(memory: Memory, key: str) -> str:
    """Return the address of the transcript of a session key; without one, of what it would see."""
    known = {one.key: one.file for one in known_sessions(memory.places)}
    files = {one.path.rpartition("/")[2]: one.path for one in memory.sessions()}
    path = files.get(known.get(key, ""), "")
    return session_address(path) if path else view_as_address(key)


def cited(citation: str) -> Link:
    """Return a citation with the address of what it cites."""
    place = parse_citation(citation)
    if place.path.endswith(".md"):
        return Link(citation, file_address(place.path, place.start if "#" in citation else 0))
    if ".jsonl" in place.path:
        return Link(citation, session_address(place.path, place.start if place.lines else 0))
    return Link(citation, "")


def _messages(report: SessionReport, here: str, start: int, whole: int) -> Iterator[MessageRow]:
    """Yield the messages of one page; only one of them if it is asked for as a whole."""
    wanted = [one for one in report.messages if one.line >= start]
    if whole:
        wanted = [one for one in report.messages if one.line == whole]
    longest = LONGEST_SHOWN if whole else LONGEST_MESSAGE
    chars = 0
    for number, one in enumerate(wanted[:ON_A_PAGE]):
        text = one.text[:longest]
        chars += len(text)
        if number and chars > MOST_CHARS:
            return
        after = next((other.line for other in wanted[number + 1 :]), 1 << 60)
        yield MessageRow(
            line=one.line,
            role=ROLE_NAMES[one.role],
            time=_when(one.time),
            text=text,
            cut=len(one.text) - len(text),
            whole=_with(here, whole=one.line) if len(one.text) > len(text) and not whole else "",
            uses=tuple(_use(use) for use in report.uses if one.line <= use.line < after),
        )


def _use(use: MemoryUse) -> UseRow:
    return UseRow(
        line=use.line,
        time=_when(use.time),
        how=HOW[use.how],
        query=use.query[:300],
        sources=tuple(map(cited, use.citations[:MOST_CITED])),
        more=max(0, len(use.citations) - MOST_CITED),
    )


def _write(entry: LogEntry) -> WriteRow:
    record = entry.record
    texts = [text for text in entry.texts if not text.startswith("#")]  # not the heading of a log
    return WriteRow(
        time=_when(utc_time(record.time)),
        what=WRITTEN.get(record.origin.kind, record.origin.kind),
        trust=TRUST_WORDS[record.origin.trust],
        file=cited(record.path),
        texts=tuple(text[:600] for text in texts[:5]),
    )


def _first_words(memory: Memory, path: str) -> str:
    """Return the beginning of the user's first message; empty if it cannot be read."""
    files = memory.transcript_files
    try:
        with files.open(path) as opened:
            messages = read_messages(opened, files.clean)
            return _title(next((one.text for one in messages if one.role == "user"), ""))
    except (WorkspaceError, OSError):
        return ""


def _title(text: str) -> str:
    line = " ".join(text[:500].split())
    return line if len(line) <= LONGEST_TITLE else line[: LONGEST_TITLE - 1].rstrip() + "…"


def _when(time: str) -> str:
    return f"{time[:10]} {time[11:16]}" if time else ""


def _with(address: str, **more: int | str) -> str:
    return f"{address}{'&' if '?' in address else '?'}{urlencode(more)}"


def _number(request: Request, name: str) -> int:
    given = request.query_params.get(name, "")
    return int(given) if given.isascii() and given.isdigit() and len(given) < 10 else 0


def _sessions(request: Request) -> Response:
    memory: Memory = request.app.state.site.memory
    return page(request, "sessions.html", sessions_page(memory, _number(request, "start")))


def _session(request: Request) -> Response:
    memory: Memory = request.app.state.site.memory
    if key := request.query_params.get("key", ""):
        address = address_of_key(memory, key)
        if request.query_params.get("format") == "json":
            address = _with(address, format="json")
        return RedirectResponse(address, 303)
    name = request.path_params.get("name") or request.query_params.get("path", "")
    model = session_page(memory.session(name), _number(request, "start"), _number(request, "whole"))
    return page(request, "session.html", model)


routes = [
    Route("/sessions", _sessions),
    Route("/session", _session),
    Route("/session/{name:path}", _session),
]
