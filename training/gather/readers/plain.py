"""Read paragraphs from plain text, and books from Project Gutenberg."""

import re
from collections.abc import Iterator

from training.gather.values import Section

_RULER = re.compile(r"^[\s=\-~^*+#_.|]{3,}$")
_START = re.compile(r"\*\*\* ?START OF TH.*?\*\*\*|\*END[* ].*SMALL PRINT.*\*END\*", re.IGNORECASE)
_END = re.compile(r"\*\*\* ?END OF TH|End of (The )?Project Gutenberg", re.IGNORECASE)


def paragraphs_of(text: str) -> list[str]:
    """Split at blank lines; drop lines that only draw a ruler."""
    blocks: list[list[str]] = [[]]
    for line in text.splitlines():
        if not line.strip():
            blocks.append([])
        elif not _RULER.match(line):
            blocks[-1].append(line.strip())
    return [" ".join(" ".join(block).split()) for block in blocks if block]


def decode(content: bytes) -> str:
    """Decode UTF-8, or Latin-1 where that is not what the file is."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return content.decode("latin-1")


def read_text(_name: str, content: bytes) -> Iterator[Section]:
    """Give the paragraphs of a text file in groups that stand next to each other."""
    paragraphs = paragraphs_of(_book_body(decode(content)))
    for start in range(0, len(paragraphs), 12):
        yield Section("", tuple(paragraphs[start : start + 12]))


def read_lines(_name: str, content: bytes) -> Iterator[Section]:
    """Give each line as a text of its own."""
    for line in decode(content).splitlines():
        if line.strip():
            yield Section("", (" ".join(line.split()),))


def _book_body(text: str) -> str:
    start, end = _START.search(text), _END.search(text)
    return text[start.end() if start else 0 : end.start() if end else len(text)]
