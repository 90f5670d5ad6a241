"""Parse the event that a coding agent sends to a hook.

Claude Code and Codex send a JSON object with the same field names on standard input. All fields are
optional; fields of the wrong type are ignored."""

from __future__ import annotations

import json
from typing import NamedTuple

from clawmark.model.errors import ClawmarkError

HOSTS = ("claude-code", "codex")
EVENTS = ("SessionStart", "UserPromptSubmit", "Stop", "PreCompact", "SessionEnd")
USUAL_EVENTS = tuple(event for event in EVENTS if event != "Stop")
"""The events that memory-core needs; other memory plugins may need the end of each turn, too."""

MARK = "CLAWMARK_HOOK"
"""Environment variable that prevents a hook from being run by a program that a hook started."""


class Event(NamedTuple):
    """An event in a session of a host."""

    host: str
    name: str
    session_id: str = ""
    transcript: str = ""
    """The path of the host's transcript of the session."""
    prompt: str = ""
    is_subagent: bool = False
    """Whether a sub-agent caused the event."""


def read_event(host: str, name: str, given: str) -> Event:
    """Return the event of this name; raises ClawmarkError if it is unknown or malformed."""
    if host not in HOSTS:
        raise ClawmarkError(
            f"There are no hooks for {host[:40]!r}.",
            hint=f"There are hooks for {' and '.join(HOSTS)}.",
        )
    known = {event.lower(): event for event in EVENTS}
    event = known.get(name.replace("-", "").replace("_", "").lower())
    if event is None:
        raise ClawmarkError(
            f"There is no hook for the event {name[:40]!r}.", hint=f"Events: {', '.join(EVENTS)}."
        )
    try:
        fields = json.loads(given) if given.strip() else {}
    except (ValueError, RecursionError):
        raise ClawmarkError("What the host sent is not JSON.") from None
    if not isinstance(fields, dict):
        raise ClawmarkError("What the host sent is not a JSON object.")
    texts = (fields.get(field) for field in ("session_id", "transcript_path", "prompt"))
    session_id, transcript, prompt = (
        text if isinstance(text, str) and "\0" not in text[:4096] else "" for text in texts
    )
    return Event(
        host=host,
        name=event,
        session_id=session_id,
        transcript=transcript,
        prompt=prompt,
        is_subagent=bool(fields.get("agent_id")),
    )
