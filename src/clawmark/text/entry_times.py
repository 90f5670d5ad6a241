"""The time at the start of an entry of the daily log: `- 14:05 We chose PostgreSQL`.

The time says when the entry was written. It is not part of what the entry says."""

from __future__ import annotations

import re

_TIMED_ENTRY = re.compile(
    r"^([-*+] (?:\[[ xX]\] )?)(?:[01][0-9]|2[0-3]):[0-5][0-9] (?=\S)", re.MULTILINE
)


def without_times(text: str) -> str:
    """Remove the times of top-level entries; anything else that looks like a time stays."""
    return _TIMED_ENTRY.sub(r"\1", text)
