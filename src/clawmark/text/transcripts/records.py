"""Read one line of a transcript and return the message on it.

A transcript is a file of JSON lines written by OpenClaw (versions 2 and 3), Claude Code or Codex.
The format is detected line by line, so a file may mix them. Only messages of the user and the
assistant are returned. Tool calls and results, thinking, images, summaries, system messages,
messages of sub-agents, recalled memory and lines that are not JSON are ignored. Secrets are not
masked here."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, NamedTuple, TypeAlias

from clawmark.text.chunking.tokens import well_formed
from clawmark.text.transcripts.envelopes import (
    is_machine_made,
    strip_channel,
    strip_machine,
    strip_thinking,
)
from clawmark.text.untrusted.recalled_blocks import strip_recalled

Role: TypeAlias = Literal["user", "assistant"]
ROLE_NAMES = {"user": "User", "assistant": "Assistant"}

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LAST_MILLISECOND = 253_402_300_799_999
"""The end of the year 9999, in milliseconds since 1970."""


class TranscriptMessage(NamedTuple):
    """One message of the user or the assistant."""

    role: Role
    text: str
    time: str
    """In UTC, as `2026-02-24T10:03:00Z`; empty if the transcript has no timestamp."""
    line: int
    """Line number in the transcript, counted from 1."""

    def local_time(self, now: datetime, layout: str) -> str:
        """Format the time in the time zone of `now`; empty if the message has no timestamp."""
        if not self.time:
            return ""
        return datetime.fromisoformat(self.time).astimezone(now.tzinfo).strftime(layout)


def read_message(line: str, number: int) -> TranscriptMessage | None:
    """Return the message on a line, or None; never raises."""
    record = parse_line(line)
    adapt = _ADAPTERS.get(_word(record, "type"))
    found = adapt(record) if adapt is not None else None
    if found is None:
        return None
    role, text, time = found
    text = strip_recalled(text)
    text = strip_thinking(text) if role == "assistant" else text.strip()
    if not text or (role == "user" and is_machine_made(text)):
        return None
    return TranscriptMessage(role=role, text=text, time=utc_time(time), line=number)


def parse_line(line: str) -> dict[str, Any]:
    """Return the JSON object on a line, or an empty one if there is none."""
    try:
        record = json.loads(line.strip("\ufeff\0 \t\r\n"))
    except (ValueError, RecursionError):
        return {}
    return record if isinstance(record, dict) else {}


_CLAUDE_LINES = frozenset(
    ("user", "assistant", "summary", "queue-operation", "file-history-snapshot")
)


def format_of(record: dict[str, Any]) -> str:
    """Detect the format of a record: `openclaw`, `claude-code`, `codex`, or empty if unknown."""
    word = _word(record, "type")
    if word in ("session_meta", "response_item", "event_msg", "turn_context") or (
        word == "message" and "role" in record
    ):
        return "codex"
    if word in ("session", "message"):
        return "openclaw"
    return "claude-code" if word in _CLAUDE_LINES or "parentUuid" in record else ""


# --- One adapter per format; returns (role, text, time) or None ---

_Found: TypeAlias = tuple[Role, str, object] | None


def _openclaw(record: dict[str, Any]) -> _Found:
    message = record.get("message")
    if not isinstance(message, dict):
        # Early versions of Codex wrote items without an envelope.
        return _codex({"payload": record, "timestamp": record.get("timestamp")})
    role = _role(message)
    provenance = message.get("provenance", record.get("provenance"))
    if role is None or (
        isinstance(provenance, dict) and provenance.get("kind") not in (None, "external_user")
    ):
        return None
    text = "\n".join(_texts(message.get("content"), ("text",)))
    when = record.get("timestamp") or message.get("timestamp")
    return role, strip_channel(text) if role == "user" else text, when


_CLAUDE_NOISE = (
    "isSidechain",
    "isMeta",
    "isCompactSummary",
    "isVisibleInTranscriptOnly",
    "isApiErrorMessage",
)


def _claude(record: dict[str, Any]) -> _Found:
    message = record.get("message")
    if not isinstance(message, dict) or any(record.get(flag) for flag in _CLAUDE_NOISE):
        return None
    role = _role(message)
    if role is None or role != record["type"] or message.get("model") == "<synthetic>":
        return None
    texts = _texts(message.get("content"), ("text",))
    text = "\n".join(map(strip_machine, texts) if role == "user" else texts)
    return role, text, record.get("timestamp")


def _claude_queued(record: dict[str, Any]) -> _Found:
    # What the user types while the agent works is recorded as an attachment, mostly nowhere else.
    queued = record.get("attachment")
    if not isinstance(queued, dict) or record.get("isSidechain"):
        return None
    if queued.get("type") != "queued_command":
        return None
    origin = queued.get("origin")
    is_human = not isinstance(origin, dict) or origin.get("kind") in (None, "human")
    if not is_human or queued.get("isMeta") or queued.get("commandMode") not in (None, "prompt"):
        return None
    text = "\n".join(map(strip_machine, _texts(queued.get("prompt"), ("text",))))
    return "user", text, record.get("timestamp")


def _codex(record: dict[str, Any]) -> _Found:
    # Codex records every message twice: `event_msg` for its screen, `response_item` as sent.
    payload = record.get("payload")
    if not isinstance(payload, dict) or payload.get("type") != "message":
        return None
    role = _role(payload)
    if role is None:
        return None
    texts = _texts(payload.get("content"), ("input_text", "output_text", "text"))
    if role == "user":
        texts = [text for text in map(strip_machine, texts) if not is_machine_made(text.lstrip())]
    return role, "\n".join(texts), record.get("timestamp")


_ADAPTERS: dict[str, Callable[[dict[str, Any]], _Found]] = {
    "message": _openclaw,
    "user": _claude,
    "assistant": _claude,
    "attachment": _claude_queued,
    "response_item": _codex,
}


def _word(record: dict[str, Any], key: str) -> str:
    value = record.get(key)
    return value if isinstance(value, str) else ""


def _role(message: dict[str, Any]) -> Role | None:
    role = message.get("role")
    return "user" if role == "user" else "assistant" if role == "assistant" else None


def _texts(content: object, kinds: tuple[str, ...]) -> list[str]:
    """Return the content of a message, or the texts of its blocks of the given kinds."""
    if isinstance(content, str):
        return [_clean(content)]
    blocks = content if isinstance(content, list) else []
    found = [
        block.get("text")
        for block in blocks
        if isinstance(block, dict) and block.get("type") in kinds
    ]
    return [_clean(text) for text in found if isinstance(text, str)]


def _clean(text: str) -> str:
    """Remove lone surrogates and NUL, and normalize line endings."""
    return well_formed(text).replace("\0", "\ufffd").replace("\r\n", "\n").replace("\r", "\n")


def utc_time(value: object) -> str:
    """Normalize a timestamp (ISO 8601 or milliseconds) to UTC seconds; empty if it is invalid."""
    if isinstance(value, str):
        try:
            moment = datetime.fromisoformat(value)
            moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
        except (ValueError, OverflowError):
            return ""
    elif (
        isinstance(value, (int, float))
        and not isinstance(value, bool)
        and 0 < value <= _LAST_MILLISECOND
    ):
        moment = _EPOCH + timedelta(milliseconds=value)
    else:
        return ""
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ") if moment.year >= 1000 else ""
