"""Decide by `memory.qmd.scope` whether a session may search."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from clawmark.text.transcripts.session_keys import kind_of

_ROOMS = ("group", "channel")


class SessionFacts(NamedTuple):
    """What rules can match: the parts of a session key, in lower case."""

    raw: str
    key: str = ""
    """Without `agent:<id>:`; empty for a sub-agent."""
    channel: str = ""
    chat_type: str = ""


def is_allowed(scope: Mapping[str, Any], session_key: str | None, chat_type: str = "") -> bool:
    """Whether a session may search. A caller without a session may; `chat_type` is what the host
    says about it. A session that is a group or a channel elsewhere in Clawmark is one here.
    """
    if session_key is None:
        return True
    facts, kind = facts_of(session_key), kind_of(session_key, chat_type)
    if kind in _ROOMS:
        facts = facts._replace(chat_type=kind)
    for rule in scope.get("rules", ()):
        if _matches(rule.get("match", {}), facts):
            return bool(rule["action"] == "allow")
    return bool(scope.get("default", "deny") == "allow")


def facts_of(session_key: str) -> SessionFacts:
    """Parse a session key as OpenClaw does."""
    raw = session_key.strip().lower()
    parts = [part for part in raw.split(":") if part]
    if len(parts) >= 3 and parts[0] == "agent":
        parts = parts[2:]
    key = ":".join(parts)
    if not key or parts[0] == "subagent":
        return SessionFacts(raw)
    room = next((kind for kind in _ROOMS if kind in parts), "direct")
    has_channel = len(parts) >= 2 and parts[1] in (*_ROOMS, "direct", "dm")
    return SessionFacts(raw=raw, key=key, channel=parts[0] if has_channel else "", chat_type=room)


def _matches(match: Mapping[str, str], facts: SessionFacts) -> bool:
    """Whether a rule applies to a session; a part that is missing matches every one."""
    wanted = {name: value.strip().lower() for name, value in match.items()}
    prefix, raw_prefix = wanted.get("keyPrefix", ""), wanted.get("rawKeyPrefix", "")
    compared = facts.raw if prefix.startswith("agent:") else facts.key
    return (
        wanted.get("channel", "") in ("", facts.channel)
        and wanted.get("chatType", "") in ("", facts.chat_type)
        and compared.startswith(prefix)
        and facts.raw.startswith(raw_prefix)
    )
