"""Spaces: the list of them, and one with its days, its documents and their authors."""

from __future__ import annotations

from typing import NamedTuple

from starlette.responses import Response

from clawmark.backends.team.base import SpaceInfo
from clawmark.serve.pages.recent import ShownEntry, shown_entry
from clawmark.serve.pages.view import Viewer, page
from clawmark.store.postgres.team.listing import ListedDocument, LogDay

MOST_ENTRIES = 20
MOST_DOCUMENTS = 1_000


class SpacesPage(NamedTuple):
    """The model of the list."""

    spaces: tuple[SpaceInfo, ...]


class SpacePage(NamedTuple):
    """The model of the page of one space."""

    name: str
    entries: tuple[ShownEntry, ...]
    days: tuple[LogDay, ...]
    authors: tuple[tuple[str, tuple[ListedDocument, ...]], ...]
    """The documents of each author."""
    is_cut: bool


def show_spaces(viewer: Viewer) -> Response:
    return page(viewer.request, "team_spaces.html", SpacesPage(viewer.spaces.spaces()))


def show_space(viewer: Viewer) -> Response:
    name: str = viewer.request.path_params["space"]
    listing = viewer.team.listing(viewer.grant, name, MOST_DOCUMENTS + 1)
    entries = viewer.team.recent(viewer.grant, (name,), MOST_ENTRIES)
    authors = dict[str, list[ListedDocument]]()
    for document in listing.documents[:MOST_DOCUMENTS]:
        authors.setdefault(document.author, []).append(document)
    model = SpacePage(
        name=name,
        entries=tuple(map(shown_entry, entries)),
        days=listing.days,
        authors=tuple((author, tuple(of_author)) for author, of_author in authors.items()),
        is_cut=len(listing.documents) > MOST_DOCUMENTS,
    )
    return page(viewer.request, "team_space.html", model)
