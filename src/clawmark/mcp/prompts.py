"""What a model is told about the memory before it asks: the server's instructions, and the recall policy as a prompt.

In: the tools a session has and what it may do. Out: text. The policy itself is `runtime.prompt`'s, so that every host says
the same; a host shows the instructions to its model by itself, and the prompt is for people who want the policy at hand.
"""

from __future__ import annotations

from collections.abc import Collection

from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS, GetPromptResult, Prompt, PromptArgument, PromptMessage, TextContent

from clawmark.runtime.context import Context
from clawmark.runtime.prompt import Facts, build_prompt
from clawmark.tools.policy import Access, unavailable

_ABOUT = "Clawmark is a long-term memory made of plain Markdown notes that outlive every conversation."
_STATE = """\
An answer with `dueFiles` comes from an index that is still catching up; one with `degraded` says what it lacks, and \
memory_status says more."""

RECALL = Prompt(
    name="recall",
    title="Recall before you answer",
    description="The recall policy: search the memory first, read what is needed, say when nothing was found.",
    arguments=[PromptArgument(name="question", description="What you want to know from memory.", required=False)],
)


def instructions_for(tools: Collection[str], access: Access) -> str:
    """What a session of this kind needs to know, and nothing about tools it may not use."""
    if not access.reads:
        return f"{_ABOUT}\n\n{unavailable(access.kind)['error']}"
    context = Context(access.kind, (), (), ())
    prompt = build_prompt(context, tools=tools, cites=access.cites, facts=Facts())
    return "\n\n".join((_ABOUT, *(section.text for section in prompt.sections if section.stable), _STATE))


def recall_prompt(policy: str, name: str, arguments: dict[str, str] | None) -> GetPromptResult:
    """The policy as a message of the user, with the question below it when there is one."""
    if name != RECALL.name:
        raise MCPError(INVALID_PARAMS, f"There is no such prompt; there is `{RECALL.name}`.")
    question = (arguments or {}).get("question", "").strip()
    text = f"{policy}\n\nAnswer from memory: {question}" if question else policy
    message = PromptMessage(role="user", content=TextContent(type="text", text=text))
    return GetPromptResult(description=RECALL.description, messages=[message])
