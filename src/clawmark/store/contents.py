"""What sync and maintenance read from an index; a search does without these values."""

from typing import Any, NamedTuple

from clawmark.model.values import Space, Vector

MANY_LOOSE = 8
"""This many segments of the full-text index are worth merging."""


class DueChunk(NamedTuple):
    """A chunk without a vector in some space; `vector` is set if the cache has one for its text."""

    key: int
    hash: str
    text: str
    vector: Vector | None


class IndexState(NamedTuple):
    """The contents of an index in numbers, for `status` and for deciding whether to sweep."""

    generation: int
    building: int | None
    """The generation that a running rebuild makes."""
    identity: dict[str, Any]
    spaces: tuple[Space, ...]
    files: int
    chunks: int
    last_sync: dict[str, Any]
    cache_entries: int
    dead_words: int
    """Deleted passages whose words are still in the file; `sweep` removes them."""
    loose_words: int
    """Commits since the full-text index was last merged into one segment."""
    has_dead: bool
    """Whether replaced rows, an abandoned rebuild or a dropped space are still in the file; `sweep`
    removes them first."""

    @property
    def is_worth_sweeping(self) -> bool:
        """Whether there is enough to remove: dead rows, words of replaced text, or segments."""
        return (
            self.has_dead
            or self.dead_words > max(256, self.chunks // 8)
            or self.loose_words >= MANY_LOOSE
        )
