"""Determine the kind of a session from its key, and whether it is private.

Only a session that is proven to be one person talking with their own agent is private:

- no key at all (None): a local caller, the library or the command line;
- `main` and `agent:<id>:main`;
- `agent:<id>:[<channel>:[<account>:]]direct:<peer>`, or `dm` for `direct`.

Every other key is not private: the empty key (an unset variable of a host), groups, channels, cron
jobs, sub-agents, heartbeats, keys with odd characters, and every unknown format. OpenClaw counts
most of these as direct. What a host declares can only make a session less private.

The heartbeat of a main session is between the two: it looks after the memory
(`is_main_heartbeat`)."""

from __future__ import annotations

import re
from typing import Literal, TypeAlias

SessionKind: TypeAlias = Literal[
    "main", "direct", "group", "channel", "subagent", "cron", "heartbeat", "unknown"
]

_NOT_PROVEN: dict[str, SessionKind] = {
    "group": "group",
    "supergroup": "group",
    "room": "group",
    "channel": "channel",
    "guild": "channel",
    "broadcast": "channel",
    "thread": "unknown",
    "topic": "unknown",
    "forum": "unknown",
    "cron": "cron",
    "subagent": "subagent",
    "heartbeat": "heartbeat",
    "acp": "unknown",
    "hook": "unknown",
    "webhook": "unknown",
}
"""Words that make a key not private wherever they occur, even as the name of a peer."""

_PROVEN: dict[str, SessionKind] = {"main": "main", "direct": "direct", "dm": "direct"}
_AGENT_ID = re.compile("[a-z0-9][a-z0-9_-]{0,63}")
_CHANNEL = re.compile("[a-z0-9][a-z0-9._@+-]{0,127}")


def kind_of(session_key: str | None, declared: str = "") -> SessionKind:
    """Return the kind of a session; None is a caller without a session.

    `declared` is the chat type given by the host, used only if it is less private.
    """
    kind = _kind_of_key(session_key)
    if not declared:
        return kind
    word = declared.strip().lower()
    other = _PROVEN.get(word) or _NOT_PROVEN.get(word, "unknown")
    if is_private(kind) or kind == "unknown" or _is_key_of_main_heartbeat(session_key):
        return kind if is_private(other) else other
    return kind


def is_private(kind: SessionKind) -> bool:
    """Check whether a session of this kind is one person with their own agent."""
    return kind in ("main", "direct")


def is_main_heartbeat(session_key: str | None, declared: str = "") -> bool:
    """Check whether a session is the heartbeat of a main session, and nothing less private.

    That is `agent:<id>:main:heartbeat`, or the key of a main session that the host declares a
    heartbeat. No other key becomes one, whatever the host declares."""
    if kind_of(session_key, declared) != "heartbeat":
        return False
    return _is_key_of_main_heartbeat(session_key) or _kind_of_key(session_key) == "main"


def _is_key_of_main_heartbeat(session_key: str | None) -> bool:
    main = (session_key or "").lower().removesuffix(":heartbeat")
    return main != (session_key or "").lower() and _kind_of_key(main) == "main"


def _kind_of_key(session_key: str | None) -> SessionKind:
    if session_key is None:
        return "main"
    # Keys made by a host contain no blanks or invisible characters.
    if not session_key.isprintable() or " " in session_key:
        return "unknown"
    key = session_key.lower()
    if key == "main":
        return "main"
    agent, *tokens = key.split(":")
    has_agent = agent == "agent" and bool(tokens) and _AGENT_ID.fullmatch(tokens[0]) is not None
    for token in tokens[1:] if has_agent else (agent, *tokens):
        if token in _NOT_PROVEN:
            return _NOT_PROVEN[token]
    return _proven(tokens[1:]) if has_agent else "unknown"


def _proven(tokens: list[str]) -> SessionKind:
    """Return the kind for the part of a key after the agent."""
    if tokens == ["main"]:
        return "main"
    # At most a channel and an account precede the word, and a peer must follow it.
    at = next((place for place, token in enumerate(tokens[:3]) if token in ("direct", "dm")), -1)
    if at < 0 or at == len(tokens) - 1 or not all(tokens) or tokens[-1] in ("direct", "dm"):
        return "unknown"
    return "direct" if all(_CHANNEL.fullmatch(token) for token in tokens[:at]) else "unknown"
