"""A plugin of a third party whose answers are checked.

What raises, takes too long or is not what the protocol says is reported and left out: no tools, an
empty section, the default flush, no hooks."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Sequence
from typing import TypeVar

from clawmark.agent.plugins.base import (
    Companions,
    FlushPolicy,
    LifecycleHooks,
    MemoryPlugin,
    PluginSession,
)
from clawmark.agent.plugins.calls import Failed, call_plugin, error_text
from clawmark.agent.plugins.failures import PluginFailures
from clawmark.agent.tools.base import Payload, Tool, unexpected
from clawmark.text.chunking.tokens import well_formed

SECONDS = 5.0
"""The time budget of one call."""
TOOL_SECONDS = 30.0
"""The time budget of a tool, which a model waits for."""
LONGEST_SECTION = 20_000
METHODS = ("tools", "prompt_section", "flush_policy", "hooks", "close")
_NAME = re.compile("[A-Za-z0-9_-]{1,64}")
_LOG = re.compile(r"memory/(?:[^/\\\0]+/)*[^/\\\0]+\.md")
_T = TypeVar("_T")


class GuardedPlugin:
    """A `MemoryPlugin` around one that may misbehave."""

    def __init__(
        self,
        name: str,
        plugin: MemoryPlugin,
        failures: PluginFailures,
        clean: Callable[[str], str],
        seconds: float = SECONDS,
    ) -> None:
        self._name, self._plugin = name, plugin
        self._failures, self._clean, self._seconds = failures, clean, seconds
        self._late: set[str] = set()
        self._hooks: LifecycleHooks | None = None
        self.companions = self._ask(
            "companions", lambda: plugin.companions, Companions(), _checked_companions
        )

    def tools(self, session: PluginSession, *, append: bool) -> Sequence[Tool]:
        return self._ask(
            "tools", lambda: self._plugin.tools(session, append=append), (), _checked_tools
        )

    def prompt_section(self, session: PluginSession, tools: Collection[str]) -> str:
        return self._ask(
            "prompt_section",
            lambda: self._plugin.prompt_section(session, tools),
            "",
            _checked_section,
        )

    def flush_policy(self) -> FlushPolicy | None:
        policy: FlushPolicy | None = FlushPolicy()
        return self._ask("flush_policy", self._plugin.flush_policy, policy, _checked_policy)

    def hooks(self) -> LifecycleHooks:
        if self._hooks is None:
            self._hooks = self._ask("hooks", self._plugin.hooks, LifecycleHooks(), _checked_hooks)
        return self._hooks

    def close(self) -> None:
        self._ask("close", self._plugin.close, None, lambda _: None)

    def _ask(
        self, method: str, call: Callable[[], object], otherwise: _T, check: Callable[[object], _T]
    ) -> _T:
        """Return the checked answer of a method; `otherwise` if there is none.

        A method that took too long once is not called again."""
        if method in self._late:
            return otherwise
        answer = call_plugin(call, self._seconds, self._clean)
        if isinstance(answer, Failed):
            if answer.is_late:
                self._late.add(method)
            self._report(method, answer.reason)
            return otherwise
        try:
            return check(answer)
        except TypeError as error:
            self._report(method, str(error))
        except Exception as error:  # the boundary of a plugin call: the answer may run its code
            self._report(method, f"failed ({error_text(error, self._clean)})")
        return otherwise

    def _report(self, method: str, reason: str) -> None:
        self._failures.report(
            self._name, f'The memory plugin "{self._name}" was skipped: {method} {reason}.'
        )


def _checked_companions(given: object) -> Companions:
    if not isinstance(given, Companions) or not all(isinstance(name, str) for name in given):
        raise TypeError(f"is a {type(given).__name__}, not Companions")
    return given


def _checked_tools(given: object) -> Sequence[Tool]:
    if not isinstance(given, Sequence) or isinstance(given, str):
        raise TypeError(f"returned a {type(given).__name__}, not a list of tools")
    for tool in given:
        is_tool = (
            isinstance(tool, Tool)
            and isinstance(tool.name, str)
            and _NAME.fullmatch(tool.name) is not None
            and isinstance(tool.description, str)
            and isinstance(tool.parameters, dict)
            and callable(tool.call)
        )
        if not is_tool:
            raise TypeError("returned something that is not a tool")
        if not _is_json(tool.parameters):
            raise TypeError(f"returned the tool {tool.name} with parameters that are not JSON")
    if len({tool.name for tool in given}) < len(given):
        raise TypeError("returned two tools of one name")
    return [guarded_tool(tool) for tool in given]


def guarded_tool(tool: Tool) -> Tool:
    """Return a tool that answers in time with an object that can be sent."""

    def run(given: object) -> Payload:
        try:
            answer = tool.call(given)
        except (Exception, SystemExit) as error:  # the boundary of a tool call: tools never raise
            return unexpected(tool.name, error)
        is_sent = isinstance(answer, dict) and _is_json(answer)
        return (
            answer if is_sent else _failed(f"{tool.name} returned an answer that cannot be read.")
        )

    def call(given: object) -> Payload:
        answer = call_plugin(lambda: run(given), TOOL_SECONDS, str)
        return _failed(f"{tool.name} {answer.reason}.") if isinstance(answer, Failed) else answer

    return tool._replace(call=call)


def _failed(sentence: str) -> Payload:
    return {
        "error": sentence,
        "action": "Tell the user that the memory plugin does not work.",
    }


def _is_json(value: object) -> bool:
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return False
    return True


def _checked_section(given: object) -> str:
    if not isinstance(given, str):
        raise TypeError(f"returned a {type(given).__name__}, not a text")
    if len(given) > LONGEST_SECTION:
        raise TypeError(f"returned {len(given):,} characters; {LONGEST_SECTION:,} are taken")
    return well_formed(given)


def _checked_policy(given: object) -> FlushPolicy | None:
    if given is None:
        return None
    if not isinstance(given, FlushPolicy) or not all(isinstance(part, str) for part in given):
        raise TypeError(f"returned a {type(given).__name__}, not a FlushPolicy")
    if _LOG.fullmatch(given.log) is None or ".." in given.log:
        raise TypeError("names a log that is not a Markdown file below memory/")
    return given


def _checked_hooks(given: object) -> LifecycleHooks:
    if not isinstance(given, LifecycleHooks):
        raise TypeError(f"returned a {type(given).__name__}, not LifecycleHooks")
    if not all(hook is None or callable(hook) for hook in given):
        raise TypeError("returned a hook that is not a function")
    return given
