"""Payloads as text, tools as SDKs take them."""

from __future__ import annotations

import json

import pytest

from clawmark.agent.tools import Tool, as_anthropic, as_openai, render
from clawmark.agent.tools.base import echo, one_line

SCHEMA: dict[str, object] = {"type": "object", "properties": {}}
TOOL = Tool(name="memory_search", description="Finds.", parameters=SCHEMA, call=lambda given: {})


def test_a_payload_is_json_indented_by_two() -> None:
    assert render({"a": 1, "b": ["ü"]}) == '{\n  "a": 1,\n  "b": [\n    "ü"\n  ]\n}'


def test_a_name_that_is_not_utf8_can_be_encoded_and_read_back() -> None:
    payload = {"path": "memory/bad\udcffname.md"}
    assert json.loads(render(payload).encode("utf-8")) == payload


def test_nan_is_never_written() -> None:
    with pytest.raises(ValueError, match="JSON compliant"):
        render({"score": float("nan")})


def test_openai_takes_the_schema_as_parameters() -> None:
    assert as_openai(TOOL) == {
        "type": "function",
        "function": {"name": "memory_search", "description": "Finds.", "parameters": SCHEMA},
    }


def test_anthropic_takes_the_schema_as_input_schema() -> None:
    assert as_anthropic(TOOL) == {
        "name": "memory_search",
        "description": "Finds.",
        "input_schema": SCHEMA,
    }


def test_one_line_has_no_control_characters_and_an_end() -> None:
    assert one_line("a\nb\x1b[31m\u202e\udcff") == "a\\nb\\x1b[31m\\u202e\\udcff"
    assert len(one_line("a" * 5000)) == 1000


def test_an_echo_is_short_and_only_of_text() -> None:
    assert echo("MEMORY.md") == "MEMORY.md"
    assert echo("a" * 100_000) == "a" * 299 + "…"
    assert echo({"a": 1}) == ""
