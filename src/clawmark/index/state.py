"""What a snapshot is and holds, for those who want to know all of it; a search does not."""

from typing import Any, NamedTuple

from clawmark.types import Space


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
    unswept: int
    """Deleted passages whose words are still in the file, and a published rebuild's old rows; `sweep` removes them."""
