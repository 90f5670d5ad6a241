"""Convert the conversations of ChatGPT's and Claude's exports to notes.

Both exports are a list of conversations. ChatGPT stores each as a tree of messages, of which the
last shown branch is used; Claude stores a list. Only messages of the user and the assistant are
imported. Secrets are kept: the text belongs to the user.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any, NamedTuple

from clawmark.importers.notes import Note, Skip


class _Message(NamedTuple):
    role: str
    text: str
    time: str


def chatgpt_notes(conversations: Iterable[Any]) -> Iterator[Note | Skip]:
    """Yield the conversations of a ChatGPT export."""
    ids = ("conversation_id", "id")
    for number, found in enumerate(conversations, 1):
        if not isinstance(found, dict) or not isinstance(found.get("mapping"), dict):
            yield _malformed("ChatGPT", found, number, ids, "mapping")
            continue
        messages = [message for node in _branch(found) if (message := _chatgpt_message(node))]
        yield _note(found, number, ids, "title", found.get("create_time"), messages)


def claude_notes(conversations: Iterable[Any]) -> Iterator[Note | Skip]:
    """Yield the conversations of a Claude export."""
    for number, found in enumerate(conversations, 1):
        if not isinstance(found, dict) or not isinstance(found.get("chat_messages"), list):
            yield _malformed("Claude", found, number, ("uuid",), "chat_messages")
            continue
        messages = [message for one in found["chat_messages"] if (message := _claude_message(one))]
        yield _note(found, number, ("uuid",), "name", found.get("created_at"), messages)


def _malformed(
    service: str, found: object, number: int, ids: tuple[str, ...], missing: str
) -> Skip:
    """Return the reason why an entry is not a conversation."""
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
    title_key: str,
    created: object,
    messages: list[_Message],
) -> Note | Skip:
    note_id = _id(found, number, ids)
    if not messages:
        return Skip(note_id, "has no messages by you or the assistant")
    name = found.get(title_key)
    date = _moment(created)[:10] or messages[0].time[:10]
    title = name if isinstance(name, str) and name.strip() else messages[0].text[:60]
    body = "\n\n".join(map(_rendered, messages))
    return Note(id=note_id, title=title, date=date, body=body)


def _rendered(message: _Message) -> str:
    time = f" ({message.time[:16].replace('T', ' ')})" if message.time else ""
    return f"**{message.role.capitalize()}**{time}: {message.text}"


def _branch(found: dict[str, Any]) -> list[Any]:
    """Return the messages from the root to the current node."""
    mapping = found["mapping"]
    at, path, seen = found.get("current_node"), [], set()
    if at not in mapping:  # missing in older exports; the last leaf is the best guess
        leaves = (key for key in reversed(mapping) if not (mapping[key] or {}).get("children"))
        at = next(leaves, None)
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
    is_text = content.get("content_type") in ("text", "multimodal_text")
    if not is_text or message.get("recipient") not in (None, "all"):
        return None
    parts = content.get("parts")
    texts = [part for part in parts if isinstance(part, str)] if isinstance(parts, list) else []
    return _message(role, "\n".join(texts), message.get("create_time"))


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
    text = "\n".join(text for text in texts if isinstance(text, str)) or message.get("text")
    if role is None or not isinstance(text, str):
        return None
    return _message(role, text, message.get("created_at"))


def _message(role: str, text: str, time: object) -> _Message | None:
    text = text.encode("utf-8", "replace").decode().replace("\0", "").replace("\r\n", "\n").strip()
    return _Message(role, text, _moment(time)) if text else None


def _moment(value: object) -> str:
    """Return a time in UTC as `2025-03-04T10:12:00`; empty if it is invalid."""
    try:
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return datetime.fromtimestamp(value, UTC).isoformat()[:19]
        if isinstance(value, str):
            moment = datetime.fromisoformat(value)
            return (moment if moment.tzinfo is None else moment.astimezone(UTC)).isoformat()[:19]
    except (ValueError, OverflowError, OSError):
        return ""
    return ""
