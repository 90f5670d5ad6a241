"""Our tools as pydantic-ai takes them: what the model wrote goes to the tool as it is, and what the
tool says goes back.

A tool of ours never raises and explains wrong arguments better than a schema does, so nothing is
checked on the way. Tools run one after the other, each to its end: a file is never half written
because somebody pressed Ctrl-C."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic_ai import RunContext, ToolDefinition
from pydantic_ai.toolsets import AbstractToolset
from pydantic_ai.toolsets.abstract import ToolsetTool

from clawmark.agent.tools.base import Tool, render


class Toolset(AbstractToolset[None]):
    """Some tools of ours."""

    def __init__(self, tools: Sequence[Tool]) -> None:
        self._tools = {tool.name: tool for tool in tools}

    @property
    def id(self) -> str:
        return "clawmark"

    async def get_tools(self, ctx: RunContext[None]) -> dict[str, ToolsetTool[None]]:
        return {name: self._offered(tool) for name, tool in self._tools.items()}

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[None], tool: ToolsetTool[None]
    ) -> str:
        return render(self._tools[name].call(tool_args["given"]))

    def _offered(self, tool: Tool) -> ToolsetTool[None]:
        definition = ToolDefinition(
            name=tool.name,
            description=tool.description,
            parameters_json_schema=tool.parameters,
            strict=False,
            sequential=True,
        )
        return ToolsetTool(
            toolset=self, tool_def=definition, max_retries=0, args_validator=_AsGiven()
        )


class _AsGiven:
    """A validator that lets everything pass; arguments that are no JSON at all too."""

    def validate_json(self, input: str | bytes | bytearray, **_: Any) -> dict[str, Any]:  # noqa: A002 - the library's name
        text = input if isinstance(input, str) else bytes(input).decode("utf-8", "replace")
        return {"given": text or None}

    def validate_python(self, input: Any, **_: Any) -> dict[str, Any]:  # noqa: A002
        return {"given": input}
