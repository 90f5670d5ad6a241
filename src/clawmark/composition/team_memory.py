"""`Memory.team`: the shared spaces for programs, and what agents write to them with."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from clawmark.agent.tools.shared_notes import SharedNotebook
from clawmark.composition import redactor_of
from clawmark.model.errors import ConfigError

if TYPE_CHECKING:
    from clawmark.agent.tools.gate import Refusal
    from clawmark.backends.team.base import Appended, SpaceInfo
    from clawmark.backends.team.files.publishing import PublishPlan
    from clawmark.backends.team.files.pulling import Pulled
    from clawmark.composition.team import TeamParts
    from clawmark.memory import Memory
    from clawmark.model.sync_report import SpaceSync

WHOLE = 200_000
"""Lines and characters of a log that are compared with a new entry."""


class Team:
    """The shared spaces of a memory: list them, add to their logs, pull them.

    `Memory.search` and `Memory.read` include them."""

    def __init__(self, memory: Memory, parts: TeamParts) -> None:
        self._memory = memory
        self._parts = parts

    @property
    def names(self) -> tuple[str, ...]:
        """The spaces that this memory uses: `team.spaces`."""
        return self._parts.names

    def spaces(self) -> tuple[SpaceInfo, ...]:
        """Return the spaces that the caller may read, by name."""
        return self._parts.spaces().spaces()

    def append(self, space: str, text: str, *, key: str = "") -> Appended:
        """Append an entry to today's log of a space; it is stored durably when this returns.

        Repeated with the same `key`, it is stored once. The text is not checked: `check_note` does
        that."""
        return self._parts.spaces().append(space, text, key=key or os.urandom(16).hex())

    def check_note(self, space: str, text: str) -> Refusal | None:
        """Return why the write gate refuses an entry (a duplicate, a secret, noise …), or None."""
        return shared_notebook(self._memory).check(space, text)

    def pull(self, *names: str) -> tuple[Pulled, ...]:
        """Copy spaces, all that are used by default, into the folder `spaces` of the workspace."""
        return tuple(self._parts.pull(name) for name in names or self.names)

    def plan(self) -> tuple[tuple[PublishPlan, SpaceSync], ...]:
        """Return what a sync would publish and withdraw in each space."""
        return self._parts.plan()


def shared_notebook(memory: Memory) -> SharedNotebook:
    """Return what agents write to the shared spaces with."""
    return SharedNotebook(
        now=memory.now,
        read=lambda path: memory.read(path, start=1, lines=WHOLE, max_chars=WHOLE).text,
        append=lambda space, text: memory.team.append(space, text),
        redactor=redactor_of(memory.settings.memory_search),
        review=memory.settings.review,
    )


def open_team(memory: Memory, parts: TeamParts | None) -> Team:
    """Return `Memory.team`; ConfigError if no team is configured."""
    if parts is None:
        raise ConfigError(
            "No team is configured: team.uri is not set.",
            key="team.uri",
            hint="Set team.uri to the address of a Clawmark server or its database.",
        )
    return Team(memory, parts)
