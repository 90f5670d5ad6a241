"""Cut Markdown into the blocks that a page shows as rows: headings, paragraphs, items of lists."""

from __future__ import annotations

import re
from typing import NamedTuple

from markdown_it import MarkdownIt
from markupsafe import Markup

from clawmark.web.markdown import as_lines, render

_DEFINITION = re.compile(r"(?m)^ {0,3}\[[^\]\n]{1,200}\]:[ \t]+\S.*$")
_FRONT_MATTER = re.compile(r"\A---[ \t]*\n(?:.*\n)*?(?:---|\.\.\.)[ \t]*(?=\n|\Z)")
_PARSER = MarkdownIt("commonmark", {"html": False, "maxNesting": 20}).enable(["table"])
_PARSER.disable(["inline"])  # only blocks are looked for: links and emphasis take most of the time
_LISTS = ("bullet_list_open", "ordered_list_open")
MOST_DEFINITIONS = 100


class Block(NamedTuple):
    """A block of a text, with its lines (1-based, inclusive)."""

    start_line: int
    end_line: int
    text: str


def split_blocks(text: str, first_line: int = 1) -> list[Block]:
    """Return the blocks of a text in order, without the blank lines between them.

    Each item of a list is a block. The text starts at line `first_line` of its file."""
    front = _FRONT_MATTER.match(text) if first_line == 1 else None
    lines = text.split("\n")
    begin = front[0].count("\n") + 1 if front else 0
    rest = "\n".join(lines[begin:])
    starts = sorted({begin, *(begin + start for start in _starts(rest))})
    blocks = [Block(1, begin, front[0])] if front else []
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        while start < end and not lines[start].strip():
            start += 1
        while end > start and not lines[end - 1].strip():
            end -= 1
        if start < end:
            body = "\n".join(lines[start:end])
            blocks.append(Block(start + first_line, end + first_line - 1, body))
    return blocks


def _starts(text: str) -> list[int]:
    """Return the lines on which the outermost blocks and list items begin, counted from 0."""
    starts, is_in_list = list[int](), False
    # A carriage return alone ends a line for the parser, but not for citations.
    for token in _PARSER.parse(text.replace("\r", " ")):
        if token.level == 0:
            is_in_list = token.type in _LISTS
        if token.map is not None and token.nesting >= 0:
            is_item = is_in_list and token.level == 1 and token.type == "list_item_open"
            if (token.level == 0 and not is_in_list) or is_item:
                starts.append(token.map[0])
    return starts


def link_definitions(text: str) -> str:
    """Return the lines that define the targets of links, `[1]: https://…`."""
    return "\n".join(_DEFINITION.findall(text)[:MOST_DEFINITIONS])


def render_block(text: str, line: int, path: str, definitions: str = "") -> Markup:
    """Return a block as HTML, with an anchor for each of its lines; the first one is `line`."""
    if line == 1 and _FRONT_MATTER.fullmatch(text):
        return as_lines(text)
    has_links = definitions and "[" in text
    html = render(f"{text}\n\n{definitions}" if has_links else text, path=path, first_line=line)
    # A block of link definitions alone has no HTML, but its lines are there.
    return html if html.strip() else as_lines(text, first_line=line)
