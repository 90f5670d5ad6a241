"""The recall policy as a prompt, for people who want it at hand.

Hosts show the instructions to their model unasked.
"""

from __future__ import annotations

from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    GetPromptResult,
    Prompt,
    PromptArgument,
    PromptMessage,
    TextContent,
)

RECALL = Prompt(
    name="recall",
    title="Recall before you answer",
    description="The recall policy: search the memory first, read what "
    "is needed, say when nothing was found.",
    arguments=[
        PromptArgument(
            name="question", description="What you want to know from memory.", required=False
        )
    ],
)


def recall_prompt(policy: str, name: str, arguments: dict[str, str] | None) -> GetPromptResult:
    """The policy as a message of the user, with the question below it when there is one."""
    if name != RECALL.name:
        raise MCPError(INVALID_PARAMS, f"There is no such prompt; there is `{RECALL.name}`.")
    question = (arguments or {}).get("question", "").strip()
    text = f"{policy}\n\nAnswer from memory: {question}" if question else policy
    message = PromptMessage(role="user", content=TextContent(type="text", text=text))
    return GetPromptResult(description=RECALL.description, messages=[message])
