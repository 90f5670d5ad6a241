"""Markdown as safe HTML: no tags of the text, no scripts, nothing loaded from other hosts.

Blocks and lines have the number of their line as an anchor: `#L12`. Raw HTML is shown as text.
Links lead to web addresses, mail addresses and files of the memory; pictures are links."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence
from html import escape
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict
from markupsafe import Markup

from clawmark.model.values import parse_citation
from clawmark.text.untrusted.invisible_characters import escape as escape_invisible

MAX_RENDERED = 200_000
"""Longer texts are shown as they are: laying them out takes seconds."""
MAX_NESTING = 20
_WEB = ("http", "https", "mailto")
_WIKILINK = re.compile(
    r"\[\[([^\[\]|#\n]{1,200})(?:#[^\[\]|\n]{0,300})?(?:\|([^\[\]\n]{0,300}))?\]\]"
)


def render(text: str, *, path: str = "", first_line: int = 1, anchor: str = "L") -> Markup:
    """Return Markdown as HTML.

    `path` is that of the file, for its relative links. `first_line` is the number of the first
    line. `anchor` precedes the number of a line in its id; without it, lines have no ids."""
    shown = visible(text)
    if len(shown) > MAX_RENDERED:
        return as_lines(shown, first_line=first_line, anchor=anchor)
    env: dict[str, Any] = {"path": path}
    tokens = _PARSER.parse(shown, env)
    if anchor:
        _add_anchors(tokens, first_line, anchor)
    return Markup(_PARSER.renderer.render(tokens, _PARSER.options, env))


def as_lines(text: str, *, first_line: int = 1, anchor: str = "L") -> Markup:
    """Return a text as it is, with an anchor for each line."""
    lines = visible(text).split("\n")
    body = "\n".join(
        f'<span id="{escape(anchor)}{number}">{escape(line)}</span>' if anchor else escape(line)
        for number, line in enumerate(lines, first_line)
    )
    return Markup(f"<pre>{body}</pre>")


def visible(text: str) -> str:
    """Return a text whose control and direction characters can be seen."""
    return escape_invisible(text.replace("\r\n", "\n"), joiners=False)


def file_address(path: str, line: int = 0) -> str:
    """Return the address of a file of the memory, or of one of its lines."""
    address = f"/file/{quote_path(path)}"
    return f"{address}#L{line}" if line else address


def quote_path(path: str) -> str:
    """Return the path of a file as a part of an address."""
    # A name may have undecodable bytes, which Python keeps as lone surrogates.
    return quote(path.encode("utf-8", "surrogateescape"), safe="/:")


def note_address(name: str) -> str:
    """Return the address that leads to the note that a wikilink names."""
    return f"/note/{quote(name.encode('utf-8', 'replace'), safe='')}"


def citation_address(text: str) -> str:
    """Return the address of what a citation names: `memory/x.md#L3-L9`."""
    cited = parse_citation(text)
    return file_address(cited.path, cited.start if cited.lines is not None else 0)


def link_address(target: str, path: str = "") -> str:
    """Return where a link of a note may lead; empty if it must not be a link.

    A relative one leads to a file of the memory, as seen from `path`."""
    try:
        parts = urlsplit(target.strip())
    except ValueError:
        return ""
    if parts.scheme:
        return target if parts.scheme.lower() in _WEB else ""
    if parts.netloc or target.startswith(("//", "\\")):
        return ""
    if not parts.path:
        return f"#{quote(parts.fragment)}" if parts.fragment else ""
    linked = unquote(parts.path)
    inside = linked.lstrip("/") if linked.startswith("/") else _next_to(path, linked)
    if inside.startswith("../") or not inside.lower().endswith(".md"):
        return ""
    return file_address(inside) + (f"#{quote(parts.fragment)}" if parts.fragment else "")


def _next_to(path: str, linked: str) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(path), linked))


def _add_anchors(tokens: Sequence[Token], first_line: int, anchor: str) -> None:
    """Give each line the id of its number, once: the outermost block on a line has it."""
    seen = set[int]()

    def name(line: int) -> str:
        if line in seen:
            return ""
        seen.add(line)
        return f"{anchor}{line + first_line}"

    for token in tokens:
        if token.map is None:
            continue
        if token.type == "inline":
            _anchor_lines(token, name)
        elif token.type in ("fence", "code_block"):
            start = token.map[0] + (token.type == "fence")
            token.meta = {"lines": [name(start + n) for n in range(token.content.count("\n"))]}
        elif token.nesting >= 0 and (found := name(token.map[0])):
            token.attrSet("id", found)


def _anchor_lines(inline: Token, name: Any) -> None:
    """Put an anchor behind each line break of a paragraph."""
    line = inline.map[0] if inline.map else 0
    children = list[Token]()
    for child in inline.children or ():
        children.append(child)
        if child.type in ("softbreak", "hardbreak"):
            line += 1
            if found := name(line):
                mark = Token("line_anchor", "", 0)
                mark.attrSet("id", found)
                children.append(mark)
    inline.children = children


class _Renderer(RendererHTML):
    """Renders links, pictures and code so that nothing but text is shown."""

    def link_open(
        self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType
    ) -> str:
        target = str(tokens[idx].attrGet("href") or "")
        address = link_address(target, env.get("path", ""))
        if not address:
            return f'<span class="no-link" title="{escape(target)}">'
        rel = "" if address.startswith(("/", "#")) else ' rel="noreferrer noopener external"'
        return f'<a href="{escape(address)}"{rel}>'

    def link_close(
        self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType
    ) -> str:
        depth = 0
        for number in range(idx, -1, -1):
            depth += tokens[number].type == "link_close"
            depth -= tokens[number].type == "link_open"
            if depth == 0:
                target = str(tokens[number].attrGet("href") or "")
                return "</a>" if link_address(target, env.get("path", "")) else "</span>"
        return ""

    def wikilink(
        self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType
    ) -> str:
        name = str(tokens[idx].attrGet("name"))
        return f'<a class="wikilink" href="{note_address(name)}">{escape(tokens[idx].content)}</a>'

    def image(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        token = tokens[idx]
        target = str(token.attrGet("src") or "")
        text = self.renderInlineAsText(token.children or [], options, env) or target
        address = link_address(target)
        shown = f"picture: {escape(text)}"
        if not address:
            return f'<span class="picture" title="{escape(target)}">{shown}</span>'
        return f'<a class="picture" href="{escape(address)}" rel="noreferrer noopener">{shown}</a>'

    def fence(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        token = tokens[idx]
        ids = token.meta.get("lines", ())
        lines = token.content.split("\n")
        marked = [
            f'<span id="{escape(ids[number])}">{escape(line)}</span>'
            if number < len(ids) and ids[number]
            else escape(line)
            for number, line in enumerate(lines)
        ]
        body = "\n".join(marked)
        return f"<pre><code>{body}</code></pre>\n"

    def code_block(
        self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType
    ) -> str:
        return self.fence(tokens, idx, options, env)

    def line_anchor(
        self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType
    ) -> str:
        return f'<span id="{escape(str(tokens[idx].attrGet("id")))}"></span>'


def _make_parser() -> MarkdownIt:
    parser = MarkdownIt(
        "commonmark", {"html": False, "maxNesting": MAX_NESTING}, renderer_cls=_Renderer
    )
    # Every link is parsed; `link_address` decides which become links.
    parser.validateLink = _parse_every_link  # type: ignore[method-assign]
    parser.inline.ruler.before("link", "wikilink", _parse_wikilink)
    return parser.enable(["table", "strikethrough"])


def _parse_wikilink(state: StateInline, silent: bool) -> bool:
    """Parse `[[Name]]` and `[[Name|text]]`."""
    found = _WIKILINK.match(state.src, state.pos, state.posMax)
    if found is None or not found[1].strip():
        return False
    if not silent:
        token = state.push("wikilink", "", 0)
        token.attrSet("name", found[1].strip())
        token.content = (found[2] or "").strip() or found[0][2:-2]
    state.pos = found.end()
    return True


def _parse_every_link(url: str) -> bool:
    return True


_PARSER = _make_parser()
