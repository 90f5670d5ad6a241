"""Proposals as text for people and as JSON, and what to do about one that no longer applies."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from clawmark.agent.review.hunks import Hunk, NoLongerApplies, hunk_diff
from clawmark.agent.review.proposals import Proposal
from clawmark.agent.review.wording import describe_origin
from clawmark.cli.layout import cells, fitted, plural, table, wrap
from clawmark.cli.output import columns, one_line, paint, place, plain
from clawmark.model.errors import WriteConflict

_STYLES = {"+": "green", "-": "red", "@": "cyan"}


def listing(proposals: Sequence[Proposal]) -> list[str]:
    """Return proposals as a table."""
    rows = [("ID", "MADE", "CHANGES", "STATE", "TITLE")]
    rows += [
        (
            one.id,
            one.created[:16].replace("T", " "),
            f"{len(one.pending) if one.state == 'pending' else len(one.hunks)}",
            one.state,
            one_line(one.title),
        )
        for one in proposals
    ]
    width = columns()
    head, *lines = [fitted(line, width) for line in table(rows, right=(2,))]
    return [paint(head, "dim"), *lines]


def head_line(proposal: Proposal) -> str:
    """Return what a proposal is, who made it and when, on one line."""
    made = proposal.created[:16].replace("T", " ")
    parts = [one_line(proposal.title), made, one_line(describe_origin(proposal.origin))]
    line = f"{paint(proposal.id, 'bold')} · {' · '.join(filter(None, parts))}"
    return fitted(line, columns())


def hunk_lines(hunk: Hunk, number: int, total: int, *, whole: bool = True) -> Iterator[str]:
    """Yield a hunk: its number and state, the reason, the citations and the diff.

    Without `whole`, a long diff is cut."""
    width = columns()
    state = "" if hunk.state == "pending" else f" · {hunk.state}"
    yield paint(f"Hunk {number} of {total}{state}", "bold")
    for name, text in (("Reason", hunk.reason), ("Cites", ", ".join(hunk.citations))):
        lines = wrap(one_line(text), width - 8)
        yield from (
            f"{paint(name.ljust(8), 'dim') if first else ' ' * 8}{line}"
            for first, line in zip([True] + [False] * len(lines), lines, strict=False)
        )
    if hunk.note:
        yield f"{paint('Note'.ljust(8), 'dim')}{one_line(hunk.note)}"
    diff = hunk_diff(hunk)
    shown = diff if whole or len(diff) <= MOST_LINES else diff[:MOST_LINES]
    for line in shown:
        style = _STYLES.get(line[:1])
        pieces = diff_pieces(plain(line), width)
        yield from (paint(piece, style) if style else piece for piece in pieces)
    if len(shown) < len(diff):
        yield paint(f"… {plural(len(diff) - len(shown), 'more line')}; d shows all", "dim")


MOST_LINES = 30
"""Lines of a diff that are shown at first on a terminal."""


def proposal_lines(proposal: Proposal) -> Iterator[str]:
    """Yield a proposal with all of its hunks."""
    yield head_line(proposal)
    for number, hunk in enumerate(proposal.hunks, 1):
        yield ""
        yield from hunk_lines(hunk, number, len(proposal.hunks))


def no_longer_applies(proposal_id: str, found: NoLongerApplies) -> WriteConflict:
    """Return the error for a proposal that does not fit its file any more."""
    which = f"{proposal_id} --hunk {found.number}"
    return WriteConflict(
        f"Hunk {found.number} of {proposal_id} no longer applies to {place(found.path)}: "
        f"{found.reason}.",
        path=found.path,
        base_hash="",
        current_hash="",
        hint=f"To change it: clawmark review edit {which}. To drop it: clawmark review reject "
        f"{which}",
    )


def diff_pieces(line: str, width: int) -> list[str]:
    """Cut a line of a diff at blanks so that it fits; further pieces are indented."""
    if cells(line) <= width:
        return [line]
    indent = " " * (len(line[1:]) - len(line[1:].lstrip()) + 1)
    first, *rest = wrap(line[1:], width - len(indent) - 2)
    return [f"{line[0]}{indent[1:]}{first}", *(f"{line[0]}{indent[1:]}  {piece}" for piece in rest)]
