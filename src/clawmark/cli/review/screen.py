"""Go through the proposals on a terminal, one key for each decision."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import NamedTuple

from clawmark.agent.review.box import ProposalBox
from clawmark.agent.review.hunks import NoLongerApplies
from clawmark.agent.review.proposals import Proposal
from clawmark.cli.editor import editor_command, make_copy, run_editor
from clawmark.cli.layout import plural
from clawmark.cli.output import flush, note, paint, place, say
from clawmark.cli.review.keys import Keyboard
from clawmark.cli.review.text import head_line, hunk_lines, no_longer_applies
from clawmark.model.errors import ClawmarkError, NotText

HELP = """\
  a  accept: write this change now
  r  reject: drop it; it is not proposed again
  e  edit it in $VISUAL or $EDITOR, then decide
  s  skip: decide another time
  d  show the whole diff
  q  quit
  ?  this help"""
QUESTION = "[a]ccept [r]eject [e]dit [s]kip [d]iff [q]uit [?] "


class Counts(NamedTuple):
    """What was decided."""

    accepted: int = 0
    rejected: int = 0
    skipped: int = 0


def review_all(box: ProposalBox, state_dir: str, keyboard: Keyboard) -> Counts:
    """Ask about each pending hunk until all are decided or skipped, or the user quits."""
    counts = Counts()
    for proposal_id, number in _pending(box):
        proposal = box.get(proposal_id)
        if number not in proposal.pending:  # decided in another process
            continue
        say()
        say(head_line(proposal))
        key = _decide(box, proposal, number, state_dir, keyboard)
        if key == "q":
            break
        counts = counts._replace(
            accepted=counts.accepted + (key == "a"),
            rejected=counts.rejected + (key == "r"),
            skipped=counts.skipped + (key == "s"),
        )
    return counts


def _pending(box: ProposalBox) -> Iterator[tuple[str, int]]:
    for proposal in box.list():
        for number in proposal.pending:
            yield proposal.id, number


def _decide(
    box: ProposalBox,
    proposal: Proposal,
    number: int,
    state_dir: str,
    keyboard: Keyboard,
) -> str:
    """Show a hunk and carry out keys until one of them decides; return that key."""
    total = len(proposal.hunks)
    say("\n".join(hunk_lines(proposal.hunks[number - 1], number, total, whole=False)))
    while True:
        key = _ask(keyboard)
        if key in ("q", "s"):
            return key
        if key == "d":
            say("\n".join(hunk_lines(proposal.hunks[number - 1], number, total)))
        elif key in ("a", "r", "e"):
            try:
                if _carry_out(box, proposal.id, number, key, state_dir, keyboard):
                    return key
            except ClawmarkError as error:  # the other hunks can still be decided
                note(f"{error.message} {error.hint}".strip())
            proposal = box.get(proposal.id)
            say("\n".join(hunk_lines(proposal.hunks[number - 1], number, total, whole=False)))
        else:
            say(HELP)


def _ask(keyboard: Keyboard) -> str:
    sys.stdout.write(paint(QUESTION, "bold"))
    flush()
    key = keyboard.read().lower()
    say(key if key.isprintable() else "")
    return "q" if key in ("\x04", "") else key


def _carry_out(
    box: ProposalBox,
    proposal_id: str,
    number: int,
    key: str,
    state_dir: str,
    keyboard: Keyboard,
) -> bool:
    """Accept, reject or edit a hunk; return whether it is decided."""
    if key == "r":
        box.reject(proposal_id, (number,))
        return True
    if key == "a":
        outcome = box.accept(proposal_id, (number,))
        if isinstance(outcome, NoLongerApplies):
            raise no_longer_applies(proposal_id, outcome)
        say(f"Written to {place(outcome.hunks[number - 1].path)}.")
        return True
    with keyboard.released():
        edit_hunk(box, proposal_id, number, state_dir)
    return False


def edit_hunk(box: ProposalBox, proposal_id: str, number: int, state_dir: str) -> bool:
    """Let the user edit what a hunk writes; return whether it changed."""
    hunk = box.pending_hunk(proposal_id, number)
    command = editor_command(os.environ)
    before = f"{hunk.new}\n".encode()
    copy = make_copy(state_dir, f"{proposal_id}-{number}.md", before)
    data = run_editor(command, copy, before)
    if data == before:
        copy.delete()
        return False
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise NotText("The edited text is not UTF-8.", hint=copy.hint) from None
    try:
        edited = box.edit(proposal_id, number, text).hunks[number - 1]
    except ClawmarkError as error:
        error.hint = f"{error.hint} {copy.hint}".strip()
        raise
    copy.delete()
    if hunk.old and not edited.old:
        note(f"Its lines are gone from {place(hunk.path)}, so it is added to the end of the file.")
    return True


def summary(counts: Counts, waiting: int) -> str:
    """Return what was decided, and how much is left."""
    parts = [f"{counts.accepted:,} accepted", f"{counts.rejected:,} rejected"]
    left = f"{plural(waiting, 'proposal')} {'waits' if waiting == 1 else 'wait'} for review"
    return f"{', '.join(parts)}; {left if waiting else 'nothing waits for review'}."
