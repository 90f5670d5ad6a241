"""Entry points of installed distributions: how third parties offer embedders and plugins."""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points


def installed(group: str, name: str = "") -> list[EntryPoint]:
    """Return the entry points of a group, or those of one name; nothing is imported.

    A distribution that is on the path twice counts once."""
    found = entry_points(group=group, name=name) if name else entry_points(group=group)
    return list(dict.fromkeys(found))


def owner_of(point: EntryPoint) -> str:
    """Return the name and version of the distribution."""
    distribution = point.dist
    return (
        f"{distribution.name} {distribution.version}" if distribution else "an unnamed distribution"
    )
