"""The `Tool` value, its conversion to the formats of agent SDKs, and helpers for answers."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeAlias

from clawmark.model.errors import ClawmarkError

Payload: TypeAlias = dict[str, object]

_LONGEST_ECHO = 300
"""A value repeated in an answer is truncated here, so that it cannot fill the model's context."""
ASK_DOCTOR = "Run `clawmark doctor` to see what is wrong."


class Tool(NamedTuple):
    """A function that a model can call."""

    name: str
    description: str
    parameters: Payload
    """A JSON schema of an object; other keys are allowed and ignored."""
    call: Callable[[object], Payload]
    """Takes a mapping, a JSON string or None; returns a payload and never raises."""


def render(payload: Mapping[str, object]) -> str:
    """Return the payload as indented JSON, the result that a model reads."""
    text = json.dumps(payload, indent=2, ensure_ascii=False, allow_nan=False)
    # File names that are not UTF-8 contain lone surrogates, which cannot be encoded.
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def as_openai(tool: Tool) -> Payload:
    """Return the tool as an entry of OpenAI's `tools`."""
    function = {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
    return {"type": "function", "function": function}


def as_anthropic(tool: Tool) -> Payload:
    """Return the tool as an entry of Anthropic's `tools`."""
    return {"name": tool.name, "description": tool.description, "input_schema": tool.parameters}


def one_line(text: str, longest: int = 1000) -> str:
    """Escape line breaks and control characters, and truncate a long text."""
    cut = text if len(text) <= longest else text[: longest - 1] + "…"
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode("ascii")
        for char in cut
    )


def echo(value: object) -> str:
    """Return an argument short enough to be repeated in an answer; empty if it is not text."""
    if not isinstance(value, str):
        return ""
    return value if len(value) <= _LONGEST_ECHO else value[: _LONGEST_ECHO - 1] + "…"


def complaint(error: ClawmarkError, otherwise: str) -> Payload:
    """Return the `error` and `action` of a payload, one line each."""
    return {"error": one_line(error.message), "action": one_line(error.hint or otherwise)}


def unexpected(tool: str, error: BaseException) -> Payload:
    """Log the traceback of an unexpected error and return the `error` and `action` of a payload."""
    log_unexpected(tool)
    message = f"{tool} stopped at an unexpected {type(error).__name__}."
    return {"error": message, "action": ASK_DOCTOR}


def log_unexpected(what: str) -> None:
    """Log the traceback of the current exception."""
    # Imported late: logging reads the clock when it is imported, and fails after the year 2262.
    from clawmark.system.log_records import get_logger

    get_logger("clawmark.agent.tools").exception("%s failed", what)
