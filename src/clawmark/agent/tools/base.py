"""What a tool is, how its answer is written, and the two shapes agent SDKs take tools in.

In: a payload or a `Tool`. Out: JSON text, or the plain dictionary an SDK wants. What the tools do
is next door in `memory_search.py` and `memory_get.py`; talking to an SDK is left to the caller."""

from __future__ import annotations

import json
import logging  # not needed by any call that goes well
from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeAlias

from clawmark.model.errors import ClawmarkError

Payload: TypeAlias = dict[str, object]

_LONGEST_ECHO = 300
"""A name that is repeated in an answer is cut here: a refused path of 100 kB must not fill the
model's context.
"""


class Tool(NamedTuple):
    """A function for a model: what it is called, what it says it does, what it takes, and the call
    itself.
    """

    name: str
    description: str
    parameters: Payload
    """A JSON schema of an object. Keys it does not name are allowed and ignored."""
    call: Callable[[object], Payload]
    """Takes a mapping, a JSON string or None; answers a payload and never raises."""


def render(payload: Mapping[str, object]) -> str:
    """The payload as indented JSON: what a model reads as the result of the call."""
    text = json.dumps(payload, indent=2, ensure_ascii=False, allow_nan=False)
    # A file name that is not UTF-8 carries lone surrogates; written as \udcff they are JSON and can
    # be encoded.
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def as_openai(tool: Tool) -> Payload:
    """The tool as an entry of OpenAI's `tools`."""
    function = {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
    return {"type": "function", "function": function}


def as_anthropic(tool: Tool) -> Payload:
    """The tool as an entry of Anthropic's `tools`."""
    return {"name": tool.name, "description": tool.description, "input_schema": tool.parameters}


def one_line(text: str, longest: int = 1000) -> str:
    """The text on one line without control characters, cut when it is very long."""
    cut = text if len(text) <= longest else text[: longest - 1] + "…"
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode("ascii")
        for char in cut
    )


def echo(value: object) -> str:
    """What was asked for, short enough to be repeated in an answer; empty when it was not text."""
    if not isinstance(value, str):
        return ""
    return value if len(value) <= _LONGEST_ECHO else value[: _LONGEST_ECHO - 1] + "…"


def complaint(error: ClawmarkError, otherwise: str) -> Payload:
    """The `error` and `action` of a payload: what went wrong and what to do next, one line each."""
    return {"error": one_line(error.message), "action": one_line(error.hint or otherwise)}


def log_surprise(tool: str) -> None:
    """Leave the traceback of an error nobody foresaw in the log; the model only hears that it
    happened.
    """
    logging.getLogger("clawmark.agent.tools").exception("%s failed", tool)
