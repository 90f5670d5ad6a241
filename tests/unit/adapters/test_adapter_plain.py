"""The toolbox for programs that talk to an API themselves."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from clawmark import Memory
from clawmark.adapters.plain import Toolbox


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    (tmp_path / "agent").mkdir()
    (tmp_path / "agent" / "MEMORY.md").write_text(
        "# Facts\n\nWe chose PostgreSQL for billing.\n", encoding="utf-8"
    )
    with Memory.open(tmp_path / "agent", state_dir=tmp_path / "state") as opened:
        yield opened


def test_both_apis_get_the_same_tools_in_their_own_shape(memory: Memory) -> None:
    box = Toolbox(memory)
    functions = [entry["function"] for entry in box.openai()]
    renamed = [{**entry, "parameters": entry["input_schema"]} for entry in box.anthropic()]
    for entry in renamed:
        del entry["input_schema"]
    assert functions == renamed
    assert [entry["name"] for entry in box.anthropic()] == [
        "memory_search",
        "memory_get",
        "memory_append",
        "memory_forget",
    ]


@pytest.mark.parametrize(
    "arguments", ['{"query": "database"}', {"query": "database"}], ids=["text", "mapping"]
)
def test_arguments_come_as_the_api_gives_them(memory: Memory, arguments: object) -> None:
    assert (
        "PostgreSQL"
        in json.loads(Toolbox(memory).call("memory_search", arguments))["results"][0]["snippet"]
    )


@pytest.mark.parametrize(
    ("name", "arguments"), [("no_such", {}), ("memory_get", "{"), ("memory_get", None), ("", [1])]
)
def test_a_call_that_makes_no_sense_is_answered_with_what_to_do(
    memory: Memory, name: str, arguments: object
) -> None:
    answer = json.loads(Toolbox(memory).call(name, arguments))
    assert answer["error"] and answer["action"]


def test_a_group_chat_neither_reads_nor_writes(memory: Memory) -> None:
    box = Toolbox(memory, "agent:main:telegram:group:1")
    assert [tool.name for tool in box.tools] == ["memory_search", "memory_get"]
    assert "PostgreSQL" not in box.call("memory_search", {"query": "database"})
