"""What a snapshot is and holds, for those who want to know all of it; a search does not."""

from typing import Any, NamedTuple

from clawmark.model.values import Space

MANY_LOOSE = 8
"""So many segments of the full-text index are worth merging."""


class IndexState(NamedTuple):
    """The facts about a snapshot."""

    generation: int
    building: int | None
    """The generation a rebuild is making, while one is."""
    identity: dict[str, Any]
    spaces: tuple[Space, ...]
    files: int
    chunks: int
    last_sync: dict[str, Any]
    cache_entries: int
    dead_words: int
    """Deleted passages whose words are still in the file; `Writer.sweep` removes them."""
    loose_words: int
    """Commits since the full-text index was last merged into one segment."""
    has_dead: bool
    """Replaced rows, an abandoned rebuild or a dropped space are still in the file; `Writer.sweep`
    removes them first.
    """
