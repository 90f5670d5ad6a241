"""When an answer carries citations, and how they are written into a snippet.

In: the `memory.citations` mode and a kind of session. Out: yes or no, and the decorated snippet.
`auto` shows citations to a session that is proven private and hides them from every other: file
names of somebody's notes are nothing to show to a group. What proves a session private is
`text/session_keys.py`'s matter, where the citation comes from `types.citation`'s."""

from __future__ import annotations

from clawmark.text.transcripts.session_keys import SessionKind, is_private


def shows_citations(mode: str, kind: SessionKind) -> bool:
    """Whether hits carry citations; a mode that is neither `on` nor `off` counts as `auto`."""
    if mode == "on":
        return True
    return mode != "off" and is_private(kind)


def with_source(snippet: str, citation: str) -> str:
    """The snippet with its source below it, so that a model that quotes it has the reference at
    hand.
    """
    return f"{snippet.strip()}\n\nSource: {citation}"
