"""The values of a conversation, and its messages in OpenClaw's transcript format.

An exchange is a user message with everything that followed from it. It is kept together, because
services refuse a tool result without its call. `read_history` restores an interrupted conversation
from its transcript.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from clawmark.agent.models.completer import Message, ToolCall
from clawmark.model.errors import CompletionError
from clawmark.text.chunking.tokens import estimate_tokens, well_formed
from clawmark.text.transcripts.records import parse_line

NO_RESULT = "(the conversation was interrupted before there was a result)"
_MAX_LINE_BYTES = 8 << 20


class AnswerListener(NamedTuple):
    """Functions that are called while an answer is made."""

    piece: Callable[[str], None]
    """Receives the next piece of text."""
    message: Callable[[Message], None]
    """Receives each complete message with tool calls or a tool result, but not the final text."""


class Answer(NamedTuple):
    """The answer to one message."""

    text: str
    """The final text; if the answer was stopped, as much as there is."""
    added: tuple[Message, ...]
    """The messages added to the conversation, including the final text."""
    tokens: int
    """Tokens in the context now, as the service counts; 0 if it does not report them."""
    stopped: bool = False
    """Whether the user stopped it."""
    problem: CompletionError | None = None
    """Why the model could not be asked any further; what was done before that stays valid."""


class Exchange(NamedTuple):
    """A user message and everything that followed from it."""

    line: str
    """The id of its first line in the transcript."""
    messages: tuple[Message, ...]

    @property
    def tokens(self) -> int:
        """Estimate how many tokens of the context it takes."""
        return sum(
            estimate_tokens(one.text)
            + sum(estimate_tokens(call.name + call.arguments) for call in one.calls)
            for one in self.messages
        )


class History(NamedTuple):
    """A conversation: a summary of its compacted beginning, and the exchanges since then."""

    summary: str = ""
    exchanges: tuple[Exchange, ...] = ()

    @property
    def messages(self) -> list[Message]:
        return [message for exchange in self.exchanges for message in exchange.messages]


def called_line(message: Message) -> Mapping[str, object]:
    """Return the transcript line for an assistant message with tool calls."""
    text = [{"type": "text", "text": well_formed(message.text)}] if message.text.strip() else []
    calls = [
        {"type": "toolCall", "id": call.id, "name": call.name, "arguments": _object(call.arguments)}
        for call in message.calls
    ]
    return {"message": {"role": "assistant", "content": [*text, *calls]}}


def result_line(message: Message, tool: str) -> Mapping[str, object]:
    """Return the transcript line for the result of a tool."""
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
    """Read the conversation from a transcript; empty if there is none."""
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
            _add_record(exchanges, str(record.get("id") or ""), message)
    return History(
        summary, tuple(one._replace(messages=_with_results(one.messages)) for one in exchanges)
    )


def _add_record(exchanges: list[Exchange], line: str, message: dict[str, Any]) -> None:
    role, text = message.get("role"), _text(message.get("content"))
    if role == "user" and text.strip():
        exchanges.append(Exchange(line, (Message("user", text),)))
    elif not exchanges:
        return  # before the first user message
    elif role == "assistant":
        calls = tuple(_calls(message.get("content")))
        if calls or text.strip():
            _add(exchanges, Message("assistant", text, calls))
    elif role == "toolResult":
        _add(exchanges, Message("tool", text, call_id=str(message.get("toolCallId") or "")))


def _add(exchanges: list[Exchange], message: Message) -> None:
    last = exchanges[-1]
    exchanges[-1] = last._replace(messages=(*last.messages, message))


def _with_results(messages: Sequence[Message]) -> tuple[Message, ...]:
    """Ensure that every call has one result after it, and drop results without a call."""
    complete: list[Message] = []
    results = {one.call_id: one for one in messages if one.role == "tool"}
    for one in messages:
        if one.role != "tool":
            complete.append(one)
            complete += [
                results.get(call.id, Message("tool", NO_RESULT, call_id=call.id))
                for call in one.calls
            ]
    return tuple(complete)


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
    """Yield the lines of a transcript; none if it is missing, a link or not a regular file."""
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
                    line.decode("utf-8", "replace") for line in file if len(line) <= _MAX_LINE_BYTES
                )
    except OSError:
        return
