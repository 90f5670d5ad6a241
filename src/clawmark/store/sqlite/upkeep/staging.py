"""Files too large for one short transaction: chunks are stored out of sight, and one row makes all
of them appear at once.

    with index.writing() as writer:  file = writer.stage_file(row)
    with index.writing() as writer:  writer.add_chunks(file, chunks[:200], words[:200])     # as often as it takes
    with index.writing() as writer:  writer.finish_file(file)

Until the last step the old version of the file answers. A process holds `Index.staging` all the
while. What a killed process staged is replaced when the same file is staged again, and swept when
it has not grown for a minute. All functions work inside the transaction of a `Writer`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clawmark.model.errors import IndexBusy
from clawmark.store.sqlite.schema import STAGED

if TYPE_CHECKING:
    from clawmark.store.sqlite.writer import Writer

STALE_NS = 60 * 1_000_000_000
"""A staged file that did not grow for so long belongs to a process that died."""
_IN_WORK = "staging"


def note(writer: Writer, file: int) -> None:
    """Remember that a staged file grew just now."""
    writer.meta.set_facts(_IN_WORK, writer.meta.facts(_IN_WORK) | {str(file): writer.now()})


def forget(writer: Writer, file: int) -> None:
    """A file is not staged any more."""
    if writer.meta.has(_IN_WORK):
        writer.meta.set_facts(
            _IN_WORK,
            {key: at for key, at in writer.meta.facts(_IN_WORK).items() if key != str(file)},
        )


def origin(writer: Writer, file: int) -> tuple[str, int]:
    """Path and generation of a file that is still staged; `IndexBusy` when it was taken away."""
    found: list[tuple[str, int]] = writer.db.rows(
        "SELECT path, born FROM files WHERE key = ? AND died = ?", (file, STAGED)
    )
    if not found:
        raise IndexBusy(
            "A file was indexed by another process, or changed, while it was indexed here.",
            hint="Run `clawmark index`.",
        )
    return found[0]


def give_up_stale(writer: Writer) -> None:
    """Mark what dead processes left as dead."""
    if not writer.meta.has(_IN_WORK):
        return
    for file, grown in writer.meta.facts(_IN_WORK).items():
        if writer.now() - int(grown) >= STALE_NS:
            writer.retire("key = ?", (int(file),))
            forget(writer, int(file))
