"""The adapters call the lifecycle hooks of the memory plugin where they see a turn."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from distributions import ACME, calls, install, on_path, open_with_slot


@pytest.fixture
def acme(tmp_path: Path) -> Iterator[Path]:
    """The folder of a memory with the plugin `acme` installed."""
    with on_path(tmp_path / "site") as site:
        install(site, "acme_memory", ACME, acme="acme_memory:make")
        yield tmp_path


def test_openai_agents_fire_the_start_the_end_of_each_turn_and_the_end(acme: Path) -> None:
    pytest.importorskip("agents")
    from agents import Agent, RunConfig, Runner
    from agents.testing import ScriptedModel, assistant_message, function_call

    from clawmark.adapters.openai_agents import TranscriptSession, memory_tools

    model = ScriptedModel(
        [
            [function_call("acme_recall", {}, call_id="c1")],
            [assistant_message("Green.")],
            [assistant_message("Ann.")],
        ]
    )
    key = "agent:main:direct:carla"
    with open_with_slot(acme) as memory:

        async def talk() -> None:
            session = TranscriptSession(memory, "carla", session_key=key)
            tools: list[Any] = [*memory_tools(memory, key)]
            agent = Agent(name="a", model=model, tools=tools)
            quiet = RunConfig(tracing_disabled=True)
            await Runner.run(agent, "Which tea?", session=session, run_config=quiet)
            await Runner.run(agent, "Whose?", session=session, run_config=quiet)
            await session.clear_session()

        asyncio.run(talk())
    assert calls(acme) == [
        ["session_start", key],
        ["agent_end", key, True, [["user", "Which tea?"], ["assistant", "Green."]]],
        ["agent_end", key, True, [["user", "Whose?"], ["assistant", "Ann."]]],
        ["session_end", key],
        ["close"],
    ]


def test_pydantic_ai_prepends_what_the_plugin_recalls_and_ends_a_run(acme: Path) -> None:
    pytest.importorskip("pydantic_ai")
    from pydantic_ai import Agent
    from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart
    from pydantic_ai.models.function import AgentInfo, FunctionModel

    from clawmark.adapters.pydantic_ai import end_run, memory_toolset

    seen: list[str] = []

    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        seen.append(info.instructions or "")
        return ModelResponse(parts=[TextPart("Green.")])

    with open_with_slot(acme) as memory:

        async def talk() -> None:
            agent = Agent(FunctionModel(answer), toolsets=[memory_toolset(memory)])
            await end_run(memory, await agent.run("Which tea?"))

        asyncio.run(talk())
    assert "| | Acme remembers Which tea?" in seen[0] and "Call acme_recall first." in seen[0]
    assert calls(acme) == [
        ["before_agent_start", None, "Which tea?"],
        ["agent_end", None, True, [["user", "Which tea?"], ["assistant", "Green."]]],
        ["close"],
    ]


def test_llama_index_recalls_through_the_plugin_and_reports_dropped_messages(acme: Path) -> None:
    pytest.importorskip("llama_index.core")
    from llama_index.core.base.llms.types import ChatMessage, MessageRole

    from clawmark.adapters.llama_index import ClawmarkMemoryBlock

    with open_with_slot(acme) as memory:

        async def talk() -> str:
            block = ClawmarkMemoryBlock(memory=memory)
            message = ChatMessage(role=MessageRole.USER, content="Which tea?")
            recalled: str = await block.aget([message])
            await block.aput([message], from_short_term_memory=True)
            return recalled

        assert "Acme remembers Which tea?" in asyncio.run(talk())
    assert calls(acme) == [
        ["before_agent_start", None, "Which tea?"],
        ["before_compaction", None],
        ["close"],
    ]


def test_the_plain_toolbox_has_the_tools_of_the_plugin(acme: Path) -> None:
    from clawmark.adapters.plain import Toolbox

    with open_with_slot(acme) as memory:
        box = Toolbox(memory)
        assert [tool["name"] for tool in box.anthropic()] == ["acme_recall"]
        assert json.loads(box.call("acme_recall", "{}"))["answer"] == "acme knows"
