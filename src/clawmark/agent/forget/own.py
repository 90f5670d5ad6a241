"""Forget on behalf of an agent: only what the agent wrote, and nothing of what was said to it."""

from __future__ import annotations

from clawmark.agent.forget.parts import ForgetParts
from clawmark.agent.forget.plan import plan_for
from clawmark.agent.forget.run import forget
from clawmark.agent.forget.scan import Piece, pieces
from clawmark.agent.forget.select import select
from clawmark.agent.forget.values import Selection
from clawmark.agent.tools.memory_forget import Memories


def find_own(parts: ForgetParts, text: str) -> Memories:
    """Return the entries of memory files that contain a text, by who wrote them."""
    found = [piece for piece in _matching(parts, text) if piece.kind == "memory"]
    own = [piece.where for piece in found if _is_own(parts, piece)]
    return Memories(tuple(own), tuple(one.where for one in found if one.where not in own))


def forget_own(parts: ForgetParts, text: str) -> int:
    """Forget what an agent wrote; transcripts and what others wrote stay. Return how many memory
    files were changed."""
    selection = Selection(text=text)
    wanted = select(parts, selection)
    matched = [piece for piece in _matching(parts, text) if _is_own(parts, piece)]
    # The phrase stays allowed: only these entries are kept away.
    plan = plan_for(parts, selection, wanted, matched, [])
    entries = {one for piece in matched for one in _hashes(parts, piece)}
    report = forget(
        parts,
        plan._replace(
            tombstones=tuple(sorted(entries)), phrase_words=(), copies=(), keeps_transcripts=True
        ),
    )
    return report.files_changed + report.files_deleted


def _matching(parts: ForgetParts, text: str) -> list[Piece]:
    wanted = select(parts, Selection(text=text))
    return [
        piece for piece in pieces(parts, []) if piece.kind != "transcript" and wanted.matches(piece)
    ]


def _is_own(parts: ForgetParts, piece: Piece) -> bool:
    """Check whether the journal says that an agent wrote an entry, and nobody with more trust."""
    found = parts.journal.look_up(piece.unit.text)
    return (
        found.unknown == 0
        and bool(found.origins)
        and all(
            one.origin.actor == "agent" and one.origin.trust == "agent" for one in found.origins
        )
    )


def _hashes(parts: ForgetParts, piece: Piece) -> list[str]:
    return list(parts.tombstones.hashes_of(piece.unit.content, piece.unit.text))
