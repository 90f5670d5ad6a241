"""Where a memory came from: who wrote it, when, from what, and how far it is trusted."""

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


Action: TypeAlias = Literal["append", "replace", "delete", "rename", "found"]
"""What was done to a file; `found` is text that a sync found and no write had recorded."""


class Origin(NamedTuple):
    """Who writes something, on whose behalf and from what."""

    actor: Actor
    kind: Kind
    trust: Trust
    session: str = ""
    source: str = ""
    """What it was made from: turns of a transcript, a file, an import."""


class BytesWritten(NamedTuple):
    """Which bytes a write replaced or added, so that it can be taken back; hashes are SHA-256."""

    base: str = ""
    """The hash of the text that was replaced; empty for an append, and if there was no file."""
    digest: str = ""
    """The hash of the new text, or of all bytes that an append added; empty if the file was
    deleted."""
    entry: str = ""
    """The hash of the entry that an append added; empty if the file was replaced."""
    size: int = 0
    """The size of that entry."""
    lead: int = 0
    """How many bytes an append added before the entry: a header, or the end of the last line."""
    created: bool = False
    """Whether an append created the file."""


NO_BYTES = BytesWritten()


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
    written: BytesWritten = NO_BYTES
    undoes: str = ""
    """The id of the record that this write took back."""
    action: Action = "replace"
    moved_from: str = ""
    """The old path of a renamed file or folder."""
    external: tuple[str, ...] = ()
    """Those of the entries that came from outside, although the origin is trusted more."""
    dropped: bool = False
    """Whether the write is known not to have happened."""


class Provenance(NamedTuple):
    """What the journal knows about a text."""

    trust: Trust
    origins: tuple[JournalRecord, ...]
    """The record that each known entry has its origin from, the newest first."""
    unknown: int
    """How many entries are not in the journal."""


class EntryOrigin(NamedTuple):
    """Whose words an entry of a memory file has, and which write it came from."""

    trust: Trust
    record: JournalRecord | None = None
    """The record of the write; None if the journal does not know the entry, which then counts as
    the user's unless its file or its label says otherwise."""


class LogEntry(NamedTuple):
    """A record of the journal with what is left of the text that was written."""

    record: JournalRecord
    texts: tuple[str, ...]
    """The entries of the record that are in the file now."""


BY_USER = Origin(actor="user", kind="remember", trust="owner")
"""The origin of what a program or the command line writes without naming another one."""


class WriteJournal(Protocol):
    """Where the workspace records its writes."""

    def begin(
        self,
        origin: Origin | None,
        path: str,
        text: str,
        *,
        old: str = "",
        outside: str = "",
        action: Action = "replace",
        moved_from: str = "",
        written: BytesWritten = NO_BYTES,
        undoes: str = "",
    ) -> JournalRecord:
        """Record durably that a text is about to be written; None stands for `BY_USER`.

        Entries of `old`, the text that is replaced, keep their origins. `outside` is the part of
        the text that came from outside."""
        ...

    def finish(
        self,
        record: JournalRecord,
        *,
        before: int = -1,
        after: int = -1,
        written: BytesWritten = NO_BYTES,
    ) -> None:
        """Record that the write was done; for an append, the sizes of the file around it."""
        ...

    def look_up(self, text: str) -> Provenance:
        """Return where the entries of a text came from."""
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


def provenance_fields(provenance: Provenance) -> dict[str, object]:
    """Return where a text came from as an object for JSON; the trust is `unknown` if no record has
    any of it."""
    records = [
        {
            "actor": record.origin.actor,
            "kind": record.origin.kind,
            "trust": record.origin.trust,
            "time": record.time,
            "session": record.origin.session,
            "source": record.origin.source,
        }
        for record in provenance.origins
    ]
    trust = provenance.trust if records else "unknown"
    return {"trust": trust, "records": records, "unknownEntries": provenance.unknown}
