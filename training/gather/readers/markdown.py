"""Read headings and paragraphs from Markdown and reStructuredText."""

import re
from collections.abc import Iterator

from training.gather.readers.plain import decode, paragraphs_of
from training.gather.readers.python_source import clean_markup
from training.gather.values import Kind, Section

_FENCE = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)
_HEADING = re.compile(r"^#{1,6}\s+(.*?)\s*#*$", re.MULTILINE)
_UNDERLINED = re.compile(r"^(\S.*)\n([=\-~^\"'*+#])\2{2,}\s*$", re.MULTILINE)
_DIRECTIVE = re.compile(r"^\.\. .*$(\n[ \t]+.*$)*|^\s*:[\w ]+:.*$", re.MULTILINE)
_LINKS = re.compile(r"\s*\(?(\[?#\d+\]?(\(\S+\))?|\[?[0-9a-f]{7,40}\]?(\(\S+\))?|https?://\S+)\)?")


def read_markdown(_name: str, content: bytes) -> Iterator[Section]:
    """Give one section for each heading, without code."""
    yield from _sections(decode(content), "passage")


def read_changelog(_name: str, content: bytes) -> Iterator[Section]:
    """Give the entries of a changelog as notes, one section for each release."""
    for section in _sections(decode(content), "note"):
        paragraphs = tuple(_LINKS.sub("", each).strip() for each in section.paragraphs)
        yield Section(section.heading, paragraphs, "note")


def _sections(text: str, kind: Kind) -> Iterator[Section]:
    text = _UNDERLINED.sub(r"# \1", _DIRECTIVE.sub("", _FENCE.sub("", text)))
    pieces = _HEADING.split(text)
    for heading, body in zip(["", *pieces[1::2]], pieces[::2], strict=True):
        body = re.sub(r"^\s*([*+-]|\d+\.)\s+", "\n", body, flags=re.MULTILINE)
        lines = [line for line in body.splitlines() if not re.match(r"\s{4,}|\s*[|<]", line)]
        paragraphs = tuple(map(clean_markup, paragraphs_of("\n".join(lines))))
        if paragraphs:
            yield Section(_LINKS.sub("", clean_markup(heading)), paragraphs, kind)
