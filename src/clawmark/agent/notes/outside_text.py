"""Decide which text of a conversation came from outside: from tools, web pages or imports.

What a model writes after it has seen text from outside may repeat it, in other words. Only what the
user's own messages say counts as theirs then; everything else is treated as text from outside."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from clawmark.agent.notes.recalled_context import read_tool_use
from clawmark.model.errors import ClawmarkError
from clawmark.text.entry_times import without_times
from clawmark.text.transcripts.records import TranscriptMessage
from clawmark.text.untrusted.origin_labels import without_comments
from clawmark.workspace import Workspace

MARKS = ("untrusted", "external")
"""How the memory's tools mark text from outside: `originClass` and `trust`."""
_STEM = 5
_WORD = re.compile(r"[^\s\"'`()\[\]{}<>*_,;:!?|]+")


class Heard(NamedTuple):
    """What the messages of a conversation were made from."""

    words: frozenset[str]
    """The words of the user's messages."""
    has_outside: bool
    """Whether text from outside was seen in it."""

    def is_outside(self, text: str) -> bool:
        """Whether a text written after these messages counts as text from outside.

        It does not if nothing from outside was seen, or if the user used all its longer words."""
        return self.has_outside and not words_of(text) <= self.words


def hear(
    messages: Iterable[TranscriptMessage], transcript: str, since: int, workspace: Workspace
) -> Heard:
    """Return what some messages of a transcript, those from byte `since` on, were made from."""
    said = "\n".join(message.text for message in messages if message.role == "user")
    use = read_tool_use(transcript, since)
    has_outside = (
        use.used_tools
        or not set(MARKS).isdisjoint(use.recalled)
        or is_external(workspace, "\n\n".join(use.recalled))
    )
    return Heard(words_of(said), has_outside)


def has_mark(answer: str) -> bool:
    """Whether the answer of a tool, a JSON text, marks something as text from outside."""
    return any(f'"{mark}"' in answer for mark in MARKS)


def is_external(workspace: Workspace, text: str) -> bool:
    """Whether the journal says that some of a text came from outside; False if it cannot say."""
    try:
        found = workspace.look_up(text) if text.strip() else None
    except ClawmarkError:
        return False
    return found is not None and found.trust == "external"


def words_of(text: str) -> frozenset[str]:
    """Return the words of at least four letters, by their first five, and everything with a digit,
    an at sign or a slash as a whole."""
    found = set[str]()
    for word in _WORD.findall(without_times(without_comments(text)).casefold()):
        word = word.strip(".-/")
        if any(letter.isdigit() or letter in "@/" for letter in word):
            found.add(word)
        elif len(word) >= 4:
            found.add(word[:_STEM])
    return frozenset(found)
