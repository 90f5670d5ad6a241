"""The session that a host names in the `_meta` of a request.

A host that serves many sessions through one `clawmark mcp --session-from-host` puts the session key
next to the arguments of each request, where a model cannot write. A request without a usable key
belongs to an unknown session, which sees no private memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

SESSION_KEY = "clawmark/sessionKey"
CHAT_TYPE = "clawmark/chatType"
"""Optional: the kind of chat the host knows it to be; it can only make the session less private."""
MAX_CHARS = 1024


class NamedSession(NamedTuple):
    """A session as a host names it; the empty key is an unknown session."""

    key: str
    chat_type: str = ""


UNKNOWN = NamedSession("")


def session_in(meta: Mapping[str, object] | None) -> NamedSession:
    """Return the session that the `_meta` of a request names."""
    given = meta or {}
    key = _text(given.get(SESSION_KEY))
    if not key:
        return UNKNOWN
    if CHAT_TYPE not in given:
        return NamedSession(key)
    chat_type = _text(given[CHAT_TYPE])
    return NamedSession(key, chat_type) if chat_type else UNKNOWN


def _text(value: object) -> str:
    return value if isinstance(value, str) and len(value) <= MAX_CHARS else ""
