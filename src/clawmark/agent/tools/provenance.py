"""Whose words a hit is, under the names that OpenClaw 2026.9 gives it: a hit in, its `provenance`
out.

A class is decided by where the text stands; a label inside the text can only lower it, because
anybody who can edit the file can write one."""

from __future__ import annotations

from datetime import datetime

from clawmark.agent.tools.base import Payload
from clawmark.model.values import Hit
from clawmark.text.untrusted.origin_labels import origin_of

_GENERATED = ("memory/dreaming/", "memory/.dreams/")
_OWN = ("MEMORY.md", "memory.md")


def provenance_of(hit: Hit) -> Payload:
    """`originClass`, `sessionKind`, and `observedAt` in milliseconds where the day is known."""
    found: Payload = {"originClass": _origin_class(hit), "sessionKind": "unknown"}
    if hit.date:
        found["observedAt"] = int(
            datetime.fromisoformat(f"{hit.date}T00:00:00+00:00").timestamp() * 1000
        )
    return found


def _origin_class(hit: Hit) -> str:
    if hit.source != "memory" or not hit.path.startswith((*_OWN, "memory/")):
        return "untrusted"
    if hit.path.startswith(_GENERATED):
        return "system"
    return "untrusted" if origin_of(hit.snippet, hit.path) in ("import", "tool") else "agent"
