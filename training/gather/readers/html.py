"""Read headings and paragraphs from HTML documentation."""

import re
from collections.abc import Iterator
from html.parser import HTMLParser

from training.gather.readers.plain import decode
from training.gather.values import Section

_HEADINGS = {"h1", "h2", "h3", "h4", "h5"}
_BLOCKS = {"p", "li", "dd", "dt", "td", "blockquote", "div", "section", "br"} | _HEADINGS
_SKIPPED = {"script", "style", "nav", "pre", "head", "footer", "table", "svg", "select"}


class _Collector(HTMLParser):
    """Collects sections while the parser reads tags."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.sections: list[tuple[str, list[str]]] = [("", [])]
        self._skipping: list[str] = []
        self._buffer: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        sidebar = "sphinxsidebar" in (dict(attrs).get("class") or "")
        if tag in _SKIPPED or sidebar or tag in self._skipping[-1:]:
            self._skipping.append(tag)
        elif tag in _BLOCKS:
            self._flush()

    def handle_endtag(self, tag: str) -> None:
        if self._skipping:
            if tag == self._skipping[-1]:
                self._skipping.pop()
        elif tag in _HEADINGS:
            heading = self._take().strip("¶ #")
            self.sections.append((heading, []))
        elif tag in _BLOCKS:
            self._flush()

    def handle_data(self, data: str) -> None:
        if not self._skipping:
            self._buffer.append(data)

    def _take(self) -> str:
        text = " ".join("".join(self._buffer).replace("¶", "").split())
        self._buffer.clear()
        return text

    def _flush(self) -> None:
        text = self._take()
        if text:
            self.sections[-1][1].append(text)


def read_html(_name: str, content: bytes) -> Iterator[Section]:
    """Give one section for each heading of the page."""
    collector = _Collector()
    collector.feed(decode(content))
    collector.close()
    for heading, paragraphs in collector.sections:
        if paragraphs:
            yield Section(re.sub(r"^[\d.]+\s*", "", heading), tuple(paragraphs))


def strip_tags(text: str) -> list[str]:
    """Return the paragraphs of an HTML fragment."""
    collector = _Collector()
    collector.feed(text + "<p>")
    collector.close()
    return [each for _heading, paragraphs in collector.sections for each in paragraphs]
