"""Which documents of shared spaces can be files on this machine.

A server decides what a document is called, so nothing about its name is trusted."""

from __future__ import annotations

import re

from clawmark.model.errors import PathDenied
from clawmark.text.space_paths import FOLDER, SpacePath, is_name, parse_space_path

MOST_CHARS = 1000
_FORBIDDEN = re.compile(r'[\x00-\x1f\x7f\\<>:"|?*\ud800-\udfff]')

_DEVICE = re.compile(r"(?:con|prn|aux|nul|com[0-9]|lpt[0-9])(?:\..*)?", re.IGNORECASE)
"""Matches names that Windows keeps for devices, with any extension."""


def is_space_path(path: str) -> bool:
    """Whether a path is meant to be one of a shared space."""
    return path.removeprefix("./").startswith(f"{FOLDER}/")


def local_path(path: str) -> SpacePath:
    """Return the parts of a cited path; raises PathDenied for one that cannot be a file here.

    No accepted path can leave the folder of its space, be hidden, or be anything but Markdown."""
    place = parse_space_path(path)
    parts = place.path.split("/") if place is not None else []
    if (
        place is None
        or len(path) > MOST_CHARS
        or not (place.is_log or (len(parts) > 1 and is_name(parts[0])))
        or not is_name(place.space)
        or not all(_is_plain(part) for part in parts)
        or not parts[-1].lower().endswith(".md")
    ):
        shown = ascii(path[:100])[1:-1]
        raise PathDenied(
            f"{shown} is not a document of a shared space.",
            path=path,
            rule="not-memory",
            hint="Such paths are spaces/SPACE/YYYY-MM-DD.md and spaces/SPACE/AUTHOR/FILE.md.",
        )
    return place


def _is_plain(part: str) -> bool:
    """Whether a component names a visible file or folder on every system."""
    return (
        bool(part)
        and not part.startswith(".")
        and not part.endswith((".", " "))
        and len(part.encode("utf-8", "surrogatepass")) <= 255
        and _FORBIDDEN.search(part) is None
        and _DEVICE.fullmatch(part) is None
    )
