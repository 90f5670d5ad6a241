"""Reads the repository's Markdown for the tests: fenced blocks, links, headings.

A block that is to be run has `<!-- runs -->` on the line above its fence, where a reader does not
see it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
RUNS = "<!-- runs -->"
PROJECT = "https://github.com/clawmark/clawmark"
"""The README links to files of the repository by their address, because PyPI shows it too."""

_FENCE = re.compile(r"^(`{3,})(\w*)\s*$")
_LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
_ADDRESS = re.compile(re.escape(PROJECT) + "/(?:blob|tree)/main/")
_HEADING = re.compile(r"^#{1,6}\s+(.*)$")


class Block(NamedTuple):
    """One fenced block."""

    file: Path
    line: int
    language: str
    text: str
    runs: bool


def documents() -> list[Path]:
    """Every Markdown file people read: those at the top, in docs and in bench."""
    found = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "bench").glob("*.md")]
    return sorted(found)


def blocks(file: Path) -> list[Block]:
    """The fenced blocks of a document, in order."""
    found: list[Block] = []
    lines = file.read_text(encoding="utf-8").split("\n")
    fence, language, start, runs = "", "", 0, False
    for number, line in enumerate(lines):
        match = _FENCE.match(line)
        if not fence and match:
            fence, language, start = match[1], match[2], number + 1
            runs = number > 0 and lines[number - 1].strip() == RUNS
        elif fence and line.strip() == fence:
            found.append(
                Block(
                    file=file,
                    line=start,
                    language=language,
                    text="\n".join(lines[start:number]),
                    runs=runs,
                )
            )
            fence = ""
    return found


def prose(file: Path) -> str:
    """The document without its fenced blocks."""
    text = file.read_text(encoding="utf-8")
    return re.sub(r"^(`{3,}).*?^\1\s*$", "", text, flags=re.MULTILINE | re.DOTALL)


def links(file: Path) -> list[str]:
    """The targets of every link."""
    return _LINK.findall(prose(file).replace("\n", " "))


def target(file: Path, link: str) -> tuple[Path, str]:
    """The file and the heading that a link leads to; an address of a file is that file here."""
    path, _, anchor = link.partition("#")
    if found := _ADDRESS.match(path):
        return (ROOT / path[found.end() :]).resolve(), anchor
    return ((file.parent / path).resolve() if path else file), anchor


def anchors(file: Path) -> set[str]:
    """The anchors a code host makes of a document's headings."""
    headings = (match[1] for line in prose(file).split("\n") if (match := _HEADING.match(line)))
    return {
        re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings
    }


def where(file: Path) -> str:
    return str(file.relative_to(ROOT))
