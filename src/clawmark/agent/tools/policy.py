"""Decide what a session may do with the memory.

Sessions that are proven private may do everything. The heartbeat of a main session may do the same,
except read USER.md. Other sessions may search and read if their kind is listed in
`memory.sharedSessions`, and may never write."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from clawmark.agent.tools.base import Payload
from clawmark.text.transcripts.session_keys import (
    SessionKind,
    is_main_heartbeat,
    is_private,
    kind_of,
)

PRIVATE_FILES = ("USER.md",)


class Access(NamedTuple):
    """What a session may do with the memory."""

    kind: SessionKind
    reads: bool
    writes: bool
    cites: bool
    """Whether answers contain citations."""
    curates: bool = False
    """Whether it is a heartbeat that is shown MEMORY.md and the logs, to look after them."""

    def may_read(self, path: str) -> bool:
        """Check whether the session may read this file; USER.md is for private sessions only."""
        return self.reads and (path not in PRIVATE_FILES or is_private(self.kind))


LOCAL = Access("main", reads=True, writes=True, cites=True)
"""The access of a caller without a session: the library and the command line."""


def access_of(
    session_key: str | None,
    *,
    chat_type: str = "",
    citations: str = "auto",
    shared: Collection[str] = (),
) -> Access:
    """Return the access of a session (None for no session).

    `shared` are the kinds that may search although they are not private. `citations` other than
    `on` and `off` counts as `auto`: only private sessions see file names."""
    kind = kind_of(session_key, chat_type)
    curates = is_main_heartbeat(session_key, chat_type)
    trusted = is_private(kind) or curates
    return Access(
        kind=kind,
        reads=trusted or kind in shared,
        writes=trusted,
        cites=citations == "on" or (citations != "off" and trusted),
        curates=curates,
    )


def unavailable(kind: SessionKind) -> Payload:
    """Return the `error` and `action` for a session without access, whatever the memory holds."""
    return {
        "error": "Memory is unavailable in shared sessions.",
        "reason": "shared-session",
        "action": f"Answer from this conversation alone. The owner can "
        f"allow it: memory.sharedSessions, {kind}.",
    }
