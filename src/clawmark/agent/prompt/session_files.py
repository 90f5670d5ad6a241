"""What a session of each kind is shown of the workspace's own files.

In: a kind of session. Out: the names of the files it may see, in the order in which they stand in a
prompt. How a kind is told from a session key is `text/session_keys.py`, which the tools ask too;
reading the files is left to `context.py`."""

from __future__ import annotations

from clawmark.text.transcripts.session_keys import SessionKind, is_private, kind_of

__all__ = ["LONG_TERM", "SessionKind", "files_for", "is_private", "kind_of"]

LONG_TERM = ("MEMORY.md", "memory.md")
_SUBAGENT = ("AGENTS.md", "TOOLS.md")
_SHARED = ("AGENTS.md", "SOUL.md", "TOOLS.md", "IDENTITY.md")
_PRIVATE = (*_SHARED, "USER.md", "BOOTSTRAP.md", *LONG_TERM, "HEARTBEAT.md")


def files_for(kind: SessionKind) -> tuple[str, ...]:
    """The files a session may see; what changes most often comes last, so that a prompt's beginning
    stays the same.
    """
    if is_private(kind):
        return _PRIVATE
    if kind == "subagent":
        return _SUBAGENT
    return (*_SHARED, "HEARTBEAT.md") if kind == "heartbeat" else _SHARED
