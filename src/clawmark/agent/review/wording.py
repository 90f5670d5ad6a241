"""The words in which a proposal is shown, on a terminal and on a page."""

from __future__ import annotations

from clawmark.model.provenance import Origin

_KINDS = {
    "tool": "noted with a tool",
    "flush": "saved before a compaction",
    "note": "a session note",
    "capture": "captured from a conversation",
    "curation": "curation of the logs",
}


def describe_origin(origin: Origin) -> str:
    """Return who proposes something, in a few words."""
    what = _KINDS.get(origin.kind, origin.kind)
    return f"{what} in {origin.session}" if origin.session else what
