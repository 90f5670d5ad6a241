"""Whom the tools answer: a session key in, what its session may do out.

Private memory is for sessions that are proven private. A session of another kind may search and
read when its kind is listed in `memory.sharedSessions`, and never writes. What proves a session
private is `text/session_keys.py`'s matter; the tools ask here once, when they are made."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from clawmark.agent.tools.base import Payload
from clawmark.agent.tools.citations import shows_citations
from clawmark.text.transcripts.session_keys import SessionKind, is_private, kind_of

PRIVATE_FILES = ("USER.md",)


class Access(NamedTuple):
    """What a session may do with the memory."""

    kind: SessionKind
    reads: bool
    writes: bool
    cites: bool
    """Whether answers carry their source."""

    def may_read(self, path: str) -> bool:
        """Whether the session may read this file; USER.md is for private sessions only."""
        return self.reads and (path not in PRIVATE_FILES or is_private(self.kind))


LOCAL = Access("main", reads=True, writes=True, cites=True)
"""Of a caller without a session: the library and the command line."""


def access_of(
    session_key: str | None,
    *,
    chat_type: str = "",
    citations: str = "auto",
    shared: Collection[str] = (),
) -> Access:
    """What the session of this key (None for no session) may do; `shared` are the other kinds that
    may search.
    """
    kind = kind_of(session_key, chat_type)
    private = is_private(kind)
    return Access(
        kind=kind,
        reads=private or kind in shared,
        writes=private,
        cites=shows_citations(citations, kind),
    )


def unavailable(kind: SessionKind) -> Payload:
    """The `error` and `action` for a session that may not ask.

    It says nothing about what there would be to find.
    """
    return {
        "error": "Memory is unavailable in shared sessions.",
        "reason": "shared-session",
        "action": f"Answer from this conversation alone. The owner can "
        f"allow it: memory.sharedSessions, {kind}.",
    }
