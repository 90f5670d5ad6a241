"""Label entries of memory files with their origin, in a comment that people can read.

    - We chose PostgreSQL for billing <!-- clawmark: origin=agent session=agent:main:main -->

A label is not a proof: anyone who can edit the file can edit the comment. Lines of several origins
together have the least trusted one, and lines with an unlabelled entry have an unknown origin."""

from __future__ import annotations

import re
from typing import Literal, TypeAlias

Origin: TypeAlias = Literal["user", "agent", "import", "tool", "unknown"]

ORIGINS: tuple[Origin, ...] = ("user", "agent", "import", "tool")
"""From the most trusted to the least."""

COMMENT_START = "<!-- clawmark:"
IMPORTS = "memory/imports/"
"""All files below it were imported; each has one comment, under its title."""
# Compiled on first use: every cold search imports this module.
_COMMENT = (
    r"(?<![ \t])[ \t]*<!-- clawmark: origin=(user|agent|import|tool)(?: session=(\S{1,200}))?"
    r"(?: source=\S{1,40} id=\S{1,200} body=[0-9a-f]{16}"
    r"| category=\S{1,40} importance=\S{1,20} id=\S{1,60} at=\S{1,40})? -->"
)
_IMPORT_MARK = (
    r"(?m)^<!-- clawmark: origin=import source=\S{1,40} id=\S{1,200} body=[0-9a-f]{16} -->$"
)
_ENTRY = r"(?m)^[-*+] "
_NOT_IN_LABEL = r"[^A-Za-z0-9:._@+-]|-(?=-)"


def comment(origin: Origin, session_key: str) -> str:
    """Return the comment for an entry."""
    session = session_label(session_key)
    return f"{COMMENT_START} origin={origin}{f' session={session}' if session else ''} -->"


def session_label(session_key: str) -> str:
    """Return a session key shortened and escaped so that it cannot end the comment."""
    return re.sub(_NOT_IN_LABEL, "_", session_key)[:120].rstrip("-")


def without_comments(text: str) -> str:
    """Remove the labels, which are neither indexed nor embedded."""
    return re.sub(_COMMENT, "", text) if COMMENT_START in text else text


def is_imported_file(text: str) -> bool:
    """Whether a file has the comment that an import writes under its title, wherever it is now."""
    return re.search(_IMPORT_MARK, text[:2000]) is not None


def sessions_of(text: str) -> list[str]:
    """Return the session of every labelled entry, in order; empty if a label names none."""
    return [found[2] or "" for found in re.finditer(_COMMENT, text)]


def origin_of(text: str, path: str = "") -> Origin:
    """Return the origin of some lines of a memory file."""
    if path.startswith(IMPORTS):
        return "import"
    found = [found[1] for found in re.finditer(_COMMENT, text)]
    if not found or len(found) < len(re.findall(_ENTRY, text)):
        return "unknown"
    return max((origin for origin in ORIGINS if origin in found), key=ORIGINS.index)
