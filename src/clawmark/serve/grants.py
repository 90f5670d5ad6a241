"""What a token permits, and the protocol of the memory that a server serves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

from clawmark.backends.team.access import Access
from clawmark.backends.team.base import TeamSpaces

if TYPE_CHECKING:
    from clawmark.store.postgres.team.listing import Listing, LogEntry

BEGINNING = "cmk_"
LENGTH = len(BEGINNING) + 43


class Grant(NamedTuple):
    """What a valid token permits."""

    token: int
    """The number of the token, for logs and limits."""
    caller: str
    """The name of the caller."""
    access: Access
    """The permissions of the token, and the spaces it is for."""


class PoolUse(NamedTuple):
    """The connections to the database."""

    size: int = 0
    idle: int = 0
    waiting: int = 0


class Team(Protocol):
    """The memory that a server serves; `DatabaseTeam` has it in PostgreSQL."""

    def grant(self, token: str) -> Grant | None:
        """Return what a token permits now; None if it is unknown, expired or revoked."""

    def spaces(self, grant: Grant) -> TeamSpaces:
        """Return the spaces of a caller, limited to what its token permits."""

    def listing(self, grant: Grant, space: str, most: int) -> Listing:
        """List the documents and logs of a space."""

    def recent(self, grant: Grant, spaces: Sequence[str], most: int) -> tuple[LogEntry, ...]:
        """Return the newest entries of some spaces, or of all that the caller may read."""

    def note_due(self, grant: Grant) -> None:
        """Note that passages of the caller's spaces may have no vectors yet."""

    def check(self) -> None:
        """Raise an error if the database does not answer, or does not have the tables."""

    def pool(self) -> PoolUse:
        """Return how many connections there are."""

    def close(self) -> None:
        """Release every connection."""


def is_token(text: str) -> bool:
    """Whether a text looks like a token, so that the database is asked about it."""
    rest = text.removeprefix(BEGINNING)
    return (
        len(text) == LENGTH
        and text.isascii()
        and text.startswith(BEGINNING)
        and rest.replace("-", "").replace("_", "").isalnum()
    )
