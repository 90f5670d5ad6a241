"""Recent: the newest entries of all spaces, with who wrote them."""

from __future__ import annotations

from typing import NamedTuple

from starlette.responses import Response

from clawmark.serve.pages.view import Viewer, page
from clawmark.store.postgres.team.listing import LogEntry
from clawmark.web.markdown import file_address

MOST_ENTRIES = 100
LONGEST_TEXT = 4_000


class ShownEntry(NamedTuple):
    """An entry as the page shows it."""

    space: str
    author: str
    day: str
    time: str
    text: str
    is_cut: bool
    address: str
    citation: str


class RecentPage(NamedTuple):
    """The model of the page; `days` are the newest first, each with its entries."""

    days: tuple[tuple[str, tuple[ShownEntry, ...]], ...]
    is_cut: bool


def show_recent(viewer: Viewer) -> Response:
    found = viewer.team.recent(viewer.grant, (), MOST_ENTRIES + 1)
    return page(viewer.request, "team_recent.html", recent_page(found))


def recent_page(found: tuple[LogEntry, ...]) -> RecentPage:
    """Group entries by day."""
    days = dict[str, list[ShownEntry]]()
    for entry in found[:MOST_ENTRIES]:
        days.setdefault(entry.day, []).append(shown_entry(entry))
    return RecentPage(
        days=tuple((day, tuple(entries)) for day, entries in days.items()),
        is_cut=len(found) > MOST_ENTRIES,
    )


def shown_entry(entry: LogEntry) -> ShownEntry:
    return ShownEntry(
        space=entry.space,
        author=entry.author,
        day=entry.day,
        time=entry.time,
        text=entry.text[:LONGEST_TEXT],
        is_cut=len(entry.text) > LONGEST_TEXT,
        address=file_address(entry.path, entry.start_line),
        citation=entry.citation,
    )
