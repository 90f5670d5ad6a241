"""Files too large for one short transaction: chunks are stored out of sight, and one row makes all of them appear at once.

    with index.writing() as writer:  file = writer.stage_file(row)
    with index.writing() as writer:  writer.add_chunks(file, chunks[:200], words[:200])     # as often as it takes
    with index.writing() as writer:  writer.finish_file(file)

Until the last step the old version of the file answers. What a killed process staged is swept when it has not grown for a
minute, or at once when another process stages the same file. All functions work inside the transaction of a `Writer`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from clawmark.errors import IndexBusy
from clawmark.index.schema import STAGED

if TYPE_CHECKING:
    from clawmark.index.writer import Writer
    from clawmark.types import FileRow

STALE_NS = 60 * 1_000_000_000
"""A staged file that did not grow for so long belongs to a process that died."""
_IN_WORK = "staging"


def refuse_second(writer: Writer, row: FileRow) -> None:
    """Refuse to stage what another process is staging now; what it left long ago, or of other bytes, is no obstacle."""
    for file, text_hash in writer.db.rows("SELECT key, hash FROM files WHERE path = ? AND died = ?", (row.path, STAGED)):
        grown = writer.meta.facts(_IN_WORK).get(str(file), 0)
        if text_hash == row.hash and writer.now() - grown < STALE_NS:
            raise IndexBusy(f"Another process is indexing {row.path} now.", hint="Wait for it to finish and try again.")


def note(writer: Writer, file: int) -> None:
    """Remember that a staged file grew just now."""
    writer.meta.set_facts(_IN_WORK, writer.meta.facts(_IN_WORK) | {str(file): writer.now()})


def forget(writer: Writer, file: int) -> None:
    """A file is not staged any more."""
    if writer.meta.has(_IN_WORK):
        writer.meta.set_facts(_IN_WORK, {key: at for key, at in writer.meta.facts(_IN_WORK).items() if key != str(file)})


def origin(writer: Writer, file: int) -> tuple[str, int]:
    """Path and generation of a file that is still staged; `IndexBusy` when it was taken away."""
    found: list[tuple[str, int]] = writer.db.rows("SELECT path, born FROM files WHERE key = ? AND died = ?", (file, STAGED))
    if not found:
        raise IndexBusy(
            "A file was indexed by another process, or changed, while it was indexed here.", hint="Run `clawmark index`."
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
