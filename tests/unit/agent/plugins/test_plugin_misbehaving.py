"""Plugins that exit, change what they are given, or return what cannot be sent."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from distributions import install, on_path, open_with_slot

from clawmark.agent.plugins import guarded
from clawmark.agent.plugins.calls import Failed, call_plugin
from clawmark.agent.tools.base import Tool, render

ODD = """
from clawmark.agent.plugins.none import NoMemory
from clawmark.agent.tools import Tool
SCHEMA = {"type": "object", "properties": {}}
def leave(given): raise SystemExit(3)
def circle(given):
    answer = {}
    answer["again"] = answer
    return answer
CALLS = {
    "leaves": leave,
    "set": lambda given: {"found": {1, 2}},
    "nan": lambda given: {"found": float("nan")},
    "bytes": lambda given: {"found": b"x"},
    "circle": circle,
    "text": lambda given: "text",
}
class Odd(NoMemory):
    def __init__(self, context):
        context.config["greeting"] = "changed"
        context.config["inner"]["list"].append(5)
    def tools(self, session, *, append):
        return [Tool(name, "Answers.", SCHEMA, call) for name, call in CALLS.items()]
def make(context): return Odd(context)
"""
MAIN = "agent:main:main"


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Path]:
    with on_path(tmp_path / "site") as folder:
        yield folder


def test_every_answer_of_a_tool_can_be_sent_to_a_model(site: Path, tmp_path: Path) -> None:
    install(site, "odd_memory", ODD, odd="odd_memory:make")
    config = {"greeting": "hello", "inner": {"list": []}}
    with open_with_slot(tmp_path, "odd", {"odd": {"config": config}}) as memory:
        tools = memory.tools(MAIN, append=True)
        assert [tool.name for tool in tools] == ["leaves", "set", "nan", "bytes", "circle", "text"]
        for tool in tools:
            answer = tool.call({})
            assert tool.name in str(answer["error"]) and answer["action"]
            render(answer)


def test_a_plugin_cannot_change_the_settings(site: Path, tmp_path: Path) -> None:
    install(site, "odd_memory", ODD, odd="odd_memory:make")
    config = {"greeting": "hello", "inner": {"list": []}}
    with open_with_slot(tmp_path, "odd", {"odd": {"config": config}}) as memory:
        assert len(memory.tools(MAIN)) == 6
        assert memory.settings.plugins.entry("odd").config == config


LAZY = """
from collections.abc import Sequence
from clawmark.agent.plugins.none import NoMemory
from clawmark.agent.tools import Tool
class Lazy(Sequence):
    def __len__(self): return 1
    def __getitem__(self, at): raise ValueError("not yet")
class Odd(NoMemory):
    def tools(self, session, *, append): return ANSWER
def make(context): return Odd()
"""


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ("Lazy()", "failed"),
        ('[Tool("a", "A.", {"type": object()}, print)]', "parameters that are not JSON"),
    ],
    ids=["lazy", "schema"],
)
def test_a_list_of_tools_that_cannot_be_read_is_left_out(
    site: Path, tmp_path: Path, answer: str, said: str
) -> None:
    code = LAZY.replace("ANSWER", answer)
    install(site, "odd_memory", code, odd="odd_memory:make")
    with open_with_slot(tmp_path, "odd") as memory:
        assert memory.tools(MAIN) == []
        (problem,) = memory.status().plugin_problems
        assert said in problem


def test_a_tool_that_hangs_is_abandoned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guarded, "TOOL_SECONDS", 0.05)
    release = threading.Event()

    def hang(_: object) -> dict[str, object]:
        release.wait()
        return {}

    tool = Tool("slow", "Hangs.", {"type": "object"}, hang)
    answer = guarded.guarded_tool(tool).call({})
    release.set()
    assert answer["error"] == "slow did not answer within 0.05 seconds."


def test_an_interrupt_of_the_user_is_not_a_failure_of_the_plugin() -> None:
    release = threading.Event()

    def interrupted() -> None:
        os.kill(os.getpid(), signal.SIGINT)
        release.wait()

    with pytest.raises(KeyboardInterrupt):
        call_plugin(interrupted, 30.0, str)
    release.set()


def test_an_error_that_cannot_be_shown_is_a_failure_of_the_plugin() -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    def call() -> None:
        raise Mute

    assert call_plugin(call, 30.0, str) == Failed("failed (Mute)")
