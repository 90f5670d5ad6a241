"""Opens the shared spaces of a team in PostgreSQL."""

from __future__ import annotations

from clawmark.backends.team.direct import DirectSpaces
from clawmark.engine.parts import IndexParts
from clawmark.store.postgres.servers import Server


def open_direct(uri: str, name: str, parts: IndexParts) -> DirectSpaces:
    """Return the spaces of a caller; they are searched with the embedders of the memory."""
    return DirectSpaces(Server(uri), name, parts.choice, rerank=parts.rerank)


def embed_due(spaces: object, space: str) -> None:
    """Make the vectors that passages of a space do not have yet; a server does that itself."""
    if isinstance(spaces, DirectSpaces):
        spaces.embed_due(space)
