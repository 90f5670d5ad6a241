"""One line of a transcript in, what somebody said in it out.

A transcript is JSON lines: OpenClaw's (versions 2 and 3), Claude Code's or Codex's. Which one a
line belongs to shows in the line itself, so that a file may hold any of them. Kept are the words of
the user and the agent, who said them, when, and the number of the line. Tool calls and their
results, thinking, images, summaries, system messages, sub-agents' side talk and recalled memory are
left out, and so is every line that is no such message or no JSON. Secrets are still in the text:
masking is `redact`'s part, putting messages together `turns`'."""

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

Speaker: TypeAlias = Literal["user", "assistant"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LAST_MILLISECOND = 253_402_300_799_999
"""The end of the year 9999, in milliseconds since 1970."""


class Said(NamedTuple):
    """One message of a conversation."""

    speaker: Speaker
    text: str
    time: str
    """When, in UTC, as `2026-02-24T10:03:00Z`; empty when the transcript does not say."""
    line: int
    """The line of the transcript it stands on, counted from 1."""


def read_said(line: str, number: int) -> Said | None:
    """What is said on a line, or nothing; never raises, whatever the line holds."""
    record = parse_line(line)
    adapt = _ADAPTERS.get(_word(record, "type"))
    said = adapt(record) if adapt is not None else None
    if said is None:
        return None
    speaker, text, time = said
    text = strip_recalled(text)
    text = strip_thinking(text) if speaker == "assistant" else text.strip()
    if not text or (speaker == "user" and is_machine_made(text)):
        return None
    return Said(speaker=speaker, text=text, time=_time(time), line=number)


def parse_line(line: str) -> dict[str, Any]:
    """The JSON object on a line; empty for everything that is none."""
    try:
        record = json.loads(line.strip("\ufeff\0 \t\r\n"))
    except (ValueError, RecursionError):
        return {}
    return record if isinstance(record, dict) else {}


_CLAUDE_LINES = frozenset(
    ("user", "assistant", "summary", "queue-operation", "file-history-snapshot")
)


def kind_of(record: dict[str, Any]) -> str:
    """Whose transcript a line belongs to: `openclaw`, `claude-code`, `codex`, or empty when it does
    not show.
    """
    word = _word(record, "type")
    if word in ("session_meta", "response_item", "event_msg", "turn_context") or (
        word == "message" and "role" in record
    ):
        return "codex"
    if word in ("session", "message"):
        return "openclaw"
    return "claude-code" if word in _CLAUDE_LINES or "parentUuid" in record else ""


# --- one adapter for each kind: (speaker, text, time) or nothing --------------------------------------------------

_Found: TypeAlias = tuple[Speaker, str, object] | None


def _openclaw(record: dict[str, Any]) -> _Found:
    message = record.get("message")
    if not isinstance(message, dict):
        return _codex(
            {"payload": record, "timestamp": record.get("timestamp")}
        )  # Codex wrote bare items once
    speaker = _speaker(message)
    provenance = message.get("provenance", record.get("provenance"))
    if speaker is None or (
        isinstance(provenance, dict) and provenance.get("kind") not in (None, "external_user")
    ):
        return None
    text = "\n".join(_texts(message.get("content"), ("text",)))
    when = record.get("timestamp") or message.get("timestamp")
    return speaker, strip_channel(text) if speaker == "user" else text, when


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
    speaker = _speaker(message)
    if speaker is None or speaker != record["type"] or message.get("model") == "<synthetic>":
        return None
    texts = _texts(message.get("content"), ("text",))
    return (
        speaker,
        "\n".join(map(strip_machine, texts) if speaker == "user" else texts),
        record.get("timestamp"),
    )


def _claude_queued(record: dict[str, Any]) -> _Found:
    # What is typed while the agent works is noted as an attachment, and mostly nowhere else.
    queued = record.get("attachment")
    if (
        not isinstance(queued, dict)
        or queued.get("type") != "queued_command"
        or record.get("isSidechain")
    ):
        return None
    origin = queued.get("origin")
    is_human = not isinstance(origin, dict) or origin.get("kind") in (None, "human")
    if not is_human or queued.get("isMeta") or queued.get("commandMode") not in (None, "prompt"):
        return None
    return (
        "user",
        "\n".join(map(strip_machine, _texts(queued.get("prompt"), ("text",)))),
        record.get("timestamp"),
    )


def _codex(record: dict[str, Any]) -> _Found:
    # Codex notes every message twice; `event_msg` is for its own screen, `response_item` is what
    # was really said.
    payload = record.get("payload")
    if not isinstance(payload, dict) or payload.get("type") != "message":
        return None
    speaker = _speaker(payload)
    if speaker is None:
        return None
    texts = _texts(payload.get("content"), ("input_text", "output_text", "text"))
    if speaker == "user":
        texts = [text for text in map(strip_machine, texts) if not is_machine_made(text.lstrip())]
    return speaker, "\n".join(texts), record.get("timestamp")


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


def _speaker(message: dict[str, Any]) -> Speaker | None:
    role = message.get("role")
    return "user" if role == "user" else "assistant" if role == "assistant" else None


def _texts(content: object, kinds: tuple[str, ...]) -> list[str]:
    """The texts of a message: its content, or the blocks of it that are text."""
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
    """Text that can be stored and printed: no lone surrogates, no NUL, one kind of line end."""
    return well_formed(text).replace("\0", "\ufffd").replace("\r\n", "\n").replace("\r", "\n")


def _time(value: object) -> str:
    """A time as the tools write it, in UTC to the second; empty for what is no time."""
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
