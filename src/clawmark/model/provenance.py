"""Where a memory came from: who wrote it, when, from what, and how far it is trusted."""

from __future__ import annotations

from typing import Literal, NamedTuple, Protocol, TypeAlias

Trust: TypeAlias = Literal["owner", "agent", "external"]
TRUST_LEVELS: tuple[Trust, ...] = ("owner", "agent", "external")
"""From the most trusted to the least: what the user wrote or confirmed, what the agent concluded in
a private conversation, and what came from web pages, tools, imports or other people."""

Actor: TypeAlias = Literal["user", "agent", "import", "plugin"]
Kind: TypeAlias = Literal[
    "remember",
    "tool",
    "flush",
    "note",
    "capture",
    "import",
    "curation",
    "web",
    "edited",
    "accepted",
    "undo",
    "restore",
    "forget",
]


class Origin(NamedTuple):
    """Who writes something, on whose behalf and from what."""

    actor: Actor
    kind: Kind
    trust: Trust
    session: str = ""
    source: str = ""
    """What it was made from: turns of a transcript, a file, an import."""


class JournalRecord(NamedTuple):
    """One write to a memory file."""

    id: str
    time: str
    """ISO 8601, with the offset of the user's time zone."""
    origin: Origin
    path: str
    entries: tuple[str, ...]
    """The hash of each entry that was written."""
    before: int = -1
    """The size of the file before an append; -1 if the file was replaced or did not exist."""
    after: int = -1
    done: bool = True
    """Whether the write is known to have succeeded."""


BY_USER = Origin(actor="user", kind="remember", trust="owner")
"""The origin of what a program or the command line writes without naming another one."""


class WriteJournal(Protocol):
    """Where the workspace records its writes."""

    def begin(self, origin: Origin | None, path: str, text: str) -> JournalRecord:
        """Record durably that a text is about to be written; None stands for `BY_USER`."""
        ...

    def finish(self, record: JournalRecord, *, before: int = -1, after: int = -1) -> None:
        """Record that the write was done; for an append, the sizes of the file around it."""
        ...


WriteAction: TypeAlias = Literal["append", "replace", "delete", "rename"]


class WriteReview(Protocol):
    """What keeps the writes of agents until the user has decided about them."""

    def hold(
        self,
        origin: Origin,
        action: WriteAction,
        path: str,
        text: str = "",
        *,
        header: str = "",
        base_hash: str = "",
    ) -> None:
        """Return if a write may be done now; raise KeptForReview if it was kept instead."""
        ...


def lowest(levels: tuple[Trust, ...]) -> Trust:
    """Return the least trusted of some levels; `owner` for none."""
    return max(levels, key=TRUST_LEVELS.index, default="owner")
