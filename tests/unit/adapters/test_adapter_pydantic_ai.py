"""Pydantic AI: a real agent calls the toolset's tools and reads its instructions."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("pydantic_ai")

from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from clawmark import Memory
from clawmark.adapters.pydantic_ai import memory_toolset


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    (tmp_path / "agent" / "memory").mkdir(parents=True)
    (tmp_path / "agent" / "MEMORY.md").write_text(
        "# Facts\n\nWe chose PostgreSQL for billing.\n", encoding="utf-8"
    )
    with Memory.open(tmp_path / "agent", state_dir=tmp_path / "state") as opened:
        yield opened


class Scripted:
    """A model that calls the given tools one after the other, then says what it was given."""

    def __init__(self, *calls: ToolCallPart) -> None:
        self.calls = list(calls)
        self.infos: list[AgentInfo] = []
        self.results: list[object] = []

    def __call__(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        self.infos.append(info)
        self.results += [
            part.content for part in messages[-1].parts if isinstance(part, ToolReturnPart)
        ]
        return ModelResponse(parts=[self.calls.pop(0) if self.calls else TextPart("done")])


def ask(agent: Agent, message: str) -> str:
    """Not `run_sync`, which leaves an event loop open."""
    return asyncio.run(agent.run(message)).output


def test_an_agent_searches_reads_and_notes(memory: Memory) -> None:
    model = Scripted(
        ToolCallPart("memory_search", {"query": "which database", "maxResults": 1}),
        ToolCallPart("memory_get", {"path": "MEMORY.md", "from": 3}),
        ToolCallPart("memory_append", '{"text": "Billing is on PostgreSQL since May."}'),
    )
    agent = Agent(FunctionModel(model), toolsets=[memory_toolset(memory)])
    assert ask(agent, "Which database?") == "done"
    searched, read, noted = model.results
    assert isinstance(searched, dict) and isinstance(read, dict) and isinstance(noted, dict)
    assert "PostgreSQL" in searched["results"][0]["snippet"]
    assert read["text"].strip() == "We chose PostgreSQL for billing."
    assert noted["written"] is True


def test_the_instructions_are_the_memory_as_it_is_in_each_run(memory: Memory) -> None:
    model = Scripted()
    agent = Agent(FunctionModel(model), toolsets=[memory_toolset(memory)])
    ask(agent, "Hello")
    memory.append("Carla is the dentist.", to="MEMORY.md")
    ask(agent, "Hello again")
    first, second = (info.instructions or "" for info in model.infos)
    assert "We chose PostgreSQL for billing." in first and "Carla" not in first
    assert "Carla is the dentist." in second


def test_instructions_can_be_switched_off(memory: Memory) -> None:
    model = Scripted()
    toolset = memory_toolset(memory, append=False, instructions=False)
    ask(Agent(FunctionModel(model), toolsets=[toolset]), "Hello")
    assert not model.infos[0].instructions
    assert [tool.name for tool in model.infos[0].function_tools] == ["memory_search", "memory_get"]


def test_a_wrong_argument_is_answered_and_not_raised(memory: Memory) -> None:
    model = Scripted(
        ToolCallPart("memory_get", {"path": "../../etc/passwd"}), ToolCallPart("memory_search", {})
    )
    assert ask(Agent(FunctionModel(model), toolsets=[memory_toolset(memory)]), "Hello") == "done"
    assert all(isinstance(result, dict) and result["error"] for result in model.results)
