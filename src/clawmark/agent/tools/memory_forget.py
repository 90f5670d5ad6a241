"""The tool `memory_forget` of memory-core: forget what the agent itself has written.

Entries that the user wrote, imported or accepted are never removed: the answer says which command
the user can run. A call never raises."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from typing import NamedTuple

from clawmark.agent.tools.arguments import read_arguments, refuse_argument, text_argument
from clawmark.agent.tools.base import Payload, Tool, complaint, unexpected
from clawmark.model.errors import ClawmarkError, ToolInputError

LONGEST = 2000
_SHOWN = 10

_DESCRIPTION = """\
Forget something for good that you wrote into your memory yourself: it is removed from the memory \
files, their earlier versions and the index, and does not come back. Use it when the user asks you \
to forget something, or when you notice that a note of yours is wrong.

Give in text the words of the entry. Every entry that contains them is meant. If one of them was \
written by the user, nothing is removed: pass the command in `action` on to the user."""

_PARAMETERS: Payload = {
    "type": "object",
    "properties": {
        "text": {"type": "string", "description": "Words that the entry contains, as written."}
    },
    "required": ["text"],
    "additionalProperties": True,
}


class Memories(NamedTuple):
    """Which entries a text is found in, and who wrote them."""

    own: tuple[str, ...]
    """The citations of entries that an agent wrote."""
    others: tuple[str, ...]
    """The citations of everything else that contains the text."""


class Forgetter(NamedTuple):
    """Finds and forgets entries."""

    find: Callable[[str], Memories]
    forget: Callable[[str], int]
    """Forgets the entries with a text; returns from how many memory files."""


def forget_tool(forgetter: Forgetter) -> Tool:
    """Return the tool."""

    def call(given: object) -> Payload:
        try:
            return _forget(forgetter, read_arguments(given))
        except ToolInputError as error:
            problem = complaint(error, f"Correct {error.argument} and call memory_forget again.")
            return _not_forgotten({"reason": "argument", **problem})
        except ClawmarkError as error:
            return _not_forgotten(complaint(error, "Tell the user that nothing was forgotten."))
        except Exception as error:  # the boundary of a tool call: tools never raise to the model
            return _not_forgotten(unexpected("memory_forget", error))

    return Tool(name="memory_forget", description=_DESCRIPTION, parameters=_PARAMETERS, call=call)


def _forget(forgetter: Forgetter, arguments: Mapping[str, object]) -> Payload:
    refuse_argument(arguments, "agentId", "memory_forget changes the memory of this agent only")
    text = text_argument(arguments, "text", trim=True, longest=LONGEST)
    found = forgetter.find(text)
    if not found.own and not found.others:
        return _not_forgotten(
            {
                "reason": "not-found",
                "error": "No entry contains this text.",
                "action": "Find the entry with memory_search, and give its words exactly.",
            }
        )
    if found.others:
        return _not_forgotten(
            {
                "reason": "not-yours",
                "error": "The text is also in what the user wrote or said; only the user can have "
                "that forgotten.",
                "citations": list(found.others[:_SHOWN]),
                "action": "Ask the user to run this in a terminal: "
                f"clawmark forget {shlex.quote(text)}",
            }
        )
    return {
        "forgotten": True,
        "citations": list(found.own[:_SHOWN]),
        "files": forgetter.forget(text),
    }


def _not_forgotten(problem: Payload) -> Payload:
    return {"forgotten": False, **problem}
