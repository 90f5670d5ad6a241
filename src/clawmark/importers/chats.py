"""Conversations of ChatGPT and of Claude, as their exports hold them, in; notes out.

Both exports are a list of conversations. ChatGPT keeps each as a tree of messages, of which the
branch shown last is taken; Claude keeps a list. Only what the person and the assistant said is
imported: system messages, tool calls and their results, and files are left out. Texts stay as they
were written, secrets included: these are the person's own words, going into the person's own files.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any, NamedTuple

from clawmark.importers.notes import Note, Skip


class _Message(NamedTuple):
    who: str
    text: str
    time: str


def chatgpt_notes(conversations: Iterable[Any]) -> Iterator[Note | Skip]:
    """The conversations of a ChatGPT export."""
    for number, found in enumerate(conversations, 1):
        if not isinstance(found, dict) or not isinstance(found.get("mapping"), dict):
            yield _malformed("ChatGPT", found, number, ("conversation_id", "id"), "mapping")
            continue
        messages = [
            message for node in _branch(found) if (message := _chatgpt_message(node)) is not None
        ]
        yield _note(
            found, number, ("conversation_id", "id"), "title", found.get("create_time"), messages
        )


def claude_notes(conversations: Iterable[Any]) -> Iterator[Note | Skip]:
    """The conversations of a Claude export."""
    for number, found in enumerate(conversations, 1):
        if not isinstance(found, dict) or not isinstance(found.get("chat_messages"), list):
            yield _malformed("Claude", found, number, ("uuid",), "chat_messages")
            continue
        messages = [message for one in found["chat_messages"] if (message := _claude_message(one))]
        yield _note(found, number, ("uuid",), "name", found.get("created_at"), messages)


def _malformed(
    service: str, found: object, number: int, ids: tuple[str, ...], missing: str
) -> Skip:
    """An entry that does not have the shape of a conversation."""
    if not isinstance(found, dict):
        return Skip(f"entry {number}", f"is not a conversation of {service}: it is not an object")
    return Skip(_id(found, number, ids), f"is not a conversation of {service}: it has no {missing}")


def _id(found: dict[str, Any], number: int, ids: tuple[str, ...]) -> str:
    return next(
        (value for key in ids if isinstance(value := found.get(key), str) and value),
        f"entry {number}",
    )


def _note(
    found: dict[str, Any],
    number: int,
    ids: tuple[str, ...],
    title: str,
    created: object,
    messages: list[_Message],
) -> Note | Skip:
    note_id = _id(found, number, ids)
    if not messages:
        return Skip(note_id, "has no messages by you or the assistant")
    name = found.get(title)
    date = _moment(created)[:10] or messages[0].time[:10]
    body = "\n\n".join(_rendered(message) for message in messages)
    return Note(
        id=note_id,
        title=name if isinstance(name, str) and name.strip() else messages[0].text[:60],
        date=date,
        body=body,
    )


def _rendered(message: _Message) -> str:
    when = f" ({message.time[:16].replace('T', ' ')})" if message.time else ""
    return f"**{message.who}**{when}: {message.text}"


def _branch(found: dict[str, Any]) -> list[Any]:
    """The messages from the first to the one that was current, along the parents."""
    mapping = found["mapping"]
    at, path, seen = found.get("current_node"), [], set()
    if at not in mapping:  # older exports do not say; the last leaf is the best guess
        at = next(
            (key for key in reversed(mapping) if not (mapping[key] or {}).get("children")), None
        )
    while isinstance(at, str) and at not in seen and isinstance(node := mapping.get(at), dict):
        seen.add(at)
        path.append(node.get("message"))
        at = node.get("parent")
    return path[::-1]


def _chatgpt_message(message: object) -> _Message | None:
    if not isinstance(message, dict):
        return None
    author, content = message.get("author"), message.get("content")
    role = author.get("role") if isinstance(author, dict) else None
    metadata = message.get("metadata")
    is_hidden = isinstance(metadata, dict) and metadata.get("is_visually_hidden_from_conversation")
    if role not in ("user", "assistant") or not isinstance(content, dict) or is_hidden:
        return None
    if content.get("content_type") not in ("text", "multimodal_text") or message.get(
        "recipient"
    ) not in (None, "all"):
        return None
    parts = content.get("parts")
    text = (
        "\n".join(part for part in parts if isinstance(part, str))
        if isinstance(parts, list)
        else ""
    )
    return _message(role, text, message.get("create_time"))


def _claude_message(message: object) -> _Message | None:
    if not isinstance(message, dict):
        return None
    role = {"human": "user", "assistant": "assistant"}.get(str(message.get("sender")))
    content = message.get("content")
    blocks = content if isinstance(content, list) else []
    texts = [
        block.get("text")
        for block in blocks
        if isinstance(block, dict) and block.get("type") == "text"
    ]
    joined = "\n".join(text for text in texts if isinstance(text, str)) or message.get("text")
    return (
        _message(role, joined, message.get("created_at"))
        if role and isinstance(joined, str)
        else None
    )


def _message(role: str, text: str, time: object) -> _Message | None:
    cleaned = (
        text.encode("utf-8", "replace").decode().replace("\0", "").replace("\r\n", "\n").strip()
    )
    return (
        _Message("User" if role == "user" else "Assistant", cleaned, _moment(time))
        if cleaned
        else None
    )


def _moment(value: object) -> str:
    """A time in UTC as `2025-03-04T10:12:00`; empty when it is none."""
    try:
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return datetime.fromtimestamp(value, UTC).isoformat()[:19]
        if isinstance(value, str):
            moment = datetime.fromisoformat(value)
            return (moment if moment.tzinfo is None else moment.astimezone(UTC)).isoformat()[:19]
    except (ValueError, OverflowError, OSError):
        return ""
    return ""
