"""What an answer says about earlier versions of the memory files."""

from typing import NamedTuple


class AsOf(NamedTuple):
    """The earlier version of the memory files that answered."""

    asked: str
    """The day or the time that was asked for."""
    version: str
    recorded: str
    """When the version was recorded, ISO 8601 in the user's time zone."""


class Replaced(NamedTuple):
    """A line that a later one has replaced."""

    text: str
    until: str
    """When it was replaced, ISO 8601 in the user's time zone."""
    version: str = ""
    """The version that replaced it; empty if that is not recorded yet."""
