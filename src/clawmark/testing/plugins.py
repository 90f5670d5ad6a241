"""The contract of every `MemoryPlugin`.

`plugin_contract` is called by the tests of any implementation, ours or a third party's."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from clawmark.agent.plugins.base import (
    Companions,
    FlushPolicy,
    LifecycleHooks,
    MemoryPlugin,
    PluginContext,
    PluginSession,
    Turn,
    TurnMessage,
)
from clawmark.agent.plugins.lifecycle import LONGEST
from clawmark.agent.prompt.recall import Recalled, recall_block
from clawmark.agent.tools.base import Tool
from clawmark.agent.tools.policy import LOCAL, Access
from clawmark.composition.slot import make_context
from clawmark.memory import Memory

NOTE = "memory/2026-02-24.md"
TEXT = "# 2026-02-24\n\n- The heron nests by the old pier.\n"
QUESTION = "where does the heron nest?"
OWN = PluginSession("agent:main:main", LOCAL)
STRANGER = PluginSession(
    "agent:main:telegram:group:42", Access(kind="group", reads=False, writes=False, cites=False)
)
ODD_ARGUMENTS: tuple[object, ...] = (
    None,
    "",
    "not JSON",
    "[]",
    {},
    {"query": 5},
    {"text": ""},
    {"path": "../../x"},
)
ODD_TEXTS = ("", " ", "ok", "a\x00b", "\ud800", "<b>" * 3000, "x" * 100_000)

Make = Callable[[PluginContext], MemoryPlugin]


class Promise:
    """A plugin in a workspace of its own, and what is asked of it."""

    def __init__(self, memory: Memory, plugin: MemoryPlugin) -> None:
        self.memory = memory
        self.plugin = plugin

    def tools(self, session: PluginSession, *, append: bool = True) -> Sequence[Tool]:
        return self.plugin.tools(session, append=append)

    def files(self) -> dict[str, str]:
        """Return every file of the workspace."""
        root = Path(self.memory.workspace.root)
        files = (file for file in sorted(root.rglob("*")) if file.is_file())
        return {str(file.relative_to(root)): file.read_text(encoding="utf-8") for file in files}


def plugin_contract(
    make: Make, *, name: str = "plugin", config: Mapping[str, object] | None = None
) -> None:
    """Check an implementation, and raise AssertionError with the promise that was broken.

    `make` is the function of the entry point; `config` is passed to it. It is called several times,
    each time for another workspace and state folder."""
    for promise in PROMISES:
        with TemporaryDirectory() as folder:
            workspace = Path(folder) / "workspace"
            (workspace / "memory").mkdir(parents=True)
            (workspace / NOTE).write_text(TEXT, encoding="utf-8")
            with Memory.open(
                workspace, state_dir=Path(folder) / "state", provider="none", background=False
            ) as memory:
                plugin = make(make_context(memory, name, config or {}))
                try:
                    promise(Promise(memory, plugin))
                finally:
                    plugin.close()


def _describes_itself(given: Promise) -> None:
    companions = given.plugin.companions
    _must(isinstance(companions, Companions), "companions are given as Companions")
    _must(all(isinstance(name, str) for name in companions), "companions are names")
    policy = given.plugin.flush_policy()
    _must(policy is None or isinstance(policy, FlushPolicy), "a flush policy is one, or None")
    if policy is not None:
        is_memory = policy.log.startswith("memory/") and policy.log.endswith(".md")
        _must(is_memory and ".." not in policy.log, "a flush writes a file below memory/")
    hooks = given.plugin.hooks()
    _must(isinstance(hooks, LifecycleHooks), "hooks are given as LifecycleHooks")
    _must(all(hook is None or callable(hook) for hook in hooks), "hooks are functions")


def _has_usable_tools(given: Promise) -> None:
    for session in (OWN, STRANGER, PluginSession(None, LOCAL)):
        tools = given.tools(session)
        names = [tool.name for tool in tools]
        _must(len(set(names)) == len(names), "every tool has a name of its own")
        for tool in tools:
            _must(isinstance(tool, Tool), "tools are given as Tool")
            _must(re.fullmatch("[A-Za-z0-9_-]{1,64}", tool.name) is not None, "names are plain")
            _must(bool(tool.description.strip()), "a tool is described")
            _must(tool.parameters.get("type") == "object", "parameters are an object schema")
        reading = {tool.name for tool in given.tools(session, append=False)}
        _must(reading <= set(names), "asking for writing tools takes no tool away")


def _answers_odd_calls(given: Promise) -> None:
    for session in (OWN, STRANGER):
        for tool in given.tools(session):
            for arguments in ODD_ARGUMENTS:
                answer = tool.call(arguments)
                _must(isinstance(answer, dict), "a tool answers with an object")
                json.dumps(answer, allow_nan=False)


def _says_how_to_use_its_tools(given: Promise) -> None:
    names = [tool.name for tool in given.tools(OWN)]
    section = given.plugin.prompt_section(OWN, names)
    _must(isinstance(section, str), "a prompt section is a text")
    _must(section == given.plugin.prompt_section(OWN, names), "the same tools give the same text")
    _must(bool(section.strip()) == bool(names), "tools are explained, and nothing without tools")
    _must(given.plugin.prompt_section(OWN, ()) == "", "absent tools are not explained")


def _keeps_to_the_access_of_a_session(given: Promise) -> None:
    before = given.files()
    for tool in given.tools(STRANGER):
        for key in ("query", "text", "path"):
            answer = json.dumps(tool.call({"query": QUESTION, key: QUESTION, "path": NOTE}))
            _must("old pier" not in answer, "a session without access learns nothing")
    hooks = given.plugin.hooks()
    if hooks.before_agent_start is not None:
        text = hooks.before_agent_start(STRANGER, QUESTION)
        _must(not text, "nothing is recalled in a session without access")
    if hooks.agent_end is not None:
        said = "I always prefer the blue lamp, remember that."
        hooks.agent_end(STRANGER, Turn((TurnMessage("user", said),)))
    _must(given.files() == before, "a session without access writes nothing")


def _takes_every_session_and_message(given: Promise) -> None:
    hooks = given.plugin.hooks()
    for hook in (hooks.session_start, hooks.before_compaction, hooks.session_end):
        if hook is not None:
            for session in (OWN, STRANGER, PluginSession(None, LOCAL)):
                hook(session)
    for text in (QUESTION, *ODD_TEXTS):
        if hooks.before_agent_start is not None:
            recalled = hooks.before_agent_start(OWN, text)
            is_text = recalled is None or isinstance(recalled, str)
            _must(is_text, "a hook recalls a text or None")
            _must(len(recalled or "") <= LONGEST, "recalled text is short")
        if hooks.agent_end is not None:
            messages = tuple(TurnMessage(role, text) for role in ("user", "assistant", "tool"))
            hooks.agent_end(OWN, Turn(messages))
            hooks.agent_end(OWN, Turn((), succeeded=False))


def _captures_no_recalled_text(given: Promise) -> None:
    said = "I always prefer the green parasol."
    item = Recalled(citation="memory/x.md", date="", origin="agent", text=said)
    hooks = given.plugin.hooks()
    if hooks.agent_end is not None:
        hooks.agent_end(OWN, Turn((TurnMessage("user", recall_block([item])),)))
    kept = "".join(given.files().values())
    _must("green parasol" not in kept, "recalled text is not captured again")


def _works_in_two_threads(given: Promise) -> None:
    failed: list[BaseException] = []

    def use() -> None:
        try:
            for tool in given.tools(OWN):
                tool.call({"query": QUESTION})
            hook = given.plugin.hooks().before_agent_start
            if hook is not None:
                hook(OWN, QUESTION)
        except BaseException as error:  # boundary of a thread
            failed.append(error)

    threads = [threading.Thread(target=use) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    _must(not failed, f"two threads can use it at once ({failed})")


def _closes_twice(given: Promise) -> None:
    given.plugin.close()
    given.plugin.close()


PROMISES = (
    _describes_itself,
    _has_usable_tools,
    _answers_odd_calls,
    _says_how_to_use_its_tools,
    _keeps_to_the_access_of_a_session,
    _takes_every_session_and_message,
    _captures_no_recalled_text,
    _works_in_two_threads,
    _closes_twice,
)


def _must(holds: bool, promise: str) -> None:
    if not holds:
        raise AssertionError(f"broken promise: {promise}")
