"""When an answer carries citations, and how they are written into a snippet.

In: the `memory.citations` mode and a session key. Out: yes or no, and the decorated snippet. Where the citation itself
comes from is `types.citation`.

`auto` shows citations to a session that is proven to be one person talking with their own agent, and hides them from
every other: file names of somebody's notes are nothing to show to a group. Proven are

- no session key: a local caller, the library or the command line;
- `main` and `agent:<id>:main`;
- `agent:<id>:[<channel>:[<account>:]]direct:<peer>`, or `dm` for `direct`.

Groups, channels, cron jobs, sub-agents and every key of another shape are not proven. OpenClaw counts the last three as
direct.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

ChatType: TypeAlias = Literal["direct", "group", "channel", "cron", "subagent", "unknown"]

_NOT_PROVEN: dict[str, ChatType] = {
    "group": "group",
    "supergroup": "group",
    "room": "group",
    "channel": "channel",
    "guild": "channel",
    "thread": "unknown",
    "topic": "unknown",
    "cron": "cron",
    "subagent": "subagent",
    "hook": "unknown",
}
"""Words that take the proof away anywhere in a key, even as a peer's name: a hidden citation harms nobody."""


def chat_type(session_key: str) -> ChatType:
    """Who is at the other end of a session, as far as its key proves it."""
    key = session_key.strip().lower()
    if key in ("", "main"):
        return "direct"
    parts = key.split(":")
    has_agent = parts[0] == "agent"
    tokens = parts[2:] if has_agent else parts
    for token in tokens:
        if token in _NOT_PROVEN:
            return _NOT_PROVEN[token]
    return "direct" if has_agent and all(parts) and _proves_direct(tokens) else "unknown"


def shows_citations(mode: str, session_key: str) -> bool:
    """Whether hits carry citations; a mode that is neither `on` nor `off` counts as `auto`."""
    if mode == "on":
        return True
    return mode != "off" and chat_type(session_key) == "direct"


def with_source(snippet: str, citation: str) -> str:
    """The snippet with its source below it, so that a model that quotes it has the reference at hand."""
    return f"{snippet.strip()}\n\nSource: {citation}"


def _proves_direct(tokens: list[str]) -> bool:
    if tokens == ["main"]:
        return True
    # At most a channel and an account stand before the word, and a peer must follow it.
    return any(token in ("direct", "dm") for token in tokens[:3]) and tokens[-1] not in ("direct", "dm")
