"""Find what a note refers to: Markdown links, wikilinks, and names that may be rare."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from typing import NamedTuple
from urllib.parse import unquote

from clawmark.model.values import added_source

LONGEST_NOTE = 200_000
"""Characters of a note that are looked at; a longer one is a dump, not a note."""
MOST_NAMES = 400
"""Names of one note."""

_FENCE = re.compile(r"^(`{3,}|~{3,}).*?^\1[ \t]*$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(\s*<?([^()<>\s]{1,500})>?(?:\s+[\"'(][^\n]{0,300})?\s*\)")
_REFERENCE = re.compile(r"^ {0,3}\[[^\]\n]{1,200}\]:\s*<?([^<>\s]{1,500})>?", re.MULTILINE)
_WIKILINK = re.compile(r"\[\[([^\[\]|#\n]{1,200})(?:[#|][^\[\]\n]{0,300})?\]\]")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{1,30}:")
_CAPITALISED = re.compile(r"\b[A-Z][\w'-]+(?: [A-Z][\w'-]+){0,3}")
_IN_A_SENTENCE = re.compile(r"[\w,;)\"'] ?\Z")
_UNUSUAL = re.compile(r"[a-z]+[A-Z]|\d|[A-Z]{3}")
"""Words that are names wherever they stand: PostgreSQL, INV-204, NATO."""
_SHORTEST = 4


class References(NamedTuple):
    """What one note refers to."""

    title: str
    """Its first heading; empty if it has none."""
    links: tuple[str, ...]
    """Paths that Markdown links mean, written as citations write them."""
    wikilinks: tuple[str, ...]
    """Names in double brackets, in lower case."""
    names: frozenset[str]


def find_references(path: str, text: str) -> References:
    """Return what a note refers to; code blocks are left out."""
    prose = _FENCE.sub("", text[:LONGEST_NOTE])
    prefix = f"{source}:" if (source := added_source(path)) else ""
    folder = posixpath.dirname(path.removeprefix(prefix))
    targets = (*_LINK.findall(prose), *_REFERENCE.findall(prose))
    links = (found and prefix + found for found in (_resolve(folder, one) for one in targets))
    names = list(dict.fromkeys(_names(prose)))[:MOST_NAMES]
    return References(
        title=_title(prose),
        links=tuple(dict.fromkeys(filter(None, links))),
        wikilinks=tuple(dict.fromkeys(wiki_name(one) for one in _WIKILINK.findall(prose))),
        names=frozenset(names),
    )


def _names(prose: str) -> Iterator[str]:
    """Yield the names in a text: capitalised words, at the start of a sentence only unusual ones.

    Words in a row are one name, as in `Anna Berg`."""
    for found in _CAPITALISED.finditer(prose):
        words = found[0].split()
        before = prose[max(0, found.start() - 2) : found.start()]
        if not _IN_A_SENTENCE.search(before) and not _UNUSUAL.search(words[0]):
            words = words[1:]
        name = " ".join(words)
        if len(name) >= _SHORTEST:
            yield name


def wiki_names(path: str, title: str) -> tuple[str, ...]:
    """Return the names by which a wikilink may mean a note: path, file name and title."""
    stem = path.removesuffix(".md")
    return tuple(
        dict.fromkeys(
            name for one in (stem, posixpath.basename(stem), title) if (name := wiki_name(one))
        )
    )


def wiki_name(name: str) -> str:
    """Return a name in the form in which wikilinks are compared."""
    return name.strip().removesuffix(".md").casefold()


def _resolve(folder: str, target: str) -> str:
    """Return the path that a link means; empty for an address and for a place in the same note."""
    if target.startswith(("#", "//")) or _SCHEME.match(target):
        return ""
    path = unquote(target.partition("#")[0].partition("?")[0])
    joined = path[1:] if path.startswith("/") else posixpath.join(folder, path)
    return posixpath.normpath(joined) if joined else ""


def _title(prose: str) -> str:
    for line in prose.split("\n", 30)[:30]:
        if line.startswith("#"):
            return line.lstrip("#").strip()[:120]
    return ""
