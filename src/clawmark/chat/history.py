"""What was said in a conversation, as the model is told it and as the transcript keeps it.

In: messages while they are exchanged, or the transcript of a conversation that was cut off. Out:
OpenClaw's lines for what the two said to the tools, and the conversation again, so that the next
process can go on with it. An exchange is what the user said with everything it led to; it stays
together, because no service takes a tool's result without its call."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from clawmark.agent.models.completer import Message, ToolCall
from clawmark.text.chunking.tokens import estimate_tokens, well_formed
from clawmark.text.transcripts.records import parse_line

NO_RESULT = "(the conversation was cut off before there was a result)"
_LONGEST_LINE = 8 << 20


class Exchange(NamedTuple):
    """What the user said, and what came of it."""

    line: str
    """The id of its first line in the transcript."""
    messages: tuple[Message, ...]

    @property
    def tokens(self) -> int:
        """About how much of the context it takes."""
        return sum(
            estimate_tokens(one.text)
            + sum(estimate_tokens(call.name + call.arguments) for call in one.calls)
            for one in self.messages
        )


class History(NamedTuple):
    """A conversation: what is left of its beginning, and the rest as it was."""

    summary: str = ""
    exchanges: tuple[Exchange, ...] = ()

    @property
    def messages(self) -> list[Message]:
        return [message for exchange in self.exchanges for message in exchange.messages]


def called_line(message: Message) -> Mapping[str, object]:
    """An assistant's message that asks for tools, as a transcript has it."""
    text = [{"type": "text", "text": well_formed(message.text)}] if message.text.strip() else []
    calls = [
        {"type": "toolCall", "id": call.id, "name": call.name, "arguments": _object(call.arguments)}
        for call in message.calls
    ]
    return {"message": {"role": "assistant", "content": [*text, *calls]}}


def result_line(message: Message, tool: str) -> Mapping[str, object]:
    """The result of a tool, as a transcript has it."""
    return {
        "message": {
            "role": "toolResult",
            "toolCallId": message.call_id,
            "toolName": tool,
            "content": [{"type": "text", "text": well_formed(message.text)}],
            "isError": "error" in _object(message.text),
        }
    }


def read_history(path: str) -> History:
    """The conversation that a transcript holds; nothing when there is none."""
    summary, exchanges = "", list[Exchange]()
    for line in _lines(path):
        record = parse_line(line)
        message = record.get("message")
        if record.get("type") == "compaction":
            summary = str(record.get("summary") or "")
            kept = record.get("firstKeptEntryId")
            first = next(
                (number for number, one in enumerate(exchanges) if one.line == kept), len(exchanges)
            )
            exchanges = exchanges[first:]
        elif record.get("type") == "message" and isinstance(message, dict):
            _take_in(exchanges, str(record.get("id") or ""), message)
    return History(
        summary, tuple(one._replace(messages=_closed(one.messages)) for one in exchanges)
    )


def _take_in(exchanges: list[Exchange], line: str, message: dict[str, Any]) -> None:
    role, text = message.get("role"), _text(message.get("content"))
    if role == "user" and text.strip():
        exchanges.append(Exchange(line, (Message("user", text),)))
    elif not exchanges:
        return  # nobody was spoken to yet
    elif role == "assistant":
        calls = tuple(_calls(message.get("content")))
        if calls or text.strip():
            _add(exchanges, Message("assistant", text, calls))
    elif role == "toolResult":
        _add(exchanges, Message("tool", text, call_id=str(message.get("toolCallId") or "")))


def _add(exchanges: list[Exchange], message: Message) -> None:
    last = exchanges[-1]
    exchanges[-1] = last._replace(messages=(*last.messages, message))


def _closed(messages: Sequence[Message]) -> tuple[Message, ...]:
    """The same with one result behind every call, and no result without a call."""
    closed: list[Message] = []
    results = {one.call_id: one for one in messages if one.role == "tool"}
    for one in messages:
        if one.role != "tool":
            closed.append(one)
            closed += [
                results.get(call.id, Message("tool", NO_RESULT, call_id=call.id))
                for call in one.calls
            ]
    return tuple(closed)


def _calls(content: object) -> Iterator[ToolCall]:
    for block in content if isinstance(content, list) else ():
        if (
            isinstance(block, dict)
            and block.get("type") == "toolCall"
            and block.get("id")
            and block.get("name")
        ):
            yield ToolCall(
                str(block["id"]), str(block["name"]), json.dumps(block.get("arguments") or {})
            )


def _text(content: object) -> str:
    if isinstance(content, str):
        return content
    blocks = (
        [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []
    )
    return "\n".join(
        str(block.get("text") or "") for block in blocks if block.get("type") == "text"
    )


def _object(text: str) -> Mapping[str, object]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _lines(path: str) -> Iterator[str]:
    """The lines of a transcript; none of a file that is absent, a link or no file."""
    flags = (
        os.O_RDONLY
        | getattr(os, "O_NOFOLLOW", 0)
        | getattr(os, "O_NONBLOCK", 0)
        | getattr(os, "O_CLOEXEC", 0)
    )
    try:
        with open(os.open(path, flags), "rb") as file:
            if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                yield from (
                    line.decode("utf-8", "replace") for line in file if len(line) <= _LONGEST_LINE
                )
    except OSError:
        return
