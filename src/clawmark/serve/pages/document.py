"""A document of a space: its text with line numbers, rendered or raw."""

from __future__ import annotations

from typing import NamedTuple

from starlette.responses import Response

from clawmark.model.documents import Excerpt
from clawmark.serve.pages.view import Viewer, page
from clawmark.serve.problems import Problem, RequestFailed, invalid
from clawmark.text.space_paths import parse_space_path
from clawmark.web.blocks import Block, link_definitions, split_blocks
from clawmark.web.pages.file import CHARACTERS_SHOWN, LINES_SHOWN, line_number

MISSING = Problem(
    status=404,
    type="DocumentMissing",
    message="There is no such document in the space.",
    hint="It may have been withdrawn: Search finds where its text is now.",
)


class DocumentPage(NamedTuple):
    """The model of the page."""

    path: str
    space: str
    author: str
    """Who published it; empty for a log, whose entries name their authors."""
    view: str
    rows: tuple[Block, ...]
    definitions: str
    first_line: int
    last_line: int
    total_lines: int
    next_line: int | None
    is_cut: bool
    lines_shown: int = LINES_SHOWN


def show_document(viewer: Viewer) -> Response:
    given = viewer.request.query_params
    start = max(1, line_number(given.get("from", "")))
    if line := line_number(given.get("line", "")):
        start = (line - 1) // LINES_SHOWN * LINES_SHOWN + 1
    path: str = viewer.request.path_params["path"]
    if "\0" in path:
        raise RequestFailed(invalid("The path contains the character NUL."))
    found = viewer.spaces.read(path, start, LINES_SHOWN, CHARACTERS_SHOWN)
    if found.missing:
        raise RequestFailed(MISSING)
    return page(viewer.request, "team_document.html", document_page(found, given.get("view", "")))


def document_page(found: Excerpt, view: str) -> DocumentPage:
    """Describe a part of a document."""
    cited = parse_space_path(found.path)
    lines = found.text.split("\n")[: max(0, found.total_lines - found.start + 1)]
    raw = [Block(number, number, line) for number, line in enumerate(lines, found.start)]
    return DocumentPage(
        path=found.path,
        space=cited.space if cited else "",
        author=cited.author if cited else "",
        view="raw" if view == "raw" else "rendered",
        rows=tuple(raw if view == "raw" else split_blocks(found.text, found.start)),
        definitions=link_definitions(found.text),
        first_line=found.start,
        last_line=min(found.start + found.lines - 1, max(found.total_lines, 1)),
        total_lines=found.total_lines,
        next_line=found.next_start,
        is_cut=len(found.text) >= CHARACTERS_SHOWN and found.lines == 1,
    )
