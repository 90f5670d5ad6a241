"""Name the log file for `clawmark doctor`, and say how many errors and warnings it holds."""

from __future__ import annotations

import os
from collections import Counter

from clawmark.model.reports import Finding
from clawmark.system.log_file import MAX_BYTES, log_path
from clawmark.system.private_files import open_private


def log_findings(state_dir: str, level: str) -> list[Finding]:
    """Return one finding about the log of a state folder."""
    path = log_path(state_dir)
    if level == "off":
        return [Finding("note", "No log is written.", 'Set memory.log to "info" to have one.')]
    try:
        flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)
        with open(open_private(path, flags), "rb") as file:
            counts = count_levels(file.read(MAX_BYTES))
    except FileNotFoundError:
        return [Finding("ok", f"The log is {path}; it is empty.", "")]
    except OSError as error:
        what = f"The log {path} cannot be read: {error.strerror}."
        return [Finding("problem", what, "Correct its permissions or remove it.")]
    errors, warnings = counts["error"], counts["warning"]
    what = f"The log is {path}; errors: {errors:,}, warnings: {warnings:,}."
    if errors or warnings:
        return [Finding("note", what, "Its last lines say what happened, without memory text.")]
    return [Finding("ok", what, "")]


def count_levels(data: bytes) -> Counter[str]:
    """Count the events of a log by their level."""
    words = (line.split(b" ", 2) for line in data.split(b"\n"))
    return Counter(
        found[1].decode("ascii", "replace") for found in words if found[0] and len(found) > 2
    )
