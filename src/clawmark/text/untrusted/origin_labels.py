"""Where an entry of a memory file came from, written beside it in a comment that people can read.

    - We chose PostgreSQL for billing <!-- clawmark: origin=agent session=agent:main:main -->

In: an origin and a session key; or some lines of a file. Out: the comment; or the origin of those
lines. An origin is a label, not a proof: whoever can edit the file can edit the comment. So where
lines of several origins stand together the least trusted one counts, and a line without a label
makes the whole of unknown origin."""

from __future__ import annotations

import re
from typing import Literal, TypeAlias

Origin: TypeAlias = Literal["user", "agent", "import", "tool", "unknown"]

ORIGINS: tuple[Origin, ...] = ("user", "agent", "import", "tool")
"""From the most trusted to the least."""

COMMENT_START = "<!-- clawmark:"
IMPORTS = "memory/imports/"
"""What is below it was imported, all of it: such a file has one comment, under its title."""
_COMMENT = re.compile(
    r"[ \t]*<!-- clawmark: origin=(user|agent|import|tool)(?: session=(\S{1,200}))?"
    r"(?: source=\S{1,40} id=\S{1,200} body=[0-9a-f]{16})? -->"
)
_ENTRY = re.compile(r"^[-*+] ", re.MULTILINE)
_UNSPEAKABLE = re.compile(r"[^A-Za-z0-9:._@+-]|-(?=-)")


def comment(origin: Origin, session_key: str) -> str:
    """The comment for an entry."""
    session = session_label(session_key)
    return f"{COMMENT_START} origin={origin}{f' session={session}' if session else ''} -->"


def session_label(session_key: str) -> str:
    """A session key as it stands in a comment: nothing that could end the comment early, and no
    longer than a line.
    """
    return _UNSPEAKABLE.sub("_", session_key)[:120].rstrip("-")


def without_comments(text: str) -> str:
    """The text as its author wrote it: what is searched and embedded, because labels are alike and
    say nothing.
    """
    return _COMMENT.sub("", text) if COMMENT_START in text else text


def sessions_of(text: str) -> list[str]:
    """The session of every labelled entry, in order; empty for one that names none."""
    return [found[2] or "" for found in _COMMENT.finditer(text)]


def origin_of(text: str, path: str = "") -> Origin:
    """The origin of some lines of a memory file."""
    if path.startswith(IMPORTS):
        return "import"
    found = [found[1] for found in _COMMENT.finditer(text)]
    if not found or len(found) < len(_ENTRY.findall(text)):
        return "unknown"
    return max((origin for origin in ORIGINS if origin in found), key=ORIGINS.index)
