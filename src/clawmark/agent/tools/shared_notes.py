"""`memory_append` with a space: add a note to the log of a shared space.

The write gate is that of other notes. The note carries no label: the space stamps it with time and
author. While `memory.review` is `all`, agents do not write to spaces: a proposal cannot be taken
back from other people's machines."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple, Protocol

from clawmark.agent.tools.arguments import choice_argument, refuse_argument, text_argument
from clawmark.agent.tools.base import Payload
from clawmark.agent.tools.gate import FORGOTTEN, Refusal, refuse
from clawmark.model.errors import SpaceDenied
from clawmark.model.provenance import Origin
from clawmark.model.values import citation
from clawmark.text.chunking.tokens import well_formed
from clawmark.text.secrets.redact import Redactor
from clawmark.text.space_paths import log_path
from clawmark.text.untrusted.injection_flags import flags_of
from clawmark.text.write_check import FileText
from clawmark.workspace.daily import without_recent_time

if TYPE_CHECKING:
    from clawmark.backends.team.base import Appended

_AUTHOR = re.compile(r"^(- [0-9]{2}:[0-9]{2} )[a-z0-9][a-z0-9._-]{0,62}: ", re.MULTILINE)

SHARED_DESCRIPTION = """\
With space set, the note goes to the log of that shared space instead, where the whole team and \
their agents can read it. Share what others need for their work, never what is private to the \
user."""


class SharedNotebook(NamedTuple):
    """Reads and writes the logs of shared spaces."""

    now: Callable[[], datetime]
    read: Callable[[str], str]
    """(cited path) → the whole text; empty if there is none."""
    append: Callable[[str, str], Appended]
    """(space, text) → where it is; it is stored durably."""
    redactor: Redactor
    review: str = "off"
    """`memory.review`."""

    def check(self, space: str, text: str) -> Refusal | None:
        """Return why a text must not be added to today's log of a space, or None."""
        path = log_path(space, self.now().astimezone(UTC).date().isoformat()).cited
        # What an author has said counts, not who said it.
        log = _AUTHOR.sub(r"\1", self.read(path))
        return refuse(text, target=FileText(path, log), redactor=self.redactor)


class Gate(Protocol):
    """What a notebook of the workspace knows about a text."""

    @property
    def now(self) -> Callable[[], datetime]: ...
    @property
    def is_forgotten(self) -> Callable[[str], bool]: ...


def append_shared(
    notebook: Gate,
    shared: SharedNotebook,
    spaces: Sequence[str],
    origin: Origin,
    arguments: Mapping[str, object],
) -> Payload:
    """Add a note of an agent to a space, and return the payload of the tool."""
    for name, because in (
        ("agentId", "memory_append writes to the memory of this agent only"),
        ("path", "a note goes to today's log of the space"),
        ("to", "a note for a space goes to its log"),
    ):
        refuse_argument(arguments, name, because)
    if not spaces:
        raise SpaceDenied("This session may not use shared spaces.", space="")
    space = choice_argument(arguments, "space", tuple(spaces), default="")
    text = well_formed(
        text_argument(arguments, "text", trim=True, longest=1_000_000, may_be_blank=True)
    )
    plain = without_recent_time(text, f"{notebook.now():%H:%M}")
    refusal = _waits(shared.review, origin, space) or shared.check(space, plain)
    if refusal is None and notebook.is_forgotten(plain):
        refusal = FORGOTTEN
    if refusal is not None:
        return {
            "written": False,
            "reason": refusal.reason,
            "error": refusal.message,
            "action": refusal.action,
        }
    done = shared.append(space, plain)
    payload: Payload = {
        "written": True,
        "space": space,
        "author": done.author,
        "path": done.path,
        "startLine": done.start_line,
        "endLine": done.end_line,
        "citation": citation(done.path, done.start_line, done.end_line),
    }
    flags = flags_of(text)
    return {**payload, "flags": list(flags)} if flags else payload


def _waits(review: str, origin: Origin, space: str) -> Refusal | None:
    if review != "all" or origin.actor == "user":
        return None
    return Refusal(
        "review",
        f"An agent may not write to the space {space} while memory.review is all.",
        f"Ask the user to do it: clawmark remember --space {space} TEXT.",
    )


def with_space(parameters: Payload, spaces: Sequence[str]) -> Payload:
    """Return the parameters of the tool with those for spaces."""
    properties = parameters["properties"]
    assert isinstance(properties, dict)
    space = {
        "type": "string",
        "enum": list(spaces),
        "description": "The shared space whose log it goes to; leave it out for your own memory.",
    }
    return {**parameters, "properties": {**properties, "space": space}}
