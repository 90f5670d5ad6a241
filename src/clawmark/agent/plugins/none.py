"""The plugin `none`: no tools, no prompt section, no recall, no flush."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from clawmark.agent.plugins.base import (
    Companions,
    FlushPolicy,
    LifecycleHooks,
    PluginContext,
    PluginSession,
)
from clawmark.agent.tools.base import Tool


class NoMemory:
    """An empty memory slot."""

    companions = Companions()

    def tools(self, session: PluginSession, *, append: bool) -> Sequence[Tool]:
        return ()

    def prompt_section(self, session: PluginSession, tools: Collection[str]) -> str:
        return ""

    def flush_policy(self) -> FlushPolicy | None:
        return None

    def hooks(self) -> LifecycleHooks:
        return LifecycleHooks()

    def close(self) -> None:
        pass


def make(context: PluginContext) -> NoMemory:
    """Make the plugin."""
    return NoMemory()
