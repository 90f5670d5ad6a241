"""Our plugins keep the contract of a memory plugin; a broken promise is found."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import pytest

from clawmark.agent.plugins import core, lancedb, none
from clawmark.agent.plugins.base import LifecycleHooks, PluginContext, PluginSession
from clawmark.agent.plugins.none import NoMemory
from clawmark.agent.tools import Payload, Tool
from clawmark.testing import plugin_contract


@pytest.mark.parametrize("make", [core.make, none.make], ids=["memory-core", "none"])
def test_our_plugins_keep_the_contract(make: object) -> None:
    plugin_contract(make)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "config", [{}, {"autoCapture": True, "captureMaxChars": 10_000}], ids=["default", "captures"]
)
def test_memory_lancedb_keeps_the_contract(config: dict[str, object]) -> None:
    pytest.importorskip("lancedb")
    plugin_contract(lancedb.make, name="memory-lancedb", config=config)


class Talkative(NoMemory):
    """Answers everyone."""

    def __init__(self, context: PluginContext) -> None:
        self._context = context

    def tools(self, session: PluginSession, *, append: bool) -> Sequence[Tool]:
        return [Tool("recall", "Recalls.", {"type": "object"}, self._call)]

    def prompt_section(self, session: PluginSession, tools: Collection[str]) -> str:
        return "Call recall." if tools else ""

    def _call(self, _: object) -> Payload:
        return {"text": self._context.read("memory/2026-02-24.md").text}


class Greedy(NoMemory):
    """Keeps everything that is said, also what was recalled."""

    def __init__(self, context: PluginContext) -> None:
        self._context = context

    def hooks(self) -> LifecycleHooks:
        return LifecycleHooks(agent_end=self._keep)

    def _keep(self, session: PluginSession, turn: object) -> None:
        if session.access.writes:
            self._context.append(str(turn))


class Forgetful(NoMemory):
    """Explains tools that it does not have."""

    def prompt_section(self, session: PluginSession, tools: Collection[str]) -> str:
        return "Call memory_search."


@pytest.mark.parametrize(
    ("plugin", "promise"),
    [
        (Talkative, "a session without access learns nothing"),
        (Greedy, "recalled text is not captured again"),
        (lambda _: Forgetful(), "tools are explained"),
    ],
    ids=["talkative", "greedy", "forgetful"],
)
def test_a_broken_promise_is_named(plugin: object, promise: str) -> None:
    with pytest.raises(AssertionError, match=promise):
        plugin_contract(plugin)  # type: ignore[arg-type]
